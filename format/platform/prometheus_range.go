package platform

import (
	"encoding/json"
	"io"
	"math"
	"sort"
	"strconv"
	"strings"

	"github.com/sgtrace/sgtrace/internal/jsonscan"
	"github.com/sgtrace/sgtrace/trace"
)

// readRange reads answers of the API, one after another.
func (d *reader) readRange(r io.Reader) error {
	j := json.NewDecoder(r)
	for j.More() {
		if _, _, err := jsonscan.Each(j, func(key string) error { return d.member(j, key) }, nil); err != nil {
			return err
		}
	}
	return nil
}

func (d *reader) member(j *json.Decoder, key string) error {
	switch key {
	case "data":
		_, _, err := jsonscan.Each(j, func(key string) error { return d.member(j, key) }, nil)
		return err
	case "result":
		_, _, err := jsonscan.Each(j, nil, func() error { return d.result(j) })
		return err
	}
	_, _, err := jsonscan.Next(j)
	return err
}

// result reads a series.
func (d *reader) result(j *json.Decoder) error {
	var x struct {
		Metric map[string]string
		Values [][2]json.RawMessage
		Value  *[2]json.RawMessage // of an instant query
	}
	if err := j.Decode(&x); err != nil {
		return err
	}
	name := x.Metric["__name__"]
	if name == "" {
		return nil // of a function of metrics: nobody knows what it means
	}
	key, err := json.Marshal(x.Metric)
	if err != nil {
		return err
	}
	id := d.seriesOf(string(key), name, "", x.Metric)
	if x.Value != nil {
		x.Values = append(x.Values, *x.Value)
	}
	type point struct {
		at    trace.Time
		value float64
	}
	var points []point
	for _, v := range x.Values {
		at, ok := seconds(string(v[0]))
		value, err := strconv.ParseFloat(strings.Trim(string(v[1]), `"`), 64)
		if ok && err == nil && !math.IsInf(value, 0) {
			points = append(points, point{at, value})
		}
	}
	sort.SliceStable(points, func(a, b int) bool { return points[a].at < points[b].at })
	for _, p := range points {
		d.add(id, p.at, p.value)
	}
	return nil
}

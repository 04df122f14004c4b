package platform

import (
	"encoding/json"
	"io"
	"strconv"
	"strings"

	"github.com/bytedance/sonic"

	"github.com/sgtrace/sgtrace/internal/jsonscan"
)

// readRange reads consecutive responses of the API. at is where it stops.
func (d *reader) readRange(r io.Reader) (at int64, err error) {
	j := json.NewDecoder(r)
	for err == nil && j.More() {
		_, _, err = jsonscan.Each(j, func(key string) error { return d.member(j, key) }, nil)
	}
	return j.InputOffset(), err
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
	var text json.RawMessage
	if err := j.Decode(&text); err != nil {
		return err
	}
	type pair [2]sonic.NoCopyRawMessage
	var x struct {
		Metric map[string]string
		Values []pair
		Value  *pair // of an instant query
	}
	if err := sonic.Unmarshal(text, &x); err != nil {
		return err
	}
	if x.Value != nil {
		x.Values = append(x.Values, *x.Value)
	}
	points := make([]point, 0, len(x.Values))
	for _, v := range x.Values {
		at, ok := seconds(string(v[0]))
		value, err := strconv.ParseFloat(strings.Trim(string(v[1]), `"`), 64)
		if ok && err == nil {
			points = append(points, point{at, value})
		}
	}
	d.points(x.Metric, points)
	return nil
}

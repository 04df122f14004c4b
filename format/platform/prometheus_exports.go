package platform

import (
	"bytes"
	"encoding/json"
	"io"
	"math"
	"sort"
	"strings"
	"time"

	"github.com/sgtrace/sgtrace/internal/lazyregexp"
	"github.com/sgtrace/sgtrace/trace"
)

// An export is a form in which other programs write metrics.
type export struct {
	encoding string
	is       func(head []byte) bool
	read     func(d *reader, r io.Reader) error
}

// exports are looked for in this order.
var exports = []export{
	{"VictoriaMetrics export", func(head []byte) bool {
		return lineOfMetric.Match(head)
	}, (*reader).readLines},
	{"remote read", func(head []byte) bool {
		return head[0] == '{' && bytes.Contains(head, []byte(`"timeseries"`)) && bytes.Contains(head, []byte(`"labels"`))
	}, (*reader).readRemote},
	{"Grafana frames", func(head []byte) bool {
		return head[0] == '{' && bytes.Contains(head, []byte(`"frames"`)) && bytes.Contains(head, []byte(`"schema"`))
	}, (*reader).readFrames},
	{"Grafana CSV", isPanel, (*reader).readPanel},
}

var lineOfMetric = lazyregexp.New(`^\{"metric": ?\{(?:"[^\n]*)?"__name__"`)

// exportOf returns the export that a file is; nil for Prometheus's own forms.
func exportOf(head []byte) *export {
	head = bytes.TrimLeft(head, "\xef\xbb\xbf \r\n")
	for i := range exports {
		if len(head) > 0 && exports[i].is(head) {
			return &exports[i]
		}
	}
	return nil
}

// A point is a value of a series.
type point struct {
	at    trace.Time
	value float64
}

// points adds a series, in order of time. One without a name is the result of a function.
func (d *reader) points(labels map[string]string, list []point) {
	name := labels["__name__"]
	key, err := json.Marshal(labels)
	switch {
	case err != nil:
		return
	case name == "":
		d.unnamed = append(d.unnamed, &panelSeries{labels: labels, list: list})
		return
	}
	id := d.seriesOf(string(key), name, "", labels)
	sort.SliceStable(list, func(a, b int) bool { return list[a].at < list[b].at })
	for _, p := range list {
		if !math.IsInf(p.value, 0) {
			d.add(id, p.at, p.value)
		}
	}
}

// milliseconds converts a JSON time.
func milliseconds(n int64) trace.Time { return trace.Time(n) * 1e6 }

// readLines reads the output of VictoriaMetrics' /api/v1/export: a series per line.
func (d *reader) readLines(r io.Reader) error {
	j := json.NewDecoder(r)
	for j.More() {
		var x struct {
			Metric     map[string]string
			Values     []*float64
			Timestamps []int64
		}
		if err := j.Decode(&x); err != nil {
			return err
		}
		d.points(x.Metric, paired(x.Timestamps, x.Values))
	}
	return nil
}

// paired joins times in ms with values, where null is no value.
func paired(times []int64, values []*float64) (list []point) {
	for i, v := range values[:min(len(values), len(times))] {
		if v != nil {
			list = append(list, point{milliseconds(times[i]), *v})
		}
	}
	return list
}

// readRemote reads a response of Prometheus's remote read, as JSON.
func (d *reader) readRemote(r io.Reader) error {
	var x struct {
		Results []struct {
			Timeseries []struct {
				Labels  []struct{ Name, Value string }
				Samples []struct {
					Timestamp int64
					Value     float64
				}
			}
		}
	}
	err := json.NewDecoder(r).Decode(&x)
	for _, result := range x.Results {
		for _, s := range result.Timeseries {
			labels := map[string]string{}
			for _, l := range s.Labels {
				labels[l.Name] = l.Value
			}
			var list []point
			for _, v := range s.Samples {
				list = append(list, point{milliseconds(v.Timestamp), v.Value})
			}
			d.points(labels, list)
		}
	}
	return err
}

// readFrames reads the output of Grafana's query inspector: columns of times and of values.
func (d *reader) readFrames(r io.Reader) error {
	var x struct {
		Results map[string]struct {
			Frames []struct {
				Schema struct {
					Fields []struct {
						Type   string
						Labels map[string]string
					}
				}
				Data struct{ Values []json.RawMessage }
			}
		}
	}
	err := json.NewDecoder(r).Decode(&x)
	for _, result := range x.Results {
		for _, frame := range result.Frames {
			var times []int64
			for i, field := range frame.Schema.Fields {
				var values []*float64
				switch {
				case i >= len(frame.Data.Values):
				case field.Type == "time":
					_ = json.Unmarshal(frame.Data.Values[i], &times) // without times there are no points
				case json.Unmarshal(frame.Data.Values[i], &values) == nil:
					d.points(field.Labels, paired(times, values))
				}
			}
		}
	}
	return err
}

// stampLayouts are the formats of `date`, whose output loops print between scrapes, and of panels. Decimals may follow the
// seconds.
var stampLayouts = [...]string{time.UnixDate, "Mon Jan _2 03:04:05 PM MST 2006", time.RFC3339, "2006-01-02T15:04:05Z0700", time.DateTime, "2006-01-02T15:04:05", "01/02/2006 15:04:05", time.ANSIC}

// stampOf parses a time in a human-readable format, or since 1970; local means that its zone is unknown.
func stampOf(text string) (at trace.Time, local, ok bool) {
	if at, ok := unixStamp(text); ok && at > trace.Time(1e18) { // since 2001: smaller numbers are not times
		return at, false, true
	}
	for _, layout := range stampLayouts {
		t, err := time.Parse(layout, text)
		if err != nil {
			continue
		}
		name, _ := t.Zone() // an abbreviation may stand for several zones
		return trace.Time(t.UnixNano()), !strings.Contains(layout, "Z0") && (name != "UTC" || !strings.Contains(layout, "MST")), true
	}
	return 0, false, false
}

// dateOf parses a line between two scrapes with the time of the second one: the output of `date`, perhaps with other text
// around it. local means that its zone is unknown.
func dateOf(line []byte) (at trace.Time, local, ok bool) {
	const longest = 60
	if len(line) > longest { // as most lines do
		return 0, false, false
	}
	text := strings.Trim(string(line), "#=-[] \t")
	if len(text) < len("1787000000") || text[0] < '1' || text[0] > '9' && !strings.Contains("MTWFS", text[:1]) {
		return 0, false, false
	}
	return stampOf(text)
}

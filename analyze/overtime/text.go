package overtime

import (
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/load"
	"github.com/sgtrace/sgtrace/analyze/metric"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/profile"
)

// maxDrawn is how many devices, and how many counters of a source, are drawn.
const maxDrawn = 8

// Write draws the timeline as text: the changes, then a block per device, and one for each source of
// counters that belongs to no device.
func (t *Timeline) Write(out io.Writer, style table.Style) error {
	n := t.N()
	if n == 0 {
		_, err := fmt.Fprintf(out, "GPUs over time: %s\n", strings.Join(t.Notes(), "; "))
		return err
	}
	for i := range t.Changes {
		c := &t.Changes[i]
		text := t.Sentence(c)
		if part := c.part(); c.Edge {
			text = part + ": " + text
		}
		table.WriteFilled(out, style, fmt.Sprintf("%d. ", i+1), words.Clean(text))
	}
	if len(t.Changes) > 0 {
		fmt.Fprintln(out)
	}
	d := &load.Drawing{Buckets: n, Time: func(b int) string { return t.clock(t.Start(b)) }}
	for i := range t.Changes {
		d.Marks = append(d.Marks, t.Of(t.Changes[i].Time))
	}
	t.draw(d)
	table.WriteFilled(out, style, "GPUs over time: ", fmt.Sprintf("%s from %s %s, %s of %s", words.Counted(len(t.Devices), "device"),
		words.Clock(t.Start(0)).Format(words.DateLayout), words.ZoneAt(t.Start(0)), words.Counted(n, "bucket"), words.Nearly(t.Bucket)))
	if _, err := fmt.Fprintln(out); err != nil {
		return err
	}
	return d.Write(out, style)
}

// draw adds the blocks and the notes.
func (t *Timeline) draw(d *load.Drawing) {
	drawn := map[int]bool{} // counters
	for i := range t.Devices {
		if i == maxDrawn {
			d.Notes = append(d.Notes, fmt.Sprintf("the first %d of %d devices are drawn; CSV and JSON have all", maxDrawn, len(t.Devices)))
			break
		}
		of := &t.Devices[i]
		list := t.deviceCurves(of)
		for k := range t.Counters {
			if c := &t.Counters[k]; c.RankIndex == of.RankIndex && c.IsMain() && !drawn[k] {
				drawn[k] = true
				list = append(list, c.curve())
			}
		}
		d.Add(t.Name(of), list)
	}
	for from := 0; from < len(t.Counters); {
		to := from + 1
		for to < len(t.Counters) && t.Counters[to].RankIndex < 0 && t.Counters[to].Source == t.Counters[from].Source {
			to++
		}
		if t.Counters[from].RankIndex < 0 {
			d.Add(t.Counters[from].Source, t.sourceCurves(t.Counters[from:to]))
		}
		from = to
	}
	if t.Under != nil {
		d.Add("requests", []load.Curve{{Name: "under way", Values: t.Under, Size: 1}})
	}
	d.Notes = append(d.Notes, t.Notes()...)
}

// sourceCurves returns the curves of the first main counters of a source.
func (t *Timeline) sourceCurves(counters []Counter) []load.Curve {
	var list []load.Curve
	for i := range counters {
		if counters[i].IsMain() && len(list) < maxDrawn {
			list = append(list, counters[i].curve())
		}
	}
	return list
}

// deviceCurves returns the curves of a device.
func (t *Timeline) deviceCurves(d *Device) []load.Curve {
	of := func(name, unit string, size float64, value func(*Cell) float64) load.Curve {
		c := load.Curve{Name: name, Unit: unit, Size: size}
		for b := range d.Cells {
			v := math.NaN()
			if d.Cells[b].Recorded > 0 {
				v = value(&d.Cells[b])
			}
			c.Values = append(c.Values, v)
		}
		return c
	}
	share := func(name string, value func(*Cell) int64) load.Curve {
		return of(name, "%", 0.01, func(c *Cell) float64 { return float64(value(c)) / float64(c.Recorded) })
	}
	most := of(metric.LaunchQueue.Title+", max", "", 1, func(c *Cell) float64 { return float64(c.MostQueued) })
	most.Peaks = true
	list := []load.Curve{
		share(metric.Busy.Title, func(c *Cell) int64 { return c.Busy }),
		share("communication", func(c *Cell) int64 { return c.Comm }),
		of(metric.Overlap.Title, "%", 0.01, (*Cell).Overlap),
		of(metric.LaunchQueue.Title, "", 1, d.QueueDepth),
		most,
	}
	if d.Stepped {
		list = append(list, share("in steps", func(c *Cell) int64 { return c.Stepped }))
	}
	return append(list, of("tokens", "/s", 1, d.TokenRate))
}

// curve draws a counter.
func (c *Counter) curve() load.Curve {
	out := load.Curve{Name: shorten(c.Name), Unit: shorten(c.Unit), Size: 1, Peaks: c.Kind == profile.MemoryCounter}
	most := 0.0
	for i := range c.Points {
		v := c.Points[i].Mean
		if c.Kind == profile.MemoryCounter {
			v = c.Points[i].Most
		}
		out.Values = append(out.Values, v)
		if !math.IsNaN(v) {
			most = max(most, v)
		}
	}
	if c.Unit == "bytes" {
		for out.Unit = "B"; most >= 1000*out.Size && out.Unit != "TB"; {
			out.Size *= 1000
			out.Unit = map[string]string{"B": "kB", "kB": "MB", "MB": "GB", "GB": "TB"}[out.Unit]
		}
	}
	return out
}

// shorten cuts a name that leaves no room for its curve.
func shorten(name string) string {
	const most = 28
	if r := []rune(name); len(r) > most {
		return string(r[:most-3]) + "..."
	}
	return name
}

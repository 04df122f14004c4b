package overtime

import (
	"math"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/metric"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/profile"
)

// An observed is a metric that may change over time.
type observed struct {
	metric *metric.Metric // in the unit Share or Number
	in     string         // unit of a Number: "bytes"; "" is none
	// steady tells that it is about what a device does for a step or request, so that it is
	// the same whether there is little or much to do.
	steady bool
	of     func(*Device, *Cell) float64 // nil of counters
	// perStep tells that it is ns for each step, and worse the longer.
	perStep bool
	// pace is what takes as long each time, in words, where the metric is how long that takes, as a multiple: "kernels".
	pace string
}

// deviceMetrics are those of devices; of times, they are the part of what was recorded.
var deviceMetrics = []observed{
	{metric: metric.Busy, steady: true, of: func(_ *Device, c *Cell) float64 { return distribution.Fraction(c.Busy, c.Recorded) }},
	{metric: metric.ExposedComm, steady: true, of: func(_ *Device, c *Cell) float64 { return distribution.Fraction(c.Comm-c.Hidden, c.Recorded) }},
	{metric: metric.LaunchQueue, of: (*Device).QueueDepth},
}

// unit returns that of the values.
func (m *observed) unit() table.Unit {
	if m.metric.Unit == table.Duration && !m.perStep {
		return table.Share
	}
	return m.metric.Unit
}

// QueueDepth returns how much work waited on average; NaN is unknown.
func (d *Device) QueueDepth(c *Cell) float64 {
	if !d.Called || c.Recorded == 0 {
		return math.NaN()
	}
	return float64(c.Queued) / float64(c.Recorded)
}

// A series is a metric of a device, or a counter, in the buckets of which it is known.
type series struct {
	metric  *observed
	place   string // "TP2", "GPU 0 of node1"
	rank    int32  // -1 is none
	buckets []int  // of Timeline.fine
	values  []float64
	// Of what is per step, there are no buckets, but so many steps in each observation.
	rounds []round
	size   int
}

// minWork is the part of a bucket in which a device has something to do, at least, for
// changes to be looked for in it.
const minWork = 0.5

// fewest is how many buckets a series has in which changes are looked for.
const fewest = 20

// allSeries returns what changes are looked for in.
func (t *Timeline) allSeries() []series {
	var all []series
	for i := range t.Devices {
		for k := range deviceMetrics {
			if s := t.ofDevice(&t.Devices[i], &deviceMetrics[k]); len(s.values) >= fewest {
				all = append(all, s)
			}
		}
		if s := t.ofSteps(&t.Devices[i]); len(s.values) >= fewestSteps {
			all = append(all, s)
		}
	}
	for i := range t.Counters {
		if s := t.ofCounter(&t.Counters[i]); len(s.values) >= fewest {
			all = append(all, s)
		}
	}
	return all
}

// ofDevice returns a metric of a device, in the buckets that were recorded whole and in which
// there was work, as far as that is known.
func (t *Timeline) ofDevice(d *Device, m *observed) series {
	s := series{metric: m, place: t.Name(d), rank: d.RankIndex}
	for b := range d.fine {
		c := &d.fine[b]
		work, _ := t.work(d, b)
		value := m.of(d, c)
		if c.Recorded < t.fine.Bucket || !(work >= minWork) || math.IsNaN(value) {
			continue
		}
		if m.steady {
			value = min(1, value/work)
		}
		s.buckets, s.values = append(s.buckets, b), append(s.values, value)
	}
	return s
}

// work returns the part of what was recorded of a device in a bucket in which it had
// something to do: in which its server ran a step, or some request was under way. It is 1 where nothing tells.
func (t *Timeline) work(d *Device, b int) (part float64, known bool) {
	switch {
	case d.Stepped:
		return distribution.Fraction(d.fine[b].Stepped, d.fine[b].Recorded), true
	case t.any != nil:
		return distribution.Fraction(t.any[b], t.fine.Bucket), true
	}
	return 1, false
}

// ofCounter returns the means of a counter that people look at; of a device, while it had
// something to do.
func (t *Timeline) ofCounter(c *Counter) series {
	m := &observed{metric: &metric.Metric{Long: c.Name, Unit: table.Number}, in: c.Unit}
	s := series{metric: m, place: t.PlaceOf(c), rank: c.RankIndex}
	if !c.IsMain() {
		return s
	}
	scale := 1.0
	if c.Unit == "%" {
		m.metric.Unit, scale = table.Share, 0.01
	}
	d := t.deviceNamed(s.place)
	for b := range c.fine {
		if d != nil && c.Kind == profile.DeviceCounter {
			if work, _ := t.work(d, b); !(work >= minWork) {
				continue
			}
		}
		if v := c.fine[b].Mean; !math.IsNaN(v) {
			s.buckets, s.values = append(s.buckets, b), append(s.values, scale*v)
		}
	}
	return s
}

// PlaceOf names what a counter is of.
func (t *Timeline) PlaceOf(c *Counter) string {
	if c.RankIndex < 0 {
		return c.Source
	}
	for i := range t.Devices {
		if d := &t.Devices[i]; d.RankIndex == c.RankIndex && !t.several {
			return c.Rank
		}
	}
	return c.Rank + " " + c.Source
}

// mainMetrics are beginnings of the metrics of devices that are drawn, and looked for changes
// in; nsys samples some fifty.
var mainMetrics = []string{"GR Active", "SMs Active", "SM Issue", "Tensor", "DRAM", "NVLink", "PCIe"}

// IsMain reports whether a counter is one of those that people look at first.
func (c *Counter) IsMain() bool {
	return c.Kind != profile.DeviceCounter ||
		slices.ContainsFunc(mainMetrics, func(name string) bool { return strings.HasPrefix(c.Name, name) })
}

// How large a change is at least.
const (
	minShare  = 0.15 // of the time, or of what is possible
	minFactor = 1.5
	minQueue  = 1 // pieces of work
	minBytes  = 64 << 20
	minLonger = 1.1 // of steps that do the same
)

// matters reports whether a change is large enough to be told.
func (m *observed) matters(before, after float64) bool {
	difference := math.Abs(after - before)
	switch {
	case m.unit() == table.Share:
		return difference >= minShare
	case m.perStep:
		return max(before, after) >= minLonger*min(before, after)
	case m.of != nil && difference < minQueue, m.in == "bytes" && difference < minBytes:
		return false
	}
	return max(before, after) >= minFactor*min(before, after)
}

// text writes a value of the metric.
func (m *observed) text(v float64) string {
	switch {
	case m.unit() == table.Share:
		return words.InPercent(v) + " %"
	case m.perStep:
		return words.Nearly(int64(v))
	case m.in == "bytes":
		return words.Size(int64(v))
	}
	return words.JoinNonEmpty(" ", words.ThreeDigits(v), m.in)
}

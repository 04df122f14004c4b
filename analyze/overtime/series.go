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

// An observed is a metric in which changes are looked for.
type observed struct {
	metric *metric.Metric // in the unit Share or Number
	in     string         // unit of a Number: "bytes"; "" is none
	// steady reports that the metric describes how a device works on steps or requests, which does not
	// depend on how many there are.
	steady bool
	of     func(*Device, *Cell) float64 // nil for counters
	// perStep reports that values are ns per step: the longer, the worse.
	perStep bool
	// pace names what should take equally long each time, such as "kernels", if values are multiples of its usual time; otherwise "".
	pace string
}

// deviceMetrics are the metrics of devices in which changes are looked for. Times are shares of the recorded time.
var deviceMetrics = []observed{
	{metric: metric.Busy, steady: true, of: func(_ *Device, c *Cell) float64 { return distribution.Fraction(c.Busy, c.Recorded) }},
	{metric: metric.ExposedComm, steady: true, of: func(_ *Device, c *Cell) float64 { return distribution.Fraction(c.Comm-c.Hidden, c.Recorded) }},
	{metric: metric.LaunchQueue, of: (*Device).QueueDepth},
}

// unit returns the unit of the values.
func (m *observed) unit() table.Unit {
	if m.metric.Unit == table.Duration && !m.perStep {
		return table.Share
	}
	return m.metric.Unit
}

// QueueDepth returns how many pieces of work waited on average; NaN is unknown.
func (d *Device) QueueDepth(c *Cell) float64 {
	if !d.Called || c.Recorded == 0 {
		return math.NaN()
	}
	return float64(c.Queued) / float64(c.Recorded)
}

// A series is a metric of a device, or a counter, over the buckets for which it is known.
type series struct {
	metric  *observed
	place   string // "TP2", "GPU 0 of node1"
	rank    int32  // -1 is none
	buckets []int  // of Timeline.fine
	values  []float64
	// Series of steps have no buckets: each observation is of size consecutive steps.
	rounds []round
	size   int
}

// minWork is the least part of a bucket in which a device must have work for changes to be looked for
// in it.
const minWork = 0.5

// fewest is the least number of buckets in a series in which changes are looked for.
const fewest = 20

// allSeries returns the series in which changes are looked for.
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

// ofDevice returns the series of a device's metric, over the buckets that were recorded entirely and in
// which, as far as is known, it had work.
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

// work returns the part of a bucket in which a device had work: its server ran a step or, where steps
// are unknown, some request was under way. It is 1 if neither is known.
func (t *Timeline) work(d *Device, b int) (part float64, known bool) {
	switch {
	case d.Stepped:
		return distribution.Fraction(d.fine[b].Stepped, d.fine[b].Recorded), true
	case t.any != nil:
		return distribution.Fraction(t.any[b], t.fine.Bucket), true
	}
	return 1, false
}

// ofCounter returns the series of a counter, which is empty unless it is a main one. Counters of a
// device are searched while it had work.
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

// PlaceOf names what a counter belongs to: a rank, a device of one, or a source of the machine.
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

// mainMetrics are prefixes of the device metrics that are drawn and searched for changes; nsys samples
// about fifty.
var mainMetrics = []string{"GR Active", "SMs Active", "SM Issue", "Tensor", "DRAM", "NVLink", "PCIe"}

// IsMain reports whether a counter is one of those that people look at first.
func (c *Counter) IsMain() bool {
	return c.Kind != profile.DeviceCounter ||
		slices.ContainsFunc(mainMetrics, func(name string) bool { return strings.HasPrefix(c.Name, name) })
}

// The smallest changes that count.
const (
	minShare  = 0.15 // of the time, or of the maximum
	minFactor = 1.5
	minQueue  = 1 // pieces of work
	minBytes  = 64 << 20
	minLonger = 1.1 // ratio of the times of steps or kernels that do the same
)

// matters reports whether a change is large enough to report.
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

package chart

import (
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/trace"
)

// A scale maps values to positions on an axis.
type scale interface {
	// at returns the position of a value: 0 at the start of the axis, 1 at its end.
	at(v float64) float64
	ticks() []tick
}

// A tick is a marked value of an axis. Without a label it is faint.
type tick struct {
	value float64
	label string
}

// A linear scale has equal distances for equal differences.
type linear struct {
	low, high float64
	unit      table.Unit
	count     int // about how many ticks
}

// newLinear returns a scale from 0, or from a round number at or below the least value if that is negative, to a
// round number at or above all values.
func newLinear(least, most float64, unit table.Unit, count int) linear {
	low, high := min(0, least), max(0, most)
	if unit == table.Share && high > 1 && high < 1+1e-9 {
		high = 1 // a sum of shares with rounding error must not extend the axis beyond 100 %
	}
	if high == low {
		high = low + 1
	}
	step := roundStep((high - low) / float64(count))
	return linear{math.Floor(low/step) * step, math.Ceil(high/step) * step, unit, count}
}

func (l linear) at(v float64) float64 { return (v - l.low) / (l.high - l.low) }

func (l linear) ticks() []tick {
	step := roundStep((l.high - l.low) / float64(l.count))
	var list []tick
	for i := math.Ceil(l.low / step); i*step <= l.high*(1+1e-9); i++ {
		list = append(list, tick{i * step, tickLabel(l.unit, i*step)})
	}
	return list
}

// tickLabel formats a value for the room to the left of an axis: seven digits.
func tickLabel(unit table.Unit, v float64) string {
	if unit == table.Number {
		for _, of := range []struct {
			size float64
			name string
		}{{1e12, "T"}, {1e9, "G"}, {1e6, "M"}} {
			if math.Abs(v) >= of.size {
				return strconv.FormatFloat(v/of.size, 'g', 3, 64) + of.name
			}
		}
	}
	return InUnit(unit, v)
}

// roundStep returns the smallest 1, 2, or 5 times a power of ten that is at least v.
func roundStep(v float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{1, 2, 5} {
		if m*power >= v*(1-1e-9) {
			return m * power
		}
	}
	return 10 * power
}

// A logarithmic scale has equal distances for equal factors. Lower values are placed at its start.
type logarithmic struct {
	low, high float64
	unit      table.Unit
	count     int // maximum number of labels
}

// newLogarithmic returns a scale for positive values, between two round numbers.
func newLogarithmic(least, most float64, unit table.Unit, count int) logarithmic {
	if !(least > 0) {
		least, most = 1, max(most, 1)
	}
	low := math.Pow(10, math.Floor(math.Log10(least)+1e-9))
	for _, m := range []float64{5, 2} {
		if m*low <= least*(1+1e-9) {
			low *= m
			break
		}
	}
	return logarithmic{low, max(roundStep(most), 2*low), unit, count}
}

func (l logarithmic) at(v float64) float64 {
	return math.Log(max(v, l.low)/l.low) / math.Log(l.high/l.low)
}

// ticks returns ticks at the multiples 1 to 9 of powers of ten. As many as fit have labels: all, those at 1, 2, and 5
// times a power, at 1 and 3 times, or at the powers; the others are faint.
func (l logarithmic) ticks() []tick {
	var list []tick
	for _, labeled := range [][]float64{{1, 2, 3, 4, 5, 6, 7, 8, 9}, {1, 2, 5}, {1, 3}, {1}} {
		list = list[:0]
		labels := 0
		for power := math.Pow(10, math.Floor(math.Log10(l.low)+1e-9)); power <= l.high; power *= 10 {
			for m := 1.0; m < 10; m++ {
				t := tick{value: m * power}
				if t.value < l.low*(1-1e-9) || t.value > l.high*(1+1e-9) {
					continue
				}
				if slices.Contains(labeled, m) {
					t.label = InUnit(l.unit, t.value)
					labels++
				}
				list = append(list, t)
			}
		}
		if labels <= l.count {
			return list
		}
	}
	return thinLabels(list, l.count)
}

// thinLabels keeps at most count labels, at equal distances.
func thinLabels(list []tick, count int) []tick {
	labels := order.Count(list, func(t tick) bool { return t.label != "" })
	every, seen := (labels+count-1)/count, 0
	for i := range list {
		if list[i].label != "" {
			if seen%every != 0 {
				list[i].label = ""
			}
			seen++
		}
	}
	return list
}

// A percentileScale runs from p1 to p99.9 in equal steps of the normal distribution's deviates. This leaves room for
// both the body and the tail, and a log-normal distribution is a straight line over a logarithmic scale.
type percentileScale struct{}

const (
	minPercentile = 1
	maxPercentile = 99.9
)

func (percentileScale) at(percent float64) float64 {
	deviate := func(percent float64) float64 { return math.Erfinv(percent/50 - 1) }
	low, high := deviate(minPercentile), deviate(maxPercentile)
	return (deviate(percent) - low) / (high - low)
}

func (percentileScale) ticks() []tick {
	var list []tick
	for _, p := range []float64{1, 5, 10, 25, 50, 75, 90, 95, 99, 99.9} {
		list = append(list, tick{p, "p" + strconv.FormatFloat(p, 'f', -1, 64)})
	}
	return list
}

// A clock is a scale of time, in ns since 1970.
type clock struct {
	from, to trace.Time
	count    int // about how many ticks
}

func (c clock) at(v float64) float64 { return c.position(trace.Time(v)) }

// position is at without rounding the time to floating point.
func (c clock) position(t trace.Time) float64 {
	if c.to == c.from {
		return 0.5
	}
	return float64(t-c.from) / float64(c.to-c.from)
}

// clockSteps are the distances between ticks, in s, that are round for people.
var clockSteps = []float64{1e-6, 1e-5, 1e-4, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200}

func (c clock) ticks() []tick {
	step := int64(24 * time.Hour)
	for _, s := range clockSteps {
		if ns := int64(s * 1e9); int64(c.to-c.from) <= int64(c.count)*ns {
			step = ns
			break
		}
	}
	for step >= int64(24*time.Hour) && int64(c.to-c.from)/step > int64(c.count) {
		step *= 2
	}
	var list []tick
	_, seconds := words.Clock(c.from).Zone()
	offset := int64(seconds) * 1e9 // ticks are round in local time
	first := (int64(c.from)+offset+step-1)/step*step - offset
	for t := first; int64(c.from) <= t && t <= int64(c.to); t += step { // beyond the largest int64, t wraps around
		list = append(list, tick{float64(t), timeOfDay(trace.Time(t), step)})
	}
	return list
}

// timeOfDay formats a time as precisely as a step in ns requires.
func timeOfDay(t trace.Time, step int64) string {
	layout := "15:04:05"
	switch {
	case step >= int64(24*time.Hour):
		layout = "01-02"
	case step >= int64(time.Minute):
		layout = "15:04"
	case step < int64(time.Millisecond):
		layout = "15:04:05.000000"
	case step < int64(time.Second):
		layout = "15:04:05.000"
	}
	return words.Clock(t).Format(layout)
}

// dayNote states the day and zone of the times of day on an axis between two times.
func dayNote(from, to trace.Time) string {
	text := "times are " + words.ZoneAt(from) + ", from " + words.Clock(from).Format(time.DateOnly) + " on"
	if after := words.ZoneAt(to); after != words.ZoneAt(from) {
		text += ", and " + after + " once the clocks change"
	}
	return text
}

// InUnit formats a value with its unit; "-" if unknown.
func InUnit(unit table.Unit, v float64) string {
	switch {
	case math.IsNaN(v):
		return "-"
	case v == 0:
		return "0"
	case unit == table.Duration:
		return trace.FormatDuration(int64(math.Round(v)))
	case unit == table.Share:
		return strconv.FormatFloat(math.Round(1000*v)/10, 'f', -1, 64) + " %"
	}
	return threeDigits(v)
}

// threeDigits formats a number with three significant digits, or with all of its integer digits if there are more.
func threeDigits(v float64) string {
	decimals := 0
	for limit := 100.0; decimals < 3 && math.Abs(v) < limit && v != math.Trunc(v); limit /= 10 {
		decimals++
	}
	return strconv.FormatFloat(v, 'f', decimals, 64)
}

package overtime

import (
	"fmt"
	"math"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/words"
)

// How different work is at least before and after a change, so that it may be why.
const (
	otherPart   = 0.1 // of the time of steps, in steps that prefill
	otherFactor = 1.5 // requests in a batch, or under way
)

// compareWork says how much there was to do before and after a change, and whether that may
// explain it: devices are less busy with small batches than with large ones, and in decode
// than in prefill.
func (t *Timeline) compareWork(c *Change, before, after []int) {
	var parts []string
	compare := func(what string, x, y float64, differ bool) {
		if math.IsNaN(x) || math.IsNaN(y) {
			return
		}
		c.less = c.less || differ
		parts = append(parts, fmt.Sprintf("%s %s before and %s after", what, words.ThreeDigits(x), words.ThreeDigits(y)))
	}
	if d := t.deviceNamed(c.Where[0]); d != nil {
		_, c.known = t.work(d, 0)
		x, y := d.sum(before), d.sum(after)
		compare("requests in a batch:", x.batch(), y.batch(), differ(x.batch(), y.batch()))
		if p, q := x.prefill(), y.prefill(); max(p, q) > 0 {
			compare("prefilling, % of steps:", 100*p, 100*q, math.Abs(p-q) >= otherPart)
		}
		if d.Counted {
			compare("tokens/s:", d.TokenRate(&x), d.TokenRate(&y), false)
		}
	}
	if t.under != nil {
		x, y := average(t.under, before), average(t.under, after)
		compare("requests under way:", x, y, differ(x, y))
	}
	c.Load = strings.Join(parts, "; ")
}

// sum adds up what a device did in some buckets of Timeline.fine.
func (d *Device) sum(buckets []int) (all Cell) {
	for _, b := range buckets {
		all.add(&d.fine[b])
	}
	return all
}

// batch is how many requests a step computes, on average over time; NaN is unknown.
func (c *Cell) batch() float64 { return distribution.Ratio(c.batches, float64(c.batched)) }

// prefill is the part of the time of steps that is prefill; NaN is unknown.
func (c *Cell) prefill() float64 { return distribution.Ratio(float64(c.prefilled), float64(c.Stepped)) }

// differ reports whether one number is much larger than the other.
func differ(x, y float64) bool { return max(x, y) > otherFactor*min(x, y) }

func average(values []float64, of []int) float64 {
	sum := 0.0
	for _, b := range of {
		sum += values[b]
	}
	return sum / float64(len(of))
}

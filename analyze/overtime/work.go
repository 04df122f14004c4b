package overtime

import (
	"cmp"
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/gpu"
	"github.com/sgtrace/sgtrace/analyze/profilewalk"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// addSteps adds to the devices of each rank when its steps were under way, and the tokens
// that they computed.
func (c *Collector) addSteps(t *Timeline, g *gpu.GPUs) {
	for i := range g.Served {
		served := &g.Served[i]
		var of []*Device
		for k := range t.Devices {
			if t.Devices[k].Rank == served.Rank {
				of = append(of, &t.Devices[k])
			}
		}
		if len(of) > 0 {
			c.addStepsOf(of, served.Steps)
		}
	}
}

// addStepsOf adds the steps of a rank to its devices.
func (c *Collector) addStepsOf(devices []*Device, steps []profilewalk.Step) {
	cells := make([]Cell, c.grid.N())
	counted := true
	steps = slices.Clone(steps)
	slices.SortFunc(steps, func(a, b profilewalk.Step) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.End, b.End))
	})
	until := trace.Time(math.MinInt64)
	for i := range steps {
		s := &steps[i]
		from, to := extent(s)
		from, to = c.place(devices[0].RankIndex, from, to)
		n, ok := s.StepName.Tokens()
		counted = counted && ok
		c.grid.Each(from, to, func(b int, length int64) {
			cell := &cells[b]
			cell.Tokens += float64(n) * distribution.Fraction(length, int64(to-from))
			if s.StepName.Batch >= 0 {
				cell.batches += float64(s.StepName.Batch) * float64(length)
				cell.batched += length
			}
		})
		c.grid.Each(max(from, until), to, func(b int, length int64) {
			cells[b].Stepped += length
			if s.StepName.Kind == profile.StepPrefill {
				cells[b].prefilled += length
			}
		})
		until = max(until, to)
		if last := c.grid.Of(to - 1); last < len(cells) {
			cells[last].steps++
		}
	}
	for _, d := range devices {
		d.Stepped, d.Counted = true, counted
		for b := range cells {
			d.fine[b].add(&cells[b])
		}
	}
}

// extent returns when a step was under way, on the host or on a device.
func extent(s *profilewalk.Step) (from, to trace.Time) {
	if s.Projected {
		return min(s.Start, s.First), max(s.End, s.Last)
	}
	return s.Start, s.End
}

// addRequests adds how many requests were under way.
func (c *Collector) addRequests(t *Timeline) {
	if c.opt.Requests == nil || t.N() == 0 {
		return
	}
	from, to := t.Start(0), t.Start(t.N())
	var list []request.Interval
	for i := range c.opt.Requests.Requests {
		if r := &c.opt.Requests.Requests[i]; r.Start < to && r.End > from {
			list = append(list, request.Interval{From: r.Start, To: r.End})
		}
	}
	if len(list) == 0 {
		return // they may be of another time
	}
	t.under, t.any = make([]float64, t.fine.N()), make([]int64, t.fine.N())
	until := from
	for _, r := range list {
		t.fine.Each(r.From, r.To, func(b int, length int64) { t.under[b] += distribution.Fraction(length, t.fine.Bucket) })
		t.fine.Each(max(until, r.From), r.To, func(b int, length int64) { t.any[b] += length })
		until = max(until, r.To)
	}
	t.Under = make([]float64, t.N())
	for b := range t.under {
		t.Under[b/t.parts] += t.under[b] / float64(t.parts)
	}
}

package cause

import (
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// A Costs tells which part of the time of all requests something costs. It has one
// scale for findings of different kinds: the sum of the E2E of the finished requests.
type Costs struct {
	set   *request.Set
	list  []Attribution // of the finished requests
	usual *usualCauses  // nil of no requests
	total float64       // ns
}

// NewCosts makes a bill of the attributed requests of a set.
func NewCosts(s *request.Set, list []Attribution) *Costs {
	b := &Costs{set: s, list: list}
	if len(list) > 0 {
		b.usual = UsualOf(list)
	}
	for i := range list {
		b.total += float64(list[i].E2E.Total())
	}
	return b
}

// Part returns which part of all time ns is.
func (b *Costs) Part(ns float64) float64 {
	if b.total == 0 {
		return 0
	}
	return ns / b.total
}

// BeyondUsual returns what the causes cost the requests that started at since or
// later: what is beyond the usual of each cause.
func (b *Costs) BeyondUsual(since trace.Time, causes ...Cause) float64 {
	sum := 0.0
	for i := range b.list {
		a := &b.list[i]
		if b.set.Requests[a.Request].Start < since {
			continue
		}
		for _, c := range causes {
			sum += float64(max(0, a.E2E[c]-b.usual.Of(c, a)))
		}
	}
	return b.Part(sum)
}

// Scaled returns what a part of some causes costs, of the requests that started at since or
// later: of each, the part that f tells.
func (b *Costs) Scaled(since trace.Time, f func(*request.Request) float64, causes ...Cause) float64 {
	sum := 0.0
	for i := range b.list {
		a := &b.list[i]
		r := &b.set.Requests[a.Request]
		if r.Start < since {
			continue
		}
		for _, c := range causes {
			sum += f(r) * float64(max(0, a.E2E[c]))
		}
	}
	return b.Part(sum)
}

// WaitsFor returns what waiting for the ranks at a place costs, and which requests wait.
func (b *Costs) WaitsFor(at *place.Where) (float64, finding.Affected) {
	sum := 0.0
	var waiting []int
	for i := range b.list {
		a := &b.list[i]
		if a.Slow != request.None && at.Overlaps(new(place.NewWhere(b.set, int(a.Slow)))) {
			sum += float64(a.E2E[SlowRank])
			waiting = append(waiting, a.Request)
		}
	}
	return b.Part(sum), finding.AffectedOf(b.set, waiting)
}

// Price says what stragglers cost requests that wait for them, where any does, in place
// of what they cost ranks.
func (b *Costs) Price(stragglers []finding.Finding) []finding.Finding {
	for i := range stragglers {
		f := &stragglers[i]
		if f.At.Scope != place.OneRank {
			continue
		}
		if cost, waiting := b.WaitsFor(&f.At); cost > 0 {
			f.Cost, f.Whose, f.Affected = cost, finding.RequestTime, waiting
		}
	}
	return stragglers
}

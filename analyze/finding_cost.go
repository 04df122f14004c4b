package analyze

import (
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// A bill tells which part of the time of all requests something costs. It has one
// scale for findings of different kinds: the sum of the E2E of the finished requests.
type bill struct {
	set   *request.Set
	hosts map[string]string // names of the hosts of set
	list  []Attribution     // of the finished requests
	usual *usualCauses      // nil of no requests
	total float64           // ns
}

// newBill makes a bill of the attributed requests of a set.
func newBill(s *request.Set, hosts map[string]string, list []Attribution) *bill {
	b := &bill{set: s, hosts: hosts, list: list}
	if len(list) > 0 {
		b.usual = usualOf(list)
	}
	for i := range list {
		b.total += float64(list[i].E2E.Total())
	}
	return b
}

// part returns which part of all time ns is.
func (b *bill) part(ns float64) float64 {
	if b.total == 0 {
		return 0
	}
	return ns / b.total
}

// beyondUsual returns what the causes cost the requests that started at since or
// later: what is beyond the usual of each cause.
func (b *bill) beyondUsual(since trace.Time, causes ...Cause) float64 {
	sum := 0.0
	for i := range b.list {
		a := &b.list[i]
		if b.set.Requests[a.Request].Start < since {
			continue
		}
		for _, c := range causes {
			sum += float64(max(0, a.E2E[c]-b.usual.of(c, a)))
		}
	}
	return b.part(sum)
}

// waitsFor returns what waiting for the ranks at a place costs.
func (b *bill) waitsFor(at *place.Where) float64 {
	sum := 0.0
	for i := range b.list {
		a := &b.list[i]
		if a.Slow != request.None && at.Overlaps(new(place.NewWhere(b.set, b.hosts, int(a.Slow)))) {
			sum += float64(a.E2E[CauseSlowRank])
		}
	}
	return b.part(sum)
}

// price gives stragglers the weight of what requests wait for them; that of others
// stays as it is.
func (b *bill) price(found []finding.Finding) []finding.Finding {
	for i := range found {
		f := &found[i]
		if f.Kind != finding.FindingStraggler || f.At.Scope != place.OneRank {
			continue
		}
		if w := b.waitsFor(&f.At); w > 0 {
			f.Weight = w
		}
	}
	return found
}

// placeOf returns where proc is.
func (t *Tail) placeOf(proc int32) place.Where {
	return place.NewWhere(t.set, t.hosts, int(proc))
}

package tail

import (
	"fmt"

	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// Senders says what most of the requests have in common that arrive since a time beyond the
// rate of before, as the end of a sentence, and which of the finished requests have it; "" is
// nothing, or that most had it before.
func (t *Traits) Senders(since trace.Time) (words string, have []bool) {
	best, part := t.most(since, func(*request.Metrics) float64 { return 1 })
	if best == nil {
		return "", nil
	}
	return fmt.Sprintf("; %.0f %% of the added requests have %s", 100*part, best), best.in
}

// Askers says the same of those with the tokens that are beyond those of before; tokens are
// what a request has of them.
func (t *Traits) Askers(since trace.Time, tokens func(*request.Metrics) int64) string {
	best, part := t.most(since, func(m *request.Metrics) float64 { return float64(max(0, tokens(m))) })
	if best == nil {
		return ""
	}
	return fmt.Sprintf("; %.0f %% of the added tokens are of requests with %s", 100*part, best)
}

// most returns the trait of most of what is added since a time, and of how much of it; nil is
// none.
func (t *Traits) most(since trace.Time, weight func(*request.Metrics) float64) (best *Trait, part float64) {
	part = 0.7
	for i := range t.asked {
		trait := &t.asked[i]
		if had, has := t.added(trait, since, weight); had <= 0.5 && has > part {
			best, part = trait, has
		}
	}
	return best, min(1, part)
}

// added is which part of the requests before a time, by weight, has a trait, and which part of
// what comes beyond that rate later.
func (t *Traits) added(trait *Trait, since trace.Time, weight func(*request.Metrics) float64) (had, has float64) {
	var with, all [2]float64 // before and after
	first, last := since, since
	for i := range t.list {
		r := &t.set.Requests[t.list[i].Request]
		start, n := r.Start, weight(&r.Metrics)
		first, last = min(first, start), max(last, start)
		side := 0
		if start >= since {
			side = 1
		}
		all[side] += n
		if trait.in[i] {
			with[side] += n
		}
	}
	if all[0] == 0 || first >= since || last <= since {
		return 1, 0
	}
	longer := float64(last-since) / float64(since-first)
	more := all[1] - all[0]*longer
	if more <= 0 {
		return 1, 0
	}
	return with[0] / all[0], (with[1] - with[0]*longer) / more
}

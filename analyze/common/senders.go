package common

import (
	"fmt"

	"github.com/sgtrace/sgtrace/trace"
)

// Senders says what most of the requests have in common that arrive since a time beyond the
// rate of before, as the end of a sentence, and which of the finished requests have it; "" is
// nothing, or that most had it before.
func (t *Traits) Senders(since trace.Time) (words string, have []bool) {
	const most = 0.7
	best, part := (*Trait)(nil), most
	for i := range t.asked {
		trait := &t.asked[i]
		if had, has := t.added(trait, since); had <= 0.5 && has > part {
			best, part = trait, has
		}
	}
	if best == nil {
		return "", nil
	}
	return fmt.Sprintf("; %.0f %% of the added requests have %s", 100*min(1, part), best), best.in
}

// added is which part of the requests before a time has a trait, and which part of those that
// arrive beyond that rate later.
func (t *Traits) added(trait *Trait, since trace.Time) (had, has float64) {
	var with, all [2]float64 // before and after
	first, last := since, since
	for i := range t.list {
		start := t.set.Requests[t.list[i].Request].Start
		first, last = min(first, start), max(last, start)
		side := 0
		if start >= since {
			side = 1
		}
		all[side]++
		if trait.in[i] {
			with[side]++
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

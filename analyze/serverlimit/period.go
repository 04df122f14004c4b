package serverlimit

import (
	"math"

	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/changepoint"
	"github.com/sgtrace/sgtrace/trace"
)

// A period is the time in which more observations are long than at other times.
type period struct {
	from, to                int        // observations [from, to)
	since, earliest, latest trace.Time // when it began, with bounds of 95 %; 0 is from the beginning on
	p                       float64    // by chance; NaN if that is not known
	over                    bool       // before the last of the observations
	crowd                   bool       // all long ones are in it, and no test found it
}

// when says when it was; "" is from the beginning to the end. It was over at until, 0 is never.
func (p *period) when(until trace.Time) string {
	switch {
	case p.since == 0:
		return ""
	case until != 0:
		from, to := words.Tenths(p.since, until)
		return " between " + from + " and " + to
	}
	return " since " + words.When(p.since, p.earliest, p.latest)
}

// findPeriod finds it in observations, by time, of which some are long, and of which is known where that changes.
func findPeriod(long []bool, changes []changepoint.Change, at func(k int) trace.Time) period {
	n, count := len(long), changepoint.Count(long)
	p := period{to: n, p: math.NaN()}
	largest, most := -1, 0.0
	for k := range changes {
		c := &changes[k]
		if rise := count.Share(c.At, c.To) - count.Share(c.From, c.At); rise > most {
			largest, most = k, rise
		}
	}
	if largest >= 0 {
		c := &changes[largest]
		p.from, p.to, p.p = c.At, c.To, c.P
		// It began after the last observation before it, and before the first one that is long.
		p.since = at(c.At-1) + (at(c.At)-at(c.At-1))/2
		p.earliest, p.latest = at(max(0, c.First-1)), at(c.Last)
		for _, later := range changes[largest+1:] {
			if count.Share(later.At, later.To)*2 > count.Share(p.from, p.to) {
				p.to = later.To
			}
		}
	}
	const hardly = 0.1 // of what it was
	if p.from > 0 {
		p.over = p.to < n && count.Share(p.to, n) <= hardly*count.Share(p.from, p.to)
	} else if first, last, ok := changepoint.Crowd(long, fewVisits); ok {
		p = period{from: first, to: last + 1, since: at(first), earliest: at(first - 1), latest: at(first), p: math.NaN(), crowd: true, over: n-1-last >= fewVisits}
	}
	return p
}

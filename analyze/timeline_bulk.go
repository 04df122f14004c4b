package analyze

import (
	"slices"

	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// A bulk is the time in which the requests of a set were.
type bulk struct {
	from, to trace.Time
	outside  int // requests that are not within
}

// bulkOf returns the time of all requests of s. If some have nothing to do with
// the others, such as one with a forged time or a probe on the day before, it is
// that of the others: of nineteen in twenty, if all take a hundred times as long.
func bulkOf(s *request.Set) bulk {
	const (
		rare = 40 // one in so many at either end
		far  = 100
	)
	n := len(s.Requests)
	if n == 0 {
		return bulk{}
	}
	starts, ends := make([]trace.Time, n), make([]trace.Time, n)
	for i := range s.Requests {
		starts[i], ends[i] = s.Requests[i].Start, s.Requests[i].End
	}
	slices.Sort(starts)
	slices.Sort(ends)
	b := bulk{from: starts[0], to: ends[n-1]}
	from, to := starts[n/rare], ends[n-1-n/rare]
	if long := to - from; n >= rare && long > 0 && (b.to-b.from)/far > long {
		b.from, b.to = max(b.from, from-long), min(b.to, to+long)
	}
	tight := bulk{from: b.to, to: b.from}
	for i := range s.Requests {
		if r := &s.Requests[i]; b.holds(r) {
			tight.from, tight.to = min(tight.from, r.Start), max(tight.to, r.End)
		} else {
			tight.outside++
		}
	}
	return tight
}

// holds tells whether a request is within.
func (b *bulk) holds(r *request.Request) bool { return r.Start >= b.from && r.End <= b.to }

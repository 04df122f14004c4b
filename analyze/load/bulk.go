package load

import (
	"slices"

	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// A Bulk is the time in which the requests of a set were.
type Bulk struct {
	From, To trace.Time
	Outside  int // requests that are not within
}

// BulkOf returns the time of all requests of s. If some have nothing to do with
// the others, such as one with a forged time or a probe on the day before, it is
// that of the others: of nineteen in twenty, if all take a hundred times as long.
func BulkOf(s *request.Set) Bulk {
	const (
		rare = 40 // one in so many at either end
		far  = 100
	)
	n := len(s.Requests)
	if n == 0 {
		return Bulk{}
	}
	starts, ends := memory.Make[trace.Time](n), memory.Make[trace.Time](n)
	for i := range s.AllRequests() {
		starts[i], ends[i] = s.Requests[i].Start, s.Requests[i].End
	}
	slices.Sort(starts)
	slices.Sort(ends)
	b := Bulk{From: starts[0], To: ends[n-1]}
	from, to := starts[n/rare], ends[n-1-n/rare]
	if long := to - from; n >= rare && long > 0 && (b.To-b.From)/far > long {
		b.From, b.To = max(b.From, from-long), min(b.To, to+long)
	}
	tight := Bulk{From: b.To, To: b.From}
	for i := range s.AllRequests() {
		if r := &s.Requests[i]; b.Holds(r) {
			tight.From, tight.To = min(tight.From, r.Start), max(tight.To, r.End)
		} else {
			tight.Outside++
		}
	}
	return tight
}

// Holds reports whether a request is within.
func (b *Bulk) Holds(r *request.Request) bool { return r.Start >= b.From && r.End <= b.To }

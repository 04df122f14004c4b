package serverlimit

import (
	"fmt"
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// An overtaking has the requests in the queue of a server that were computed before others that came earlier.
type overtaking struct {
	first              trace.Time // when a request first overtook others
	jumpers, overtaken []int32    // indexes into Set.Requests
	waited             int64      // total wait of the overtaken requests, ns
}

// overtakings returns which requests overtook others in the queue of a server between from and to. Requests taken
// into the same batch don't overtake each other, and requests that gave up overtake none.
func (v *server) overtakings(from, to trace.Time) (o overtaking) {
	const apart = request.SameBatch + trace.Time(5e6)
	computed := map[int32]trace.Time{}
	for _, h := range v.intervals[prefilling] {
		if t, ok := computed[h.request]; !ok || h.time.From < t {
			computed[h.request] = h.time.From
		}
	}
	taken := func(h *stateInterval) bool {
		t, ok := computed[h.request]
		return ok && t <= h.time.To+apart
	}
	var waits []stateInterval // by start
	for _, h := range v.intervals[queued] {
		if h.time.To >= from && h.time.From <= to {
			waits = memory.Append(waits, h)
		}
	}
	latest, k := trace.Time(0), 0 // end of the latest wait among requests that came clearly earlier
	for i := range waits {
		for ; waits[k].time.From+apart <= waits[i].time.From; k++ {
			latest = max(latest, waits[k].time.To)
		}
		if h := &waits[i]; latest > h.time.To+apart && taken(h) {
			o.jumpers = append(o.jumpers, h.request)
			o.first = order.Earlier(o.first, h.time.To)
		}
	}
	earliest := trace.Time(math.MaxInt64) // when the first request that came clearly later is taken
	k = len(waits) - 1
	for i := len(waits) - 1; i >= 0; i-- {
		for ; waits[k].time.From >= waits[i].time.From+apart; k-- {
			if taken(&waits[k]) {
				earliest = min(earliest, waits[k].time.To)
			}
		}
		if h := &waits[i]; earliest < h.time.To-apart {
			o.overtaken, o.waited = append(o.overtaken, h.request), o.waited+int64(h.time.To-h.time.From)
		}
	}
	return o
}

// overtaken says that servers compute requests out of order, if that decides which requests wait: most of the waiting
// is by requests that others overtake. It returns "" otherwise.
func (l *Limits) overtaken(same []*Limit) string {
	const few, part = 10, 0.05
	var all overtaking
	waited, n := int64(0), 0
	for _, x := range same {
		k := slices.IndexFunc(l.servers, func(v *server) bool { return v.location == x.Location })
		if k < 0 || x.Location.Role == request.Decode || x.Kind == Transfers || x.Kind == Preempted {
			continue
		}
		o := l.servers[k].overtakings(x.From, x.To)
		all.jumpers, all.overtaken = append(all.jumpers, o.jumpers...), append(all.overtaken, o.overtaken...)
		if o.first != 0 {
			all.first = order.Earlier(all.first, o.first)
		}
		all.waited, waited, n = all.waited+o.waited, waited+x.Waited, n+len(x.Requests)
	}
	if len(all.jumpers) < few || float64(len(all.jumpers)) < part*float64(n) || float64(all.waited) < halfOf*float64(waited) {
		return ""
	}
	return fmt.Sprintf("since %s, later requests are served first: %d of them overtook %d that wait (%s)",
		words.At(all.first, "15:04:05"), len(all.jumpers), len(all.overtaken), l.why(&all))
}

// why suggests the rule by which the overtaking requests were chosen.
func (l *Limits) why(o *overtaking) string {
	if moreCached(l.set, o.jumpers, o.overtaken) {
		return "those with more of their prompt in the cache: longest prefix first?"
	}
	return "priorities?"
}

// moreCached reports whether clearly more of the prompts of some requests are cached than of others.
func moreCached[T int | int32](s *request.Set, some, others []T) bool {
	const clearly = 0.1
	cached := func(list []T) float64 {
		tokens, all := 0.0, 0.0
		for _, r := range list {
			if m := &s.Requests[r].Metrics; m.CachedTokens >= 0 && m.PromptTokens > 0 {
				tokens, all = tokens+float64(m.CachedTokens), all+float64(m.PromptTokens)
			}
		}
		return tokens / max(1, all)
	}
	return cached(some) > cached(others)+clearly
}

// holders returns the requests that run for nearly all of the time between from and to.
func (v *server) holders(from, to trace.Time) (list []int32) {
	var ran order.Groups[int32, []int64]
	for _, h := range v.intervals[running] {
		if a, b := max(h.time.From, from), min(h.time.To, to); a < b {
			order.Add(&ran, h.request, int64(b-a))
		}
	}
	for i, r := range ran.Keys {
		if float64(order.Total(ran.List[i])) >= nearlyAll*float64(to-from) {
			list = append(list, r)
		}
	}
	return list
}

// held describes the few requests that keep the room of a server for as long as others wait for it; "" if room
// changes hands.
func (l *Limits) held(x *Limit) string {
	k := slices.IndexFunc(l.servers, func(v *server) bool { return v.location == x.Location })
	if k < 0 || x.Kind != Room || x.Spells > 1 {
		return ""
	}
	list := l.servers[k].holders(x.From, x.To)
	if len(list) == 0 || float64(len(list)) < halfOf*x.Running {
		return ""
	}
	tokens, open := int64(0), 0
	for _, r := range list {
		q := &l.set.Requests[r]
		if tokens = max(tokens, q.Metrics.PromptTokens); q.Metrics.E2E < 0 {
			open++
		}
	}
	text := "; one request runs the whole time"
	if n := len(list); n > 1 {
		text = fmt.Sprintf("; %d requests run the whole time", n)
	}
	if open == len(list) {
		text += ", without ending"
	}
	if tokens > 0 {
		text += fmt.Sprintf(" (up to %s prompt tokens)", words.Thousands(tokens))
	}
	return text
}

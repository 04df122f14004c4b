package serverlimit

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/cause"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// roomy is the part of the most requests, and of the most tokens, that a server ever had at a time. While it has less, it has room for
// another request: a request that waits then, although no prompt is being computed, is held back for a reason of its own, such as a grammar
// that is compiled, a cached prompt or an adapter that is loaded, or a low priority.
const roomy = 0.7

// HeldBack returns which schedulers hold requests back, and whether there are enough requests to judge limits.
func (l *Limits) HeldBack(b *cause.Costs) ([]finding.Finding, finding.Check) {
	found, _ := (&Front{set: l.set, Desks: l.holds}).Findings(b)
	return found, l.check()
}

// holding returns the desk of a server's scheduler, whose visits are how long finished requests waited although it had room for them.
func (v *server) holding(s *request.Set) *FrontProcess {
	d := &FrontProcess{Location: v.location, duty: schedules}
	has, most := v.occupied(s)
	sizes := v.largestWaiting(s)
	full, waited := map[int]*request.Coverage{}, map[int32]bool{} // full is when there is no room for a request, by size
	visits := func(h *stateInterval) bool {
		r := &s.Requests[h.request]
		return r.Status == request.Finished && r.Complete() && r.Metrics.Retractions == 0
	}
	for i, h := range v.intervals[queued] {
		if waited[h.request] = true; !visits(&h) {
			continue
		}
		busy := order.Memo(full, sizes[i], func() *request.Coverage { return v.fullFor(has, most, 1<<sizes[i]) })
		d.add(visit{at: h.time.From, request: int(h.request), work: int64(h.time.To-h.time.From) - busy.Overlap(h.time.From, h.time.To)})
	}
	for _, h := range v.intervals[prefilling] {
		if !waited[h.request] && visits(&h) {
			d.add(visit{at: h.time.From, request: int(h.request)})
		}
	}
	memory.Free(has)
	d.judge()
	requests := func(list []visit) []int { return order.Each(list, func(v visit) int { return v.request }) }
	others := order.Only(d.visits, func(x visit) bool { return x.at >= d.Since && x.ns() < d.Limit })
	d.why = "grammars, adapters, or priorities"
	if moreCached(s, requests(d.kept), requests(others)) {
		d.why = "cached prompts that have to be loaded"
	}
	return d
}

// largestWaiting returns, for each wait in the queue, the size of the largest request that was in the queue when it came, or its own: a large
// one keeps those behind it waiting until there is room for it. A size is the number of bits of a number of tokens.
func (v *server) largestWaiting(s *request.Set) []int {
	waits := v.intervals[queued]
	sizes := order.Each(waits, func(h stateInterval) int { return bits.Len64(uint64(tokensOf(&s.Requests[h.request]))) })
	ends := make([]int, len(waits))
	for i := range ends {
		ends[i] = i
	}
	slices.SortFunc(ends, func(x, y int) int { return cmp.Compare(waits[x].time.To, waits[y].time.To) })
	var there [64]int // how many of each size are waiting
	largest, left := make([]int, len(waits)), 0
	for i := range waits {
		for ; waits[ends[left]].time.To < waits[i].time.From; left++ {
			there[sizes[ends[left]]]--
		}
		there[sizes[i]]++
		for k := range there {
			if there[k] > 0 {
				largest[i] = k
			}
		}
	}
	return largest
}

// tokensOf returns the most tokens that a request takes in a KV cache; 0 is unknown.
func tokensOf(r *request.Request) int64 {
	return max(0, r.Metrics.PromptTokens) + max(0, r.Metrics.CompletionTokens)
}

// An occupation is what runs on a server from an instant to the next.
type occupation struct {
	at               trace.Time
	requests, tokens int64
}

// occupied returns what runs on a server over time, and the most of both that ever did.
func (v *server) occupied(s *request.Set) (edges []occupation, most occupation) {
	edges = memory.Make[occupation](2 * len(v.intervals[running]))[:0]
	for _, h := range v.intervals[running] {
		tokens := tokensOf(&s.Requests[h.request])
		edges = append(edges, occupation{h.time.From, 1, tokens}, occupation{h.time.To, -1, -tokens})
	}
	slices.SortStableFunc(edges, func(x, y occupation) int { return cmp.Compare(x.at, y.at) })
	now := occupation{}
	for i := range edges {
		x := &edges[i]
		now.requests, now.tokens = now.requests+x.requests, now.tokens+x.tokens
		x.requests, x.tokens = now.requests, now.tokens
		most.requests, most.tokens = max(most.requests, now.requests), max(most.tokens, now.tokens)
	}
	return edges, most
}

// fullFor returns when a server computes prompts, or may have no room for a request with some tokens.
func (v *server) fullFor(has []occupation, most occupation, tokens int64) *request.Coverage {
	var list []request.Interval
	for _, h := range v.intervals[prefilling] {
		list = memory.Append(list, h.time)
	}
	for i := range has {
		x := &has[i]
		if i+1 < len(has) && (float64(x.requests) > roomy*float64(most.requests) || float64(x.tokens+tokens) > roomy*float64(most.tokens)) {
			list = memory.Append(list, request.Interval{From: x.at, To: has[i+1].at})
		}
	}
	return new(request.NewCoverage(list))
}

// explains reports whether requests that wait for a limit are mostly held back, so that the guess that a KV cache is full is wrong.
func (d *FrontProcess) explains(x *Limit) bool {
	if x.Kind != Room || x.Retracted > 0 || x.Location.Role == request.Decode || d.Location != x.Location || !d.again() {
		return false
	}
	held := order.SumRows(d.kept, func(v *visit) int64 {
		if v.at > x.To || v.at+trace.Time(v.ns()) < x.From {
			return 0
		}
		return v.ns()
	})
	return float64(held) >= halfOf*float64(x.Waited)
}

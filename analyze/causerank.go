package analyze

import (
	"cmp"
	"slices"

	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// A rankLoad is what a scheduler rank does besides the request at hand.
type rankLoad struct {
	prefills coverage     // of all requests
	starts   []trace.Time // of the prefills, in order
	usual    int64        // median gap between tokens, less the prefills in it; ns
}

// A coverage is a set of instants: disjoint intervals in order, each with the time
// that those before it cover.
type coverage struct {
	from, to []trace.Time
	before   []int64
}

// newCoverage unites intervals; it reorders them.
func newCoverage(list []Interval) coverage {
	slices.SortFunc(list, func(x, y Interval) int { return cmp.Compare(x.From, y.From) })
	var c coverage
	sum := int64(0)
	for _, iv := range list {
		last := len(c.to) - 1
		if last >= 0 && iv.From <= c.to[last] {
			if iv.To > c.to[last] {
				sum += int64(iv.To - c.to[last])
				c.to[last] = iv.To
			}
			continue
		}
		c.from, c.to, c.before = append(c.from, iv.From), append(c.to, iv.To), append(c.before, sum)
		sum += int64(iv.To - iv.From)
	}
	return c
}

// until returns how much is covered before t, in ns.
func (c *coverage) until(t trace.Time) int64 {
	i, _ := slices.BinarySearch(c.from, t) // those before i begin before t
	if i == 0 {
		return 0
	}
	return c.before[i-1] + int64(min(t, c.to[i-1])-c.from[i-1])
}

// overlap returns how much of [from, to) is covered, in ns.
func (c *coverage) overlap(from, to trace.Time) int64 {
	if to <= from || len(c.from) == 0 {
		return 0
	}
	return c.until(to) - c.until(from)
}

// loadRanks finds out, from all requests, what every rank prefilled when, and
// from the gaps between tokens what is usual on it.
func (a *attributor) loadRanks() {
	a.ranks = make([]rankLoad, len(a.set.Procs))
	prefills := make([][]Interval, len(a.set.Procs))
	for p := range a.set.Parts {
		part := &a.set.Parts[p]
		lead := a.set.Lead(part)
		if lead == request.None || part.Role != request.Unified && part.Role != request.Prefill {
			continue
		}
		proc := a.set.Threads[lead].Proc
		prefills[proc] = a.addPrefills(prefills[proc], lead)
	}
	for p, list := range prefills {
		for _, iv := range list {
			a.ranks[p].starts = append(a.ranks[p].starts, iv.From)
		}
		slices.Sort(a.ranks[p].starts)
		a.ranks[p].prefills = newCoverage(list)
	}
	gaps := make([][]int64, len(a.set.Procs))
	w := &causeWalk{attributor: a}
	for r := range a.set.Requests {
		lead, ok := a.steppingRank(r)
		if !ok {
			continue
		}
		w.readTokens(lead)
		proc := a.set.Threads[lead].Proc
		for k := 1; k < len(w.tokens); k++ {
			from, to := w.tokens[k-1].end, w.tokens[k].end
			gaps[proc] = append(gaps[proc], int64(to-from)-a.ranks[proc].prefills.overlap(from, to))
		}
	}
	for p := range gaps {
		a.ranks[p].usual = Summarize(gaps[p]).P50
	}
}

// steppingRank returns the thread that shows the tokens of request r; ok is false
// if there is none, or r cannot be divided.
func (a *attributor) steppingRank(r int) (lead int, ok bool) {
	req := &a.set.Requests[r]
	part := &a.set.Parts[a.set.Answering(req)]
	lead = a.set.Lead(part)
	return lead, lead != request.None && part.Role != request.Prefill && part.Role != request.Sender && attributable(a.set, req)
}

// addPrefills adds when thread t was being prefilled. In the v1 layout, which has
// no stage for waiting, that includes the queue and says nothing of the rank.
func (a *attributor) addPrefills(list []Interval, t int) []Interval {
	if a.set.LastStage(t, request.Queueing) == nil {
		return list
	}
	a.set.EachStage(a.set.Threads[t].Stages, func(i int) {
		if span := a.set.Row(i); span.Means == request.Prefilling && span.Start < span.End && plausible(span.Start, span.End) {
			list = append(list, Interval{span.Start, span.End})
		}
	})
	return list
}

// sameBatch is how far the prefills of one batch begin apart at most, in ns: a
// scheduler stamps one request after the other.
const sameBatch = 100_000

// beganWithOthers tells whether another prefill began together with that at t.
func (l *rankLoad) beganWithOthers(t trace.Time) bool {
	from, _ := slices.BinarySearch(l.starts, t-sameBatch)
	to, _ := slices.BinarySearch(l.starts, t+sameBatch+1)
	return to-from > 1
}

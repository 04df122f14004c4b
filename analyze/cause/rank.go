package cause

import (
	"slices"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// A rankLoad is what a scheduler rank does besides the request at hand.
type rankLoad struct {
	prefills request.Coverage // of all requests
	starts   []trace.Time     // of the prefills, in order
	usual    int64            // median gap between tokens, less the prefills in it; ns
}

// loadRanks finds out, from all requests, what every rank prefilled when, and
// from the gaps between tokens what is usual on it.
func (a *Attributor) loadRanks() {
	a.ranks = make([]rankLoad, len(a.set.Procs))
	prefills := make([][]request.Interval, len(a.set.Procs))
	for p := range a.set.AllParts() {
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
			a.ranks[p].starts = memory.Append(a.ranks[p].starts, iv.From)
		}
		slices.Sort(a.ranks[p].starts)
		a.ranks[p].prefills = request.NewCoverage(list)
	}
	gaps := make([][]int64, len(a.set.Procs))
	w := &CauseWalk{Attributor: a}
	for r := range a.set.AllRequests() {
		lead, ok := a.SteppingRank(r)
		if !ok {
			continue
		}
		w.readTokens(lead)
		proc := a.set.Threads[lead].Proc
		for k := 1; k < len(w.tokens); k++ {
			from, to := w.tokens[k-1].end, w.tokens[k].end
			if !a.set.Window.Has(from, to) {
				continue
			}
			gaps[proc] = memory.Append(gaps[proc], int64(to-from)-a.ranks[proc].prefills.Overlap(from, to))
		}
	}
	for p := range gaps {
		a.ranks[p].usual = distribution.Summarize(gaps[p]).P50
	}
}

// SteppingRank returns the thread that shows the tokens of request r; ok is false
// if there is none, or r cannot be divided.
func (a *Attributor) SteppingRank(r int) (lead int, ok bool) {
	req := &a.set.Requests[r]
	part := &a.set.Parts[a.set.Answering(req)]
	lead = a.set.Lead(part)
	return lead, lead != request.None && part.Role != request.Prefill && part.Role != request.Sender && Attributable(a.set, req)
}

// addPrefills adds when thread t was being prefilled, within the time that was selected: of what is
// outside, not all is read. In the v1 layout, which has
// no stage for waiting, that includes the queue and says nothing of the rank.
func (a *Attributor) addPrefills(list []request.Interval, t int) []request.Interval {
	if a.set.LastStage(t, request.Queueing) == nil {
		return list
	}
	a.set.EachStage(a.set.StagesOf(t), func(i int) {
		if span := a.set.Row(i); span.Means == request.Prefilling && span.Start < span.End && request.Plausible(span.Start, span.End) && a.set.Window.Has(span.Start, span.End) {
			list = memory.Append(list, request.Interval{From: span.Start, To: span.End})
		}
	})
	return list
}

// beganWithOthers reports whether another prefill began together with that at t.
func (l *rankLoad) beganWithOthers(t trace.Time) bool {
	from, _ := slices.BinarySearch(l.starts, t-request.SameBatch)
	to, _ := slices.BinarySearch(l.starts, t+request.SameBatch+1)
	return to-from > 1
}

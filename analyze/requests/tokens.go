package requests

import (
	"cmp"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// Tokens is how evenly one rank produced the tokens of a request.
type Tokens struct {
	Gaps distribution.Summary // between consecutive tokens
	// Outliers are the longest gaps, longest first: three at most, and only
	// those of twice the median or more.
	Outliers []Gap
}

// A Gap is the time between two consecutive tokens.
type Gap struct {
	Start trace.Time // the earlier token
	Dur   int64      // ns
	Batch int64      // size of the batch that ran last in the gap; request.Unknown
}

// measureTokens looks at the tokens of thread t; nil if it has fewer than two.
func measureTokens(s *request.Set, t int) *Tokens {
	times, batches := tokenTimes(s, t)
	if len(times) < 2 {
		return nil
	}
	gaps := make([]Gap, len(times)-1)
	durations := make([]int64, len(gaps))
	for i := range gaps {
		gaps[i] = Gap{Start: times[i], Dur: int64(times[i+1] - times[i]), Batch: batchBefore(batches, times[i+1])}
		durations[i] = gaps[i].Dur
	}
	out := &Tokens{Gaps: distribution.Summarize(durations)}
	slices.SortStableFunc(gaps, func(x, y Gap) int { return cmp.Compare(y.Dur, x.Dur) })
	for _, g := range gaps[:min(3, len(gaps))] {
		if g.Dur >= 2*out.Gaps.P50 {
			out.Outliers = append(out.Outliers, g)
		}
	}
	return out
}

// A batch is a schedule event: the batch that a request was put into.
type batch struct {
	time trace.Time
	size int64
}

// tokenTimes returns when thread t produced tokens, by the same stages as
// request.Set.TokenTimes does for the lead rank, and the batches it was in.
// Both are in order of time.
func tokenTimes(s *request.Set, t int) (tokens []trace.Time, batches []batch) {
	role := s.Parts[s.Threads[t].Part].Role
	answers := role != request.Prefill && role != request.Sender
	for i := range s.ThreadRows(t) {
		if row := s.Row(i); answers && row.Means.GivesToken() {
			tokens = append(tokens, row.End)
		}
		for _, e := range s.InstantsOf(i) {
			if e.Batch != request.Unknown {
				batches = append(batches, batch{e.Time, int64(e.Batch)})
			}
		}
	}
	slices.Sort(tokens)
	slices.SortStableFunc(batches, func(x, y batch) int { return cmp.Compare(x.time, y.time) })
	return tokens, batches
}

// batchBefore returns the size of the last batch scheduled before t.
func batchBefore(batches []batch, t trace.Time) int64 {
	i, _ := slices.BinarySearchFunc(batches, t, func(b batch, t trace.Time) int { return cmp.Compare(b.time, t) })
	if i == 0 {
		return request.Unknown
	}
	return batches[i-1].size
}

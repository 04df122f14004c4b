package requests

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// Subkinds of findings about dumps that keep only slow requests, or only some of all, since some time.
const (
	Sampling = "sampling"
	Sampled  = "sampled"
)

// OnlySlow reports that a fall of arrivals means that only slow requests are kept, if these
// arrive as often as before, and no others do.
func OnlySlow(s *request.Set, f *finding.Finding) (found finding.Finding, ok bool) {
	const few, about, hardly = 20, 2, 0.02
	from, _, _ := s.Bounds()
	off := f.Within + trace.Time(1e9)
	var before, after []int64 // E2E of requests that began then
	last := f.Since
	for i := range s.AllRequests() {
		r := &s.Requests[i]
		switch {
		case r.Status != request.Finished || r.Metrics.E2E < 0:
		case r.Start < f.Since-off:
			before = append(before, r.Metrics.E2E)
		case r.Start > f.Since+off:
			after, last = append(after, r.Metrics.E2E), max(last, r.Start)
		}
	}
	if len(before) < few || len(after) < few {
		return found, false
	}
	slices.Sort(after)
	shortest := after[int(hardly*float64(len(after)))]
	slow := float64(order.Count(before, func(ns int64) bool { return ns >= shortest }))
	was := distribution.Ratio(slow, float64(f.Since-off-from)/1e9)
	is := distribution.Ratio(float64(len(after)), float64(last-f.Since-off)/1e9)
	kept := slow / float64(len(before))
	if kept > 1/float64(about) || is > about*was || was > about*is {
		return found, false // fast ones are among them, or the rate of slow ones changed
	}
	return finding.Finding{Subkind: Sampling, At: f.At, Since: f.Since, Within: f.Within, P: f.P, Metric: f.Metric, Text: fmt.Sprintf("since %s, the dump has only requests that took %s or longer, %s /s; before, as many did, %s /s, and %s %% of all took less: only slow ones are kept (tail sampling?), and all that is measured since then is of these",
		words.When(f.Since, f.Since-f.Within, f.Since+f.Within), words.Nearly(shortest), words.ThreeDigits(is), words.ThreeDigits(was), words.InPercent(1-kept))}, true
}

// OnlySome reports that arrivals fell because the dump no longer has all requests: schedulers say that their batches hold more.
func OnlySome(s *request.Set, f *finding.Finding) (found finding.Finding, ok bool) {
	const all, fewer = 0.9, 0.8
	from, to, _ := s.Bounds()
	before, after := inBatches(s, from, f.Since-f.Within), inBatches(s, f.Since+f.Within, to)
	if before < all || after == 0 || after > fewer*before {
		return found, false
	}
	return finding.Finding{Subkind: Sampled, At: f.At, Since: f.Since, Within: f.Within, P: f.P, Metric: f.Metric, Text: fmt.Sprintf("since %s, the dump has at most %s %% of the requests in the batches of schedulers, before %s %%: the others are not in it (sampling?), and %s requests/s are not all that came",
		words.When(f.Since, f.Since-f.Within, f.Since+f.Within), words.InPercent(after), words.InPercent(min(1, before)), words.ThreeDigits(f.Metric.After))}, true
}

// inBatches returns the share of the requests in decode batches between two times that the set has; 0 if schedulers don't tell how large
// batches are. It is an upper bound: steps of which the set has no request are unknown.
func inBatches(s *request.Set, from, to trace.Time) float64 {
	steps := map[int][]decodeStep{} // by process
	for i := range s.AllRequests() {
		for _, p := range s.PartsOf(&s.Requests[i]) {
			part := &s.Parts[p]
			thread := s.Lead(part)
			if !part.Serves() || thread == request.None || part.End <= from || part.Start >= to {
				continue
			}
			proc := s.Threads[thread].Proc
			s.EachSelectedStage(s.StagesOf(thread), true, func(i int, _ bool) {
				row := s.Row(i)
				if row.Means != request.Stepping || row.Start < from || row.End > to {
					return
				}
				for _, at := range s.InstantsOf(i) {
					if at.Kind == request.Scheduled && at.Batch > 0 {
						steps[proc] = memory.Append(steps[proc], decodeStep{request.Interval{From: row.Start, To: row.End}, at.Batch})
						return
					}
				}
			})
		}
	}
	return seenOf(steps)
}

// A decodeStep is a request's share in a batch.
type decodeStep struct {
	request.Interval
	batch int32
}

// seenOf returns the share of the requests in batches that are there: each has the length of its step over the size of the batch, and if
// all are there, these add up to the time in which there is a step.
func seenOf(steps map[int][]decodeStep) float64 {
	has, of := 0.0, int64(0)
	for _, proc := range slices.Sorted(maps.Keys(steps)) {
		list := steps[proc]
		for _, x := range list {
			has += float64(x.To-x.From) / float64(x.batch)
		}
		all := order.Each(list, func(x decodeStep) request.Interval { return x.Interval })
		of += new(request.NewCoverage(all)).Overlap(0, math.MaxInt64)
	}
	return has / float64(max(1, of)) // 0 where there are no steps
}

package finders

import (
	"fmt"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/change"
	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// sampling is the subkind of findings about dumps that keep only some requests since some time.
const sampling = "sampling"

// onlySlow reports that a fall of arrivals means that only slow requests are kept, if these
// arrive as often as before, and no others do.
func (m *Measured) onlySlow(f *finding.Finding) (found finding.Finding, ok bool) {
	if f.Metric.Name != change.Arrivals || f.Metric.After >= f.Metric.Before {
		return found, false
	}
	const few, about, hardly = 20, 2, 0.02
	s := m.Of.Requests
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
	return finding.Finding{Subkind: sampling, At: f.At, Since: f.Since, Within: f.Within, P: f.P, Metric: f.Metric, Text: fmt.Sprintf("since %s, the dump has only requests that took %s or longer, %s /s; before, as many did, %s /s, and %s %% of all took less: only slow ones are kept (tail sampling?), and all that is measured since then is of these",
		words.When(f.Since, f.Since-f.Within, f.Since+f.Within), words.Nearly(shortest), words.ThreeDigits(is), words.ThreeDigits(was), words.InPercent(1-kept))}, true
}

// kept are the consequences of keeping only slow requests: everything measured in them is slower.
var kept = []finding.Consequence{
	{Cause: finding.Loss, CauseSubkind: sampling, Effect: finding.Change, Subkinds: []string{"", change.Pace, change.OutputLength, change.PromptLength, finding.CachedTokens}, Around: true, Enough: whenKept, Same: true},
	{Cause: finding.Loss, CauseSubkind: sampling, Effect: finding.Load, Subkinds: []string{"", finding.Waits}, Around: true, Enough: whenKept, Same: true},
	{Cause: finding.Loss, CauseSubkind: sampling, Effect: finding.Transfer, Subkinds: []string{"", finding.Waits}, Around: true, Enough: whenKept, Same: true},
	{Cause: finding.Loss, CauseSubkind: sampling, Effect: finding.Errors, Subkinds: nil, Around: true, Enough: whenKept, Same: true},
}

// whenKept reports whether something changed when a dump began to keep only slow requests.
func whenKept(f, of *finding.Finding) bool {
	const about = trace.Time(2e9)
	return max(f.Since-of.Since, of.Since-f.Since) <= about+f.Within+of.Within
}

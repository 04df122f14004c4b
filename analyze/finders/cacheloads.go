package finders

import (
	"fmt"
	"math"

	"github.com/sgtrace/sgtrace/analyze/change/work"
	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/memory"
)

// A prefilled is what the prefill of a prompt took, by the tokens that are computed and those that are cached.
type prefilled struct{ computed, cached, ns int64 }

// cacheLoads says that since a server takes longer for prefills, these take longer for the tokens of their prompts that are cached, if that explains
// more than those that they compute: what is cached is loaded first.
func (m *Measured) cacheLoads(f *finding.Finding) string {
	if work.Of(&f.Metric) != "prefill" || f.Metric.After <= f.Metric.Before || f.Since == 0 {
		return ""
	}
	var before, after []prefilled
	s := m.Of.Requests
	for i := range s.AllRequests() {
		r := &s.Requests[i]
		x := prefilled{r.Metrics.PrefillTokens(), r.Metrics.CachedTokens, r.Metrics.Prefill}
		if x.computed <= 0 || x.cached < 0 || x.ns <= 0 || m.piecesAt(&f.At, r) == 0 {
			continue
		}
		switch {
		case r.End < f.Since-f.Within:
			before = memory.Append(before, x)
		case r.Start > f.Since+f.Within && (f.Until == 0 || r.Start < f.Until):
			after = memory.Append(after, x)
		}
	}
	if per := perCached(before, after); per > 0 {
		return fmt.Sprintf("; each cached token adds %s since then: is the cache loaded from slow storage (hierarchical cache?)", words.Nearly(int64(per)))
	}
	return ""
}

// perCached returns by how much longer a prefill takes for each token that is cached than it did before, in ns, if that explains
// far more of how much longer it takes than the tokens do that it computes; else 0.
func perCached(before, after []prefilled) float64 {
	const far = 0.6
	sized := func(list []prefilled, of func(*prefilled) distribution.Sized) []distribution.Sized {
		out := memory.Make[distribution.Sized](len(list))
		for i := range list {
			out[i] = of(&list[i])
		}
		return out
	}
	usual := distribution.FitSize(sized(before, func(x *prefilled) distribution.Sized { return distribution.Sized{Tokens: x.computed, Ns: x.ns} }))
	if usual.N == 0 {
		return 0
	}
	more := func(x *prefilled) int64 { return x.ns - usual.Expected(x.computed) }
	// The fit of what prefills take longer by some tokens, and how far off that is in the middle.
	fit := func(tokens func(*prefilled) int64) (distribution.SizeFit, float64) {
		f := distribution.FitSize(sized(after, func(x *prefilled) distribution.Sized { return distribution.Sized{Tokens: tokens(x), Ns: more(x)} }))
		off := memory.Make[float64](len(after))
		for i := range after {
			x := &after[i]
			off[i] = math.Abs(float64(more(x)) - f.Base - f.PerToken*float64(tokens(x)))
		}
		if f.N == 0 {
			return f, 0
		}
		return f, distribution.LowerMedian(off)
	}
	cached, offCached := fit(func(x *prefilled) int64 { return x.cached })
	_, off := fit(func(x *prefilled) int64 { return x.computed })
	if cached.N == 0 || offCached > far*off {
		return 0
	}
	return cached.PerToken
}

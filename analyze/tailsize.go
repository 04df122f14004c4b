package analyze

import (
	"cmp"
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/request"
)

// A SizeFit is what a number of tokens usually takes: Base + PerToken * tokens.
type SizeFit struct {
	Base     float64 // ns
	PerToken float64 // ns
	N        int     // requests it is fitted to; 0 is no fit
}

// fewFitted is how many requests a SizeFit needs.
const fewFitted = 20

// expected returns what a number of tokens usually takes, in ns; 0 if that is not
// known.
func (f *SizeFit) expected(tokens int64) int64 {
	if tokens < 0 || f.N == 0 {
		return 0
	}
	return int64(math.Round(min(max(0, f.Base+f.PerToken*float64(tokens)), longest)))
}

// A sized is a number of tokens and the time that they took.
type sized struct{ tokens, ns int64 }

// fitSize fits a line that half of the requests can be far from: Theil's
// incomplete method. In order of their tokens, every request in the lower half is
// paired with the one half of the requests further; PerToken is the median slope
// of the pairs, and Base the median of what it leaves.
//
// H. Theil, A rank-invariant method of linear and polynomial regression analysis
// (1950); the pairing is that of his section 1.2.
func fitSize(v []sized) SizeFit {
	slices.SortFunc(v, func(x, y sized) int { return cmp.Or(cmp.Compare(x.tokens, y.tokens), cmp.Compare(x.ns, y.ns)) })
	if len(v) < fewFitted {
		return SizeFit{}
	}
	var slopes []float64
	half := len(v) / 2
	for i, low := range v[:half] {
		if high := v[i+len(v)-half]; high.tokens > low.tokens {
			slopes = append(slopes, float64(high.ns-low.ns)/float64(high.tokens-low.tokens))
		}
	}
	if len(slopes) == 0 {
		return SizeFit{} // all are equally long: there is nothing to tell
	}
	f := SizeFit{PerToken: max(0, lowerMedian(slopes)), N: len(v)}
	left := make([]float64, len(v))
	for i, x := range v {
		left[i] = float64(x.ns) - f.PerToken*float64(x.tokens)
	}
	f.Base = lowerMedian(left)
	return f
}

// promptTokens returns how many tokens the prefill of r computed; Unknown if it
// is not known.
func promptTokens(m *request.Metrics) int64 {
	if m.PromptTokens < 0 {
		return request.Unknown
	}
	return max(0, m.PromptTokens-max(0, m.CachedTokens))
}

// outputTokens returns how many tokens r generated after the first one.
func outputTokens(m *request.Metrics) int64 {
	if m.CompletionTokens < 1 {
		return request.Unknown
	}
	return m.CompletionTokens - 1
}

// splitSizes takes the usual time for their tokens out of prefill and decode of
// all attributions, for the E2E and the TTFT. It returns what is usual.
func splitSizes(s *request.Set, list []Attribution) (prompt, output SizeFit) {
	var prompts, outputs []sized
	for i := range list {
		m := &s.Requests[list[i].Request].Metrics
		if n := promptTokens(m); n >= 0 {
			prompts = append(prompts, sized{n, list[i].E2E[CausePrefill]})
		}
		if n := outputTokens(m); n >= 0 {
			outputs = append(outputs, sized{n, list[i].E2E[CauseDecode]})
		}
	}
	prompt, output = fitSize(prompts), fitSize(outputs)
	for i := range list {
		m := &s.Requests[list[i].Request].Metrics
		for _, c := range [...]*Causes{&list[i].E2E, &list[i].TTFT, &list[i].First} {
			if c[CausePrefill] == 0 {
				continue
			}
			move(c, CausePrefill, CausePromptSize, prompt.expected(promptTokens(m)))
			if list[i].Shared {
				move(c, CausePrefill, CauseSharedBatch, max(0, c[CausePrefill]))
			}
		}
		if e2e := &list[i].E2E; e2e[CauseDecode] != 0 {
			move(e2e, CauseDecode, CauseOutputLength, output.expected(outputTokens(m)))
		}
	}
	return prompt, output
}

// move gives ns of one cause to another. What is left may be negative: faster
// than usual.
func move(c *Causes, from, to Cause, ns int64) {
	c[from] -= ns
	c[to] += ns
}

package analyze

import (
	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/request"
)

// splitSizes takes the usual time for their tokens out of prefill and decode of
// all attributions, for the E2E and the TTFT. It returns what is usual.
func splitSizes(s *request.Set, list []Attribution) (prompt, output distribution.SizeFit) {
	var prompts, outputs []distribution.Sized
	for i := range list {
		m := &s.Requests[list[i].Request].Metrics
		if n := m.PrefillTokens(); n >= 0 {
			prompts = append(prompts, distribution.Sized{Tokens: n, Ns: list[i].E2E[CausePrefill]})
		}
		if n := m.DecodeTokens(); n >= 0 {
			outputs = append(outputs, distribution.Sized{Tokens: n, Ns: list[i].E2E[CauseDecode]})
		}
	}
	prompt, output = distribution.FitSize(prompts), distribution.FitSize(outputs)
	for i := range list {
		m := &s.Requests[list[i].Request].Metrics
		for _, c := range [...]*Causes{&list[i].E2E, &list[i].TTFT, &list[i].First} {
			if c[CausePrefill] == 0 {
				continue
			}
			move(c, CausePrefill, CausePromptSize, prompt.Expected(m.PrefillTokens()))
			if list[i].Shared {
				move(c, CausePrefill, CauseSharedBatch, max(0, c[CausePrefill]))
			}
		}
		if e2e := &list[i].E2E; e2e[CauseDecode] != 0 {
			move(e2e, CauseDecode, CauseOutputLength, output.Expected(m.DecodeTokens()))
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

package cause

import (
	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/request"
)

// Sizes are what prompts and outputs usually take, by group of servers: see [peers.Groups].
type Sizes struct {
	Prompt, Output []distribution.SizeFit
}

// SplitSizes takes the usual time for their tokens out of prefill and decode of
// all attributions, for the E2E and the TTFT. It returns what is usual of each of so many groups
// of servers. Where that is not known of one among several, nothing tells that it is slow, and
// all of the time counts as usual.
func SplitSizes(s *request.Set, list []Attribution, groups int) Sizes {
	prompts, outputs := make([][]distribution.Sized, groups), make([][]distribution.Sized, groups)
	for i := range list {
		a := &list[i]
		m := &s.Requests[a.Request].Metrics
		if n := m.PrefillTokens(); n >= 0 {
			prompts[a.PrefillGroup] = memory.Append(prompts[a.PrefillGroup], distribution.Sized{Tokens: n, Ns: a.E2E[Prefill]})
		}
		if n := m.DecodeTokens(); n >= 0 {
			outputs[a.AnswerGroup] = memory.Append(outputs[a.AnswerGroup], distribution.Sized{Tokens: n, Ns: a.E2E[Decode]})
		}
	}
	usual := Sizes{make([]distribution.SizeFit, len(prompts)), make([]distribution.SizeFit, len(prompts))}
	for group := range prompts {
		usual.Prompt[group], usual.Output[group] = distribution.FitSize(prompts[group]), distribution.FitSize(outputs[group])
	}
	prefill, answer := several(prompts), several(outputs)
	for i := range list {
		usual.split(&list[i], &s.Requests[list[i].Request].Metrics, prefill, answer)
	}
	return usual
}

// several reports whether more than one group has requests.
func several(groups [][]distribution.Sized) bool {
	n := 0
	for _, list := range groups {
		if len(list) > 0 {
			n++
		}
	}
	return n > 1
}

// split takes the usual time for its tokens out of what one request has; prefill and answer
// tell whether several groups of servers do either.
func (z *Sizes) split(a *Attribution, m *request.Metrics, prefill, answer bool) {
	for _, c := range [...]*Causes{&a.E2E, &a.TTFT, &a.First} {
		if c[Prefill] == 0 {
			continue
		}
		move(c, Prefill, PromptSize, expected(&z.Prompt[a.PrefillGroup], m.PrefillTokens(), c[Prefill], prefill))
		if a.Shared {
			move(c, Prefill, SharedBatch, max(0, c[Prefill]))
		}
	}
	if e2e := &a.E2E; e2e[Decode] != 0 {
		move(e2e, Decode, OutputLength, expected(&z.Output[a.AnswerGroup], m.DecodeTokens(), e2e[Decode], answer))
	}
}

// expected is how much of what tokens took is usual for them.
func expected(usual *distribution.SizeFit, tokens, took int64, several bool) int64 {
	if usual.N == 0 && several {
		return took
	}
	return usual.Expected(tokens)
}

// move gives ns of one cause to another. The rest may be negative: faster
// than usual.
func move(c *Causes, from, to Cause, ns int64) {
	c[from] -= ns
	c[to] += ns
}

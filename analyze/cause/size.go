package cause

import (
	"slices"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// Sizes are the usual times of prompts and outputs by their number of tokens, for each group of servers: see [place.Groups].
type Sizes struct {
	Prompt, Output []distribution.SizeFit
}

// SplitSizes moves the usual time for a request's tokens from Prefill to PromptSize and from Decode to OutputLength,
// in the E2E and the TTFT of all attributions. It returns the usual times of each group of servers. If these are
// unknown for one of several groups, nothing shows that the group is slow, and all of its time counts as usual.
func SplitSizes(s *request.Set, list []Attribution, groups int) Sizes {
	prompts, lone, outputs := make([][]distribution.Sized, groups), make([][]distribution.Sized, groups), make([][]distribution.Sized, groups)
	for i := range Each(list) {
		a := &list[i]
		m := &s.Requests[a.Request].Metrics
		if n := m.PrefillTokens(); n >= 0 {
			x := distribution.Sized{Tokens: n, Ns: a.E2E[Prefill]}
			if prompts[a.PrefillGroup] = memory.Append(prompts[a.PrefillGroup], x); !a.Shared {
				lone[a.PrefillGroup] = memory.Append(lone[a.PrefillGroup], x)
			}
		}
		if n := m.DecodeTokens(); n >= 0 {
			outputs[a.AnswerGroup] = memory.Append(outputs[a.AnswerGroup], distribution.Sized{Tokens: n, Ns: a.E2E[Decode]})
		}
	}
	usual := Sizes{make([]distribution.SizeFit, len(prompts)), make([]distribution.SizeFit, len(prompts))}
	for group := range prompts {
		usual.Prompt[group], usual.Output[group] = distribution.FitSize(prompts[group]), distribution.FitSize(outputs[group])
		if f := distribution.FitPrompts(lone[group]); f.PerPair > 0 { // the cost of attention does not depend on how many are in a batch
			usual.Prompt[group] = f
		}
	}
	prefill, answer := several(prompts), several(outputs)
	for i := range Each(list) {
		usual.split(&list[i], &s.Requests[list[i].Request].Metrics, prefill, answer)
	}
	return usual
}

// several reports whether more than one group has requests.
func several(groups [][]distribution.Sized) bool {
	n := order.Count(groups, func(list []distribution.Sized) bool { return len(list) > 0 })
	return n > 1
}

// split splits one request. prefill and answer report whether several groups of servers prefill, and whether several decode.
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

// expected returns how much of the time that tokens took is usual, in ns.
func expected(usual *distribution.SizeFit, tokens, took int64, several bool) int64 {
	if usual.N == 0 && several {
		return took
	}
	return usual.Expected(tokens)
}

// move moves ns from one cause to another. The rest may be negative: the request was faster than usual.
func move(c *Causes, from, to Cause, ns int64) {
	c[from] -= ns
	c[to] += ns
}

// A rankLoad is the work of a scheduler rank for all requests.
type rankLoad struct {
	prefills request.Coverage // when any request was prefilled
	starts   []trace.Time     // starts of prefills, sorted
	usual    int64            // median gap between tokens without the prefills in it, ns
}

// loadRanks finds, from all requests, when every rank prefilled, and how long its gaps between tokens usually are.
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
	w := &Walk{Attributor: a}
	for r := range a.set.AllRequests() {
		lead, ok := a.SteppingRank(r)
		if !ok {
			continue
		}
		w.tokens = a.set.Tokens(w.tokens, lead)
		proc := a.set.Threads[lead].Proc
		for k := 1; k < len(w.tokens); k++ {
			from, to := w.tokens[k-1].End, w.tokens[k].End
			if w.tokens[k].Lost > 0 || !a.set.Window.Has(from, to) {
				continue
			}
			gaps[proc] = memory.Append(gaps[proc], int64(to-from)-a.ranks[proc].prefills.Overlap(from, to))
		}
	}
	for p := range gaps {
		a.ranks[p].usual = distribution.Summarize(gaps[p]).P50
	}
}

// SteppingRank returns the thread that shows the tokens of request r; ok is false if there is none, or if r cannot be attributed.
func (a *Attributor) SteppingRank(r int) (lead int, ok bool) {
	req := &a.set.Requests[r]
	part := &a.set.Parts[a.set.Answering(req)]
	lead = a.set.Lead(part)
	return lead, lead != request.None && part.Role != request.Prefill && part.Role != request.Sender && Attributable(a.set, req)
}

// addPrefills adds the intervals in which thread t was prefilled, within the selected window,
// as not everything outside of it is read. It adds none in the v1 layout, which has no stage
// for waiting: there, a prefill includes the queue, and says nothing about the rank.
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

// beganWithOthers reports whether another prefill began together with the one at t.
func (l *rankLoad) beganWithOthers(t trace.Time) bool {
	from, _ := slices.BinarySearch(l.starts, t-request.SameBatch)
	to, _ := slices.BinarySearch(l.starts, t+request.SameBatch+1)
	return to-from > 1
}

package cause

import (
	"iter"
	"unsafe"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/internal/parallel"
	"github.com/sgtrace/sgtrace/request"
)

// A Cause is what a stretch of a request's time went into. Every ns of a request has exactly one.
type Cause uint8

// The causes, in the order in which a request passes through a deployment.
const (
	Router Cause = iota
	Dispatch
	Encode
	Intake
	DecodeBootstrap
	PrefillBootstrap
	Queue
	Prefill
	// PromptSize and SharedBatch are parts of Prefill, OutputLength is a part of Decode. They can only be told
	// apart given all requests: an [Attribution] of one request leaves them zero, and [SplitSizes] fills them in.
	PromptSize
	SharedBatch
	ChunkWait
	Transfer
	PrefillSide // the prefill side and the transfer, if the dump has no spans of them
	DecodeQueue
	FirstStep
	Decode
	OutputLength
	Interference
	SlowRank
	Retraction
	Return
	Siblings // other answers to the same call, which ends with the last of them
	Other
	Unaccounted
	Count
)

// causeTexts are the names of the causes in reports, and the phrases for them in sentences.
var causeTexts = [Count]struct{ name, phrase string }{
	Router:           {"router", "in the gateway"},
	Dispatch:         {"dispatch", "tokenizing and dispatch"},
	Encode:           {"encode", "multimodal encoder"},
	Intake:           {"intake", "waiting for the scheduler to pick it up"},
	DecodeBootstrap:  {"decode bootstrap", "waiting for KV cache on decode"},
	PrefillBootstrap: {"prefill bootstrap", "bootstrap on the prefill side"},
	Queue:            {"prefill queue", "waiting in the prefill queue"},
	Prefill:          {"prefill", "prefill slower than its size explains"},
	PromptSize:       {"prompt size", "longer prompts"},
	SharedBatch:      {"shared batch", "sharing a prefill batch with others"},
	ChunkWait:        {"chunk wait", "waiting between chunks"},
	Transfer:         {"kv transfer", "waiting for the KV transfer"},
	PrefillSide:      {"prefill side", "waiting for the prefill side, which the dump does not show,"},
	DecodeQueue:      {"decode queue", "waiting in the decode queue"},
	FirstStep:        {"first step", "first step of decode"},
	Decode:           {"decode", "decode slower per token"},
	OutputLength:     {"output length", "longer outputs"},
	Interference:     {"prefill interference", "decode held up by other requests' prefills"},
	SlowRank:         {"slow rank", "waiting for a slow rank"},
	Retraction:       {"retraction", "retraction"},
	Return:           {"return", "answering after the last step"},
	Siblings:         {"other answers", "waiting for other answers to the same call"},
	Other:            {"other stages", "other stages"},
	Unaccounted:      {"unaccounted", "unaccounted"},
}

// String returns the name that reports print; docs/METRICS.md defines it.
func (c Cause) String() string { return causeTexts[c].name }

// Names returns the names of all causes.
func Names() []string {
	names := make([]string, Count)
	for c := range Count {
		names[c] = c.String()
	}
	return names
}

// Phrase returns words for c in a sentence.
func (c Cause) Phrase() string { return causeTexts[c].phrase }

// BySize reports whether longer requests, or calls for several answers, naturally have more of c, so that no other reason is needed.
func (c Cause) BySize() bool { return c == PromptSize || c == OutputLength || c == Siblings }

// PerToken reports whether c grows with every decoded token.
func (c Cause) PerToken() bool {
	return c == Decode || c == Interference || c == SlowRank
}

// Causes is a time in ns, by cause.
type Causes [Count]int64

// Total returns the whole time.
func (c *Causes) Total() int64 {
	sum := int64(0)
	for _, ns := range c {
		sum += ns
	}
	return sum
}

// An Attribution says where the time of one request went; the request has finished, or is [Attributor.Unanswered].
type Attribution struct {
	Request int // index into Set.Requests
	// E2E and TTFT add up to the metrics of these names, to the ns; TTFT is zero if unknown. First adds up to the
	// time from the start of the outermost span to the first token: TTFT, and whatever precedes the answering server.
	E2E, TTFT, First Causes
	// Outside is the part of E2E outside of the selected time; it counts PromptSize and
	// SharedBatch under Prefill, and OutputLength under Decode. It is set only if Partly.
	Outside Causes
	// Gaps is the number of gaps between tokens that E2E accounts for one by one; 0 if the trace level shows no steps.
	Gaps int32
	// Where it was, as indexes into Set.Procs, None if unknown: the lead ranks of the prefill (or
	// unified) part and of the answering part, and the TP rank that the others waited for the longest.
	Prefill, Answer, Slow int32
	// PrefillGroup and AnswerGroup are the groups of servers of these two, Population is the index
	// of the request's population: see [Attributor.Peers].
	PrefillGroup, AnswerGroup, Population int32
	// Shared reports that other requests were in a batch that prefilled it, Partly that some of
	// its time is outside of the selected time.
	Shared, Partly bool
}

// ProcOf returns the proc where a request spent its time of a cause, or None.
func (a *Attribution) ProcOf(c Cause) int32 {
	switch c {
	case Intake, PrefillBootstrap, Queue, Prefill, PromptSize, SharedBatch, ChunkWait, Transfer:
		return a.Prefill
	case DecodeBootstrap, DecodeQueue, FirstStep, Decode, OutputLength, Interference, Retraction:
		return a.Answer
	case SlowRank:
		return a.Slow
	case Unaccounted:
		if a.E2E[c] == a.E2E.Total() { // only who answered is known
			return a.Answer
		}
	}
	return request.None
}

// Attributable reports whether the time of r can be divided: r has finished, its times are
// plausible, and none of its spans are missing, as the causes would not add up.
func Attributable(s *request.Set, r *request.Request) bool {
	m := &r.Metrics
	if r.Status != request.Finished || !r.Complete() || m.E2E < 0 || m.E2E > request.LongestRequest || m.TTFT > request.LongestRequest {
		return false
	}
	answer := &s.Parts[s.Answering(r)]
	return answer.Root != request.None && request.Plausible(r.Start, r.End) && request.Plausible(answer.Start, answer.End)
}

// An Attributor holds what all requests of a set share. A [Walk] divides the single request.
type Attributor struct {
	Peers *place.Groups

	set   *request.Set
	ranks []rankLoad // by proc
}

// NewAttributor returns an Attributor for the requests that peers groups.
func NewAttributor(peers *place.Groups) *Attributor {
	a := &Attributor{set: peers.Ranks.Set, Peers: peers}
	a.loadRanks()
	return a
}

// Each yields the indexes of a long list of attributions: see [memory.Each].
func Each(list []Attribution) iter.Seq[int] { return memory.Each(len(list), attributionSize) }

const attributionSize = int(unsafe.Sizeof(Attribution{}))

// All attributes all finished requests, in parallel.
func (a *Attributor) All() []Attribution {
	var requests []int
	for i := range a.set.AllRequests() {
		if Attributable(a.set, &a.set.Requests[i]) {
			requests = memory.Append(requests, i)
		}
	}
	out := memory.Make[Attribution](len(requests))
	a.Parallel(len(out), func(w *Walk, i int) {
		out[i] = w.attribute(requests[i])
		a.setGroups(&out[i])
	})
	return out
}

func (a *Attributor) setGroups(x *Attribution) {
	x.PrefillGroup, x.AnswerGroup = a.Peers.GroupOf(x.Prefill), a.Peers.GroupOf(x.Answer)
	x.Population = int32(a.Peers.Population(&a.set.Requests[x.Request]))
}

// Parallel calls f for 0..n-1 on all cores, each core with scratch space of its own.
func (a *Attributor) Parallel(n int, f func(w *Walk, i int)) {
	parallel.Fold(n, attributionSize, func() *Walk { return &Walk{Attributor: a} }, func(w *Walk, from, to int) {
		for i := from; i < to; i++ {
			f(w, i)
		}
	}, func(*Walk) {})
}

// OverloadCauses are the causes that take longer under overload.
var OverloadCauses = []Cause{
	Intake, DecodeBootstrap, PrefillBootstrap, Queue, SharedBatch, ChunkWait,
	DecodeQueue, Decode, Interference, Retraction,
}

// QueueCauses are waits behind other requests on the same ranks.
var QueueCauses = []Cause{Intake, Queue, ChunkWait, DecodeQueue, FirstStep, Interference}

// GapsOf calls f for the gaps between the tokens of request r, if at least one of them has a
// wanted length in ns. Lengths are much cheaper to find than their causes.
func (w *Walk) GapsOf(r int, wanted func(ns int64) bool, f func(g *GapSplit)) {
	isWanted := false
	lead, ok := w.GapLengthsOf(r, func(ns int64) { isWanted = isWanted || wanted(ns) })
	if !ok || !isWanted {
		return
	}
	w.eachGap(lead, w.set.Requests[r].Metrics.Retractions > 0, func(g *GapSplit) {
		if g.To-g.From <= request.LongestRequest && g.Lost == 0 {
			f(g)
		}
	})
}

// GapLengthsOf calls f with the length of each of these gaps, in ns. It returns the thread
// that shows the tokens, if there is one, and leaves the tokens in w.
func (w *Walk) GapLengthsOf(r int, f func(ns int64)) (lead int, ok bool) {
	if lead, ok = w.SteppingRank(r); !ok {
		return lead, false
	}
	w.tokens = w.set.Tokens(w.tokens, lead)
	for k := 1; k < len(w.tokens); k++ {
		if ns := int64(w.tokens[k].End - w.tokens[k-1].End); ns <= request.LongestRequest && w.tokens[k].Lost == 0 {
			f(ns)
		}
	}
	return lead, true
}

// Usual is the usual time of each cause, in ns, by the group of servers that answers: the median over
// all attributed requests; for causes that grow with the output, the mean per gap between tokens.
type Usual []Causes

// UsualOf returns the usual times of a list of requests.
func UsualOf(list []Attribution) Usual {
	groups := int32(0)
	for i := range Each(list) {
		groups = max(groups, list[i].AnswerGroup+1)
	}
	u, gaps := make(Usual, groups), make([]int64, groups)
	var spent [Count]bool // whether any request spent time on it
	for i := range Each(list) {
		a := &list[i]
		gaps[a.AnswerGroup] += int64(a.Gaps)
		for c, ns := range a.E2E {
			spent[c] = spent[c] || ns != 0
			if Cause(c).PerToken() {
				u[a.AnswerGroup][c] += ns
			}
		}
	}
	parallel.Each(int(Count), func(i int) {
		switch c := Cause(i); {
		case c.PerToken():
			for g := range u {
				u[g][c] = distribution.FloorDiv(u[g][c], max(1, gaps[g]))
			}
		case spent[c]: // otherwise the median is 0
			u.setMedians(c, list)
		}
	})
	return u
}

// setMedians sets the median of a cause in every group.
func (u Usual) setMedians(c Cause, list []Attribution) {
	values := make([][]int64, len(u))
	for i := range Each(list) {
		g := list[i].AnswerGroup
		values[g] = memory.Append(values[g], list[i].E2E[c])
	}
	for g := range values {
		if len(values[g]) > 0 {
			u[g][c] = distribution.LowerMedian(values[g])
		}
	}
}

// Of returns the usual time of cause c for a request like a. If no request of the group has
// finished, the time that a took counts as usual.
func (u Usual) Of(c Cause, a *Attribution) int64 {
	if int(a.AnswerGroup) >= len(u) {
		return a.E2E[c]
	}
	if c.PerToken() {
		return u[a.AnswerGroup][c] * int64(a.Gaps)
	}
	return u[a.AnswerGroup][c]
}

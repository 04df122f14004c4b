package analyze

import (
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/sgtrace/sgtrace/request"
)

// A Cause is what a stretch of a request's time went into. Every ns of a request
// has exactly one.
type Cause uint8

// The causes, in the order of a request's way through a deployment.
const (
	CauseRouter Cause = iota
	CauseDispatch
	CauseEncode
	CauseIntake
	CauseDecodeBootstrap
	CausePrefillBootstrap
	CauseQueue
	CausePrefill
	// CausePromptSize and CauseSharedBatch are parts of CausePrefill, and
	// CauseOutputLength is one of CauseDecode. It takes all requests to tell them, so
	// that an [Attribution] of one request leaves them zero; a [Tail] knows them.
	CausePromptSize
	CauseSharedBatch
	CauseChunkWait
	CauseTransfer
	CauseDecodeQueue
	CauseFirstStep
	CauseDecode
	CauseOutputLength
	CauseInterference
	CauseSlowRank
	CauseRetraction
	CauseReturn
	CauseOther
	CauseUnaccounted
	causeCount
)

// causeTexts are how reports call the causes, and how a verdict does.
var causeTexts = [causeCount]struct{ name, phrase string }{
	CauseRouter:           {"router", "in the gateway"},
	CauseDispatch:         {"dispatch", "tokenizing and dispatch"},
	CauseEncode:           {"encode", "multimodal encoder"},
	CauseIntake:           {"intake", "waiting to be taken in by the scheduler"},
	CauseDecodeBootstrap:  {"decode bootstrap", "waiting for room on the decode side"},
	CausePrefillBootstrap: {"prefill bootstrap", "bootstrap on the prefill side"},
	CauseQueue:            {"prefill queue", "waiting in the prefill queue"},
	CausePrefill:          {"prefill", "prefill slower than its size explains"},
	CausePromptSize:       {"prompt size", "longer prompts"},
	CauseSharedBatch:      {"shared batch", "prefilled in one batch with others"},
	CauseChunkWait:        {"chunk wait", "waiting between chunks"},
	CauseTransfer:         {"kv transfer", "waiting for the KV transfer"},
	CauseDecodeQueue:      {"decode queue", "waiting in the decode queue"},
	CauseFirstStep:        {"first step", "first step of decode"},
	CauseDecode:           {"decode", "decode slower per token"},
	CauseOutputLength:     {"output length", "longer outputs"},
	CauseInterference:     {"prefill interference", "decode held up by prefills of others"},
	CauseSlowRank:         {"slow rank", "waiting for a slow rank"},
	CauseRetraction:       {"retraction", "retraction"},
	CauseReturn:           {"return", "answering after the last step"},
	CauseOther:            {"other stages", "other stages"},
	CauseUnaccounted:      {"unaccounted", "unaccounted"},
}

// String returns the name that reports print; docs/METRICS.md defines it.
func (c Cause) String() string { return causeTexts[c].name }

// phrase names c in a sentence.
func (c Cause) phrase() string { return causeTexts[c].phrase }

// bySize tells whether longer requests have more of c by nature, so that nobody
// has to look for a reason.
func (c Cause) bySize() bool { return c == CausePromptSize || c == CauseOutputLength }

// perToken tells whether c grows with every token that is decoded.
func (c Cause) perToken() bool {
	return c == CauseDecode || c == CauseInterference || c == CauseSlowRank
}

// Causes is a time in ns, divided by cause.
type Causes [causeCount]int64

// Total returns the whole time.
func (c *Causes) Total() int64 {
	sum := int64(0)
	for _, ns := range c {
		sum += ns
	}
	return sum
}

// An Attribution tells where the time of one finished request went.
type Attribution struct {
	Request int // index into Set.Requests
	// E2E and TTFT add up to the metrics of these names, to the ns; TTFT is zero if
	// that is unknown. First adds up to the time from the start of the outermost span
	// to the first token: TTFT, and what precedes the answering server.
	E2E, TTFT, First Causes
	// Gaps are the gaps between tokens that E2E takes one by one; 0 if the trace
	// level shows no steps.
	Gaps int32
	// Where it was, as indexes into Set.Procs, None if unknown: the lead ranks of the
	// prefill (or unified) part and of the answering part, and the TP rank that the
	// others waited for the longest.
	Prefill, Answer, Slow int32
	// Shared tells that other requests were in a batch that it was prefilled in.
	Shared bool
}

// attributable tells whether the time of r can be divided.
func attributable(s *request.Set, r *request.Request) bool {
	m := &r.Metrics
	if r.Status != request.Finished || m.E2E < 0 || m.E2E > request.LongestRequest || m.TTFT > request.LongestRequest {
		return false
	}
	answer := &s.Parts[s.Answering(r)]
	return answer.Root != request.None && request.Plausible(r.Start, r.End) && request.Plausible(answer.Start, answer.End)
}

// An attributor knows what the requests of a set have in common. Only all is
// called from outside; the work on one request is an [causeWalk]'s.
type attributor struct {
	set    *request.Set
	clocks *request.HostClocks
	ranks  []rankLoad // by proc
}

func newAttributor(s *request.Set) *attributor {
	a := &attributor{set: s, clocks: s.HostClocks()}
	a.loadRanks()
	return a
}

// all attributes the finished requests; they do not touch each other.
func (a *attributor) all() []Attribution {
	var requests []int
	for i := range a.set.Requests {
		if attributable(a.set, &a.set.Requests[i]) {
			requests = append(requests, i)
		}
	}
	out := make([]Attribution, len(requests))
	a.parallel(len(out), func(w *causeWalk, i int) { out[i] = w.attribute(requests[i]) })
	return out
}

// parallel calls f for 0..n-1 on all cores, on each with scratch space of its own.
func (a *attributor) parallel(n int, f func(w *causeWalk, i int)) {
	const share = 64
	var next atomic.Int64
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			w := &causeWalk{attributor: a}
			for {
				from := int(next.Add(share)) - share
				if from >= n {
					return
				}
				for i := from; i < min(from+share, n); i++ {
					f(w, i)
				}
			}
		})
	}
	wg.Wait()
}

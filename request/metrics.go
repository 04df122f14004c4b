package request

import (
	"cmp"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/sgtrace/sgtrace/trace"
)

// measureAll measures the requests on all cores; they do not touch each other.
func (b *builder) measureAll() {
	const share = 256
	var next atomic.Int64
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for {
				from := int(next.Add(share)) - share
				if from >= len(b.Requests) {
					return
				}
				for i := from; i < min(from+share, len(b.Requests)); i++ {
					b.measure(&b.Requests[i])
				}
			}
		})
	}
	wg.Wait()
}

// measure fills in the metrics of r. Durations of stages are those of the lead
// rank of each part: the ranks of a part do the same work side by side.
func (b *builder) measure(r *Request) {
	m := Metrics{TTFT: Unknown, E2E: Unknown, Queue: Unknown, Prefill: Unknown, Decode: Unknown, Transfer: Unknown,
		Unaccounted: Unknown, PromptTokens: Unknown, CompletionTokens: Unknown, CachedTokens: Unknown, TPOT: Unknown, sent: Unknown}
	answer := &b.Parts[b.Answering(r)]
	m.PromptTokens, m.CompletionTokens, m.CachedTokens = answer.PromptTokens, answer.CompletionTokens, answer.CachedTokens
	for _, p := range r.Parts {
		part := &b.Parts[p]
		lead := b.Lead(part)
		if lead == None {
			continue
		}
		b.addStageTimes(&m, lead, part.Role)
		for _, t := range part.Threads {
			if b.Threads[t].Proc == b.Threads[lead].Proc {
				m.Retractions += int64(b.retractions(t))
			}
		}
	}
	if m.Transfer == Unknown {
		m.Transfer = m.sent
	}
	m.E2E = b.e2e(r, answer)
	m.TTFT = b.ttft(r, answer)
	if answer.Root != None && b.Name(answer.Root) == vllmRequest {
		b.vllmDurations(answer.Root, &m)
	}
	if m.E2E != Unknown && m.TTFT != Unknown && m.CompletionTokens > 1 && m.E2E >= m.TTFT {
		m.TPOT = (m.E2E - m.TTFT) / (m.CompletionTokens - 1)
	}
	m.ITL = summarizeITL(b.Gaps(r))
	m.Unaccounted = b.unaccounted(r)
	r.Metrics = m
}

// Lead returns the scheduler thread of the lowest rank of a part, or None.
func (s *Set) Lead(p *Part) int {
	lead := None
	for _, t := range p.Threads {
		proc := &s.Procs[s.Threads[t].Proc]
		if !isScheduler(proc.Label) && s.Threads[t].Span != None {
			continue
		}
		if lead == None || cmp.Or(proc.Rank.Compare(s.Procs[s.Threads[lead].Proc].Rank), cmp.Compare(t, lead)) < 0 {
			lead = t
		}
	}
	return lead
}

// addStageTimes adds the stages of thread t, of a part with the given role, to m.
func (b *builder) addStageTimes(m *Metrics, t int, role Role) {
	add := func(dst *int64, d int64) { *dst = max(0, *dst) + d }
	for _, c := range b.Threads[t].Stages {
		if b.Name(int(c)) == "chunked_prefill" && !b.Implausible(int(c)) { // v1 has the chunks beside prefill_forward, v2 inside
			add(&m.Prefill, b.Dump.Span(int(c)).Dur())
		}
	}
	b.eachStage(b.Threads[t].Stages, func(i int) { // after a retraction stages nest in decode_forward
		if b.Implausible(i) {
			return
		}
		d := b.Dump.Span(i).Dur()
		switch b.Name(i) {
		case "prefill_waiting":
			add(&m.Queue, d)
		case "decode_waiting": // on a unified server it is part of the running batch already
			if role == Decode {
				add(&m.Queue, d)
			}
		case "prefill_forward":
			add(&m.Prefill, d)
		case "decode_transferred":
			add(&m.Transfer, d)
		case "prefill_transfer_kv_cache":
			add(&m.sent, d)
		}
	})
	var from, to trace.Time
	steps := 0
	b.eachStage(b.Threads[t].Stages, func(i int) {
		if b.Name(i) != "decode_loop" || b.Implausible(i) {
			return
		}
		s := b.Dump.Span(i)
		if steps == 0 || s.Start < from {
			from = s.Start
		}
		to = max(to, s.End)
		steps++
	})
	if steps > 0 {
		add(&m.Decode, int64(to-from))
	}
}

// eachStage calls f for the given stages and everything below, parents first.
func (s *Set) eachStage(stages []uint32, f func(i int)) {
	for _, c := range stages {
		f(int(c))
		s.eachStage(s.Tree.Children(int(c)), f)
	}
}

// retractions counts the retract events of thread t, on its span and its stages.
func (b *builder) retractions(t int) int {
	n := 0
	count := func(i int) {
		for e := range b.Dump.Events(i) {
			if b.symName(e.Name) == "retract" {
				n++
			}
		}
	}
	if b.Threads[t].Span != None {
		count(b.Threads[t].Span)
	}
	b.eachStage(b.Threads[t].Stages, count)
	return n
}

// e2e is how long the outermost span took: the gateway's, the router's, else
// the answering server's. Only when that is missing the server's own figure is
// taken, or when its times cannot be right.
func (b *builder) e2e(r *Request, answer *Part) int64 {
	outermost := answer.Root
	for _, p := range r.Parts {
		if b.Parts[p].Role == Router && b.Parts[p].Root != None {
			outermost = b.Parts[p].Root
			break
		}
	}
	if r.Gateway != None {
		outermost = r.Gateway
	}
	if outermost != None && !b.Implausible(outermost) {
		return b.Dump.Span(outermost).Dur()
	}
	return answer.E2E
}

// ttft is what the answering server reports, if that is possible: in the v1
// layout the figure can exceed the whole request. Else it is derived from the
// stages: the end of the prefill, or of the batch that takes it over.
func (b *builder) ttft(r *Request, answer *Part) int64 {
	const grace = 10_000_000 // ns; the server takes the time just after the span has ended
	if answer.TTFT != Unknown && (answer.Root == None || b.Implausible(answer.Root) || answer.TTFT <= b.Dump.Span(answer.Root).Dur()+grace) {
		return answer.TTFT
	}
	if tokens := b.TokenTimes(answer); len(tokens) > 0 && answer.Root != None {
		r.Flags |= DerivedTTFT
		return max(0, int64(tokens[0]-answer.Start))
	}
	return Unknown
}

// TokenTimes returns when the tokens of a part came out on its lead rank, in
// order: the first with the end of the prefill (unified) or of fake_output
// (decode), every other with the end of a decode step or of a prefill that
// follows a retraction.
func (s *Set) TokenTimes(p *Part) []trace.Time {
	lead := s.Lead(p)
	if lead == None || p.Role == Prefill || p.Role == Sender {
		return nil
	}
	var times []trace.Time
	s.eachStage(s.Threads[lead].Stages, func(i int) {
		if s.Implausible(i) {
			return
		}
		switch s.Name(i) {
		case "decode_loop", "prefill_forward", "fake_output":
			times = append(times, s.Dump.Span(i).End)
		}
	})
	slices.Sort(times)
	return times
}

// Gaps returns the times between consecutive tokens of r in ns, in order.
func (s *Set) Gaps(r *Request) []int64 {
	tokens := s.TokenTimes(&s.Parts[s.Answering(r)])
	if len(tokens) < 2 {
		return nil
	}
	gaps := make([]int64, len(tokens)-1)
	for i := range gaps {
		gaps[i] = int64(tokens[i+1] - tokens[i])
	}
	return gaps
}

// summarizeITL sorts gaps.
func summarizeITL(gaps []int64) ITL {
	if len(gaps) == 0 {
		return ITL{Mean: Unknown, P50: Unknown, P90: Unknown, P99: Unknown, Max: Unknown}
	}
	slices.Sort(gaps)
	sum := int64(0)
	for _, g := range gaps {
		sum += g
	}
	n := len(gaps)
	at := func(percent int) int64 { return gaps[(percent*n+99)/100-1] } // nearest rank
	return ITL{N: n, Mean: sum / int64(n), P50: at(50), P90: at(90), P99: at(99), Max: gaps[n-1]}
}

// unaccounted is the time between Start and End of r that no stage of any of
// its threads covers.
func (b *builder) unaccounted(r *Request) int64 {
	type interval struct{ from, to trace.Time }
	var stages []interval
	for _, p := range r.Parts {
		for _, t := range b.Parts[p].Threads {
			for _, c := range b.Threads[t].Stages {
				s := b.Dump.Span(int(c))
				if b.Implausible(int(c)) {
					continue
				}
				if iv := (interval{max(s.Start, r.Start), min(s.End, r.End)}); iv.from < iv.to {
					stages = append(stages, iv)
				}
			}
		}
	}
	if len(stages) == 0 {
		return Unknown
	}
	slices.SortFunc(stages, func(x, y interval) int { return cmp.Compare(x.from, y.from) })
	left := int64(0)
	at := r.Start
	for _, iv := range stages {
		if iv.from > at {
			left += int64(iv.from - at)
		}
		at = max(at, iv.to)
	}
	return left + int64(max(0, r.End-at))
}

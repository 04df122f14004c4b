package assembly

import (
	"cmp"
	"slices"

	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/internal/parallel"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// measureAll measures the requests, on all cores; they are independent. It returns those whose TTFT is
// derived.
func (b *builder) measureAll() (derived []int32) {
	parallel.Fold(len(b.Requests), request.RequestSize, func() *measurer { return &measurer{builder: b} }, func(m *measurer, from, to int) {
		for i := from; i < to; i++ {
			if m.measure(&b.Requests[i]) {
				m.derived = append(m.derived, int32(i))
			}
		}
	}, func(m *measurer) { derived = append(derived, m.derived...) })
	return derived
}

// A measurer measures one request after another.
type measurer struct {
	*builder
	covered []request.Interval // scratch space
	derived []int32            // requests whose TTFT is derived
}

// measure fills in the metrics of r. Durations of stages are those of each part's lead rank, since the
// ranks of a part work in parallel. derived says that the TTFT was derived from stages.
func (b *measurer) measure(r *request.Request) (derived bool) {
	m := request.Metrics{TTFT: request.Unknown, UserTTFT: request.Unknown, E2E: request.Unknown, Queue: request.Unknown, Prefill: request.Unknown, Decode: request.Unknown, Transfer: request.Unknown,
		Unaccounted: request.Unknown, Outside: request.Unknown, PromptTokens: request.Unknown, CompletionTokens: request.Unknown, CachedTokens: request.Unknown, TPOT: request.Unknown}
	sent := int64(request.Unknown) // sending the KV cache, on the prefill server
	answer := &b.Parts[b.Answering(r)]
	m.PromptTokens, m.CompletionTokens, m.CachedTokens = answer.PromptTokens, answer.CompletionTokens, answer.CachedTokens
	for _, p := range b.PartsOf(r) {
		part := &b.Parts[p]
		m.Retractions += int64(part.Retractions)
		if part.Role == request.Prefill { // it has the cache, and the decode server may not know about it
			m.CachedTokens = max(m.CachedTokens, part.CachedTokens)
		}
		lead := b.Lead(part)
		if lead == request.None {
			continue
		}
		b.addStageTimes(&m, &sent, lead, part.Role)
		for _, t := range b.ThreadsOf(part) {
			if b.Threads[t].Proc == b.Threads[lead].Proc {
				m.Retractions += b.Retractions(t)
			}
		}
	}
	if m.Transfer == request.Unknown {
		m.Transfer = sent
	}
	m.E2E, m.Outside = b.e2e(r, answer), b.outside(r, answer)
	m.TTFT, derived = b.ttft(answer)
	if answer.Root != request.None && b.Name(answer.Root) == vllmRequest {
		b.vllmDurations(answer.Root, &m)
	}
	if m.TTFT != request.Unknown {
		m.UserTTFT = m.TTFT + b.before(r, answer)
	}
	if seen := b.seenTTFT(r, answer); seen != request.Unknown {
		m.UserTTFT = max(seen, m.TTFT)
	}
	if own := b.served(answer); m.TTFT != request.Unknown && m.CompletionTokens > 1 && own >= m.TTFT {
		m.TPOT = (own - m.TTFT) / (m.CompletionTokens - 1)
	}
	m.ITL = summarizeITL(b.Gaps(r))
	m.Unaccounted = b.unaccounted(r)
	r.Metrics = m
	return derived
}

// addStageTimes adds the stages of thread t, whose part has the given role, to m, and the time of sending
// the KV cache to sent.
func (b *builder) addStageTimes(m *request.Metrics, sent *int64, t int, role request.Role) {
	add := func(dst *int64, d int64) { *dst = max(0, *dst) + d }
	for _, c := range b.StagesOf(t) {
		if row := b.Row(int(c)); row.Means == request.PrefillingChunk && !b.Implausible(int(c)) { // v1 has the chunks beside prefill_forward, v2 inside
			add(&m.Prefill, row.Dur())
		}
	}
	b.EachStage(b.StagesOf(t), func(i int) { // after a retraction, stages nest in decode_forward
		if b.Implausible(i) {
			return
		}
		row := b.Row(i)
		d := row.Dur()
		switch row.Means {
		case request.Queueing:
			add(&m.Queue, d)
		case request.DecodeQueueing: // on a unified server, the request is already in the running batch
			if role == request.Decode {
				add(&m.Queue, d)
			}
		case request.Prefilling:
			add(&m.Prefill, d)
		case request.Receiving:
			add(&m.Transfer, d)
		case request.Sending:
			add(sent, d)
		case request.Verifying:
			if a, ok := b.Args.Find(row.Args, b.keys.accepted); ok {
				if n, ok := argInt(a); ok {
					m.Verified, m.Accepted = m.Verified+1, m.Accepted+n
				}
			}
		}
	})
	var from, to trace.Time
	steps := 0
	b.EachStage(b.StagesOf(t), func(i int) {
		s := b.Row(i)
		if s.Means != request.Stepping || b.Implausible(i) {
			return
		}
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

// e2e returns the duration of the outermost span: the gateway's, the router's, or else the answering
// server's. Only if that is missing or implausible does it use the figure reported by the server.
func (b *builder) e2e(r *request.Request, answer *request.Part) int64 {
	if outermost := b.outermost(r, answer); outermost != answer.Root && !b.Implausible(outermost) {
		return b.Row(outermost).Dur()
	}
	return b.served(answer)
}

// outside returns how much longer the outermost span is than the answering server's: each is measured by one clock, so clocks need not agree.
func (b *builder) outside(r *request.Request, answer *request.Part) int64 {
	outermost := b.outermost(r, answer)
	if answer.Root == request.None || outermost == answer.Root || b.Implausible(outermost) || b.Implausible(answer.Root) {
		return request.Unknown
	}
	return max(0, b.Row(outermost).Dur()-b.Row(answer.Root).Dur())
}

// outermost returns the gateway's span, the router's, or else that of the answering server; or None.
func (b *builder) outermost(r *request.Request, answer *request.Part) int {
	if outer := b.OuterSpan(r); outer != request.None {
		return outer
	}
	return answer.Root
}

// before returns how long after the start of the outermost span the answering server's span starts:
// according to the clocks, but at most the difference of their durations.
func (b *builder) before(r *request.Request, answer *request.Part) int64 {
	outside := b.outside(r, answer)
	if outside == request.Unknown {
		return 0
	}
	return max(0, min(int64(b.Row(answer.Root).Start-b.Row(b.outermost(r, answer)).Start), outside))
}

// seenTTFT returns the TTFT that a client measured, which includes the way of the first token back to the client; or Unknown.
func (b *builder) seenTTFT(r *request.Request, answer *request.Part) int64 {
	outermost := b.outermost(r, answer)
	if outermost == request.None || outermost == answer.Root {
		return request.Unknown
	}
	a, ok := b.dump.Args.Find(b.Row(outermost).Args, b.keys.ttft)
	if !ok {
		return request.Unknown
	}
	return argSeconds(a)
}

// served returns how long the answering server had a request, by its own clock, like its TTFT: time added
// by a gateway is not time between tokens.
func (b *builder) served(answer *request.Part) int64 {
	if answer.Root != request.None && !b.Implausible(answer.Root) {
		return b.Row(answer.Root).Dur()
	}
	return answer.E2E
}

// ttft returns the TTFT that the answering server reports, if that is possible: in the v1 layout, the
// figure may exceed the whole request. Otherwise, it is derived from the stages: the end of the prefill, or
// of the batch that takes over the token.
func (b *builder) ttft(answer *request.Part) (ns int64, derived bool) {
	const grace = 10_000_000 // ns; the server takes the time just after the span has ended
	if answer.TTFT != request.Unknown && (answer.Root == request.None || b.Implausible(answer.Root) || answer.TTFT <= b.Row(answer.Root).Dur()+grace) {
		return answer.TTFT, false
	}
	if tokens := b.TokenTimes(answer); len(tokens) > 0 && answer.Root != request.None {
		return max(0, int64(tokens[0]-answer.Start)), true
	}
	return request.Unknown, false
}

// summarizeITL summarizes gaps, which it sorts.
func summarizeITL(gaps []int64) request.ITL {
	if len(gaps) == 0 {
		return request.ITL{Mean: request.Unknown, P50: request.Unknown, P90: request.Unknown, P99: request.Unknown, Max: request.Unknown}
	}
	slices.Sort(gaps)
	sum := order.Total(gaps)
	n := len(gaps)
	return request.ITL{N: n, Mean: sum / int64(n), P50: request.NearestRank(gaps, 50), P90: request.NearestRank(gaps, 90), P99: request.NearestRank(gaps, 99), Max: gaps[n-1]}
}

// unaccounted returns the time between Start and End of r that no stage of any of its threads covers.
func (b *measurer) unaccounted(r *request.Request) int64 {
	stages := b.covered[:0]
	for _, p := range b.PartsOf(r) {
		for _, t := range b.ThreadsOf(&b.Parts[p]) {
			for _, c := range b.StagesOf(t) {
				s := b.Row(int(c))
				if b.Implausible(int(c)) {
					continue
				}
				if iv := (request.Interval{From: max(s.Start, r.Start), To: min(s.End, r.End)}); iv.From < iv.To {
					stages = append(stages, iv)
				}
			}
		}
	}
	b.covered = stages
	if len(stages) == 0 {
		return request.Unknown
	}
	slices.SortFunc(stages, func(x, y request.Interval) int { return cmp.Compare(x.From, y.From) })
	left := int64(0)
	at := r.Start
	for _, iv := range stages {
		if iv.From > at {
			left += int64(iv.From - at)
		}
		at = max(at, iv.To)
	}
	return left + int64(max(0, r.End-at))
}

// resultKeys are the attributes of requests and gateway spans that identify the request, say how it went,
// or where in the code that was recorded. All others say what was asked for, and by whom. A key that ends
// with a dot is a prefix.
var resultKeys = []string{
	"rid", "module", "bootstrap_room", "request_id", "gen_ai.request.id", // identify the request
	"gen_ai.usage.", "gen_ai.latency.", "gen_ai.response.", // read into the tables: see readPart
	"status_code", "latency", "busy_ns", "idle_ns", "error.", "exception.", "http.response.", "http.status_code", // how it went, according to gateways
	"num_retractions",                              // from a record: see readPart
	"code.", "thread.", "level", "target", "otel.", // about the tracing itself
	"client.port", "network.peer.port", "net.peer.port", "url.full", // differ by request
}

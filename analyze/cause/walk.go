package cause

import (
	"cmp"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// A Walk divides the time of one request after the other. All fields but the attributor belong
// to the request at hand, or are scratch space.
type Walk struct {
	*Attributor
	out       Attribution
	waitedFor int64 // wait for the rank out.Slow, ns

	canvas   canvas
	tokens   []request.Token
	peers    []tpPeer
	retracts []trace.Time
	chunks   []int
	times    []trace.Time

	reference int        // proc whose clock all times below use
	at        trace.Time // when clocks are compared

	start, end  trace.Time       // bounds of E2E
	open        []request.Open   // by part, in order; nil for a finished request
	in          request.Interval // the selected part of E2E
	asked, told trace.Time       // bounds of TTFT; equal if unknown
	first, last trace.Time       // first and last token; equal if steps are unknown
}

// A placed part has its lead rank, and a correction to its times beyond that of the clocks.
type placed struct {
	part  *request.Part
	lead  int
	nudge trace.Time
}

// attribute divides the time of request r, an index:
//
//  1. All times are put on the clock of the outermost span.
//  2. The stages are painted from the start to the first token, and from the last token to the end; the highest
//     layer has the time.
//  3. Between the first and the last token, gaps are divided one by one.
func (w *Walk) attribute(r int) Attribution {
	s := w.set
	req := &s.Requests[r]
	answer := &s.Parts[s.Answering(req)]
	outer := s.OuterSpan(req)
	if outer == request.None {
		outer = answer.Root
	}
	w.open, w.start, w.reference = nil, s.Row(outer).Start, s.ProcOf(outer)
	w.end = w.start + trace.Time(req.Metrics.E2E)
	return w.divide(r, answer, outer)
}

// divide divides the time of request r from w.start to w.end. outer, the outermost span, is None if it is missing.
func (w *Walk) divide(r int, answer *request.Part, outer int) Attribution {
	s := w.set
	req := &s.Requests[r]
	w.out = Attribution{Request: r, Prefill: request.None, Answer: request.None, Slow: request.None}
	w.waitedFor = 0
	w.at = req.Start
	w.in = s.Window.Cut(w.start, w.end)
	w.out.Partly = w.in.From > w.start || w.in.To < w.end
	if len(s.ThreadsOf(answer)) == 0 && req.Metrics.Decode >= 0 { // vLLM gives times without stages
		w.fromMetrics(req, answer)
		return w.out
	}

	first := w.place(answer, true)
	w.asked = answer.Start + w.shift(s.ProcOfPart(answer)) + first.nudge
	w.told = w.asked + trace.Time(max(0, req.Metrics.TTFT))
	w.findTokens(&first, req.Metrics.TTFT)
	w.canvas.reset(min(w.start, w.asked), max(w.end, w.told))
	w.canvas.paint(layerOutside, w.start, w.end)
	var sent trace.Time // 0 if unknown; the tokenizers of servers may be too busy to begin then
	if outer != request.None && req.Flags&request.SharedGateway == 0 {
		_, sent = s.HandedOn(outer)
	}
	if sent != 0 {
		w.canvas.paint(layerDispatch, sent, w.asked)
	}
	for _, iv := range w.siblings(r) {
		w.canvas.paint(layerSiblings, iv.From, iv.To)
	}
	w.paintPart(&first, true)
	for _, p := range s.PartsOf(req) {
		if part := &s.Parts[p]; part != answer {
			beside := w.place(part, false)
			w.beforeArrival(&beside, &first)
			if part.Role == request.Prefill && part.Root != request.None {
				shift := w.shift(s.ProcOf(part.Root)) + beside.nudge
				w.canvas.paint(layerDispatch, cmp.Or(sent, part.Start+shift), w.tokenized(part)+shift)
			}
			w.paintPart(&beside, false)
		}
	}
	w.paintOpen(req)
	w.fill(first.lead == request.None && req.Metrics.CompletionTokens != 1)
	if len(w.tokens) > 1 {
		w.fillGaps(first.lead, w.shiftOfThread(first.lead)+first.nudge, req.Metrics.Retractions > 0)
	}
	return w.out
}

// tokenized returns when a server began to tokenize the prompt of a part, by its own clock; the part's start if that is unknown.
func (w *Walk) tokenized(p *request.Part) trace.Time {
	for _, t := range w.set.ThreadsOf(p) {
		if stages := w.set.StagesOf(t); len(stages) > 0 && w.set.Row(int(stages[0])).Means == request.Tokenizing {
			return max(p.Start, w.set.Row(int(stages[0])).Start)
		}
	}
	return p.Start
}

// siblings returns when servers worked on the other requests of request r's call: several answers to
// one prompt, several prompts, or another attempt. They share its gateway span, and so its start.
func (w *Walk) siblings(r int) (list []request.Interval) {
	s := w.set
	if s.Requests[r].Flags&request.SharedGateway == 0 {
		return nil
	}
	add := func(q int) bool {
		if q < 0 || q >= len(s.Requests) || s.Requests[q].Start != s.Requests[r].Start {
			return false
		}
		if s.Requests[q].Gateway == s.Requests[r].Gateway {
			for _, p := range s.PartsOf(&s.Requests[q]) {
				if part := &s.Parts[p]; part.Serves() && part.Root != request.None {
					shift := w.shift(s.ProcOf(part.Root))
					list = append(list, request.Interval{From: part.Start + shift, To: part.End + shift})
				}
			}
		}
		return true
	}
	for q := r - 1; add(q); q-- {
	}
	for q := r + 1; add(q); q++ {
	}
	return list
}

// shift returns the correction that puts times of a proc on the clock of the outermost span: the drift between the two clocks.
func (w *Walk) shift(proc int) trace.Time { return w.set.Clocks.Drifted(proc, w.reference, w.at) }

func (w *Walk) shiftOfThread(t int) trace.Time { return w.shift(w.set.Threads[t].Proc) }

// place finds the lead rank of a part, and moves its request span into the outermost one: what
// sticks out is clock error. A part that does not answer may outlast the request.
func (w *Walk) place(p *request.Part, answers bool) placed {
	out := placed{part: p, lead: w.set.Lead(p)}
	if p.Root == request.None || p.Role == request.Router || p.Role == request.Sender {
		return out
	}
	shift := w.shift(w.set.ProcOf(p.Root))
	lo, hi := w.start-p.Start-shift, w.end-p.End-shift
	out.nudge = max(0, lo)
	if answers && lo <= hi {
		out.nudge = min(out.nudge, hi)
	}
	return out
}

// beforeArrival moves a prefill part back so that its KV cache is computed before the decode part has received it.
func (w *Walk) beforeArrival(p, decode *placed) {
	if p.part.Role != request.Prefill || p.lead == request.None || decode.lead == request.None {
		return
	}
	forward := w.set.LastStage(p.lead, request.Prefilling)
	arrival := w.set.LastStage(decode.lead, request.Receiving)
	if forward == nil || arrival == nil {
		return
	}
	computed := forward.End + w.shiftOfThread(p.lead) + p.nudge
	p.nudge -= max(0, computed-arrival.End-w.shiftOfThread(decode.lead)-decode.nudge)
}

// findTokens finds the first and the last token. If the lead rank shows none, TTFT gives the first one.
func (w *Walk) findTokens(p *placed, ttft int64) {
	w.tokens = w.tokens[:0]
	if p.lead != request.None && p.part.Role != request.Prefill && p.part.Role != request.Sender {
		w.tokens = w.set.Tokens(w.tokens, p.lead)
	}
	switch n := len(w.tokens); {
	case n > 0:
		shift := w.shiftOfThread(p.lead) + p.nudge
		w.first, w.last = w.tokens[0].End+shift, w.tokens[n-1].End+shift
	case ttft >= 0:
		w.first, w.last = w.told, w.told
	default:
		w.first, w.last = w.end, w.end
	}
}

// fill adds up what is painted before the first token, and after the last one. Time of TTFT after the first token
// is its way to the user. If steps are known, decoding ends with the last one, even if its stage was closed later. If
// the server traced no stages, it decodes after the first token, as far as anyone knows.
func (w *Walk) fill(untraced bool) {
	out := &w.out
	w.canvas.sweep(func(l layer, from, to trace.Time) {
		c := layerCauses[l]
		switch {
		case l == layerInside && untraced:
			c.after = Decode
		case l != layerDecode:
		case len(w.tokens) > 1 && w.open == nil:
			c.after = Return
		case len(w.tokens) == 0 && w.told == w.asked: // the end of the first step is unknown
			c.before = Decode
		}
		cut := min(to, w.first)
		w.spend(c.before, from, cut)
		out.TTFT[c.before] += within(from, cut, w.asked, w.told)
		out.First[c.before] += within(from, cut, w.canvas.from, w.told)
		cut = max(from, w.first)
		out.TTFT[Return] += within(cut, to, w.asked, w.told)
		out.First[Return] += within(cut, to, w.canvas.from, w.told)
		w.spend(c.after, max(cut, w.last), to)
	})
	if w.told == w.asked {
		out.First = Causes{}
	}
}

// spend adds a stretch of E2E to a cause.
func (w *Walk) spend(c Cause, from, to trace.Time) {
	ns := within(from, to, w.start, w.end)
	w.out.E2E[c] += ns
	if w.out.Partly {
		w.out.Outside[c] += ns - within(from, to, w.in.From, w.in.To)
	}
}

// within returns how much of [from, to) lies in [lo, hi), in ns.
func within(from, to, lo, hi trace.Time) int64 {
	from, to = max(from, lo), min(to, hi)
	if from >= to {
		return 0
	}
	return int64(to - from)
}

// fillGaps adds up the time between the first and the last token of thread t; shift corrects its times.
func (w *Walk) fillGaps(t int, shift trace.Time, retractions bool) {
	e2e := &w.out.E2E
	w.eachGap(t, retractions, func(g *GapSplit) {
		w.out.Gaps += 1 + g.Lost
		left := within(g.From+shift, g.To+shift, w.start, w.end)
		outside := distribution.Fraction(left-within(g.From+shift, g.To+shift, w.in.From, w.in.To), left)
		for _, part := range [...]struct {
			cause Cause
			ns    int64
		}{{Decode, g.Decode}, {Interference, g.Interference}, {SlowRank, g.SlowRank}, {Retraction, g.Retraction}} {
			ns := min(part.ns, left) // less only if the enclosing span ends too early
			e2e[part.cause] += ns
			left -= ns
			if w.out.Partly {
				w.out.Outside[part.cause] += int64(outside * float64(ns))
			}
		}
	})
	w.noteSlowest()
}

// fromMetrics divides a request whose server writes one span with durations, which follow each other; the remainder is unaccounted.
func (w *Walk) fromMetrics(r *request.Request, answer *request.Part) {
	m := &r.Metrics
	fill := func(c *Causes, left int64, causes ...Cause) {
		for _, cause := range causes {
			ns := map[Cause]int64{Queue: m.Queue, Prefill: m.Prefill, Decode: m.Decode}[cause]
			ns = min(max(0, ns), left)
			c[cause] += ns
			left -= ns
		}
		c[Unaccounted] += left
	}
	own := min(max(0, int64(answer.End-answer.Start)), m.E2E)
	served := request.NewCoverage(append(w.siblings(w.out.Request), request.Interval{From: answer.Start, To: answer.Start + trace.Time(own)}))
	w.out.E2E[Siblings] = min(m.E2E-own, max(0, served.Overlap(w.start, w.end)-own))
	w.out.E2E[Router] = m.E2E - own - w.out.E2E[Siblings]
	fill(&w.out.E2E, own, Queue, Prefill, Decode)
	if w.out.Partly { // it is unknown when each of them was
		part := distribution.Fraction(m.E2E-int64(w.in.To-w.in.From), m.E2E)
		for c, ns := range w.out.E2E {
			w.out.Outside[c] = int64(part * float64(ns))
		}
	}
	if m.TTFT >= 0 {
		fill(&w.out.TTFT, m.TTFT, Queue, Prefill)
		w.out.First = w.out.TTFT
		w.out.First[Router] = max(0, min(int64(answer.Start-w.start), w.out.E2E[Router]))
	}
}

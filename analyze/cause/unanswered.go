package cause

import (
	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// Unanswered attributes the requests that nobody got an answer to: those that were given up or failed, until
// then, and those still open when the dump ends, or when their servers show no further sign. Waiting for an
// answer that does not come is as much a loss as waiting for one that does. Such requests say nothing about
// usual times: what they spent on tokens counts as usual, unless the number of tokens is known.
func (a *Attributor) Unanswered(sizes *Sizes) []Attribution {
	s, finder := a.set, a.set.OpenFinder()
	var requests []int
	var open [][]request.Open
	for i := range s.AllRequests() {
		r := &s.Requests[i]
		if s.Answered(r) || !request.Plausible(r.Start, r.End) {
			continue
		}
		parts, found := openParts(finder, r, s)
		if ended := r.Status == request.Aborted || r.Status == request.Failed; found || ended && r.Complete() && r.Metrics.E2E >= 0 && r.Metrics.E2E <= request.LongestRequest {
			requests, open = memory.Append(requests, i), append(open, parts)
		}
	}
	out := memory.Make[Attribution](len(requests))
	a.Parallel(len(out), func(w *Walk, i int) {
		out[i] = w.attributeOpen(requests[i], open[i])
		a.setGroups(&out[i])
		sizes.splitUnanswered(&out[i], &s.Requests[requests[i]].Metrics)
	})
	return out
}

// splitUnanswered splits a request without an answer like SplitSizes: time spent on an unknown number of tokens counts as usual.
func (z *Sizes) splitUnanswered(a *Attribution, m *request.Metrics) {
	if m.PrefillTokens() < 0 {
		move(&a.E2E, Prefill, PromptSize, a.E2E[Prefill])
	}
	if m.DecodeTokens() < 0 {
		move(&a.E2E, Decode, OutputLength, a.E2E[Decode])
	}
	z.split(a, m, true, true)
}

// openParts returns the open stages of the parts of a request, in order, and whether there are any.
func openParts(finder *request.OpenFinder, r *request.Request, s *request.Set) (parts []request.Open, found bool) {
	for _, p := range s.PartsOf(r) {
		o, ok := finder.Of(&s.Parts[p])
		parts, found = append(parts, o), found || ok
	}
	return parts, found
}

// attributeOpen divides the time of a request without an answer.
func (w *Walk) attributeOpen(r int, open []request.Open) Attribution {
	s := w.set
	req := &s.Requests[r]
	answer, outer := &s.Parts[s.Answering(req)], s.OuterSpan(req)
	if outer == request.None {
		outer = answer.Root
	}
	w.open, w.at, w.start, w.reference = open, req.Start, req.Start, s.ProcOfPart(answer)
	if outer != request.None {
		w.start, w.reference = s.Row(outer).Start, s.ProcOf(outer)
	}
	if w.end = w.start + trace.Time(max(0, req.Metrics.E2E)); req.Metrics.E2E < 0 || req.Status == request.Unfinished {
		for k, p := range s.PartsOf(req) {
			if o := &open[k]; o.To != 0 {
				w.end = max(w.end, o.To+w.shift(s.ProcOfPart(&s.Parts[p])))
			}
		}
	}
	w.end = min(w.end, w.start+request.LongestRequest)
	return w.divide(r, answer, outer)
}

// paintOpen paints the stages that were open when a request was given up, or that still are.
func (w *Walk) paintOpen(req *request.Request) {
	for k := range w.open {
		o, part := &w.open[k], &w.set.Parts[w.set.PartsOf(req)[k]]
		if o.To == 0 {
			continue
		}
		l := layerIntake
		if o.Means != request.NoMeaning {
			l = w.layerOf(&request.Row{Means: o.Means, Phase: o.Means.Phase()})
		}
		shift := w.shift(w.set.ProcOfPart(part))
		if part.Root == request.None {
			w.canvas.paint(layerInside, part.Start+shift, o.To+shift)
		}
		w.canvas.paint(l, o.From+shift, o.To+shift)
	}
}

package finders

import (
	"fmt"
	"math"

	"github.com/sgtrace/sgtrace/analyze/change"
	"github.com/sgtrace/sgtrace/analyze/change/work"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/request"
)

// pieces says that prompts are computed in smaller pieces since servers take longer for them,
// if they are. No piece is larger than what a server computes at once, so the largest piece is
// a lower bound of that size, and the prompts that are cut are an upper bound.
func (m *Measured) pieces(f *finding.Finding) string {
	const few, smaller = 5, 1.5
	if work.Of(&f.Metric) != "prefill" || f.Metric.After <= f.Metric.Before || f.Since == 0 {
		return ""
	}
	s := m.Of.Requests
	_, end, _ := s.Bounds()
	settled := f.Since + f.Within + (end-f.Since)/3 // by then, servers that restart one after another all have
	before, after := 0.0, 0.0
	var cut []float64 // prompts computed in several pieces since then
	for i := range s.AllRequests() {
		r := &s.Requests[i]
		tokens, n := float64(r.Metrics.PrefillTokens()), m.piecesAt(&f.At, r)
		switch {
		case tokens <= 0 || n == 0:
		case r.End < f.Since-f.Within:
			before = max(before, tokens/float64(n))
		case r.Start > settled:
			if after = max(after, tokens/float64(n)); n > 1 {
				cut = append(cut, tokens)
			}
		}
	}
	least := math.Inf(1)
	for _, tokens := range cut {
		least = min(least, tokens)
	}
	if len(cut) < few || after*smaller > before || least > before {
		return ""
	}
	return fmt.Sprintf("; since then, prompts are computed in pieces of up to %s tokens, before of up to %s (chunked prefill size?)",
		words.Thousands(int64(after)), words.Thousands(int64(before)))
}

// piecesAt returns into how many pieces a request's prompt was cut at a place; 0 if it was not computed there.
func (m *Measured) piecesAt(at *place.Location, r *request.Request) int {
	s := m.Of.Requests
	for _, p := range s.PartsOf(r) {
		part := &s.Parts[p]
		thread := s.Lead(part)
		if !part.Serves() || part.Role == request.Decode || thread == request.None || !at.Overlaps(new(place.NewLocation(s, s.Threads[thread].Proc))) {
			continue
		}
		n := 0
		s.EachSelectedStage(s.StagesOf(thread), true, func(i int, _ bool) {
			if s.Row(i).Means == request.PrefillingChunk {
				n++
			}
		})
		return max(1, n)
	}
	return 0
}

// whoseTokens adds whose requests have the tokens that are added since prompts or answers became longer.
func (m *Measured) whoseTokens(f *finding.Finding) {
	if f.Metric.After <= f.Metric.Before {
		return
	}
	tokens := func(m *request.Metrics) int64 { return m.CompletionTokens }
	if f.Subkind == change.PromptLength {
		tokens = func(m *request.Metrics) int64 { return m.PromptTokens }
	}
	words, theirs := m.Tail.Common.Askers(f.Since, "tokens", tokens)
	f.Text += words
	leaveOut(f, theirs)
}

// tokensThere says which part of prompt tokens a server computes since its share of requests
// changed, if that is far more than its share: then it gets the long prompts.
func (m *Measured) tokensThere(f *finding.Finding) string {
	const far, alike = 1.5, 1.25
	s := m.Of.Requests
	var there, all [2]float64
	for i := range s.AllRequests() {
		r := &s.Requests[i]
		tokens, side := float64(r.Metrics.PrefillTokens()), 0
		if r.Start > f.Since+f.Within {
			side = 1
		} else if r.Start > f.Since-f.Within {
			continue
		}
		if tokens > 0 {
			if all[side] += tokens; m.piecesAt(&f.At, r) > 0 {
				there[side] += tokens
			}
		}
	}
	before, after := there[0]/max(1, all[0]), there[1]/max(1, all[1])
	if f.Metric.After <= f.Metric.Before || after < far*f.Metric.After || before > alike*f.Metric.Before {
		return ""
	}
	return fmt.Sprintf("; it computes %s %% of the tokens of prompts since then, before %s %%: long ones come to it", words.InPercent(after), words.InPercent(before))
}

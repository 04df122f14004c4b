package finders

import (
	"fmt"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/cause"
	"github.com/sgtrace/sgtrace/analyze/change/work"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/lifecycle"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/request"
)

// addWarmUps adds to findings about servers that were started that they were slow at first, until Full.
func (m *Measured) addWarmUps(found []finding.Finding) {
	if !slices.ContainsFunc(found, func(f finding.Finding) bool { return lifecycle.Began(&f) != 0 }) {
		return
	}
	s, ranks := m.Of.Requests, m.ranks()
	from, to, _ := s.Bounds()
	var all []*request.Request
	for i := range s.AllRequests() {
		all = append(all, &s.Requests[i])
	}
	paces := work.Observe(ranks, all, from, to)
	for i := range found {
		f := &found[i]
		at := lifecycle.Began(f)
		if at == 0 {
			continue
		}
		for k, list := range [...][]work.Pace{paces.Decode, paces.Prefill} {
			for j := range list {
				p := &list[j]
				if engine := ranks.EngineAt(p.Rank); !engine.Overlaps(&f.At) {
					continue
				}
				if w := p.WarmUp(at); w != nil {
					m.addWarmUp(f, w, k == 0, p.Whole)
				}
			}
		}
	}
}

// addWarmUp adds one kind of work that was slow at first.
func (m *Measured) addWarmUp(f *finding.Finding, w *work.WarmUp, decodes, whole bool) {
	what, causes := "prefills", []cause.Cause{cause.Prefill}
	if decodes {
		what, causes = "tokens", []cause.Cause{cause.Decode, cause.SlowRank}
	}
	also := "it was slow at first (a warm-up, or compilation?): "
	if f.Full != 0 {
		also = ""
	}
	f.Text += fmt.Sprintf("; %sits %s took %s times as long as later, until %s", also, what, words.ThreeDigits(w.Factor), words.At(w.Until, "15:04:05"))
	f.Claim = f.Claim.And(m.Costs.Slower(w.Extra, decodes && whole, causes...)).
		And(m.Costs.Risen(cause.Span{From: lifecycle.Began(f), Until: w.Until, At: f.At}, m.Costs.BySize, cause.QueueCauses...))
	f.CostBasis, f.Severity, f.Full = finding.RequestTime, finding.Warning, max(f.Full, w.Until)
}

// lives finds what happened to servers. While one is away, others have more work, and requests
// on one that hangs or died wait in vain.
func lives(m *Measured) ([]finding.Finding, finding.Check) {
	found, check := m.Lives.Findings()
	if m.Costs == nil {
		return found, check
	}
	for i := range found {
		f := &found[i]
		died, hangs := f.Subkind == lifecycle.Death, f.Subkind == lifecycle.Hang
		if f.Since == 0 || !died && !hangs && (f.Cost > 0 || !slices.Contains(lifecycle.Away, f.Subkind)) {
			continue
		}
		over := f.Until
		if over != 0 {
			over += (over - f.Since) / 2 // time to work off the backlog
		}
		var claim finding.Claim
		if !hangs {
			claim = m.Costs.Risen(cause.Span{From: f.Since, Until: over, At: place.Location{Scope: place.Everywhere}}, m.Costs.BySize, cause.OverloadCauses...)
		}
		if died || hangs { // cost is the extra time of requests, or the number of lost ones, whichever is more
			claim = claim.And(m.Costs.Lost(f.Affected.Requests()))
			if m.Costs.Price([]finding.Finding{{Claim: claim}})[0].Cost <= f.Cost {
				continue
			}
			f.CostBasis = finding.RequestTime
		}
		f.Claim = claim
		if f.Until != 0 && !died && !hangs {
			f.Severity = finding.Info // it was intended, and is over
		}
	}
	m.addWarmUps(found)
	return m.Costs.Price(found), check
}

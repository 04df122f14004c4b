package finders

import (
	"fmt"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/cause"
	"github.com/sgtrace/sgtrace/analyze/change"
	"github.com/sgtrace/sgtrace/analyze/change/work"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/lifecycle"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// began returns when a server began to serve, if a finding is about one that was started or restarted; 0 if not.
func began(f *finding.Finding) trace.Time {
	switch {
	case f.At.Scope != place.OneRank:
	case f.Subkind == lifecycle.Restart:
		return f.Until
	case f.Subkind == lifecycle.Start:
		return f.Since
	}
	return 0
}

// addWarmUps adds to findings about servers that were started that they were slow at first, until Full.
func (m *Measured) addWarmUps(found []finding.Finding) {
	if !slices.ContainsFunc(found, func(f finding.Finding) bool { return began(&f) != 0 }) {
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
		at := began(f)
		if at == 0 {
			continue
		}
		for k, list := range [...][]work.Pace{paces.Decode, paces.Prefill} {
			for j := range list {
				p := &list[j]
				if !ranks.Places[p.Rank].Overlaps(&f.At) {
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
		And(m.Costs.Risen(cause.Span{From: began(f), Until: w.Until, At: f.At}, m.Costs.BySize, cause.QueueCauses...))
	f.CostBasis, f.Severity, f.Full = finding.RequestTime, finding.Warning, max(f.Full, w.Until)
}

// warm are consequences of starts of servers that are slow at first.
var warm = []finding.Consequence{
	{Cause: finding.Lifecycle, CauseSubkind: lifecycle.Restart, Effect: finding.Change, Subkinds: []string{change.Pace, finding.Stalls}, Enough: whileWarmingUp, Costs: true, Same: true},
	{Cause: finding.Lifecycle, CauseSubkind: lifecycle.Start, Effect: finding.Change, Subkinds: []string{change.Pace, finding.Stalls}, Enough: whileWarmingUp, Costs: true, Same: true},
}

// whileWarmingUp reports whether a server is slower, or stands still, only for as long as it warms up.
func whileWarmingUp(f, start *finding.Finding) bool {
	const about = trace.Time(5e9)
	slower := f.Subkind == finding.Stalls || f.Metric.After > f.Metric.Before
	return start.Full != 0 && f.At.Scope == place.OneRank && slower && f.Until != 0 && f.Until <= start.Full+about && f.Since+f.Within+about >= began(start)
}

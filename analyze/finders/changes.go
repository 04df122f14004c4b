package finders

import (
	"github.com/sgtrace/sgtrace/analyze/change"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/request"
)

// loads finds changes of load that cost enough, and crowds, which say more.
func loads(m *Measured) ([]finding.Finding, finding.Check) {
	found, check := changes(finding.Load, costly)(m)
	return append(m.Crowds.Findings(m.Costs), found...), check
}

// changes returns a search for changes of one kind that satisfy is.
func changes(kind finding.Kind, is func(*finding.Finding) bool) func(*Measured) ([]finding.Finding, finding.Check) {
	return func(m *Measured) (found []finding.Finding, check finding.Check) {
		for i := range m.changed {
			if f := m.changed[i]; f.Kind == kind && is(&f) {
				switch {
				case f.Metric.Name == change.Arrivals && f.Claim != nil:
					m.blame(&f)
				case f.Metric.Name == change.ShareOfRequests:
					f.Text += m.tokensThere(&f)
				}
				switch f.Subkind {
				case change.Pace:
					why := m.pieces(&f) + m.cacheLoads(&f)
					f.Text += why
					f.Brief += why
				case finding.StepYield:
					words, _ := m.Tail.Common.Askers(f.Since, "decode steps", func(m *request.Metrics) int64 { _, steps := m.StepYield(); return steps })
					f.Text += words
				case change.OutputLength, change.PromptLength:
					m.whoseTokens(&f)
				}
				found = append(found, f)
			}
		}
		return found, m.Changes.Check()
	}
}

// blame adds whose requests arrive in addition to a finding about arrivals.
func (m *Measured) blame(f *finding.Finding) {
	words, theirs := m.Tail.Common.Senders(f.Since)
	f.Text += words
	leaveOut(f, theirs)
}

// leaveOut removes what some requests take themselves from the cost of a finding: they are the cause.
func leaveOut(f *finding.Finding, theirs []bool) {
	all := f.Claim
	if all == nil || theirs == nil {
		return
	}
	f.Claim = func(i int, left []int64) {
		if i >= len(theirs) || !theirs[i] { // later requests have no answer
			all(i, left)
		}
	}
}

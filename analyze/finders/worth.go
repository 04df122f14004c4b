package finders

import (
	"github.com/sgtrace/sgtrace/analyze/change"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/tail"
)

// isSymptom reports whether a finding says where time went, but not why: it adds nothing once another one explains all of that time.
func isSymptom(f *finding.Finding) bool {
	switch f.Kind {
	case finding.Tail, finding.Limit:
		return true
	case finding.Memory:
		return f.CostBasis != finding.Ranks // device memory is not request time
	case finding.Load:
		return f.Subkind == finding.Waits || f.Subkind == finding.LonePrompts
	case finding.Transfer: // slow transfers; a beginning says more
		return f.Since == 0 || f.Subkind == finding.Waits
	case finding.Common:
		return f.Subkind == tail.PlaceSubkind
	case finding.Change: // what users see
		return f.Subkind == "" && f.At.Scope == place.Everywhere && f.CostBasis == finding.RequestTime
	}
	return false
}

// claimsAt returns when a finding's turn to claim request time is: first whatever is slower at
// the same load, then load, which explains the rest, and last symptoms.
func claimsAt(f *finding.Finding) int {
	switch {
	case isSymptom(f):
		return 2
	case f.Kind == finding.Load:
		return 1
	}
	return 0
}

// whatever accepts any finding.
func whatever(*finding.Finding) bool { return true }

// comesAndGoes reports whether a finding is about what requests do to each other: they queue
// and hold each other up on every server now and then, without a fault.
func comesAndGoes(f *finding.Finding) bool {
	return (f.Kind == finding.Load || f.Kind == finding.Imbalance || f.Kind == finding.Tail) && f.CostBasis == finding.RequestTime
}

// hardlyCosts reports whether a server became slower by so little, or for so short a time, that nobody would notice.
func hardlyCosts(f *finding.Finding) bool {
	const least = 0.005 // part of request time
	return f.Kind == finding.Change && f.Subkind == change.Pace && f.Cost < least
}

// costly and free report whether a finding costs enough for anyone to notice, or not: load comes and goes.
func costly(f *finding.Finding) bool { return f.Cost >= minLoadCost }

func free(f *finding.Finding) bool { return !costly(f) }

// minLoadCost is the part of request time that load, or a tail due to it, must cost to be reported as a cost.
const minLoadCost = 0.02

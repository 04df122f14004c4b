package clocks

import (
	"slices"

	"github.com/sgtrace/sgtrace/align"
	"github.com/sgtrace/sgtrace/convert/ranks"
	"github.com/sgtrace/sgtrace/trace"
)

// exportsFixed returns how the clocks of exports and of traces are related, but for
// those of which the user has said it.
func (m *aligner) exportsFixed(given []align.Fixed) []align.Fixed {
	var fixed []align.Fixed
	known := map[int]bool{}
	for _, g := range given {
		known[g.B] = true
	}
	relate := func(a, b int, at trace.Time, offset int64, s *ranks.Shift, drift int64) {
		if !known[b] && a != b {
			known[b] = true
			fixed = append(fixed, align.Fixed{A: a, B: b, At: int64(at), Offset: offset, DriftPPB: drift, Bound: s.Bound,
				Why: trace.SyncMatched, By: align.ByKernels, Matches: s.Matches})
		}
	}
	for _, r := range m.of.Tracks {
		for _, c := range r.Captures {
			if x := m.of.ExportClock(c); x != nil {
				relate(x.Trace.Clock, c.Clock, x.Shift.At+trace.Time(x.Shift.Offset), x.Shift.Offset, &x.Shift, x.Shift.DriftPPB)
			}
		}
	}
	for _, x := range m.of.Placed {
		relate(x.Clock, x.Trace.Clock, x.Shift.At, -x.Shift.Offset, &x.Shift, -x.Shift.DriftPPB)
	}
	return fixed
}

// whyAssumed says why nothing is known of a clock, "" where that is plain.
func (m *Alignment) whyAssumed(in *ranks.Assignment, clock int, communities func() map[*ranks.Track]string) string {
	var mine, others []*ranks.Track
	for _, r := range in.Tracks {
		switch {
		case r.Clock == clock:
			mine = append(mine, r)
		case m.Solution.Clocks[r.Clock].Component == m.Solution.Clocks[m.Reference].Component:
			others = append(others, r)
		}
	}
	alone := func(r *ranks.Track) bool {
		return !slices.ContainsFunc(r.Captures, func(c *ranks.Capture) bool { return c.File.Collectives.Len() > 0 })
	}
	mine, others = slices.DeleteFunc(mine, alone), slices.DeleteFunc(others, alone)
	if len(mine) == 0 || len(others) == 0 {
		return m.whyNoRequests(clock)
	}
	of, theirs := communities(), map[string]bool{}
	for _, r := range others {
		theirs[of[r]] = true
	}
	apart, called := !theirs[""], true
	for _, r := range mine {
		apart = apart && of[r] != "" && !theirs[of[r]]
		key := r.RankKey()
		called = called && (key == trace.NoRank || slices.ContainsFunc(others, func(o *ranks.Track) bool { return o.RankKey() == key }))
	}
	switch {
	case apart:
		return "its ranks share no communicator of NCCL with the others"
	case called:
		return "its ranks are called like others and taken for those of another server, which share no collectives with them"
	}
	return "its collectives fit those of the others in no way"
}

// whyNoRequests says why requests have no information about a clock, "" where none crossed to it.
func (m *Alignment) whyNoRequests(clock int) string {
	for _, c := range m.Solution.Conflicts {
		if (c.A == clock || c.B == clock) && c.Kind >= align.DividedRequests {
			return c.String()
		}
	}
	return ""
}

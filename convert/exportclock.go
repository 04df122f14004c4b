package convert

import (
	"cmp"
	"path/filepath"
	"slices"

	"github.com/sgtrace/sgtrace/internal/align"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// An exportClock relates the clock of an Nsight Systems export to that of a PyTorch
// trace of one of its processes: they recorded the same kernels. The start of a
// session, from which an export counts, may be missing, and it is Unix time only as
// of then, while the clock of the host has been adjusted since. Or it is the trace
// that does not tell what its times count from.
type exportClock struct {
	name  string
	trace *capture
	shift profile.Shift
	// host is where the export is from, and clock that host's, if it is what places
	// the trace.
	host  string
	clock int
}

// noteExportClock notes what a pair says about the clock of an export, if no other
// says more.
func (m *Ranks) noteExportClock(n, t *capture, p *pair) {
	if p.twins == nil || isNone(&p.shift) && n.file.Meta.Origin == t.file.Meta.Origin && t.known.Host != "" {
		return
	}
	x := &exportClock{name: filepath.Base(n.file.Name), trace: t, shift: p.shift}
	if t.file.Meta.Origin == profile.OriginUnknown && n.file.Meta.Origin == profile.OriginUnix {
		x.host = cmp.Or(n.known.Host, x.name)
		m.placed = append(m.placed, x)
		return
	}
	if have := m.synced[n.file.Source]; have == nil || have.shift.Matches < p.shift.Matches {
		m.synced[n.file.Source] = x
	}
}

// isNone tells whether a shift is no more than what nsys may be wrong about the start
// of a session.
func isNone(s *profile.Shift) bool {
	const accuracy = 2000 // ns
	return max(s.Offset, -s.Offset) <= accuracy && s.DriftPPB == 0
}

// exportClock returns what is known of the clock of the export that a capture is from;
// nil is nothing.
func (m *Ranks) exportClock(c *capture) *exportClock {
	return m.synced[c.file.Source]
}

// exportsFixed returns how the clocks of exports and of traces are related, but for
// those of which the user has said it.
func (m *Clocks) exportsFixed(given []align.Fixed) []align.Fixed {
	var fixed []align.Fixed
	known := map[int]bool{}
	for _, g := range given {
		known[g.B] = true
	}
	relate := func(a, b int, at trace.Time, offset int64, s *profile.Shift, drift int64) {
		if !known[b] && a != b {
			known[b] = true
			fixed = append(fixed, align.Fixed{A: a, B: b, At: int64(at), Offset: offset, DriftPPB: drift, Bound: s.Bound,
				Why: trace.SyncMatched, By: align.ByKernels, Matches: s.Matches})
		}
	}
	for _, r := range m.tracks {
		for _, c := range r.captures {
			if x := m.exportClock(c); x != nil {
				relate(x.trace.clock, c.clock, x.shift.At+trace.Time(x.shift.Offset), x.shift.Offset, &x.shift, x.shift.DriftPPB)
			}
		}
	}
	for _, x := range m.placed {
		relate(x.clock, x.trace.clock, x.shift.At, -x.shift.Offset, &x.shift, -x.shift.DriftPPB)
	}
	return fixed
}

// whyAssumed says why nothing is known of a clock, "" where that is plain.
func (m *Clocks) whyAssumed(clock int, communities func() map[*rankTrack]string) string {
	var mine, others []*rankTrack
	for _, r := range m.tracks {
		switch {
		case r.clock == clock:
			mine = append(mine, r)
		case m.solution.Clocks[r.clock].Component == m.solution.Clocks[m.reference()].Component:
			others = append(others, r)
		}
	}
	alone := func(r *rankTrack) bool {
		return !slices.ContainsFunc(r.captures, func(c *capture) bool { return len(c.file.Collectives) > 0 })
	}
	mine, others = slices.DeleteFunc(mine, alone), slices.DeleteFunc(others, alone)
	if len(mine) == 0 || len(others) == 0 {
		return ""
	}
	of, theirs := communities(), map[string]bool{}
	for _, r := range others {
		theirs[of[r]] = true
	}
	apart, called := !theirs[""], true
	for _, r := range mine {
		apart = apart && of[r] != "" && !theirs[of[r]]
		seat := r.seat()
		called = called && (seat == trace.NoRank || slices.ContainsFunc(others, func(o *rankTrack) bool { return o.seat() == seat }))
	}
	switch {
	case apart:
		return "its ranks share no communicator of NCCL with the others"
	case called:
		return "its ranks are called like others and taken for those of another server, which share no collectives with them"
	}
	return "its collectives fit those of the others in no way"
}

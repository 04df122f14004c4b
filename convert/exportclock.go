package convert

import (
	"path/filepath"
	"slices"

	"github.com/sgtrace/sgtrace/internal/align"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// An exportClock relates the clock of an Nsight Systems export to that of a PyTorch
// trace of one of its processes: they recorded the same kernels. The start of a
// session, from which an export counts, may be missing, and it is Unix time only as
// of then, while the clock of the host has been adjusted since.
type exportClock struct {
	name  string
	trace *capture
	shift profile.Shift
}

// noteExportClock notes what a pair says about the clock of an export, if no other
// says more.
func (m *Merge) noteExportClock(n, t *capture, p *pair) {
	if p.twins == nil {
		return
	}
	if m.synced == nil {
		m.synced = map[string]*exportClock{}
	}
	if have := m.synced[n.file.Name]; have == nil || have.shift.Matches < p.shift.Matches {
		m.synced[n.file.Name] = &exportClock{filepath.Base(n.file.Name), t, p.shift}
	}
}

// exportClock returns what is known of the clock of the export that a capture is from;
// nil is nothing.
func (m *Merge) exportClock(c *capture) *exportClock {
	if !c.isExport() {
		return nil
	}
	return m.synced[c.file.Name]
}

// exportsFixed returns how the clocks of exports are related to those of traces, but
// for those of which the user has said it.
func (m *Merge) exportsFixed(given []align.Fixed) []align.Fixed {
	var fixed []align.Fixed
	known := map[int]bool{}
	for _, g := range given {
		known[g.B] = true
	}
	for _, r := range m.ranks {
		for _, c := range r.captures {
			x := m.exportClock(c)
			if x == nil || known[c.clock] {
				continue
			}
			known[c.clock] = true
			s := &x.shift
			fixed = append(fixed, align.Fixed{A: x.trace.clock, B: c.clock, At: int64(s.At + trace.Time(s.Offset)), Offset: s.Offset, DriftPPB: s.DriftPPB,
				Bound: s.Bound, Why: trace.SyncMatched, By: align.ByKernels, Matches: s.Matches})
		}
	}
	return fixed
}

// whyAssumed says why nothing is known of a clock, "" where that is plain.
func (m *Merge) whyAssumed(clock int) string {
	var mine, others []*rankTrack
	for _, r := range m.ranks {
		switch {
		case r.clock == clock:
			mine = append(mine, r)
		case m.solution.Clocks[r.clock].Component == m.solution.Clocks[m.reference()].Component:
			others = append(others, r)
		}
	}
	collectives := func(r *rankTrack) bool {
		return slices.ContainsFunc(r.captures, func(c *capture) bool { return len(c.file.Collectives) > 0 })
	}
	if !slices.ContainsFunc(mine, collectives) || !slices.ContainsFunc(others, collectives) {
		return ""
	}
	communities, theirs := m.communities(), map[string]bool{}
	for _, r := range others {
		theirs[communities[r]] = true
	}
	apart, called := !theirs[""], true
	for _, r := range mine {
		apart = apart && communities[r] != "" && !theirs[communities[r]]
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

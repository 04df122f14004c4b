package align

import (
	"math"

	"github.com/sgtrace/sgtrace/trace"
)

// Solve relates all clocks to the reference. Clocks, ranks, and indexes must be in range; p is not modified.
func Solve(p Problem) Solution {
	s := newState(&p)
	s.fixed()
	s.collectives()
	s.requests()
	sol := s.solution()
	sol.keepClaims(&p)
	sol.judge(&p)
	sol.Conflicts = ordered(s.conflicts)
	return sol
}

// refused is the share of matches that may violate causality; beyond it, none of them are used.
const refused = 0.05

// hopeless is the MAD of end differences, in ns, beyond which matches cannot be collectives.
const hopeless = 1_000_000

// collectives relates the clocks that matched collectives connect.
func (s *state) collectives() {
	s.checkFixed()
	all := s.edges(func(clock int) int { return s.root[clock] }, func(a, b int) bool { return true })
	var good []*edge
	for _, e := range all {
		e.fit()
		switch wrong := e.violations(); {
		case e.mad > hopeless:
			s.conflict(SpreadConflict, e, e.mad, hopeless, len(e.samples))
		case float64(wrong) > refused*float64(e.inliers):
			s.conflict(CausalityConflict, e, 0, e.bound(), wrong)
		default:
			good = append(good, e)
		}
	}
	nodes, wrong := relate(good, s.better)
	for i, e := range good {
		if w, ok := wrong[i]; ok {
			s.conflict(CollectiveConflict, e, w.by, w.tolerated, e.inliers)
		}
	}
	for b, n := range nodes {
		if b != n.root {
			s.merge(n.root, b, n.relation())
		}
	}
}

func (s *state) conflict(kind ConflictKind, e *edge, by, bound float64, count int) {
	s.conflicts = append(s.conflicts, Conflict{kind, e.a, e.b, int64(by), int64(bound), count, len(e.samples)})
}

// checkFixed compares the relations of clocks that were given or recorded with their
// collectives. In their common root's time, all offsets should be zero.
func (s *state) checkFixed() {
	if len(s.p.Fixed) == 0 {
		return
	}
	for _, e := range s.edges(func(clock int) int { return clock }, func(a, b int) bool { return s.root[a] == s.root[b] }) {
		e.fit()
		bound := e.bound() + s.links[e.a].err + s.links[e.b].err
		if by := float64(e.off); math.Abs(by) > bound && e.mad <= hopeless {
			s.conflict(CollectiveConflict, e, by, bound, e.inliers)
		}
	}
}

// relation returns n as a relation of its clock to the root. The slope of n is per time of the
// root, that of a line per its own time: d/dt' = (d/dt) / (dt'/dt).
func (n *node) relation() relation {
	local := func(t int64) int64 { return t + n.off + int64(math.Round(n.slope*float64(t-n.at))) }
	return relation{
		line: line{t0: n.at + n.off, off: n.off, slope: n.slope / (1 + n.slope)},
		why:  trace.SyncMatched, by: ByCollectives, err: n.err, slopeErr: n.slopeErr, windowed: true,
		center: n.at + n.off, from: local(n.from), to: local(n.to),
		matches: n.matches, trimmed: n.trimmed,
	}
}

// solution converts the links to integers.
func (s *state) solution() Solution {
	ref := s.p.Reference
	sol := Solution{Reference: ref, Clocks: make([]ClockFit, s.p.Clocks)}
	toRef := s.links[ref].line.inverse() // the identity, unless ref is not a root
	lowest := map[int]int{}
	for c := range s.links {
		if _, ok := lowest[s.root[c]]; !ok {
			lowest[s.root[c]] = c
		}
	}
	sol.Components = len(lowest)
	for c, l := range s.links {
		known := s.root[c] == s.root[ref]
		full := l.line
		if known {
			full = full.then(toRef)
		}
		t0 := full.t0
		if l.windowed {
			t0 = l.center
		}
		full = full.at(t0)
		fit := ClockFit{
			Clock: c, Why: l.why, By: l.by, Component: lowest[s.root[c]],
			T0: t0, Offset: full.off, DriftPPB: int64(math.Round(full.slope / ppb)),
			BoundAtT0: int64(math.Ceil(l.err)), Loose: int64(l.loose), From: t0, To: t0,
			Matches: l.matches, Trimmed: l.trimmed,
		}
		if l.windowed {
			fit.From, fit.To = l.from, l.to
		}
		rounding := math.Abs(full.slope/ppb - float64(fit.DriftPPB))
		fit.DriftBoundPPB = int64(math.Ceil(l.slopeErr/ppb + rounding - 1e-4))
		fit.Bound = max(fit.BoundAt(fit.From), fit.BoundAt(fit.To))
		if !known {
			fit.Why, fit.Bound, fit.BoundAtT0 = trace.SyncAssumed, Unknown, Unknown
			if l.why != trace.SyncMatched {
				fit.By = ByNothing
			}
		}
		sol.Clocks[c] = fit
	}
	return sol
}

package align

import (
	"math"

	"github.com/sgtrace/sgtrace/align/matching"
	"github.com/sgtrace/sgtrace/trace"
)

// A link relates a clock to the root of its component.
type link struct {
	line line // local to root
	why  trace.SyncBasis
	by   MatchBasis
	// err is how far off the line may be at local time center, in ns, slopeErr how far off its
	// slope. Without a window, the line holds at all times.
	err, slopeErr    float64
	loose            float64 // ns: see ClockFit.Loose
	windowed         bool
	center, from, to int64
	matches, trimmed int
}

// A relation is how two roots are related.
type relation struct {
	line             line // root b to root a
	why              trace.SyncBasis
	by               MatchBasis
	err, slopeErr    float64
	loose            float64
	windowed         bool
	center, from, to int64 // in the time of b
	matches, trimmed int
}

// state is the forest of clocks while Solve builds it, the best relations first.
type state struct {
	p         *Problem
	root      []int
	links     []link
	conflicts []Conflict
}

func newState(p *Problem) *state {
	s := &state{p: p, root: make([]int, p.Clocks), links: make([]link, p.Clocks)}
	for i := range s.root {
		s.root[i] = i
	}
	return s
}

// better returns which of two roots remains a root.
func (s *state) better(a, b int) int {
	switch ref := s.p.Reference; {
	case s.root[ref] == a:
		return a
	case s.root[ref] == b:
		return b
	}
	return min(a, b)
}

// toRoot converts a local time of clock c to the time of its root.
func (s *state) toRoot(c int, t int64) int64 { return s.links[c].line.apply(t) }

// errAt returns the error bound of clock c at a local time, in ns.
func (s *state) errAt(c int, t int64) float64 {
	l := &s.links[c]
	if !l.windowed {
		return l.err
	}
	return l.err + l.slopeErr*math.Abs(float64(t-l.center))
}

// merge puts the component of root b below root a, which must be the better one.
func (s *state) merge(a, b int, r relation) {
	for c := range s.links {
		if s.root[c] != b {
			continue
		}
		s.root[c] = a
		l := &s.links[c]
		l.loose = max(l.loose, r.loose)
		back := l.line.inverse()
		if !l.windowed {
			l.windowed, l.err, l.slopeErr = r.windowed, l.err+r.err, r.slopeErr
			l.center, l.from, l.to = back.apply(r.center), back.apply(r.from), back.apply(r.to)
		} else {
			l.err += r.err
			if r.windowed {
				l.err += r.slopeErr * math.Abs(float64(l.line.apply(l.center)-r.center))
				l.slopeErr += r.slopeErr
			}
		}
		l.line = l.line.then(r.line)
		if r.why >= l.why {
			l.why, l.by = r.why, max(l.by, r.by)
			l.matches, l.trimmed = l.joined(r)
		}
	}
}

// joined returns the matches that l is based on once r is added: it depends on the relation with fewer matches.
func (l *link) joined(r relation) (matches, trimmed int) {
	if l.matches > 0 && l.matches < r.matches {
		return l.matches, l.trimmed
	}
	return r.matches, r.trimmed
}

// flipped returns r as seen from the other root.
func (r relation) flipped() relation {
	r.center, r.from, r.to = r.line.apply(r.center), r.line.apply(r.from), r.line.apply(r.to)
	r.line = r.line.inverse()
	return r
}

// fixed applies the given relations, then the recorded ones.
func (s *state) fixed() {
	for why := trace.SyncGiven; why <= trace.SyncAssumed; why++ {
		for _, f := range s.p.Fixed {
			if f.Why == why && f.A != f.B {
				s.fix(f)
			}
		}
	}
}

func (s *state) fix(f Fixed) {
	if max(f.Offset, -f.Offset) > matching.Farthest/2 || max(f.At, -f.At) > matching.Farthest || f.Offset == math.MinInt64 || f.At == math.MinInt64 {
		s.conflicts = append(s.conflicts, Conflict{FixedConflict, f.A, f.B, f.Offset, matching.Farthest / 2, 1, 1})
		return
	}
	drift := min(max(f.DriftPPB, -maxDriftPPB), maxDriftPPB)
	l := line{t0: f.At, off: f.Offset, slope: float64(drift) * ppb}
	a, b := s.root[f.A], s.root[f.B]
	if a == b {
		t := s.links[f.B].center // an instant that both relations cover
		if f.DriftPPB != 0 || !s.links[f.B].windowed {
			t = f.At
		}
		d := s.toRoot(f.A, l.apply(t)) - s.toRoot(f.B, t)
		bound := float64(f.Bound) + s.errAt(f.A, l.apply(t)) + s.errAt(f.B, t)
		if math.Abs(float64(d)) > bound {
			s.conflicts = append(s.conflicts, Conflict{FixedConflict, f.A, f.B, d, int64(bound), 1, 1})
		}
		return
	}
	r := relation{
		line: s.links[f.B].line.inverse().then(l).then(s.links[f.A].line),
		why:  f.Why, by: f.By, matches: f.Matches, err: float64(f.Bound) + s.links[f.A].err + s.links[f.B].err,
	}
	if s.better(a, b) == a {
		s.merge(a, b, r)
	} else {
		s.merge(b, a, r.flipped())
	}
}

package align

import (
	"cmp"
	"slices"

	"github.com/sgtrace/sgtrace/trace"
)

// limits are the bounds between two roots a < b, as limits for b minus a on their
// times.
type limits struct {
	a, b   int
	lo, hi []limit
}

// requests relates the remaining clocks by the bounds of requests, the narrowest band
// first, and then checks all bounds with what is used.
func (s *state) requests() {
	bands := map[[2]int]*bandFit{} // nil where there is none
	for {
		var best *limits
		var bestFit *bandFit
		for _, l := range s.limits() {
			key := [2]int{l.a, l.b}
			fit, known := bands[key]
			if !known {
				if f, ok := fitBand(l.lo, l.hi); ok {
					fit = &f
				}
				bands[key] = fit
			}
			if fit != nil && (best == nil || fit.width() < bestFit.width()) {
				best, bestFit = l, fit
			}
		}
		if best == nil {
			break
		}
		s.connect(best, bestFit)
		for key := range bands {
			if slices.Contains(key[:], best.a) || slices.Contains(key[:], best.b) {
				delete(bands, key)
			}
		}
	}
	for _, l := range s.limits() {
		kind := NoOffset
		if len(l.lo) == 0 || len(l.hi) == 0 {
			kind = OneSided
		}
		n := len(l.lo) + len(l.hi)
		s.conflicts = append(s.conflicts, Conflict{kind, l.a, l.b, 0, 0, n, n})
	}
	s.checkBounds()
}

func (f *bandFit) width() float64 { return f.err + f.slopeErr*float64(f.to-f.from)/2 }

// connect merges the two roots of l.
func (s *state) connect(l *limits, f *bandFit) {
	r := relation{
		line: line{t0: f.at, off: f.off, slope: f.slope},
		why:  trace.SyncMatched, by: ByRequests, err: f.err, slopeErr: f.slopeErr, windowed: true,
		center: f.at, from: f.from, to: f.to, matches: f.used, trimmed: f.wrong,
	}
	if s.better(l.a, l.b) == l.a {
		s.merge(l.a, l.b, r)
	} else {
		s.merge(l.b, l.a, r.flipped())
	}
}

// limits returns the bounds between different roots, by pair.
func (s *state) limits() []*limits {
	found := map[[2]int]*limits{}
	var list []*limits
	for _, x := range s.p.Bounds {
		a, b := s.root[x.A], s.root[x.B]
		if a == b || !x.sound() {
			continue
		}
		key := [2]int{min(a, b), max(a, b)}
		l := found[key]
		if l == nil {
			l = &limits{a: key[0], b: key[1]}
			found[key] = l
			list = append(list, l)
		}
		l.add(s, x, a < b)
	}
	slices.SortFunc(list, func(x, y *limits) int { return cmp.Or(cmp.Compare(x.a, y.a), cmp.Compare(x.b, y.b)) })
	return list
}

// add converts x to the times of the roots. straight tells that A's root is l.a.
func (l *limits) add(s *state, x Bound, straight bool) {
	rb := s.toRoot(x.B, x.At)
	for _, side := range [...]struct {
		v     int64
		isLow bool
	}{{x.Lo, true}, {x.Hi, false}} {
		if side.v == NoLo || side.v == NoHi {
			continue
		}
		ra := s.toRoot(x.A, sub(x.At, side.v)) // A's time if the limit were the offset
		v := limit{rb, rb - ra}
		low := side.isLow
		if !straight {
			v, low = limit{ra, ra - rb}, !low
		}
		if low {
			l.lo = append(l.lo, v)
		} else {
			l.hi = append(l.hi, v)
		}
	}
}

// checkBounds reports the bounds that what is used violates.
func (s *state) checkBounds() {
	found := map[[2]int]*Conflict{}
	var list []*Conflict
	for _, x := range s.p.Bounds {
		if s.root[x.A] != s.root[x.B] || x.A == x.B || !x.sound() {
			continue
		}
		key := [2]int{min(x.A, x.B), max(x.A, x.B)}
		c := found[key]
		if c == nil {
			c = &Conflict{Kind: RequestConflict, A: key[0], B: key[1]}
			found[key] = c
			list = append(list, c)
		}
		c.Of++
		by, bound := s.violation(x)
		if by == 0 || max(by, -by) <= bound {
			continue
		}
		if x.A > x.B {
			by = -by
		}
		if c.Count++; max(by, -by) > max(c.Difference, -c.Difference) {
			c.Difference, c.Bound = by, bound
		}
	}
	for _, c := range list {
		if c.Count > 0 {
			s.conflicts = append(s.conflicts, *c)
		}
	}
}

// violation returns by how much the offset used for x is outside of its limits:
// positive if x wants a larger one; and how far the offset may be off.
func (s *state) violation(x Bound) (by, bound int64) {
	rb := s.toRoot(x.B, x.At)
	bound = int64(s.errAt(x.A, x.At) + s.errAt(x.B, x.At))
	if x.Lo != NoLo {
		ra := s.toRoot(x.A, sub(x.At, x.Lo))
		bound = int64(s.errAt(x.A, sub(x.At, x.Lo)) + s.errAt(x.B, x.At))
		if by = rb - ra; by > 0 {
			return by, bound
		}
	}
	if x.Hi != NoHi {
		ra := s.toRoot(x.A, sub(x.At, x.Hi))
		bound = int64(s.errAt(x.A, sub(x.At, x.Hi)) + s.errAt(x.B, x.At))
		if by = rb - ra; by < 0 {
			return by, bound
		}
	}
	return 0, bound
}

package align

import (
	"cmp"
	"maps"
	"slices"

	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/internal/parallel"
	"github.com/sgtrace/sgtrace/trace"
)

// limits are the bounds between two roots a < b, as limits for b minus a in their times.
type limits struct {
	a, b   int
	lo, hi []limit
	fit    *bandLine // line between them; nil if there is none
	fitted int       // number of limits that fit is based on
	asked  bool      // some come from requests
}

// refit finds the line again if there are new limits.
func (l *limits) refit() {
	n := len(l.lo) + len(l.hi)
	if l.fitted == n {
		return
	}
	l.fit, l.fitted = nil, n
	if f, ok := lineBetween(l.lo, l.hi); ok {
		l.fit = &f
	}
}

// crossings are the limits between all roots, by pair of roots.
type crossings struct {
	*state
	pairs  map[[2]int]*limits
	bounds [][]int32 // by clock: indexes of its bounds
}

// newCrossings converts the bounds between clocks with different roots.
func newCrossings(s *state) *crossings {
	c := &crossings{state: s, pairs: map[[2]int]*limits{}, bounds: make([][]int32, s.p.Clocks)}
	for i := range s.p.Bounds {
		if x := &s.p.Bounds[i]; x.A != x.B && x.sound() {
			c.bounds[x.A], c.bounds[x.B] = append(c.bounds[x.A], int32(i)), append(c.bounds[x.B], int32(i))
			c.add(x)
		}
	}
	return c
}

// add adds a bound, converted to the times of its roots.
func (c *crossings) add(x *Bound) {
	a, b := c.root[x.A], c.root[x.B]
	if a == b {
		return
	}
	key := [2]int{min(a, b), max(a, b)}
	l := order.Memo(c.pairs, key, func() *limits { return &limits{a: key[0], b: key[1]} })
	l.asked = l.asked || !x.OfHosts
	l.add(c.state, *x)
}

// ordered returns the limits ordered by their roots.
func (c *crossings) ordered() []*limits {
	return slices.SortedFunc(maps.Values(c.pairs), func(x, y *limits) int { return cmp.Or(cmp.Compare(x.a, y.a), cmp.Compare(x.b, y.b)) })
}

// narrowest returns the limits with the narrowest band; nil if there is no band.
func (c *crossings) narrowest() (best *limits) {
	pairs := c.ordered()
	parallel.Each(len(pairs), func(i int) { pairs[i].refit() })
	for _, l := range pairs {
		if l.fit != nil && (best == nil || l.fit.width() < best.fit.width()) {
			best = l
		}
	}
	return best
}

// join merges the two roots of l. One of them keeps its time, so only the bounds of clocks
// below the other one must be converted again.
func (c *crossings) join(l *limits) {
	gone := l.a + l.b - c.better(l.a, l.b)
	var moved []int
	for clock, root := range c.root {
		if root == gone {
			moved = append(moved, clock)
		}
	}
	maps.DeleteFunc(c.pairs, func(key [2]int, _ *limits) bool { return slices.Contains(key[:], gone) })
	c.connect(l)
	for _, clock := range moved {
		for _, i := range c.bounds[clock] {
			c.add(&c.p.Bounds[i])
		}
	}
}

// requests relates the remaining clocks by the bounds of requests and of host collectives, the
// narrowest band first, and then checks all bounds against the result.
func (s *state) requests() {
	c := newCrossings(s)
	for best := c.narrowest(); best != nil; best = c.narrowest() {
		c.join(best)
	}
	for _, l := range c.ordered() {
		if !l.asked {
			continue
		}
		kind := DividedRequests
		if len(l.lo) == 0 || len(l.hi) == 0 {
			kind = OneSided
		}
		n := len(l.lo) + len(l.hi)
		s.conflicts = append(s.conflicts, Conflict{kind, l.a, l.b, 0, 0, n, n})
	}
	s.checkBounds()
}

// connect merges the two roots of l.
func (s *state) connect(l *limits) {
	f, by := l.fit, ByRequests
	if !l.asked {
		by = ByHosts
	}
	r := relation{
		line: line{t0: f.At, off: f.Off, slope: f.Slope},
		why:  trace.SyncMatched, by: by, err: f.Err, slopeErr: f.SlopeErr, loose: f.Loose, windowed: true,
		center: f.At, from: f.From, to: f.To, matches: f.Used, trimmed: f.Wrong,
	}
	if s.better(l.a, l.b) == l.a {
		s.merge(l.a, l.b, r)
	} else {
		s.merge(l.b, l.a, r.flipped())
	}
}

// add adds x, converted to the times of the roots.
func (l *limits) add(s *state, x Bound) {
	straight := s.root[x.A] == l.a
	rb := s.toRoot(x.B, x.At)
	for _, side := range [...]struct {
		v     int64
		isLow bool
	}{{x.Lo, true}, {x.Hi, false}} {
		if side.v == NoLo || side.v == NoHi {
			continue
		}
		ra := s.toRoot(x.A, sub(x.At, side.v)) // A's time if the offset were at the limit
		v := limit{T: rb, V: rb - ra}
		low := side.isLow
		if !straight {
			v, low = limit{T: ra, V: ra - rb}, !low
		}
		if low {
			l.lo = append(l.lo, v)
		} else {
			l.hi = append(l.hi, v)
		}
	}
}

// checkBounds reports the bounds of requests that the relations used violate.
func (s *state) checkBounds() {
	found := map[[2]int]*Conflict{}
	var list []*Conflict
	for _, x := range s.p.Bounds {
		if x.OfHosts || s.root[x.A] != s.root[x.B] || x.A == x.B || !x.sound() {
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

// violation returns by how much the offset used for x is outside of its limits, positive if x
// wants a larger one, and how far off that offset may be.
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

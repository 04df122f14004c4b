package request

import (
	"github.com/sgtrace/sgtrace/internal/align"
	"github.com/sgtrace/sgtrace/trace"
)

// HostClocks relate the clocks of the hosts of a set, as far as its requests prove
// that they differ.
//
// While the recorded times contradict nothing that [Set.ClockBounds] says, nothing is
// moved; else the clocks are put where internal/align finds them.
type HostClocks struct {
	Moved bool
	of    []int // clock, by proc
	fits  []align.ClockFit
}

// ClockSlack is how far an effect may come before its cause on any clock, in ns: SGLang
// recalibrates its clocks by about as much.
const ClockSlack = 1000

// clockKey tells clocks apart. Spans without a host (gateways, containers without
// a machine id) have one clock per role.
type clockKey struct {
	host string
	role Role
}

// HostClocks finds out how the clocks of s relate.
func (s *Set) HostClocks() *HostClocks {
	c := &HostClocks{of: make([]int, len(s.Procs))}
	index := map[clockKey]int{}
	for p := range s.Procs {
		key := clockKey{host: s.Procs[p].Host}
		if key.host == "" {
			key.role = s.Procs[p].Role
		}
		if _, ok := index[key]; !ok {
			index[key] = len(index)
		}
		c.of[p] = index[key]
	}
	if len(index) < 2 {
		return c
	}
	bounds := s.ClockBounds(func(proc int) int { return c.of[proc] })
	if contradicted(bounds) {
		c.Moved = true
		c.fits = align.Solve(align.Problem{Clocks: len(index), Bounds: bounds}).Clocks
	}
	return c
}

// contradicted reports whether more than a few bounds do not hold on the clocks as
// recorded. A few are requests that were joined wrongly.
func contradicted(bounds []align.Bound) bool {
	const few = 100 // one in so many
	n := 0
	for _, b := range bounds {
		if b.Hi < -ClockSlack {
			n++
		}
	}
	return n*few > len(bounds)
}

// Shift returns what has to be added, at about the given instant, to a time of
// proc p to have the time of proc q. It is the same for all of a request, so that
// no duration changes.
func (c *HostClocks) Shift(p, q int, at trace.Time) trace.Time {
	if !c.Moved || p == None || q == None || c.of[p] == c.of[q] {
		return 0
	}
	from, to := &c.fits[c.of[p]], &c.fits[c.of[q]]
	if from.Component != to.Component {
		return 0
	}
	return trace.Time(from.ToReference(int64(at)) - to.ToReference(int64(at)))
}

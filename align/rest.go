package align

import (
	"cmp"
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/align/matching"
	"github.com/sgtrace/sgtrace/internal/memory"
)

const (
	// nearBound is how well a clock has to be related to the others, in ns, for time alone
	// to tell that ranks on them did the same.
	nearBound = 10_000
	// nearEnd is the least that ends of a collective may be apart, however close to each
	// other collectives are, ns.
	nearEnd = 2_000
)

// MatchRest matches by time alone what [matching.Find] left, on clocks that sol relates:
// families of kernels that are too few to show an order, calls that a rank has beyond
// those of its peers, and collectives whose ranks do not leave together. It returns all
// matches, and takes over those it was given, which come first, with the ranks that they lacked.
func MatchRest(ranks []matching.Rank, names *matching.Names, matches matching.Matches, sol *Solution) matching.Matches {
	r := &restMatcher{ranks: ranks, names: names, sol: sol, matches: matches, lanes: map[restLane]int{}}
	if r.collect(); len(r.kinds) == 0 {
		return matches
	}
	for i := range r.calls {
		r.match(r.kinds[i], r.calls[i])
	}
	return r.matches
}

// A restLane is what two calls must have in common to be the same collective.
type restLane struct {
	job, place int
	comm       matching.CommID
	seq        uint32
}

// A restCall is a collective on the reference's time.
type restCall struct {
	start, end int64
	member     matching.Member
	match      int32 // -1 is none
	near       int64 // how far the end may be from that of the others
}

// A restMatcher is the state of one call of MatchRest.
type restMatcher struct {
	ranks   []matching.Rank
	names   *matching.Names
	sol     *Solution
	matches matching.Matches
	lanes   map[restLane]int
	kinds   []matching.Kind // of lanes
	calls   [][]restCall    // of lanes
}

// collect finds the lanes in which something is left, with all of their calls.
func (r *restMatcher) collect() {
	of := make([][]int32, len(r.ranks)) // match plus one of every call
	for i := range r.ranks {
		of[i] = memory.Make[int32](r.ranks[i].Calls.Len())
	}
	for i, match := range r.matches.All() {
		for _, m := range match.Members {
			of[m.Rank][m.Index] = int32(i) + 1
		}
	}
	for i := range r.ranks {
		for k := range of[i] {
			if of[i][k] != 0 {
				continue
			}
			if lane, kind := r.laneOf(i, k); kind == matching.KindSync || kind == matching.KindMeet {
				if _, ok := r.lanes[lane]; !ok {
					r.lanes[lane] = len(r.kinds)
					r.kinds = append(r.kinds, kind)
				}
			}
		}
	}
	if len(r.kinds) == 0 {
		return
	}
	r.calls = make([][]restCall, len(r.kinds))
	for i := range r.ranks {
		clock := &r.sol.Clocks[r.ranks[i].Clock]
		for k := range of[i] {
			lane, _ := r.laneOf(i, k)
			if n, ok := r.lanes[lane]; ok {
				c := r.ranks[i].Calls.At(k)
				r.calls[n] = append(r.calls[n], restCall{start: clock.ToReference(c.Start), end: clock.ToReference(c.End),
					member: matching.Member{Rank: int32(i), Index: int32(k)}, match: of[i][k] - 1})
			}
		}
	}
}

// laneOf returns the lane of a call, and KindUnknown if it has none.
func (r *restMatcher) laneOf(rank, call int) (restLane, matching.Kind) {
	x := &r.ranks[rank]
	c := x.Calls.At(call)
	info := r.names.Of(c.Call)
	if !c.Timed() || info.Seq == 0 {
		return restLane{}, matching.KindUnknown
	}
	clock := &r.sol.Clocks[x.Clock]
	place := clock.Component
	if x.Clock != r.sol.Reference && (clock.Bound == Unknown || clock.Bound > nearBound) {
		place = -1 - x.Clock
	}
	return restLane{x.Job, place, c.Comm, info.Seq}, info.Kind
}

// match matches the calls of a lane.
func (r *restMatcher) match(kind matching.Kind, calls []restCall) {
	group := r.together
	if kind == matching.KindMeet { // each rank leaves when it has its part, so ends do not tell
		group = r.overlapping
	}
	for _, g := range group(calls) {
		if len(g.members) > 1 {
			r.matches.Add(matching.Match{Members: g.members, Level: matching.ByTime, Kind: kind})
		}
	}
}

// A restGroup is a match that is being built, or one that already exists.
type restGroup struct {
	members             []matching.Member
	lastStart, firstEnd int64
}

func (g *restGroup) has(rank int32) bool {
	return slices.ContainsFunc(g.members, func(m matching.Member) bool { return m.Rank == rank })
}

func (g *restGroup) add(c *restCall) {
	if len(g.members) == 0 {
		g.lastStart, g.firstEnd = c.start, c.end
	}
	g.members = append(g.members, c.member)
	g.lastStart, g.firstEnd = max(g.lastStart, c.start), min(g.firstEnd, c.end)
}

// accepts reports whether c may be of a group whose ranks leave together, and how far its
// end is from theirs.
func (g *restGroup) accepts(c *restCall) (far int64, ok bool) {
	far = max(c.end-g.firstEnd, g.firstEnd-c.end)
	return far, far <= c.near && !g.has(c.member.Rank) && max(c.start, g.lastStart) <= min(c.end, g.firstEnd)+nearEnd
}

// together adds calls that are left to the matches whose ends are nearest, and groups
// the others by their ends.
func (r *restMatcher) together(calls []restCall) []*restGroup {
	r.measureNear(calls)
	slices.SortStableFunc(calls, func(a, b restCall) int {
		return cmp.Or(cmp.Compare(a.end, b.end), cmp.Compare(a.member.Rank, b.member.Rank))
	})
	matched := map[int32]*restGroup{}
	var known, found []*restGroup // by end
	var matchOf []int32           // of known
	for i := range calls {
		c := &calls[i]
		if c.match < 0 {
			continue
		}
		if matched[c.match] == nil {
			matched[c.match] = &restGroup{}
			known, matchOf = append(known, matched[c.match]), append(matchOf, c.match)
		}
		matched[c.match].add(c)
	}
	for i := range calls {
		c := &calls[i]
		if c.match >= 0 {
			continue
		}
		if k := nearestGroup(known, c); k >= 0 {
			known[k].add(c)
			r.matches.Join(int(matchOf[k]), c.member)
			continue
		}
		if k := nearestGroup(found, c); k >= 0 {
			found[k].add(c)
			continue
		}
		g := &restGroup{}
		g.add(c)
		found = append(found, g)
	}
	return found
}

// nearestGroup returns which of the groups, which are ordered by their first end, accepts c and
// ends nearest; -1 if none does.
func nearestGroup(groups []*restGroup, c *restCall) int {
	from, _ := slices.BinarySearchFunc(groups, c.end-c.near, func(g *restGroup, at int64) int { return cmp.Compare(g.firstEnd, at) })
	best, least := -1, int64(math.MaxInt64)
	for k := from; k < len(groups) && groups[k].firstEnd <= c.end+c.near; k++ {
		if far, ok := groups[k].accepts(c); ok && far < least {
			best, least = k, far
		}
	}
	return best
}

// measureNear sets how far the end of each call may be from the ends of others, ns: at most half
// the time between two ends on its own rank.
func (r *restMatcher) measureNear(calls []restCall) {
	slices.SortStableFunc(calls, func(a, b restCall) int {
		return cmp.Or(cmp.Compare(a.member.Rank, b.member.Rank), cmp.Compare(a.end, b.end))
	})
	for i := range calls {
		c := &calls[i]
		c.near = matching.SameClock
		for _, k := range [...]int{i - 1, i + 1} {
			if k >= 0 && k < len(calls) && calls[k].member.Rank == c.member.Rank {
				c.near = min(c.near, max(nearEnd, max(c.end-calls[k].end, calls[k].end-c.end)/2))
			}
		}
	}
}

// overlapping groups calls whose ranks leave when they have what is theirs. None leaves
// before the last one has come, so that all have come before any comes again: in the
// order of starts, groups follow each other.
func (r *restMatcher) overlapping(calls []restCall) []*restGroup {
	slices.SortStableFunc(calls, func(a, b restCall) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.member.Rank, b.member.Rank))
	})
	var groups []*restGroup
	for i := range calls {
		c := &calls[i]
		if c.match >= 0 {
			continue
		}
		last := len(groups) - 1
		if last < 0 || groups[last].has(c.member.Rank) || c.start > groups[last].firstEnd+nearEnd {
			groups = append(groups, &restGroup{})
			last++
		}
		groups[last].add(c)
	}
	return groups
}

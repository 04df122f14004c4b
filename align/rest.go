package align

import (
	"cmp"
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/align/matching"
	"github.com/sgtrace/sgtrace/internal/memory"
)

const (
	// nearBound is how well a clock must be related to the others, in ns, for time alone to match collectives on it with theirs.
	nearBound = 10_000
	// nearEnd is how far apart the ends of a collective may always be, in ns, however densely collectives follow each other.
	nearEnd = 2_000
)

// MatchRest matches by time alone what [matching.Find] left, on clocks that sol relates: families with too few kernels
// to show an order, calls that a rank has beyond those of its peers, and collectives whose ranks do not leave
// together. It returns all matches. It takes over the given ones, which come first, and adds the ranks that they lack.
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

// A restLane is what two calls of the same collective must have in common.
type restLane struct {
	job, place int
	comm       matching.CommID
	seq        uint32
}

// A restCall is a rank's part in a collective, in the reference's time.
type restCall struct {
	start, end int64
	member     matching.Member
	match      int32 // -1 if none
	near       int64 // how far the end may be from those of the others, ns
}

// A restMatcher is the state of one call of MatchRest.
type restMatcher struct {
	ranks   []matching.Rank
	names   *matching.Names
	sol     *Solution
	matches matching.Matches
	lanes   map[restLane]int
	kinds   []matching.Kind // by lane
	calls   [][]restCall    // by lane
}

// collect finds the lanes with unmatched calls, and all calls in them.
func (r *restMatcher) collect() {
	of := make([][]int32, len(r.ranks)) // by rank and call: its match plus one
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
	if kind == matching.KindMeet { // each rank leaves with its own part, so ends don't agree
		group = r.overlapping
	}
	for _, g := range group(calls) {
		if len(g.members) > 1 {
			r.matches.Add(matching.Match{Members: g.members, Level: matching.ByTime, Kind: kind})
		}
	}
}

// A restGroup is a match that is being built, or an existing one.
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

// accepts reports whether c may belong to a group whose ranks leave together, and how far its end is from theirs, in ns.
func (g *restGroup) accepts(c *restCall) (far int64, ok bool) {
	far = max(c.end-g.firstEnd, g.firstEnd-c.end)
	return far, far <= c.near && !g.has(c.member.Rank) && max(c.start, g.lastStart) <= min(c.end, g.firstEnd)+nearEnd
}

// together adds unmatched calls to the existing matches with the nearest ends, and groups the remaining ones by their ends.
func (r *restMatcher) together(calls []restCall) []*restGroup {
	r.measureNear(calls)
	slices.SortStableFunc(calls, func(a, b restCall) int {
		return cmp.Or(cmp.Compare(a.end, b.end), cmp.Compare(a.member.Rank, b.member.Rank))
	})
	matched := map[int32]*restGroup{}
	var known, found []*restGroup // ordered by end
	var matchOf []int32           // match of each of known
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

// nearestGroup returns the index of the group with the nearest end that accepts c, of groups
// ordered by their first end; -1 if there is none.
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

// measureNear sets how far the end of each call may be from those of others, in ns: at most
// half the time between two ends on its own rank.
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

// overlapping groups calls whose ranks leave with their own part. No rank leaves before the last one has come,
// so all have come before any of them comes to the next one: ordered by start, groups follow each other.
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

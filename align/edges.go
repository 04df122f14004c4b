package align

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/align/matching"
	"github.com/sgtrace/sgtrace/internal/order"
)

const (
	// maxSamples limits how many matches of one set of clocks are used: more do not improve a fit,
	// because the remaining error is systematic.
	maxSamples = 8192
	// allPairs is the largest set of clocks in which every pair is an edge. In larger sets, all
	// edges share the clock with most matches.
	allPairs = 4
	// manyClocks is the size of a set of clocks above which fewer of its matches are used, so that
	// a sample of each match for each clock does not fill the memory. fewSamples are always enough.
	manyClocks, fewSamples = 64, 512
)

// A side is what one clock, or one component, saw of a collective. Times are those of the component's root.
type side struct {
	id          int
	ends        []int64
	last, first int64 // last start, first end
}

// end returns the median end.
func (s *side) end() int64 {
	slices.Sort(s.ends)
	n := len(s.ends)
	lo, hi := s.ends[(n-1)/2], s.ends[n/2]
	return lo + (hi-lo)/2
}

// call returns the collective that a member is.
func (p *Problem) call(m matching.Member) matching.Collective {
	return p.Ranks[m.Rank].Calls.At(int(m.Index))
}

// useful reports whether m contains information about clocks.
func (p *Problem) useful(m *matching.Match) bool {
	return m.Kind == matching.KindSync && !slices.ContainsFunc(m.Members, func(member matching.Member) bool {
		c := p.call(member)
		return !c.Timed()
	})
}

// A clockSet has the matches in which the same clocks, or components, took part.
type clockSet struct {
	ids     []int // ascending
	matches []int32
}

// sets groups the matches that are useful for clocks by the ids of their clocks, as idOf returns them.
func (s *state) sets(idOf func(clock int) int) []*clockSet {
	found := map[string]*clockSet{}
	var order []*clockSet
	var key []byte
	var ids []int
	for i, m := range s.p.Matches.All() {
		ids = ids[:0]
		for _, member := range m.Members {
			if id := idOf(s.p.Ranks[member.Rank].Clock); len(ids) == 0 || ids[len(ids)-1] != id {
				ids = append(ids, id)
			}
		}
		slices.Sort(ids)
		if ids = slices.Compact(ids); len(ids) < 2 || !s.p.useful(&m) {
			continue
		}
		key = key[:0]
		for _, id := range ids {
			key = binary.AppendUvarint(key, uint64(id))
		}
		set := found[string(key)]
		if set == nil {
			set = &clockSet{ids: slices.Clone(ids)}
			found[string(key)] = set
			order = append(order, set)
		}
		set.matches = append(set.matches, int32(i))
	}
	return order
}

// edges returns the pairs of ids that share matches, with a sample for each match, ordered by a, then b. keep selects the pairs.
func (s *state) edges(idOf func(clock int) int, keep func(a, b int) bool) []*edge {
	sets := s.sets(idOf)
	weight := map[int]int{}
	for _, set := range sets {
		for _, id := range set.ids {
			weight[id] += len(set.matches)
		}
	}
	found := map[[2]int]*edge{}
	var list []*edge
	for _, set := range sets {
		var pairs [][2]int // of indexes into set.ids
		for _, p := range set.pairs(weight) {
			ab := [2]int{set.ids[p[0]], set.ids[p[1]]}
			if !keep(ab[0], ab[1]) {
				continue
			}
			if found[ab] == nil {
				found[ab] = &edge{a: ab[0], b: ab[1]}
				list = append(list, found[ab])
			}
			pairs = append(pairs, p)
		}
		if len(pairs) == 0 {
			continue
		}
		sides := make([]side, len(set.ids))
		n := len(set.matches)
		most := min(n, maxSamples, max(fewSamples, maxSamples*manyClocks/len(set.ids)))
		for k := range most {
			m := set.matches[k*n/most]
			s.sidesOf(s.p.Matches.At(int(m)), idOf, set.ids, sides)
			for _, p := range pairs {
				a, b := &sides[p[0]], &sides[p[1]]
				e := found[[2]int{a.id, b.id}]
				e.samples = append(e.samples, sample{m, a.end(), b.end(), a.last, b.last, a.first, b.first})
			}
		}
	}
	slices.SortFunc(list, func(x, y *edge) int {
		return slices.Compare([]int{x.a, x.b}, []int{y.a, y.b})
	})
	s.asymmetries(list, idOf)
	return list
}

// pairs returns the pairs of indexes into ids that become edges.
func (set *clockSet) pairs(weight map[int]int) [][2]int {
	var list [][2]int
	if len(set.ids) <= allPairs {
		for j := range set.ids {
			for i := range j {
				list = append(list, [2]int{i, j})
			}
		}
		return list
	}
	hub := 0
	for i, id := range set.ids {
		if weight[id] > weight[set.ids[hub]] {
			hub = i
		}
	}
	for i := range set.ids {
		if i != hub {
			list = append(list, [2]int{min(i, hub), max(i, hub)})
		}
	}
	return list
}

// sidesOf fills in what each of ids saw of m.
func (s *state) sidesOf(m matching.Match, idOf func(clock int) int, ids []int, sides []side) {
	for i := range sides {
		sides[i] = side{id: ids[i], ends: sides[i].ends[:0], last: math.MinInt64, first: math.MaxInt64}
	}
	for _, member := range m.Members {
		rank := &s.p.Ranks[member.Rank]
		place, _ := slices.BinarySearch(ids, idOf(rank.Clock))
		side, c := &sides[place], s.p.call(member)
		start, end := s.toRoot(rank.Clock, c.Start), s.toRoot(rank.Clock, c.End)
		side.ends = append(side.ends, end)
		side.last, side.first = max(side.last, start), min(side.first, end)
	}
}

// violations returns how many of the inliers are impossible: a rank on one side ended before a rank on the other side started.
func (e *edge) violations() int {
	// Ends are as noisy as starts, hence the noise of one match; and a few us are always within the precision of kernel times.
	tolerance := e.bound() + 3*e.sigma + 5000
	limit := max(trimMAD*e.mad, trimFloor)
	n := 0
	for _, x := range e.samples {
		off := float64(e.off) + e.slope*float64(x.a-e.at)
		if math.Abs(float64(x.b-x.a)-off) > limit {
			continue
		}
		// Relative to the end on a, so that float64 is precise enough.
		startB, endB := float64(x.startB-x.a)-off, float64(x.endB-x.a)-off
		startA, endA := float64(x.startA-x.a), float64(x.endA-x.a)
		if startB > endA+tolerance || startA > endB+tolerance {
			n++
		}
	}
	return n
}

// asymmetries sets how far the ends of ranks on the same clock are apart systematically: the
// root mean square of the medians of their deviations.
func (s *state) asymmetries(list []*edge, idOf func(clock int) int) {
	if len(list) == 0 {
		return
	}
	worst := map[int]float64{} // by id: the largest of its clocks
	for clock, ms := range s.rankMedians() {
		id := idOf(clock)
		worst[id] = max(worst[id], ms)
	}
	for _, e := range list {
		e.asymmetry = math.Hypot(worst[e.a], worst[e.b])
	}
}

// rankMedians returns, by clock, the root mean square over its ranks of their median deviation from the median end on that clock.
func (s *state) rankMedians() []float64 {
	deviations := make([][]float64, len(s.p.Ranks))
	sum, count := make([]float64, s.p.Clocks), make([]float64, s.p.Clocks)
	n := s.p.Matches.Len()
	var ends []int64
	var members []matching.Member
	for k := range min(n, maxSamples/4) {
		m := s.p.Matches.At(k * n / min(n, maxSamples/4))
		if !s.p.useful(&m) {
			continue
		}
		clockOf := func(m matching.Member) int { return s.p.Ranks[m.Rank].Clock }
		members = append(members[:0], m.Members...)
		slices.SortStableFunc(members, func(a, b matching.Member) int { return clockOf(a) - clockOf(b) })
		for from, to := 0, 0; from < len(members); from = to {
			ends = ends[:0]
			for to < len(members) && clockOf(members[to]) == clockOf(members[from]) {
				ends = append(ends, s.p.call(members[to]).End)
				to++
			}
			if len(ends) < 2 {
				continue
			}
			middle := (&side{ends: ends}).end()
			for _, o := range members[from:to] {
				end := s.p.call(o).End
				deviations[o.Rank] = append(deviations[o.Rank], float64(end-middle))
			}
		}
	}
	for r, d := range deviations {
		if len(d) < 8 {
			continue // a median of so few values is noise
		}
		clock := s.p.Ranks[r].Clock
		m := order.SortedMedian(d)
		sum[clock] += m * m
		count[clock]++
	}
	for c := range sum {
		sum[c] = math.Sqrt(sum[c] / max(count[c], 1))
	}
	return sum
}

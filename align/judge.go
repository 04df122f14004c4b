package align

import (
	"cmp"
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/align/matching"
	"github.com/sgtrace/sgtrace/internal/order"
)

const (
	// apartFloor is how far, in ns, the ends of ranks of one host may be apart in the median
	// without the ranks having different clocks. Up to 7 us were seen on real machines.
	apartFloor = 20_000
	// rejectFloor is how far, in ns, an end may be from the others in its match before the match
	// is suspected to be wrong: a preempted rank ends late.
	rejectFloor = 100_000
)

// judge evaluates all matches on the resulting clocks: residuals, ranks, and impossible matches.
func (sol *Solution) judge(p *Problem) {
	sol.Ranks = make([]RankFit, len(p.Ranks))
	deviations := sol.deviations(p)
	var all []float64
	byClock := make([][]float64, p.Clocks)
	for r, d := range deviations {
		clock := p.Ranks[r].Clock
		byClock[clock] = append(byClock[clock], d...)
		sol.Ranks[r] = fitRank(d)
		for _, v := range d {
			all = append(all, math.Abs(v))
		}
	}
	for c, d := range byClock {
		if f := &sol.Clocks[c]; f.By == ByCollectives || c == sol.Reference {
			f.ResidualP95 = p95(d)
		}
	}
	limit := rejectFloor + int64(trimMAD*order.Median(all))
	for i, m := range p.Matches.All() {
		if p.useful(&m) && sol.impossible(p, &m, limit) {
			sol.Rejected = append(sol.Rejected, i)
		}
	}
}

// deviations returns, by rank, how far its ends are from the median ends of their matches, in
// the reference's time. If there are very many matches, it uses a sample.
func (sol *Solution) deviations(p *Problem) [][]float64 {
	list := make([][]float64, len(p.Ranks))
	n := p.Matches.Len()
	var s side
	for k := range min(n, 2*maxSamples) {
		m := p.Matches.At(k * n / min(n, 2*maxSamples))
		if !p.useful(&m) || !sol.comparable(p, &m) {
			continue
		}
		s.ends = s.ends[:0]
		for _, member := range m.Members {
			_, end := sol.times(p, member)
			s.ends = append(s.ends, end)
		}
		middle := s.end()
		for _, member := range m.Members {
			_, end := sol.times(p, member)
			list[member.Rank] = append(list[member.Rank], float64(end-middle))
		}
	}
	return list
}

// comparable reports whether the clocks of all members of m are in one component.
func (sol *Solution) comparable(p *Problem, m *matching.Match) bool {
	first := sol.Clocks[p.Ranks[m.Members[0].Rank].Clock].Component
	return !slices.ContainsFunc(m.Members[1:], func(member matching.Member) bool { return sol.Clocks[p.Ranks[member.Rank].Clock].Component != first })
}

// times returns the start and the end of a member in the reference's time.
func (sol *Solution) times(p *Problem, m matching.Member) (start, end int64) {
	c, clock := p.call(m), &sol.Clocks[p.Ranks[m.Rank].Clock]
	return clock.ToReference(c.Start), clock.ToReference(c.End)
}

// impossible reports whether m cannot be one collective: its ends are more than limit apart, or one is before a start.
func (sol *Solution) impossible(p *Problem, m *matching.Match, limit int64) bool {
	if !sol.comparable(p, m) {
		return false
	}
	lastStart, firstEnd, lastEnd := int64(math.MinInt64), int64(math.MaxInt64), int64(math.MinInt64)
	var bounds [2]int64 // two largest bounds: how far two clocks may be off from each other
	seen := -1
	for _, member := range m.Members {
		start, end := sol.times(p, member)
		lastStart, firstEnd, lastEnd = max(lastStart, start), min(firstEnd, end), max(lastEnd, end)
		if clock := p.Ranks[member.Rank].Clock; clock != seen {
			seen = clock
			b := sol.Clocks[clock].BoundAt(p.call(member).End)
			bounds = [2]int64{max(bounds[0], b), max(bounds[1], min(bounds[0], b))}
		}
	}
	explained := bounds[0] + bounds[1] + apartFloor
	return lastStart > firstEnd+explained || lastEnd-firstEnd > limit+explained
}

// fitRank summarizes a rank's deviations.
func fitRank(d []float64) RankFit {
	if len(d) == 0 {
		return RankFit{}
	}
	center := order.SortedMedian(d)
	f := RankFit{Matches: len(d), Offset: int64(math.Round(center))}
	away := order.Each(d, func(f float64) float64 { return math.Abs(f - center) })
	mad := order.SortedMedian(away)
	f.Apart = math.Abs(center) > max(apartFloor, 5*mad/math.Sqrt(float64(len(d))))
	return f
}

// p95 returns the 95th percentile, by nearest rank, of the absolute values of d.
func p95(d []float64) int64 {
	if len(d) == 0 {
		return 0
	}
	away := order.Each(d, math.Abs)
	slices.Sort(away)
	return int64(math.Round(away[(len(away)*95+99)/100-1]))
}

// ordered sorts conflicts by A, B, kind.
func ordered(list []Conflict) []Conflict {
	slices.SortStableFunc(list, func(a, b Conflict) int {
		return cmp.Or(cmp.Compare(a.A, b.A), cmp.Compare(a.B, b.B), cmp.Compare(a.Kind, b.Kind))
	})
	return list
}

package align

import (
	"math"
	"math/rand/v2"
	"slices"
	"sort"

	"github.com/sgtrace/sgtrace/align/matching"
	"github.com/sgtrace/sgtrace/internal/order"
)

// A simulation makes collectives of a cluster with known clocks. It shares only the
// types of its input with the solver.
type simulation struct {
	rng    *rand.Rand
	names  *matching.Names
	clocks []simClock
	ranks  []matching.Rank
}

// A simClock shows t + offset + drift*(t-t0) at the true time t.
type simClock struct {
	offset int64
	drift  float64
	t0     int64
}

const simBase = 1_775_000_000_000_000_000 // Unix time, where float64 has no ns

func (c simClock) show(t int64) int64 {
	return t + c.offset + int64(math.Round(c.drift*float64(t-c.t0)))
}

func newSimulation(seed uint64, clocks ...simClock) *simulation {
	return &simulation{rng: rand.New(rand.NewPCG(seed, 7)), names: &matching.Names{}, clocks: clocks}
}

// calls is a matching.Calls that holds the collectives in a slice.
type calls []matching.Collective

func (l calls) Len() int                     { return len(l) }
func (l calls) At(i int) matching.Collective { return l[i] }
func (l calls) HasCommsIDs() bool {
	return slices.ContainsFunc(l, func(c matching.Collective) bool { return c.CommsID != 0 })
}

// callsOf returns the collectives of a rank, to be changed in place.
func callsOf(r matching.Rank) calls { return r.Calls.(calls) }

// addRanks puts n ranks on a clock and returns their numbers.
func (s *simulation) addRanks(clock, n int) []int {
	var list []int
	for range n {
		list = append(list, len(s.ranks))
		s.ranks = append(s.ranks, matching.Rank{Clock: clock, Global: int32(len(s.ranks)), Calls: calls{}})
	}
	return list
}

// jitter returns how late a rank ends, ns: half normal, with a p95 of about 1.5 us.
func (s *simulation) jitter() int64 { return int64(math.Abs(s.rng.NormFloat64()) * 750) }

// A simGroup runs collectives on some ranks.
type simGroup struct {
	comm  matching.CommID
	call  matching.CallID
	name  uint64
	ranks []int
	seq   int64
	ids   bool // with Comms Id and Seq
}

func (s *simulation) group(name string, ids bool, ranks ...int) *simGroup {
	return &simGroup{
		comm: s.names.Comm(matching.Comm{Group: name, Size: int32(len(ranks))}), name: order.Mix(uint64(len(name))*77 + uint64(name[0])),
		call: s.names.Call(matching.Call{Op: "allreduce", Dtype: "BFloat16", In: 4096, Out: 4096}), ranks: ranks, ids: ids,
	}
}

// run makes one collective. The last rank reaches it at the true time t, the others up to early before that.
func (s *simulation) run(g *simGroup, t, early int64) (end int64) {
	g.seq++
	last := s.rng.IntN(len(g.ranks))
	end = t + 38_000 + s.rng.Int64N(2000)
	for i, r := range g.ranks {
		start := t
		if i != last {
			start -= 1000 + s.rng.Int64N(early)
		}
		clock := s.clocks[s.ranks[r].Clock]
		c := matching.Collective{
			Start: clock.show(start), End: clock.show(end + s.jitter()),
			Seq: -1, Step: -1, Comm: g.comm, Call: g.call,
		}
		if g.ids {
			c.Seq, c.CommsID = g.seq, order.Mix(g.name+uint64(g.seq))
		}
		s.ranks[r].Calls = append(callsOf(s.ranks[r]), c)
	}
	return end
}

// steps runs steps of n collectives, one step each period from t on: steps of
// prefill if the period is long enough, else of decode.
func (s *simulation) steps(g *simGroup, t int64, steps, n int, period int64) {
	for k := range int64(steps) {
		at := t + k*period
		for i := range n {
			if period > int64(n)*10_000_000 {
				at += []int64{4_300_000, 10_250_000}[i%2] + s.rng.Int64N(300_000) - 150_000
				s.run(g, at, 800_000)
			} else {
				at += []int64{70_000, 100_000}[i%2] + s.rng.Int64N(20_000)
				s.run(g, at, 15_000)
			}
		}
	}
}

// sorted returns the ranks with their calls in order of start.
func (s *simulation) sorted() []matching.Rank {
	for _, r := range s.ranks {
		sort.Slice(callsOf(r), func(i, j int) bool { return callsOf(r)[i].Start < callsOf(r)[j].Start })
	}
	return s.ranks
}

// solve matches and solves, with the first clock as the reference.
func (s *simulation) solve(bounds []Bound, fixed ...Fixed) (Solution, []matching.Match, matching.Report) {
	ranks := s.sorted()
	matches, report := matching.Find(ranks, s.names)
	return Solve(Problem{Clocks: len(s.clocks), Fixed: fixed, Ranks: ranks, Matches: matches, Bounds: bounds}), listOf(matches), report
}

func listOf(matches matching.Matches) (list []matching.Match) {
	for _, m := range matches.All() {
		list = append(list, m)
	}
	return list
}

// err returns how far the fit of a clock is from the truth at the true time t.
func (s *simulation) err(fit ClockFit, t int64) int64 {
	return fit.ToReference(s.clocks[fit.Clock].show(t)) - s.clocks[0].show(t)
}

// requests adds bounds of requests that clock a sends to clock b, from t on.
func (s *simulation) requests(a, b, n int, t, period int64) []Bound {
	var list []Bound
	for range n {
		at := t + s.rng.Int64N(period)
		up, down := 40_000+int64(s.rng.ExpFloat64()*200_000), 40_000+int64(s.rng.ExpFloat64()*400_000)
		dur := 1_000_000 + int64(s.rng.ExpFloat64()*80_000_000)
		ca, cb := s.clocks[a], s.clocks[b]
		list = append(list, contained(a, ca.show(at), ca.show(at+up+dur+down), b, cb.show(at+up), cb.show(at+up+dur)))
	}
	return list
}

// worstErr returns the largest error of a fit over a window of true time.
func (s *simulation) worstErr(fit ClockFit, from, to int64) int64 {
	var worst int64
	for k := range int64(11) {
		e := s.err(fit, from+k*(to-from)/10)
		worst = max(worst, e, -e)
	}
	return worst
}

// contained returns the Bound of a span [b1, b2] on clock B that lies inside of
// the span [a1, a2] on clock A.
func contained(a int, a1, a2 int64, b int, b1, b2 int64) Bound {
	return Bound{A: a, B: b, At: b1 + (b2-b1)/2, Lo: b2 - a2, Hi: b1 - a1}
}

package collective

import (
	"iter"
	"math/rand/v2"
	"testing"

	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/testkit/testinput"
	"github.com/sgtrace/sgtrace/trace"
)

// passing is a stream of n collectives of eight ranks, none of which it keeps in memory.
type passing struct {
	set *profile.Set
	n   int
}

func (p passing) Matches(bool) iter.Seq[*profile.CollectiveMatch] {
	return func(yield func(*profile.CollectiveMatch) bool) {
		r := rand.New(rand.NewPCG(1, 2))
		x := profile.CollectiveMatch{Op: p.set.Syms.Intern("allreduce"), In: 1000, Out: 1000, GroupSize: 8, Sync: true, Arrivals: make([]profile.Arrival, len(p.set.Ranks))}
		for i := range p.n {
			end := trace.Time(1<<60 + i*2_000_000)
			for rank := range x.Arrivals {
				x.Arrivals[rank] = profile.Arrival{Rank: int32(rank), Start: end - 400_000 + trace.Time(r.Int64N(50_000)), End: end}
			}
			if !yield(&x) {
				return
			}
		}
	}
}

func (p passing) Parts() iter.Seq[*profile.Part] {
	return func(yield func(*profile.Part) bool) {
		for rank := range p.set.Ranks {
			for i := range p.n {
				c := profile.Collective{Op: p.set.Syms.Intern("allreduce"), OnGPU: true, In: 1000, Out: 1000, GroupSize: 8, Time: trace.Time(i * 2_000_000), Dur: 400_000 + int64(i%100)}
				if !yield(&profile.Part{Collective: c, Rank: int32(rank), Matched: true}) {
					return
				}
			}
		}
	}
}

// For each arrival, only its time is kept, for the straggler test: 14 bytes, plus
// the slack of growing tables.
func TestMemoryOfArrivals(t *testing.T) {
	set := &profile.Set{Syms: trace.NewSymbols(), Ranks: []string{"a", "b", "c", "d", "e", "f", "g", "h"}}
	live := func(n int) int64 {
		set.Collectives = passing{set, n}
		return testinput.HeldBy(func() any {
			c := Measure(set, 0, 0)
			if c.Counts.Sync != n || len(c.Ranks) != len(set.Ranks) || c.Counts.kernels != n*len(set.Ranks) {
				t.Fatalf("%d collectives of %d", c.Counts.Sync, n)
			}
			return c
		})
	}
	const few, many, most = 2_000, 22_000, 20
	if grown := live(many) - live(few); grown > (many-few)*int64(len(set.Ranks))*most {
		t.Errorf("%d bytes for each of %d arrivals, %d at most", grown/((many-few)*int64(len(set.Ranks))), many*len(set.Ranks), most)
	}
}

// BenchmarkMeasureRanks measures how late ranks are at 40,000 arrivals.
func BenchmarkMeasureRanks(b *testing.B) {
	const n = 5_000
	set := &profile.Set{Syms: trace.NewSymbols(), Ranks: []string{"a", "b", "c", "d", "e", "f", "g", "h"}}
	set.Collectives = passing{set, n}
	for b.Loop() {
		if c := MeasureRanks(set, 0, 0); len(c.Stragglers(nil)) != 0 {
			b.Fatal("a rank is late")
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n*len(set.Ranks)), "ns/arrival")
}

package series

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/sgtrace/sgtrace/trace"
)

// All samples come back in order of time: values of any kind, timestamps of any precision, several
// inputs per series, more lines than a mark holds, and late samples.
func TestPackedSamples(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 7))
		set := New(trace.NewSymbols(), &trace.Diags{})
		type sample struct {
			at     trace.Time
			value  float64
			within int64
			line   uint32
		}
		var want []sample
		at := 1787000000*second + trace.Time(rng.IntN(3))*trace.Time(rng.Int64N(1e9))
		for range 1 + rng.IntN(3) {
			f := set.Fill("a", "server log")
			id := f.Series(Running, f.Place(Place{Server: f.Server(Server{Name: "a"}), Rank: trace.NoRank, GPU: NoGPU}))
			grain, kind, late := [...]int64{0, 1000, 1e6, 1e9}[rng.IntN(4)], rng.IntN(5), rng.IntN(3) == 0
			for n := range int64(rng.IntN(9000)) {
				f.Line(n*n + 1<<23)
				if rng.IntN(1000) == 0 {
					grain = 1e9
				}
				f.Within(grain)
				step := trace.Time(rng.Int64N(3e9))
				if late && rng.IntN(500) == 0 {
					step = -step
				}
				at += step / trace.Time(max(1, grain)) * trace.Time(max(1, grain))
				v := [...]float64{float64(rng.IntN(100)), float64(rng.IntN(1e6)) / 100, rng.NormFloat64(), math.Ldexp(rng.Float64(), rng.IntN(200)-100), float64(rng.Uint64())}[kind]
				if rng.IntN(300) == 0 {
					v = [...]float64{math.Inf(1), math.MaxFloat64, -1, 0.1 + 0.2, 1 << 53, 0.57 * 100}[rng.IntN(6)]
				}
				f.Add(id, at, v)
				want = append(want, sample{at, v, grain, uint32(n*n+1<<23) & (1<<lineBits - 1)})
			}
		}
		set.Finish(Known{})
		slices.SortStableFunc(want, func(a, b sample) int { return cmp.Compare(a.at, b.at) })
		if len(want) == 0 {
			continue
		}
		if set.N(0) != len(want) || set.Len() != len(want) {
			t.Fatalf("seed %d: %d samples, want %d", seed, set.N(0), len(want))
		}
		i := 0
		for x := range set.Each(0) {
			if got := (sample{x.Time, x.Value, x.Within(), x.Line()}); got != want[i] {
				t.Fatalf("seed %d: sample %d is %+v, want %+v", seed, i, got, want[i])
			}
			i++
		}
		if i != len(want) {
			t.Fatalf("seed %d: %d samples came back, want %d", seed, i, len(want))
		}
	}
}

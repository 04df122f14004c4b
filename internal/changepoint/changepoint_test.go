package changepoint

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/sgtrace/sgtrace/internal/order"
)

// In sequences without a change, false alarms are about as rare as requested, however strongly
// neighbors correlate.
func TestFalseAlarms(t *testing.T) {
	const (
		runs  = 200
		n     = 240
		alpha = 0.05
		most  = 20 // in 200 runs with probability alpha; exceeded once in a thousand times
	)
	o := Options{Alpha: alpha}
	rates := func(x []float64) []Change { return Rates(x, x[0], x[len(x)-1], o) }
	cases := map[string]func(r *rand.Rand) []Change{
		"rate":                func(r *rand.Rand) []Change { return rates(batches(r, n, 1)) },
		"rate, batches of 2":  func(r *rand.Rand) []Change { return rates(batches(r, n, 2)) },
		"rate, batches of 5":  func(r *rand.Rand) []Change { return rates(batches(r, n, 5)) },
		"share":               func(r *rand.Rand) []Change { return Shares(sticky(r, n, 0.25, 0), o) },
		"rare share":          func(r *rand.Rand) []Change { return Shares(sticky(r, n, 0.05, 0), o) },
		"share in turn":       func(*rand.Rand) []Change { return Shares(inTurn(n, 4), o) },
		"share, sessions":     func(r *rand.Rand) []Change { return Shares(sticky(r, n, 0.25, 0.5), o) },
		"share, long session": func(r *rand.Rand) []Change { return Shares(sticky(r, n, 0.25, 0.8), o) },
	}
	durations := map[string]func(r *rand.Rand) []float64{
		"constant": func(*rand.Rand) []float64 { return make([]float64, n) },
	}
	for _, phi := range []float64{0, 0.5, 0.8, 0.9, 0.95} {
		durations[fmt.Sprint("correlation ", phi)] = func(r *rand.Rand) []float64 { return autoregressive(r, n, phi) }
	}
	for _, rho := range []float64{0.5, 0.7, 0.85} {
		durations[fmt.Sprint("queue, busy ", rho)] = func(r *rand.Rand) []float64 { return waits(r, n, rho) }
	}
	for name, noise := range durations {
		cases["level, "+name] = func(r *rand.Rand) []Change { return Levels(noise(r), o) }
		cases["tail, "+name] = func(r *rand.Rand) []Change {
			x := noise(r)
			return Excesses(x, TailLimit(x), o)
		}
	}
	for name, search := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			alarms := 0
			for seed := range uint64(runs) {
				if len(search(rand.New(rand.NewPCG(seed, 1)))) > 0 {
					alarms++
				}
			}
			if alarms > most {
				t.Errorf("%d of %d sequences without a change have one", alarms, runs)
			}
		})
	}
}

// inTurn returns the choices of one place by a round-robin router.
func inTurn(n, places int) []bool {
	is := make([]bool, n)
	for i := range is {
		is[i] = i%places == 0
	}
	return is
}

// A planted change is at position plantedAt in a sequence of plantedIn observations.
const plantedIn, plantedAt = 400, 160

var planted = map[string]struct {
	search func(r *rand.Rand, o Options) []Change
	found  int // minimum, in 100 sequences
}{
	"rate": {func(r *rand.Rand, o Options) []Change {
		x := atRates(r, []int{plantedAt, plantedIn - plantedAt}, []float64{1, 2})
		return Rates(x, 0, x[plantedIn-1], o)
	}, 85},
	"share": {func(r *rand.Rand, o Options) []Change {
		return Shares(append(sticky(r, plantedAt, 0.25, 0), sticky(r, plantedIn-plantedAt, 0.6, 0)...), o)
	}, 95},
	"share in turn": {func(r *rand.Rand, o Options) []Change {
		return Shares(append(inTurn(plantedAt, 4), sticky(r, plantedIn-plantedAt, 0.5, 0)...), o)
	}, 85},
	"level": {func(r *rand.Rand, o Options) []Change {
		return Levels(shifted(autoregressive(r, plantedIn, 0.5), plantedAt, 3), o)
	}, 95},
	"level of a queue": {func(r *rand.Rand, o Options) []Change {
		return Levels(shifted(waits(r, plantedIn, 0.5), plantedAt, 4), o)
	}, 85},
	"tail": {func(r *rand.Rand, o Options) []Change {
		x := autoregressive(r, plantedIn, 0)
		for i := range x {
			x[i] = math.Exp(x[i] / 2)
			if i >= plantedAt && r.Float64() < 0.3 {
				x[i] += 20
			}
		}
		return Excesses(x, TailLimit(x), o)
	}, 90},
}

// Changes are nearly always found where they are, and the interval contains the true position
// nearly as often as it promises.
func TestFindsChanges(t *testing.T) {
	const runs, near = 100, 40
	o := Options{Alpha: 0.001}
	for name, c := range planted {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found, held, far := 0, 0, 0
			for seed := range uint64(runs) {
				changes := c.search(rand.New(rand.NewPCG(seed, 2)), o)
				if len(changes) != 1 {
					continue
				}
				found++
				got := changes[0]
				if got.First <= plantedAt && plantedAt <= got.Last {
					held++
				}
				if got.At < plantedAt-near || got.At > plantedAt+near {
					far++
				}
				if got.First > got.At || got.Last < got.At || got.P > o.Alpha {
					t.Errorf("seed %d: %+v", seed, got)
				}
			}
			if found < c.found {
				t.Errorf("found in %d of %d sequences, want %d", found, runs, c.found)
			}
			if held*10 < found*9 {
				t.Errorf("%d of %d intervals hold the place", held, found)
			}
			if far*20 > found {
				t.Errorf("%d of %d are far off", far, found)
			}
		})
	}
}

// A burst is two changes, even if it is short in a long sequence.
func TestBurst(t *testing.T) {
	for _, n := range []int{150, 1500} {
		found := 0
		for seed := range uint64(20) {
			r := rand.New(rand.NewPCG(seed, 3))
			x := atRates(r, []int{n, 100, n}, []float64{10, 40, 10})
			changes := Rates(x, 0, x[len(x)-1], Options{Alpha: 0.01})
			if len(changes) != 2 {
				continue
			}
			found++
			for i, at := range []int{n, n + 100} {
				if d := changes[i].At - at; d < -30 || d > 30 {
					t.Errorf("n %d, seed %d: change %d is at %d, want about %d", n, seed, i, changes[i].At, at)
				}
			}
		}
		if found < 18 {
			t.Errorf("n %d: %d of 20 bursts have a beginning and an end", n, found)
		}
	}
}

func TestKeepRejectsSmallChanges(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 4))
	x := shifted(shifted(autoregressive(r, 900, 0), 300, 3), 600, 30)
	large := func(from, k, to int) bool { return order.Mean(x[k:to])-order.Mean(x[from:k]) > 10 }
	all, kept := Levels(x, Options{Alpha: 0.01}), Levels(x, Options{Alpha: 0.01, Keep: large})
	if len(all) != 2 || len(kept) != 1 {
		t.Fatalf("%d changes, %d of them large; want 2 and 1", len(all), len(kept))
	}
	if d := kept[0].At - 600; d < -5 || d > 5 {
		t.Errorf("the large change is at %d, want 600", kept[0].At)
	}
}

func TestShortAndEmpty(t *testing.T) {
	o := Options{Alpha: 0.5}
	for n := range 20 {
		x := make([]float64, n)
		for i := range x {
			x[i] = float64(i / 10 * 100)
		}
		for name, got := range map[string][]Change{
			"rates":    Rates(x, 0, 1, o),
			"one time": Rates(make([]float64, n), 0, 0, o),
			"shares":   Shares(make([]bool, n), o),
			"levels":   Levels(x, o),
			"excesses": Excesses(x, TailLimit(x), o),
		} {
			for _, c := range got {
				if c.At < 1 || c.At >= n {
					t.Errorf("%s of %d: %+v", name, n, c)
				}
			}
		}
	}
}

// Simultaneous events are a batch, not a rate.
func TestBatchIsNoRate(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	x := atRates(r, []int{100, 8, 100}, []float64{1, 1e9, 1})
	if got := Rates(x, 0, x[len(x)-1], Options{Alpha: 0.01}); len(got) > 0 {
		t.Errorf("%+v", got)
	}
}

func TestCompare(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 6))
	same, other := autoregressive(r, 100, 0.3), shifted(autoregressive(r, 60, 0.3), 0, 3)
	growing := make([]float64, 60) // a queue that fills up
	for i := range growing {
		growing[i] = 5 + float64(i)
	}
	if p, delta := Compare(same, other); p > 1e-6 || delta < 0.8 {
		t.Errorf("a step: p %g, delta %g", p, delta)
	}
	if p, delta := Compare(same, growing); p > 1e-6 || delta != 1 {
		t.Errorf("a queue that fills up: p %g, delta %g", p, delta)
	}
	if p, _ := Compare(same, nil); p != 1 {
		t.Errorf("nothing to compare with: p %g", p)
	}
	small := 0
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 7))
		x := autoregressive(r, 200, 0.7)
		if p, _ := Compare(x[:120], x[120:]); p < 0.05 {
			small++
		}
	}
	if small > 24 {
		t.Errorf("%d of 200 pairs of pieces of one sequence differ with p < 0.05", small)
	}
}

func TestLimit(t *testing.T) {
	values := make([]float64, 200)
	for i := range values {
		values[i] = 100 + float64(i)
		if i >= 180 {
			values[i] *= 4
		}
	}
	if got := TailLimit(values); got != 4*280 {
		t.Errorf("behind a gap: %g, want %d", got, 4*280)
	}
	if got := TailLimit(values[:180]); got != 100+162 {
		t.Errorf("without a gap: %g, want the highest tenth", got)
	}
}

// Values that become constant are a change, too, however the means of their blocks are rounded.
func TestLevelsThatBecomeOneValue(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for n := 840; n < 880; n++ {
		values := make([]float64, n)
		for i := range values[:n/2] {
			values[i] = 0.4 + 0.4*rng.Float64()
		}
		if got := Levels(values, Options{Alpha: 0.001}); len(got) != 1 || max(got[0].At-n/2, n/2-got[0].At) > 3 {
			t.Errorf("%d values: %v", n, got)
		}
	}
}

// Where all values exceed every earlier one, a few are enough.
func TestApart(t *testing.T) {
	values := slices.Concat(slices.Repeat([]float64{0.9, 1}, 6), slices.Repeat([]float64{1.3, 1.2}, 6))
	if list := Apart(values, 1.1, 5, 1e-4); len(list) != 1 || list[0].At != 12 {
		t.Errorf("%+v", list)
	}
	if values[3] = 1.25; Apart(values, 1.1, 5, 1e-4) != nil {
		t.Error("one of those before is as large")
	}
}

package changepoint

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/sgtrace/sgtrace/testkit/testset"
)

// A climate is the kind of noise in a simulated series.
type climate struct {
	n     int
	rho   float64 // correlation of neighbors
	heavy bool    // one in twenty is an outlier
	long  float64 // mean duration of an observation, in s
}

// series returns observations over 100 s whose level is given as a function of time.
func (c climate) series(r *rand.Rand, level func(from, to float64) float64) []Observation {
	noise := autoregressive(r, c.n, c.rho)
	list := make([]Observation, c.n)
	for i := range list {
		middle := (float64(i) + r.Float64()) / float64(c.n) * 100
		half := c.long * r.ExpFloat64() / 2
		o := Observation{From: middle - half, To: middle + half, Weight: 1}
		o.Value = noise[i]*math.Sqrt(1-c.rho*c.rho) + level(o.From, o.To)
		if c.heavy && r.Float64() < 0.05 {
			o.Value += 6 * r.NormFloat64()
		}
		list[i] = o
	}
	return list
}

var climates = []climate{{n: 300}, {n: 300, rho: 0.5}, {n: 300, heavy: true}, {n: 300, heavy: true, rho: 0.5}, {n: 600, long: 3}, {n: 600, long: 3, rho: 0.5}}

// Shapes are distinguished, and a steady level has none, whatever the noise.
func TestRateOfShapes(t *testing.T) {
	after := func(at, from, to float64) float64 { return after(&Observation{From: from, To: to}, at) }
	for _, shape := range []struct {
		is    Shape
		least int
		level func(at, from, to float64) float64
	}{
		{Steady, 98, func(_, _, _ float64) float64 { return 0 }},
		{Stepped, 90, func(at, from, to float64) float64 { return 3 * after(at, from, to) }},
		{Spell, 90, func(at, from, to float64) float64 { return 3 * (after(at-20, from, to) - after(at+10, from, to)) }},
		{Ramped, 90, func(_, from, to float64) float64 { return 0.06 * (from + to) / 2 }},
		{Bent, 85, func(at, from, to float64) float64 { return 0.15 * above(&Observation{From: from, To: to}, at) }},
		{Sloped, 85, func(at, from, to float64) float64 {
			o := Observation{From: from, To: to}
			return 4 * (above(&o, at-15) - above(&o, at+20)) / 35
		}},
		{Waving, 90, func(_, from, to float64) float64 { return 2 * math.Sin(2*math.Pi*(from+to)/2/50) }},
	} {
		right, runs := 0, 0
		for _, seed := range testset.FirstSeeds(t, 3) {
			for k, c := range climates {
				r := rand.New(rand.NewPCG(seed, uint64(k)))
				at := 35 + 30*r.Float64()
				together, _ := Courses([][]Observation{c.series(r, func(from, to float64) float64 { return shape.level(at, from, to) })})
				if runs++; together.Shape == shape.is {
					right++
				} else {
					t.Logf("seed %d, %+v: shape %d is taken for %+v", seed, c, shape.is, together)
				}
			}
		}
		testset.Rate(t, fmt.Sprintf("shapes: %s", [...]string{"steady", "step", "spell", "ramp", "bend", "warm-up", "wave", "slope"}[shape.is]), right, runs, shape.least)
	}
}

// The interval for the time of a change contains it in 95 of 100 series, within sampling error.
func TestRateOfTimes(t *testing.T) {
	seeds := testset.Seeds(t)
	covered, runs := 0, 0
	for _, size := range []float64{1, 3} {
		for k, c := range climates {
			for _, seed := range seeds {
				r := rand.New(rand.NewPCG(seed, uint64(k)))
				at := 30 + 40*r.Float64()
				_, first, last, ok := Date(c.series(r, func(from, to float64) float64 {
					return size * after(&Observation{From: from, To: to}, at)
				}))
				if runs++; ok && first <= at && at <= last {
					covered++
				}
			}
		}
	}
	testset.Rate(t, "shapes: bounds of times", covered, runs, 92)
}

// A slowdown of all servers at once is distinguished from that of one server, and from servers that
// slow down one after another.
func TestCoursesOfServers(t *testing.T) {
	for seed := range uint64(3) {
		r := rand.New(rand.NewPCG(seed, 7))
		servers := func(times ...float64) (list [][]Observation) {
			for _, at := range times {
				list = append(list, climate{n: 300, long: 2}.series(r, func(from, to float64) float64 {
					return 3 * after(&Observation{From: from, To: to}, at)
				}))
			}
			return list
		}
		if together, _ := Courses(servers(40, 40, 40)); together.Shape != Stepped || together.First > 40 || together.Last < 40 {
			t.Errorf("seed %d: all at 40: %+v", seed, together)
		}
		together, each := Courses(servers(40, math.Inf(1), 70))
		stepped := func(list []Course) bool { return len(list) == 1 && list[0].Shape == Stepped }
		if together.Shape != Steady || !stepped(each[0]) || len(each[1]) > 0 || !stepped(each[2]) {
			t.Errorf("seed %d: one at 40, one never, one at 70: %+v and %+v", seed, together, each)
		}
	}
}

// A crowd at the very end is not a bend: a gradual change must last for some time.
func TestBendsLast(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 0))
		list := climates[0].series(r, func(from, to float64) float64 { return 6 * above(&Observation{From: from, To: to}, 98) })
		if together, _ := Courses([][]Observation{list}); together.Shape == Bent && together.At > 100*(1-lasting) {
			t.Errorf("seed %d: bent at %.1f of 100", seed, together.At)
		}
	}
}

// Computing the fit of a piecewise linear shape from prefix sums gives the same as summing over all observations.
func TestMoments(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 1))
	for range 200 {
		list := make([]Observation, 20+r.IntN(200))
		at := 1e6 * r.Float64()
		for i := range list {
			at += r.ExpFloat64()
			list[i] = Observation{From: at, To: at + 3*r.Float64()*float64(r.IntN(3)), Value: r.NormFloat64(), Weight: 0.1 + r.Float64()}
		}
		slices.SortStableFunc(list, func(a, b Observation) int { return cmp.Compare(a.middle(), b.middle()) })
		x := fitted(list)
		for s := Stepped; s < shapes; s++ {
			at := x.from + (x.to-x.from)*(1.2*r.Float64()-0.1)
			end := at + (x.to-x.from)*r.Float64()*0.5
			got := x.try(s, at, end)
			n, mean, product, square := 0.0, 0.0, 0.0, 0.0
			for i := range x.list {
				n, mean = n+x.weight[i], mean+x.weight[i]*x.basis(s, &x.list[i], at, end)
			}
			for i := range x.list {
				b := x.basis(s, &x.list[i], at, end) - mean/n
				product, square = product+x.weight[i]*b*x.values[i], square+x.weight[i]*b*b
			}
			if square < 1e-6 {
				continue
			}
			if want := product * product / square; !got.ok || math.Abs(got.gain-want) > 1e-6*max(want, 1e-3) || math.Abs(got.size-product/square) > 1e-6*max(1e-3, math.Abs(product/square)) {
				t.Fatalf("shape %d from %v to %v: gain %v, size %v; one by one %v, %v", s, at, end, got.gain, got.size, want, product/square)
			}
		}
	}
}

// A step is recognized beside noise so slow that few observations are independent: a line shows
// that the level is not steady, but fits no better. One or two observations are not a level.
func TestStepBesideSlowNoise(t *testing.T) {
	list := func(n, at int) []Observation {
		out := make([]Observation, n)
		for i := range out {
			y := 1 + []float64{0.01, -0.006, 0.002, -0.009, 0.004, 0.008, -0.003}[i/5%7]
			if i >= at {
				y *= 0.6
			}
			out[i] = Observation{From: float64(i), To: float64(i) + 1, Value: y, Weight: 1}
		}
		return out
	}
	c, _ := Courses([][]Observation{list(70, 46)})
	if c.Shape != Stepped || math.Abs(c.At-46) > 1 || c.P > 1e-4 {
		t.Errorf("%+v, want a step at 46", c)
	}
	for _, at := range []int{1, 2, 14, 15} {
		if c, _ := Courses([][]Observation{list(16, at)}); c.Shape == Stepped || c.Shape == Spell {
			t.Errorf("%d of 16 observations are no level: %+v", min(at, 16-at), c)
		}
	}
}

// Several steps and spells in a series are distinguished from each other and from a single shape.
func TestChangesInTurn(t *testing.T) {
	type change struct{ at, end, size float64 }
	for _, c := range []struct {
		name string
		of   []change
	}{
		{"two spells", []change{{15, 28, 3}, {60, 73, 3}}},
		{"two steps", []change{{30, math.Inf(1), 3}, {62, math.Inf(1), 3.5}}},
		{"a spell, and a step", []change{{20, 33, 4}, {66, math.Inf(1), 2.5}}},
		{"three spells", []change{{12, 20, 3}, {38, 50, 3}, {80, 86, 3}}},
	} {
		for seed := range uint64(3) {
			r := rand.New(rand.NewPCG(seed, 9))
			list := climate{n: 600, long: 1}.series(r, func(from, to float64) (sum float64) {
				o := Observation{From: from, To: to}
				for _, x := range c.of {
					sum += x.size * (after(&o, x.at) - after(&o, x.end))
				}
				return sum
			})
			together, each := Courses([][]Observation{list})
			slices.SortFunc(each[0], func(a, b Course) int { return cmp.Compare(a.At, b.At) })
			right := together.Shape == Steady && len(each[0]) == len(c.of)
			for k := range each[0] {
				x := &each[0][k]
				right = right && math.Abs(x.At-c.of[k].at) < 1 && math.Abs(x.Size/c.of[k].size-1) < 0.2 && (x.Shape == Spell) == !math.IsInf(c.of[k].end, 1) && x.P < surely
			}
			if !right {
				t.Errorf("seed %d: %s: %+v, %+v", seed, c.name, together, each[0])
			}
		}
	}
}

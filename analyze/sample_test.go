package analyze

import (
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// defined computes a distribution by the definitions, in exact arithmetic.
func defined(v []int64) Distribution {
	v = slices.Clone(v)
	slices.Sort(v)
	n := int64(len(v))
	sum, squares := new(big.Int), new(big.Rat)
	for _, x := range v {
		sum.Add(sum, big.NewInt(x))
	}
	mean := new(big.Rat).SetFrac(sum, big.NewInt(n))
	for _, x := range v {
		d := new(big.Rat).Sub(new(big.Rat).SetInt64(x), mean)
		squares.Add(squares, d.Mul(d, d))
	}
	tenth := func(r *big.Rat) int64 { // FloatString rounds half away from zero
		i, _ := new(big.Int).SetString(new(big.Rat).Mul(r, big.NewRat(10, 1)).FloatString(0), 10)
		return i.Int64()
	}
	d := Distribution{N: n, Total: math.MaxInt64, Min: v[0], Max: v[n-1], Mean: tenth(mean),
		Median: tenth(new(big.Rat).SetFrac(new(big.Int).Add(big.NewInt(v[(n-1)/2]), big.NewInt(v[n/2])), big.NewInt(2))),
		P90:    request.NearestRank(v, 90), P95: request.NearestRank(v, 95), P99: request.NearestRank(v, 99)}
	if sum.IsInt64() {
		d.Total = sum.Int64()
	}
	if n > 1 {
		variance, _ := squares.Quo(squares, big.NewRat(n-1, 1)).Float64()
		d.StdDev = int64(math.Round(10 * math.Sqrt(variance)))
	}
	return d
}

func TestDistributionEqualsDefinition(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		n := 1 + r.IntN(20)
		if r.IntN(5) == 0 {
			n = 1 + r.IntN(3*maxBlock)
		}
		v := make([]int64, n)
		from, limit := int64(0), int64(1)<<(1+r.IntN(40))
		if r.IntN(4) == 0 {
			from, limit = 5e9, 3 // large and nearly equal: floats would lose all of the deviation
		}
		s, in := &sample{}, &store{limit: math.MaxInt64}
		for i := range v {
			v[i] = from + r.Int64N(limit)
			s.add(v[i], in)
		}
		var other sample // several samples are one
		for range r.IntN(3) {
			v = append(v, 1<<33)
			other.add(1<<33, in)
		}
		got, approximate := new(tally).of(s, &other)
		if want := defined(v); got != want || approximate {
			t.Fatalf("%d values from %d below %d:\n got %+v\nwant %+v", n, from, from+limit, got, want)
		}
	}
}

// 541281 / 20 is 27064.05, which is a little less as a float.
func TestMeanIsRoundedHalfUp(t *testing.T) {
	var m moments
	m.n, m.sum[0] = 20, 541281
	if got := m.mean(); got != 270641 {
		t.Errorf("mean is %d tenths", got)
	}
}

func TestForgedTimes(t *testing.T) {
	s, in := &sample{}, &store{limit: math.MaxInt64}
	for range 5 {
		s.add(math.MaxInt64, in)
	}
	s.add(0, in)
	d, _ := new(tally).of(s)
	if d.N != 6 || d.Total != math.MaxInt64 || d.Min != 0 || d.Max != math.MaxInt64 || d.Mean != math.MaxInt64 || d.Median != math.MaxInt64 || d.StdDev <= 0 {
		t.Errorf("%+v", d)
	}
}

// Whatever a histogram returns is off by 0.4 % at most.
func TestHistogramError(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 100_000 {
		v := r.Int64N(1 << (1 + r.IntN(62)))
		octave, sub := bucket(v)
		if got := middle(octave, sub); math.Abs(float64(got-v)) > 0.004*float64(v) {
			t.Fatalf("%d is counted as %d", v, got)
		}
	}
	for _, v := range []int64{0, 1, 255, math.MaxInt64} {
		octave, sub := bucket(v)
		if got := middle(octave, sub); v < 256 && got != v || math.Abs(float64(got)-float64(v)) > 0.004*float64(v) {
			t.Errorf("%d is counted as %d", v, got)
		}
	}
}

// Beyond what is held, sums stay exact, and percentiles are off by 0.4 % at most.
// Small groups stay exact.
func TestTooManyValues(t *testing.T) {
	syms := trace.NewSymbols()
	streams := []*rowStream{{}, {}}
	r := rand.New(rand.NewPCG(7, 8))
	add := func(name string, n int) {
		for i := range n {
			k := profile.Kernel{Event: profile.Event{Name: syms.Intern(name), End: trace.Time(1e5 * math.Exp(r.NormFloat64()*3)), Rank: int32(i % 3)}}
			s := streams[r.IntN(2)]
			s.kernels = append(s.kernels, k)
		}
	}
	add("large", 50_000)
	add("small", 300)
	ranks := []string{"0", "1", "2"}
	set := setOf(syms, ranks, streams[0], streams[1])
	for _, byRank := range []bool{false, true} {
		exact := SumKernels(set, SumOptions{ByRank: byRank})
		got := SumKernels(set, SumOptions{ByRank: byRank, held: 20_000})
		shuffled := SumKernels(setOf(syms, ranks, streams[1].shuffled(r), streams[0].shuffled(r)), SumOptions{ByRank: byRank, held: 20_000})
		if g, w := csvOf(t, shuffled.Report()), csvOf(t, got.Report()); g != w {
			t.Errorf("the order matters:\n%s\nwant\n%s", g, w)
		}
		if want := len(ranks); byRank && got.approximate != want || !byRank && got.approximate != 1 || exact.approximate != 0 {
			t.Errorf("%d rows are approximate", got.approximate)
		}
		for i, g := range got.Rows {
			w := exact.Rows[i]
			if g.Name == "small" && g.Distribution != w.Distribution {
				t.Errorf("small group:\n got %+v\nwant %+v", g, w)
			}
			about := func(a, b int64) bool { return math.Abs(float64(a-b)) <= 0.004*float64(b) }
			if !about(g.Median, w.Median) || !about(g.P90, w.P90) || !about(g.P95, w.P95) || !about(g.P99, w.P99) {
				t.Errorf("percentiles:\n got %+v\nwant %+v", g, w)
			}
			g.Median, g.P90, g.P95, g.P99 = w.Median, w.P90, w.P95, w.P99
			if g.Distribution != w.Distribution || g.Share != w.Share || g.sumRow != w.sumRow {
				t.Errorf("sums:\n got %+v\nwant %+v", g, w)
			}
		}
		if notes := got.Report().Footnotes; len(notes) == 0 {
			t.Error("no footnote tells of it")
		}
	}
}

// The same holds for values of ranges and launches.
func TestTooManyValuesOfRanges(t *testing.T) {
	syms := trace.NewSymbols()
	r := rand.New(rand.NewPCG(1, 2))
	s := &rowStream{ranges: []profile.Range{{Event: profile.Event{End: 1e9, Name: syms.Intern("step")}}}}
	launch, kernel := syms.Intern("cudaLaunchKernel"), syms.Intern("kernel")
	for i := range 5 * fewValues {
		start := trace.Time(i * 1000)
		e := profile.Event{Start: start, End: start + trace.Time(r.IntN(900)), Correlation: int64(i + 1), Name: launch}
		s.calls = append(s.calls, profile.Call{Event: e})
		e.Start, e.End, e.Name = e.Start+trace.Time(r.IntN(2000)), e.Start+trace.Time(2000+r.IntN(1e6)), kernel
		s.kernels = append(s.kernels, profile.Kernel{Event: e})
		s.ranges = append(s.ranges, profile.Range{Event: profile.Event{Start: start, End: start + 900, Name: kernel}})
	}
	set := setOf(syms, []string{"r"}, s)
	for name, report := range map[string]func(*profile.Set, SumOptions) (d []Distribution, approximate int){
		"ranges": func(s *profile.Set, o SumOptions) (d []Distribution, approximate int) {
			sums := SumRanges(s, o)
			for _, r := range sums.Rows {
				d = append(d, r.Time, r.Projected)
			}
			return d, sums.approximate
		},
		"kernels of ranges": func(s *profile.Set, o SumOptions) (d []Distribution, approximate int) {
			sums := SumRangeKernels(s, o)
			for _, r := range sums.Rows {
				d = append(d, r.Distribution)
			}
			return d, sums.approximate
		},
		"launches": func(s *profile.Set, o SumOptions) (d []Distribution, approximate int) {
			sums := SumLaunches(s, o)
			for _, r := range sums.Rows {
				d = append(d, r.Whole, r.Call, r.Queue, r.Run)
			}
			return d, sums.approximate
		},
	} {
		exact, none := report(set, SumOptions{})
		got, some := report(set, SumOptions{held: fewValues})
		if none != 0 || some == 0 {
			t.Errorf("%s: %d rows are approximate, with less memory %d", name, none, some)
		}
		for i, g := range got {
			if w := exact[i]; g.N != w.N || g.Total != w.Total || g.Mean != w.Mean || g.StdDev != w.StdDev || math.Abs(float64(g.P99-w.P99)) > 0.004*float64(w.P99) {
				t.Errorf("%s:\n got %+v\nwant %+v", name, g, w)
			}
		}
	}
}

// A paged table is a map, wherever its keys are.
func TestPagedTable(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for name, key := range map[string]func(i int) int64{
		"dense":      func(i int) int64 { return int64(i) },
		"offset":     func(i int) int64 { return 1<<40 + int64(i) },
		"descending": func(i int) int64 { return 1<<20 - int64(i) },
		"strided":    func(i int) int64 { return int64(i) * 4099 },
		"random":     func(int) int64 { return r.Int64() - r.Int64() },
		"mixed":      func(i int) int64 { return []int64{int64(i), r.Int64N(1 << 34), -int64(i)}[r.IntN(3)] },
	} {
		var p paged[int32]
		want := map[int64]int32{}
		for i := range 200_000 {
			k := key(i)
			want[k]++
			*p.at(k)++
		}
		for k, v := range want {
			if got := p.find(k); got == nil || *got != v {
				t.Fatalf("%s: %d is not found", name, k)
			}
		}
		if got := p.find(math.MinInt64); got != nil && *got != 0 {
			t.Errorf("%s: found what was never there", name)
		}
		// 4 bytes of value: a page per value would be 200 MB.
		if size := 4 * pageSize * p.inUse; size > 20<<20 {
			t.Errorf("%s: %d MB in pages", name, size>>20)
		}
	}
}

func BenchmarkSumKernels(b *testing.B) {
	const n = 1 << 20
	syms := trace.NewSymbols()
	names := make([]trace.Sym, 400)
	for i := range names {
		names[i] = syms.Intern(string(rune('0' + i)))
	}
	s := &rowStream{kernels: make([]profile.Kernel, n)}
	r := rand.New(rand.NewPCG(1, 2))
	for i := range s.kernels {
		s.kernels[i] = profile.Kernel{Event: profile.Event{End: trace.Time(math.Exp(r.NormFloat64() + 9)), Name: names[r.IntN(len(names))], Rank: int32(i % 8)}}
	}
	set := setOf(syms, make([]string, 8), s)
	b.ReportAllocs()
	for b.Loop() {
		SumKernels(set, SumOptions{})
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/kernel")
}

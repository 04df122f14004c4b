package kernel

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/profilewalk"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/testkit/testset"
	"github.com/sgtrace/sgtrace/trace"
)

// With more values than memory holds, sums stay exact, and percentiles are off by at
// most 0.4 %. Small groups stay exact.
func TestTooManyValues(t *testing.T) {
	syms := trace.NewSymbols()
	streams := []*testset.RowStream{{}, {}}
	r := rand.New(rand.NewPCG(7, 8))
	add := func(name string, n int) {
		for i := range n {
			k := profile.Kernel{Event: profile.Event{Name: syms.Intern(name), End: trace.Time(1e5 * math.Exp(r.NormFloat64()*3)), Rank: int32(i % 3)}}
			s := streams[r.IntN(2)]
			s.KernelRows = append(s.KernelRows, k)
		}
	}
	add("large", 50_000)
	add("small", 300)
	ranks := []string{"0", "1", "2"}
	set := testset.SetOf(syms, ranks, streams[0], streams[1])
	for _, byRank := range []bool{false, true} {
		exact := SumKernels(set, profilewalk.Options{ByRank: byRank})
		got := SumKernels(set, profilewalk.Options{ByRank: byRank, Held: 20_000})
		shuffled := SumKernels(testset.SetOf(syms, ranks, streams[1].Shuffled(r), streams[0].Shuffled(r)), profilewalk.Options{ByRank: byRank, Held: 20_000})
		if g, w := testset.CSV(t, shuffled.Report()), testset.CSV(t, got.Report()); g != w {
			t.Errorf("the order matters:\n%s\nwant\n%s", g, w)
		}
		if want := len(ranks); byRank && got.approximate != want || !byRank && got.approximate != 1 || exact.approximate != 0 {
			t.Errorf("%d rows are approximate", got.approximate)
		}
		for i, g := range got.Rows {
			w := exact.Rows[i]
			if g.Row.Name == "small" && g.Distribution != w.Distribution {
				t.Errorf("small group:\n got %+v\nwant %+v", g, w)
			}
			about := func(a, b int64) bool { return math.Abs(float64(a-b)) <= 0.004*float64(b) }
			if !about(g.Distribution.MedianTenths, w.Distribution.MedianTenths) || !about(g.Distribution.P90, w.Distribution.P90) || !about(g.Distribution.P95, w.Distribution.P95) || !about(g.Distribution.P99, w.Distribution.P99) {
				t.Errorf("percentiles:\n got %+v\nwant %+v", g, w)
			}
			g.Distribution.MedianTenths, g.Distribution.P90, g.Distribution.P95, g.Distribution.P99 = w.Distribution.MedianTenths, w.Distribution.P90, w.Distribution.P95, w.Distribution.P99
			if g.Distribution != w.Distribution || g.Share != w.Share || g.Row != w.Row {
				t.Errorf("sums:\n got %+v\nwant %+v", g, w)
			}
		}
		if notes := got.Report().Footnotes; len(notes) == 0 {
			t.Error("no footnote tells of it")
		}
	}
}

// The same holds for ranges and launches.
func TestTooManyValuesOfRanges(t *testing.T) {
	syms := trace.NewSymbols()
	r := rand.New(rand.NewPCG(1, 2))
	s := &testset.RowStream{RangeRows: []profile.Range{{Event: profile.Event{End: 1e9, Name: syms.Intern("step")}}}}
	launch, kernel := syms.Intern("cudaLaunchKernel"), syms.Intern("kernel")
	for i := range 5 * distribution.FewValues {
		start := trace.Time(i * 1000)
		e := profile.Event{Start: start, End: start + trace.Time(r.IntN(900)), Correlation: int64(i + 1), Name: launch}
		s.CallRows = append(s.CallRows, profile.Call{Event: e})
		e.Start, e.End, e.Name = e.Start+trace.Time(r.IntN(2000)), e.Start+trace.Time(2000+r.IntN(1e6)), kernel
		s.KernelRows = append(s.KernelRows, profile.Kernel{Event: e})
		s.RangeRows = append(s.RangeRows, profile.Range{Event: profile.Event{Start: start, End: start + 900, Name: kernel}})
	}
	set := testset.SetOf(syms, []string{"r"}, s)
	for name, report := range map[string]func(*profile.Set, profilewalk.Options) (d []distribution.Distribution, approximate int){
		"ranges": func(s *profile.Set, o profilewalk.Options) (d []distribution.Distribution, approximate int) {
			sums := SumRanges(s, o)
			for _, r := range sums.Rows {
				d = append(d, r.Time, r.Projected)
			}
			return d, sums.approximate
		},
		"kernels of ranges": func(s *profile.Set, o profilewalk.Options) (d []distribution.Distribution, approximate int) {
			sums := SumRangeKernels(s, o)
			for _, r := range sums.Rows {
				d = append(d, r.Distribution)
			}
			return d, sums.approximate
		},
		"launches": func(s *profile.Set, o profilewalk.Options) (d []distribution.Distribution, approximate int) {
			sums := SumLaunches(s, o)
			for _, r := range sums.Rows {
				d = append(d, r.Whole, r.Call, r.Queue, r.Run)
			}
			return d, sums.approximate
		},
	} {
		exact, none := report(set, profilewalk.Options{})
		got, some := report(set, profilewalk.Options{Held: distribution.FewValues})
		if none != 0 || some == 0 {
			t.Errorf("%s: %d rows are approximate, with less memory %d", name, none, some)
		}
		for i, g := range got {
			if w := exact[i]; g.N != w.N || g.Total != w.Total || g.MeanTenths != w.MeanTenths || g.StdDevTenths != w.StdDevTenths || math.Abs(float64(g.P99-w.P99)) > 0.004*float64(w.P99) {
				t.Errorf("%s:\n got %+v\nwant %+v", name, g, w)
			}
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
	s := &testset.RowStream{KernelRows: make([]profile.Kernel, n)}
	r := rand.New(rand.NewPCG(1, 2))
	for i := range s.KernelRows {
		s.KernelRows[i] = profile.Kernel{Event: profile.Event{End: trace.Time(math.Exp(r.NormFloat64() + 9)), Name: names[r.IntN(len(names))], Rank: int32(i % 8)}}
	}
	set := testset.SetOf(syms, make([]string, 8), s)
	b.ReportAllocs()
	for b.Loop() {
		SumKernels(set, profilewalk.Options{})
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/kernel")
}

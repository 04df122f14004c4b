package kernel

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/profilewalk"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/testkit/testset"
	"github.com/sgtrace/sgtrace/trace"
)

// smallSet has two ranks of which all sums can be computed by hand. Rank 1 does the
// same as rank 0, but only its first two calls and kernels.
//
//	rank 0, thread 5   step [0, 1000]
//	                     layer [10, 200]   launch 1 [20, 30]     kernel [100, 150]
//	                                       launch 2 [40, 60]     kernel [50, 250]: before the call returns
//	                     layer [200, 400]  copy 3 [200, 210]     copy [500, 530], 1000 bytes
//	                     launch 4 [390, 410], across the end     kernel [600, 610]
//	                     graph 5 [500, 520]                      kernels [700, 710], [720, 750]
//	                   never closed [0, 9999]
//	           unknown                                           kernel [800, 900]
func smallSet() *profile.Set {
	syms := trace.NewSymbols()
	s := &testset.RowStream{}
	event := func(rank int32, start, end trace.Time, corr int64, name string) profile.Event {
		return profile.Event{Start: start, End: end, Correlation: corr, Name: syms.Intern(name), Rank: rank, PID: 40 + rank}
	}
	call := func(rank int32, start, end trace.Time, corr int64, name string) {
		s.CallRows = append(s.CallRows, profile.Call{Event: event(rank, start, end, corr, name), TID: 5})
	}
	kernel := func(rank int32, start, end trace.Time, corr int64, name string) {
		s.KernelRows = append(s.KernelRows, profile.Kernel{Event: event(rank, start, end, corr, name), Device: rank})
	}
	span := func(rank int32, start, end trace.Time, name string, open bool) {
		s.RangeRows = append(s.RangeRows, profile.Range{Event: event(rank, start, end, 0, name), TID: 5, Open: open})
	}
	for rank := range int32(2) {
		span(rank, 0, 1000, "step", false)
		span(rank, 10, 200, "layer", false)
		call(rank, 20, 30, 1, "cudaLaunchKernel")
		call(rank, 40, 60, 2, "cudaLaunchKernel")
		kernel(rank, 100, 150, 1, "gemm")
		kernel(rank, 50, 250, 2, "gemm")
	}
	span(0, 200, 400, "layer", false)
	span(0, 0, 9999, "forgotten", true)
	call(0, 200, 210, 3, "cudaMemcpyAsync")
	s.CopyRows = append(s.CopyRows,
		profile.Copy{Event: event(0, 500, 530, 3, "[CUDA memcpy Host-to-Device]"), Bytes: 1000, Kind: profile.CopyKind{From: profile.PageableMemory, To: profile.DeviceMemory}},
		profile.Copy{Event: event(0, 500, 540, 0, "[CUDA memcpy Host-to-Device]"), Bytes: -1})
	call(0, 390, 410, 4, "cudaLaunchKernel")
	kernel(0, 600, 610, 4, "add")
	call(0, 500, 520, 5, "cudaGraphLaunch")
	kernel(0, 700, 710, 5, "add")
	kernel(0, 720, 750, 5, "add")
	kernel(0, 800, 900, 77, "gemm")
	return testset.SetOf(syms, []string{"TP0", "TP1"}, s)
}

func TestKernelsByHand(t *testing.T) {
	rows := SumKernels(smallSet(), profilewalk.Options{}).Rows
	if len(rows) != 2 {
		t.Fatalf("rows %+v", rows)
	}
	gemm := distribution.Distribution{N: 5, Total: 600, MeanTenths: 1200, MedianTenths: 1000, Min: 50, Max: 200, StdDevTenths: 758, P90: 200, P95: 200, P99: 200}
	if r := rows[0]; r.Row.Name != "gemm" || r.Row.Ranks != 2 || r.Distribution != gemm || r.Share != 600.0/650 {
		t.Errorf("gemm: %+v", r)
	}
	// 10 10 30: mean 16.66..., deviations 6.66... 6.66... 13.33..., the root of 133.33...
	add := distribution.Distribution{N: 3, Total: 50, MeanTenths: 167, MedianTenths: 100, Min: 10, Max: 30, StdDevTenths: 115, P90: 30, P95: 30, P99: 30}
	if r := rows[1]; r.Row.Name != "add" || r.Row.Ranks != 1 || r.Distribution != add {
		t.Errorf("add: %+v", r)
	}
	byRank := SumKernels(smallSet(), profilewalk.Options{ByRank: true}).Rows
	if len(byRank) != 3 || byRank[0].Row.Rank != "TP0" || byRank[0].Distribution.Total != 350 || byRank[1].Row.Rank != "TP1" || byRank[1].Distribution.Total != 250 || byRank[2].Row.Name != "add" {
		t.Errorf("by rank: %+v", byRank)
	}
}

func TestWindowAndNames(t *testing.T) {
	names := func(opt profilewalk.Options) (out []string) {
		for _, r := range SumKernels(smallSet(), opt).Rows {
			out = append(out, r.Row.Name)
		}
		return out
	}
	for _, c := range []struct {
		opt  profilewalk.Options
		want []string
	}{
		{profilewalk.Options{From: 610, To: 710}, []string{"add"}}, // both ends of the window are included
		{profilewalk.Options{From: 901}, nil},
		{profilewalk.Options{To: 99}, []string{"gemm"}},
	} {
		if got := names(c.opt); !slices.Equal(got, c.want) {
			t.Errorf("%+v: %q, want %q", c.opt, got, c.want)
		}
	}
}

func TestCallsByHand(t *testing.T) {
	rows := SumCalls(smallSet(), profilewalk.Options{}).Rows
	// 10 20 10 20 20
	launch := distribution.Distribution{N: 5, Total: 80, MeanTenths: 160, MedianTenths: 200, Min: 10, Max: 20, StdDevTenths: 55, P90: 20, P95: 20, P99: 20}
	if r := rows[0]; r.Row.Name != "cudaLaunchKernel" || r.Distribution != launch || r.Row.Ranks != 2 {
		t.Errorf("%+v", r)
	}
}

func TestCopiesByHand(t *testing.T) {
	sums := SumCopies(smallSet(), profilewalk.Options{})
	want := []MemorySum{
		{Copied: profilewalk.Copied{N: 1, Time: 40}},
		{Copied: profilewalk.Copied{N: 1, Time: 30, Bytes: 1000, Sized: 30}, Kind: profile.CopyKind{From: profile.PageableMemory, To: profile.DeviceMemory}},
	}
	for i, r := range sums.Memory {
		if len(sums.Memory) != len(want) || r.Copied != want[i].Copied || r.Kind != want[i].Kind || r.Share != float64(r.Copied.Time)/70 || r.Row.Name != "[CUDA memcpy Host-to-Device]" {
			t.Errorf("row %d: %+v", i, r)
		}
	}
	// 1000 bytes in 30 ns are 33.333 bytes per ns.
	if median := sums.Memory[1].Speeds.MedianTenths; median != 333_333_330 {
		t.Errorf("median %d tenths of bytes per ms", median)
	}
	if len(sums.Rows) != 1 {
		t.Fatalf("%+v", sums.Rows)
	}
	r := sums.Rows[0]
	if r.Time.Total != 70 || r.Time.MeanTenths != 350 || r.Size.N != 1 || r.Size.Total != 1000 || r.Size.MeanTenths != 10000 || r.Size.StdDevTenths != 0 {
		t.Errorf("%+v", r)
	}
	if notes := sums.Reports()[0].Footnotes; !slices.Contains(notes, "operations of unknown size: 1") {
		t.Errorf("notes %q", notes)
	}
}

func TestRangesByHand(t *testing.T) {
	sums := SumRanges(smallSet(), profilewalk.Options{})
	if sums.Open != 1 || !slices.Equal(sums.OpenNames, []string{"forgotten"}) {
		t.Errorf("%d ranges are open: %q", sums.Open, sums.OpenNames)
	}
	if len(sums.Rows) != 2 {
		t.Fatalf("%+v", sums.Rows)
	}
	// Rank 0 spans 50 to 750, and rank 1 50 to 250. There are five calls; the graph counts as one.
	step := sums.Rows[0]
	if step.Row.Name != "step" || step.Time.Total != 2000 || step.Projected.Total != 900 || step.Projected.N != 2 || step.Ops != 7 || step.Levels != 0 || step.Children != 3 {
		t.Errorf("%+v", step)
	}
	// 50 to 250 twice, and the copy from 500 to 530. Launch 4 extends beyond its range.
	layer := sums.Rows[1]
	if layer.Row.Name != "layer" || layer.Time.N != 3 || layer.Time.Total != 580 || layer.Projected.Total != 430 || layer.Projected.MedianTenths != 2000 ||
		layer.Ops != 5 || layer.Levels != 3 || layer.Children != 0 || layer.RangeTime != 580 {
		t.Errorf("%+v", layer)
	}
	open := SumRanges(smallSet(), profilewalk.Options{Open: true})
	if r := open.Rows[0]; r.Row.Name != "forgotten" || r.Time.Total != 9999 || open.Open != 0 || r.Children != 1 {
		t.Errorf("with open ranges: %+v", r)
	}
	quiet := SumRanges(smallSet(), profilewalk.Options{From: 1500, Open: true})
	if len(quiet.Rows) != 1 || quiet.Rows[0].Row.Name != "forgotten" {
		t.Errorf("in a window: %+v", quiet.Rows)
	}
}

func TestRangesWithoutWorkHaveNoProjection(t *testing.T) {
	syms := trace.NewSymbols()
	s := &testset.RowStream{RangeRows: []profile.Range{{Event: profile.Event{End: 7, Name: syms.Intern("idle")}}}}
	got := testset.CSV(t, SumRanges(testset.SetOf(syms, []string{"r"}, s), profilewalk.Options{}).Report())
	if want := "1.000000,7,1,7.0,7.0,7,7,0.0,7,7,7,,0,,,,,,,,,,,,,,1,PushPop,idle\n"; !strings.HasSuffix(got, want) {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

func TestRangeKernelsByHand(t *testing.T) {
	sums := SumRangeKernels(smallSet(), profilewalk.Options{})
	if sums.Outside != 1 || sums.OutsideTime != 100 {
		t.Errorf("%d kernels, %d ns are in no range", sums.Outside, sums.OutsideTime)
	}
	type row struct {
		in, kernel       string
		ranges, n, total int64
		ranks            int
		share            float64
	}
	var got []row
	for _, r := range sums.Rows {
		got = append(got, row{r.Range, r.Row.Name, r.Ranges, r.Distribution.N, r.Distribution.Total, r.Row.Ranks, r.Share})
	}
	want := []row{{"step", "gemm", 2, 4, 500, 2, 500.0 / 550}, {"step", "add", 1, 3, 50, 1, 50.0 / 550}, {"layer", "gemm", 2, 4, 500, 2, 1}}
	if !slices.Equal(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	for _, r := range SumRangeKernels(smallSet(), profilewalk.Options{ByRank: true}).Rows {
		if r.Range != "step" && (r.Range != "layer" || r.PID != 40+r.Row.RankIndex || r.TID != 5 || r.Distribution.Total != 250) {
			t.Errorf("by rank: %+v", r)
		}
	}
}

func TestLaunchesByHand(t *testing.T) {
	sums := SumLaunches(smallSet(), profilewalk.Options{ByRank: true})
	if sums.Orphans != 1 {
		t.Errorf("%d kernels without a call", sums.Orphans)
	}
	type row struct {
		call, kernel              string
		whole, calls, queue, runs int64
		queued                    int64
	}
	got := map[row]bool{}
	for _, r := range sums.Rows {
		if r.Row.Rank == "TP0" && r.PID == 40 && r.TID == 5 && r.Device == 0 {
			got[row{r.CallName, r.Row.Name, r.Whole.Total, r.Call.Total, r.Queue.Total, r.Run.Total, r.Queue.N}] = true
		}
	}
	for _, want := range []row{
		{"cudaLaunchKernel", "gemm", 130 + 210, 10 + 20, 70, 50 + 200, 1}, // the second kernel began before its call returned
		{"cudaLaunchKernel", "add", 220, 20, 190, 10, 1},
		{"cudaGraphLaunch", "add", 210 + 250, 20 + 20, 180 + 200, 10 + 30, 2},
	} {
		if !got[want] {
			t.Errorf("no row %+v among %+v", want, got)
		}
	}
	pooled := SumLaunches(smallSet(), profilewalk.Options{}).Rows
	if len(pooled) != 3 || pooled[0].Row.Name != "gemm" || pooled[0].Whole.N != 4 || pooled[0].Row.Ranks != 2 || pooled[0].PID != -1 {
		t.Errorf("pooled: %+v", pooled)
	}
}

// A kernel may end before the call that launched it does.
func TestLaunchThatOutlastsItsKernel(t *testing.T) {
	syms := trace.NewSymbols()
	s := &testset.RowStream{
		CallRows:   []profile.Call{{Event: profile.Event{Start: 100, End: 200, Correlation: 1}}},
		KernelRows: []profile.Kernel{{Event: profile.Event{Start: 110, End: 120, Correlation: 1}}},
	}
	r := SumLaunches(testset.SetOf(syms, []string{"r"}, s), profilewalk.Options{}).Rows[0]
	if r.Whole.Total != 100 || r.Queue.N != 0 || r.Run.Total != 10 {
		t.Errorf("%+v", r)
	}
}

// A kernel that begins when its call returns did not queue, although nsys counts it.
func TestLaunchWithoutQueueing(t *testing.T) {
	syms := trace.NewSymbols()
	s := &testset.RowStream{
		CallRows:   []profile.Call{{Event: profile.Event{Start: 100, End: 200, Correlation: 1}}},
		KernelRows: []profile.Kernel{{Event: profile.Event{Start: 200, End: 220, Correlation: 1}}},
	}
	r := SumLaunches(testset.SetOf(syms, []string{"r"}, s), profilewalk.Options{}).Rows[0]
	if r.Whole.Total != 120 || r.Queue.N != 1 || r.Queue.Total != 0 {
		t.Errorf("%+v", r)
	}
}

// Failed calls are counted by result. A query for work that has not finished is no
// failure, and neither is a call without a result.
func TestFailedCalls(t *testing.T) {
	syms := trace.NewSymbols()
	call := func(rank int32, name string, result int32) profile.Call {
		return profile.Call{Event: profile.Event{End: 10, Name: syms.Intern(name), Rank: rank}, Result: result}
	}
	s := &testset.RowStream{CallRows: []profile.Call{
		call(0, "cudaLaunchKernel", 701), call(1, "cudaLaunchKernel", 701), call(0, "cudaLaunchKernel", 4242), call(1, "cudaLaunchKernel", 0),
		call(0, "cudaEventQuery", 600), call(0, "cudaEventQuery", 0),
		call(0, "cudaFree", profile.UnknownResult),
	}}
	set := testset.SetOf(syms, []string{"TP0", "TP1"}, s)
	type row struct{ rank, call, failed, errors string }
	rows := func(opt profilewalk.Options) (list []row) {
		r := SumCalls(set, opt).Report()
		cell := func(i int, name string) string {
			for c := range r.Columns {
				if r.Columns[c].Name == name {
					x := r.Cell(i, c)
					if x.Unknown {
						return "?"
					}
					return x.Text + fmt.Sprint(x.N)
				}
			}
			return ""
		}
		for i := range r.Len() {
			list = append(list, row{cell(i, "rank"), cell(i, "call"), cell(i, "failed"), cell(i, "errors")})
		}
		return list
	}
	if have, want := rows(profilewalk.Options{}), []row{
		{"", "cudaLaunchKernel0", "3", "2 cudaErrorLaunchOutOfResources (701), 1 4242 (4242)0"}, {"", "cudaEventQuery0", "0", "?"}, {"", "cudaFree0", "?", "?"},
	}; !slices.Equal(have, want) {
		t.Errorf("%+v", have)
	}
	if have := rows(profilewalk.Options{ByRank: true}); !slices.Contains(have, row{"TP00", "cudaLaunchKernel0", "2", "1 cudaErrorLaunchOutOfResources (701), 1 4242 (4242)0"}) {
		t.Errorf("by rank: %+v", have)
	}
}

func TestGraphsAreInTheShares(t *testing.T) {
	syms := trace.NewSymbols()
	kernel := func(name string, dur trace.Time, graph bool) profile.Kernel {
		return profile.Kernel{Event: profile.Event{End: dur, Name: syms.Intern(name)}, Graph: graph}
	}
	s := &testset.RowStream{KernelRows: []profile.Kernel{kernel("gemm", 1e6, false), kernel("CUDA graph 3", 3e6, true), kernel("CUDA graph 3", 4e6, true)}}
	sums := SumKernels(testset.SetOf(syms, []string{"r"}, s), profilewalk.Options{})
	if r := sums.Rows[0]; !r.Graph || r.Share != 7.0/8 || sums.Rows[1].Share != 1.0/8 {
		t.Errorf("%+v", sums.Rows)
	}
	if notes := sums.Report().Footnotes; !strings.Contains(notes[0], "2 runs and 7.00 ms") {
		t.Errorf("notes %q", notes)
	}
}

// An empty set causes no failure.
func TestSumsOfNothing(t *testing.T) {
	for name, report := range sumReports {
		for _, set := range []*profile.Set{{Syms: trace.NewSymbols()}, testset.SetOf(trace.NewSymbols(), []string{"r"}, &testset.RowStream{})} {
			r := report(set, profilewalk.Options{})
			for _, f := range table.Formats {
				if testset.Text(t, r, f, table.Style{Width: 80}) == "" {
					t.Errorf("%s as %s is empty", name, f)
				}
			}
		}
	}
}

// Every column has a description, and its key is unique.
func TestSumColumns(t *testing.T) {
	for name, report := range sumReports {
		for _, opt := range []profilewalk.Options{{}, {ByRank: true}} {
			seen := map[string]bool{}
			for _, c := range report(smallSet(), opt).Columns {
				if c.Doc == "" || seen[c.Key()] {
					t.Errorf("%s: column %q: doc %q", name, c.Key(), c.Doc)
				}
				seen[c.Key()] = true
			}
		}
	}
}

// Copies by kind of memory add up to copies by operation, with or without ranks, and
// no copy is faster than the fastest in the table.
func TestMemoryAddsUp(t *testing.T) {
	for seed := range uint64(20) {
		syms := trace.NewSymbols()
		set := testset.SetOf(syms, []string{"TP0", "TP1"}, testset.RandomStream(rand.New(rand.NewPCG(seed, 3)), syms))
		for _, byRank := range []bool{false, true} {
			sums := SumCopies(set, profilewalk.Options{ByRank: byRank})
			type total struct{ n, time, bytes int64 }
			want, got := map[string]total{}, map[string]total{}
			for _, r := range sums.Rows {
				want[r.Row.Rank+r.Row.Name] = total{r.Time.N, r.Time.Total, r.Size.Total}
			}
			for _, r := range sums.Memory {
				sum := got[r.Row.Rank+r.Row.Name]
				got[r.Row.Rank+r.Row.Name] = total{sum.n + r.Copied.N, sum.time + r.Copied.Time, sum.bytes + r.Copied.Bytes}
				if rate := float64(r.Speeds.Max) * 1e3; r.Speeds.N > 0 && r.Copied.Sized > 0 && r.Speeds.N == r.Copied.N && r.Copied.Rate() > rate+1e3 {
					t.Errorf("seed %d: %v copies %g bytes a second, and none is faster than %g", seed, r.Kind, r.Copied.Rate(), rate)
				}
			}
			if !maps.Equal(want, got) {
				t.Errorf("seed %d: %v, want %v", seed, got, want)
			}
		}
	}
}

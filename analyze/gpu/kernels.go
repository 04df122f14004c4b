package gpu

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/profile/kernelname"
	"github.com/sgtrace/sgtrace/trace"
)

// A RankKernel is how long all kernels of one name took on one rank, compared with the other ranks.
type RankKernel struct {
	Rank, Name string
	Class      kernelname.Class
	Single     int64   // of Total: in launches of one block
	Threads    int32   // of the largest such launch
	Blocks     float64 // mean of all launches; 0 if that of any is unknown
	Waited     int64   // of Total: waiting for communication before it on its stream; see GPU.Early
	Unknown    bool    // no rule matches some of them: Class is what unknown kernels count as
	Summary    distribution.Summary
	Ranks      int // number of ranks that ran such kernels
	// Excess is Total minus the median of the totals of the ranks that ran such kernels, in ns; all of
	// Total if no other rank did. If ranks were captured for different times, the median is that of
	// totals per captured time, times the captured time of this rank.
	Excess int64
	// RelTotal and RelP50 are Total (or Total per time) and P50 divided by their medians
	// over those ranks; -1 if there is only one, or the median is 0.
	RelTotal, RelP50 float64

	Sym       trace.Sym
	RankIndex int32
}

// kernelTimes collects durations of kernels by name.
type kernelTimes struct {
	index   order.Paged[int32] // by symbol: index into samples plus 1
	names   []trace.Sym
	classes []kernelname.Class
	unknown []bool
	waited  []int64
	grids   []grids
	samples []distribution.Sample
	sums    []distribution.Summary
}

func (k *kernelTimes) add(r *gpuRow) {
	at := k.index.At(int64(r.name))
	if *at == 0 {
		k.names, k.classes, k.samples = append(k.names, r.name), append(k.classes, r.class), append(k.samples, distribution.Sample{})
		k.unknown, k.waited, k.grids = append(k.unknown, false), append(k.waited, 0), append(k.grids, grids{})
		*at = int32(len(k.names))
	}
	k.unknown[*at-1] = k.unknown[*at-1] || r.flags&rowUnknown != 0
	k.waited[*at-1] = distribution.AddTimes(k.waited[*at-1], r.waited)
	k.grids[*at-1].add(r)
	k.samples[*at-1].Add(r.dur, distribution.NoLimit)
}

// ran reports whether a kernel of a name ran before.
func (k *kernelTimes) ran(name trace.Sym) bool { return *k.index.At(int64(name)) != 0 }

// summarize turns durations into summaries.
func (k *kernelTimes) summarize() {
	var s distribution.Summarizer
	var values []int64
	k.sums = make([]distribution.Summary, 0, len(k.samples))
	for i := range k.samples {
		values = values[:0]
		k.samples[i].Each(func(v int64) { values = append(values, v) })
		k.sums = append(k.sums, s.Summarize(values))
	}
	k.samples, k.index = nil, order.Paged[int32]{}
}

// moveTo appends the sums of a rank to rows, not yet compared, and frees them: a file may have a
// million names.
func (k *kernelTimes) moveTo(rows []RankKernel, set *profile.Set, rank int32) []RankKernel {
	for i, name := range k.names {
		rows = append(rows, RankKernel{Rank: set.Ranks[rank], Name: set.Syms.Name(name), Class: k.classes[i], Unknown: k.unknown[i], Waited: k.waited[i], Single: k.grids[i].single, Threads: k.grids[i].threads, Blocks: k.grids[i].blocks.Mean(), Summary: k.sums[i], Sym: name, RankIndex: rank})
	}
	*k = kernelTimes{}
	return rows
}

// sameCapture is how much longer than the shortest one captures may be, relative to it, for totals to
// be compared as they are.
const sameCapture = 0.02

// compareKernels compares the rows of every kernel between ranks, and sorts them by how far their total
// is from that of the others. captured is how long each rank was recorded. If that differs, perSecond
// is true, and totals are compared per captured time: otherwise a longer recording would look like a
// slower rank.
func compareKernels(rows []RankKernel, captured []int64) (sorted []RankKernel, perSecond bool) {
	least, most := int64(math.MaxInt64), int64(0)
	for i := range rows {
		c := captured[rows[i].RankIndex]
		least, most = min(least, c), max(most, c)
	}
	perSecond = least > 0 && float64(most) > (1+sameCapture)*float64(least)
	slices.SortFunc(rows, func(a, b RankKernel) int {
		return cmp.Or(cmp.Compare(a.Sym, b.Sym), cmp.Compare(a.RankIndex, b.RankIndex))
	})
	for same := range order.Runs(rows, func(a, b *RankKernel) bool { return a.Sym == b.Sym }) {
		relate(same)
		if perSecond {
			relatePerSecond(same, captured)
		}
	}
	slices.SortFunc(rows, func(a, b RankKernel) int {
		return cmp.Or(cmp.Compare(distribution.Abs(b.Excess), distribution.Abs(a.Excess)), cmp.Compare(b.Summary.Total, a.Summary.Total), strings.Compare(a.Name, b.Name), cmp.Compare(a.RankIndex, b.RankIndex))
	})
	return rows, perSecond
}

// relate compares the ranks that ran one kernel.
func relate(rows []RankKernel) {
	median := func(of func(*RankKernel) int64) int64 {
		values := order.EachRow(rows, of)
		return distribution.LowerMedian(values)
	}
	total := median(func(r *RankKernel) int64 { return r.Summary.Total })
	p50 := median(func(r *RankKernel) int64 { return r.Summary.P50 })
	for i := range rows {
		r := &rows[i]
		r.Ranks, r.Excess, r.RelTotal, r.RelP50 = len(rows), r.Summary.Total-total, unknownRatio, unknownRatio
		if len(rows) == 1 {
			r.Excess = r.Summary.Total
			continue
		}
		if total > 0 {
			r.RelTotal = distribution.Fraction(r.Summary.Total, total)
		}
		if p50 > 0 {
			r.RelP50 = distribution.Fraction(r.Summary.P50, p50)
		}
	}
}

// relatePerSecond compares the totals per captured time of the ranks that ran one kernel. Captured
// times are more than 0.
func relatePerSecond(rows []RankKernel, captured []int64) {
	if len(rows) == 1 {
		return
	}
	rates := order.EachRow(rows, func(r *RankKernel) float64 { return float64(r.Summary.Total) / float64(captured[r.RankIndex]) })
	median := distribution.LowerMedian(slices.Clone(rates))
	for i := range rows {
		r := &rows[i]
		r.Excess = r.Summary.Total - int64(math.Round(median*float64(captured[r.RankIndex])))
		if r.RelTotal = unknownRatio; median > 0 {
			r.RelTotal = rates[i] / median
		}
	}
}

// unknownRatio means that there is nothing to compare with.
const unknownRatio = -1

// muchUnknown is the least share of kernel time in unknown kernels that is reported, and namedUnknown
// how many of them are named then.
const (
	muchUnknown  = 0.01
	namedUnknown = 3
)

// Unclassified returns the share of kernel time in kernels whose names no rule matches, and a sentence
// that names the largest of them.
func (g *GPUs) Unclassified() (part float64, which string) {
	all, unknown := int64(0), int64(0)
	byName := map[string]int64{}
	for i := range g.GPUs {
		all = distribution.AddTimes(all, g.GPUs[i].KernelTime)
		unknown = distribution.AddTimes(unknown, g.GPUs[i].UnknownTime)
	}
	for i := range g.Kernels {
		if k := &g.Kernels[i]; k.Unknown {
			byName[k.Name] = distribution.AddTimes(byName[k.Name], k.Summary.Total)
		}
	}
	names := order.Largest(byName)
	var most []string
	for _, name := range names[:min(len(names), namedUnknown)] {
		called := "no name"
		if name != "" {
			called = "`" + table.CutMiddle(profile.BareName(name), 48, table.Style{ASCII: true}) + "`"
		}
		most = append(most, fmt.Sprintf("%s %.1f %%", called, 100*distribution.Fraction(byName[name], all)))
	}
	if more := len(names) - len(most); more > 0 {
		most = append(most, fmt.Sprintf("and %d more", more))
	}
	part = distribution.Fraction(unknown, all)
	return part, fmt.Sprintf("%.1f %% of kernel time is from kernels that match no rule and count as compute: %s", 100*part, strings.Join(most, ", "))
}

// compilers are Python functions that do nothing but compile or tune code, not those that run compiled
// code. If functions is nil, all functions of the file count.
var compilers = []struct {
	file      string
	functions []string
}{
	{"torch/_dynamo/convert_frame.py", nil}, // called only for code that is not cached
	{"torch/_inductor/compile_fx.py", []string{"compile_fx", "compile_fx_inner", "_compile_fx_inner", "fx_codegen_and_compile", "codegen_and_compile"}},
	{"torch/_inductor/select_algorithm.py", nil},
	{"triton_heuristics.py", []string{"precompile", "_precompile_config", "benchmark_all_configs", "autotune_to_one_config", "coordinate_descent_tuning"}},
	{"triton/compiler/compiler.py", []string{"compile"}},
	{"triton/runtime/jit.py", []string{"_do_compile"}},
	{"triton/runtime/autotuner.py", []string{"_bench"}},
	{"torch/utils/cpp_extension.py", []string{"_jit_compile", "_write_ninja_file_and_build_library", "_run_ninja_build"}},
	{"torch/jit/_trace.py", []string{"trace", "trace_module"}},
	{"torch/jit/_script.py", []string{"script"}},
	{"flashinfer/jit/core.py", []string{"build", "build_and_load"}},
	{"flashinfer/jit/cpp_ext.py", []string{"run_ninja"}},
	{"deep_gemm/jit/compiler.py", []string{"build"}},
	{"numba/core/dispatcher.py", []string{"_compile_for_args", "compile"}},
	{"tilelang/jit/kernel.py", []string{"_compile_and_create_adapter"}},
}

// compilesFrame reports whether a Python function compiles code: "torch/_dynamo/convert_frame.py(1042):
// _compile".
func compilesFrame(name string) bool {
	file, rest, ok := strings.Cut(name, ".py(")
	_, function, isFunction := strings.Cut(rest, "): ")
	if !ok || !isFunction {
		return false
	}
	file += ".py"
	for _, c := range compilers {
		if strings.HasSuffix(file, c.file) && (c.functions == nil || slices.Contains(c.functions, function)) {
			return true
		}
	}
	return false
}

// compiledFrames returns the names of Python functions that compile code; nil if there are none.
func compiledFrames(syms *trace.Symbols) map[trace.Sym]bool {
	var found map[trace.Sym]bool
	for sym, name := range syms.Names() {
		if compilesFrame(name) {
			if found == nil {
				found = map[trace.Sym]bool{}
			}
			found[trace.Sym(sym)] = true
		}
	}
	return found
}

// addFrame adds a Python frame to the host's calls if it compiles code.
func (w *gpuWalk) addFrame(f *profile.Frame) bool {
	if f.Kind == profile.PythonFrame && w.compilers[f.Name] && w.opt.keeps(&f.Event) {
		rank := w.ranks.At(f.Rank)
		rank.host.calls = append(rank.host.calls, HostCall{Start: f.Start, End: f.Start + trace.Time(f.Dur()), TID: f.TID, PID: f.PID, reason: Compiling})
	}
	return true
}

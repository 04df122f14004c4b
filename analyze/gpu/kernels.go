package gpu

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/profilewalk"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/profile/kernelname"
	"github.com/sgtrace/sgtrace/trace"
)

// A RankKernel is what all kernels of one name took on one rank, beside what they
// took on the others.
type RankKernel struct {
	Rank, Name string
	Class      kernelname.Class
	Single     int64 // of Total: in launches of one block
	Threads    int32 // of the largest of these
	Waited     int64 // of Total: for communication before it on its stream, see GPU.Early
	Unknown    bool  // no rule knows some of them: Class is what unknown kernels count as
	Summary    distribution.Summary
	Ranks      int // how many ran such kernels
	// Excess is Total minus the median of the totals of the ranks that ran such
	// kernels, in ns; all of Total if there is no other rank that did. Of ranks that were
	// captured for different times, the median is that of the totals per time, for as long
	// as this rank was captured.
	Excess int64
	// RelTotal and RelP50 are Total (or Total per time) and P50 divided by their medians
	// over those ranks; -1 if there is only one, or the median is 0.
	RelTotal, RelP50 float64

	Sym       trace.Sym
	RankIndex int32
}

// kernelTimes collects durations of kernels by name.
type kernelTimes struct {
	index   profilewalk.Paged[int32] // by symbol: into samples plus one
	names   []trace.Sym
	classes []kernelname.Class
	unknown []bool
	waited  []int64
	single  []singleBlocks
	samples []distribution.Sample
	sums    []distribution.Summary
}

func (k *kernelTimes) add(r *gpuRow) {
	at := k.index.At(int64(r.name))
	if *at == 0 {
		k.names, k.classes, k.samples = append(k.names, r.name), append(k.classes, r.class), append(k.samples, distribution.Sample{})
		k.unknown, k.waited, k.single = append(k.unknown, false), append(k.waited, 0), append(k.single, singleBlocks{})
		*at = int32(len(k.names))
	}
	k.unknown[*at-1] = k.unknown[*at-1] || r.flags&rowUnknown != 0
	k.waited[*at-1] = distribution.AddTimes(k.waited[*at-1], r.waited)
	if r.flags&rowSingle != 0 {
		single := &k.single[*at-1]
		single.time, single.threads = distribution.AddTimes(single.time, r.dur), max(single.threads, r.single)
	}
	k.samples[*at-1].Add(r.dur, distribution.NoLimit)
}

// ran reports whether a kernel of a name ran before.
func (k *kernelTimes) ran(name trace.Sym) bool { return *k.index.At(int64(name)) != 0 }

// summarize turns durations into sums.
func (k *kernelTimes) summarize() {
	var s distribution.Summarizer
	var values []int64
	k.sums = make([]distribution.Summary, 0, len(k.samples))
	for i := range k.samples {
		values = values[:0]
		k.samples[i].Each(func(v int64) { values = append(values, v) })
		k.sums = append(k.sums, s.Summarize(values))
	}
	k.samples, k.index = nil, profilewalk.Paged[int32]{}
}

// moveTo adds the sums of a rank to rows, without comparison, and gives them up: a file may have a
// million names.
func (k *kernelTimes) moveTo(rows []RankKernel, set *profile.Set, rank int32) []RankKernel {
	for i, name := range k.names {
		rows = append(rows, RankKernel{Rank: set.Ranks[rank], Name: set.Syms.Name(name), Class: k.classes[i], Unknown: k.unknown[i], Waited: k.waited[i], Single: k.single[i].time, Threads: k.single[i].threads, Summary: k.sums[i], Sym: name, RankIndex: rank})
	}
	*k = kernelTimes{}
	return rows
}

// sameCapture is by how much the times that ranks were captured for may differ, to compare
// totals as they are: a part of the shortest.
const sameCapture = 0.02

// compareKernels relates the rows of every kernel to each other, and orders them by how
// far their total is from that of the others. captured is how long each rank was. If that
// differs, perSecond tells that totals are compared by it: else a longer recording looks
// like a slower rank.
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

// relatePerSecond compares the totals of the ranks that ran one kernel by how long the
// ranks were captured, which is more than 0.
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

// unknownRatio says that there is nothing to compare with.
const unknownRatio = -1

// muchUnknown is the part of the time of kernels that has to be of no known class to be
// told, and namedUnknown how many kernels are named then.
const (
	muchUnknown  = 0.01
	namedUnknown = 3
)

// Unclassified returns the part of the time of kernels that is of names which no rule knows,
// and a sentence that names those that took most time.
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
		most = append(most, fmt.Sprintf("`%s` %.1f %%", table.CutMiddle(profile.BareName(name), 48, table.Style{ASCII: true}), 100*distribution.Fraction(byName[name], all)))
	}
	if more := len(names) - len(most); more > 0 {
		most = append(most, fmt.Sprintf("and %d more", more))
	}
	part = distribution.Fraction(unknown, all)
	return part, fmt.Sprintf("%.1f %% of kernel time is from kernels that match no rule and count as compute: %s", 100*part, strings.Join(most, ", "))
}

// compilers are functions of Python in which code is compiled, or tuned, and nothing else is done:
// those that run what was compiled are not among them. No functions are all of the file.
var compilers = []struct {
	file      string
	functions []string
}{
	{"torch/_dynamo/convert_frame.py", nil}, // asked about code that is in no cache
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

// compilesFrame reports whether code is compiled in a function of Python:
// "torch/_dynamo/convert_frame.py(1042): _compile".
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

// compiledFrames returns the names of functions of Python in which code is compiled; nil is none.
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

// addFrame adds what a thread does in Python, if that is compiling.
func (w *gpuWalk) addFrame(f *profile.Frame) bool {
	if f.Kind == profile.PythonFrame && w.compilers[f.Name] && w.opt.keeps(&f.Event) {
		rank := w.ranks.At(f.Rank)
		rank.host.calls = append(rank.host.calls, HostCall{Start: f.Start, End: f.Start + trace.Time(f.Dur()), TID: f.TID, PID: f.PID, reason: Compiling})
	}
	return true
}

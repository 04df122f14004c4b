package gpuloss

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/operators"
	"github.com/sgtrace/sgtrace/analyze/profilewalk"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/profile/kernelname"
	"github.com/sgtrace/sgtrace/trace"
)

// A Fill is the kernels of one name and launch shape that do not fill the GPU.
type Fill struct {
	Kernel    string
	Shape     profile.LaunchShape
	Units     int64 // multiprocessors, or compute units, of the GPU
	Step      profile.StepKind
	Batch     int32 // batch size of the steps; -1 is unknown
	Instances int64
	Total     int64 // ns
	// Persistent reports that, by its name, the kernel is written to start few blocks, each of which
	// does many parts of the work: few blocks then mean nothing.
	Persistent bool
	// Tensor reports that it multiplies matrices. Such kernels hold much in registers and shared memory
	// on purpose, and prefetch instead of hiding latency with many threads.
	Tensor bool

	Resident  int64   // blocks that a multiprocessor holds at once; 0 is unknown
	Occupancy float64 // share of its threads that these occupy
	Limit     operators.Limit
	amd       bool
}

// Fills are all kernels that do not fill the GPU.
type Fills struct {
	Rows         []Fill
	Under, Known int64 // ns of kernels with fewer blocks than units, and of those whose blocks are known
	All          int64 // ns of all kernels
	// shapes are the launch shapes of the kernels of each name.
	shapes map[string]map[profile.LaunchShape]bool
}

// A fillKey identifies a Fill.
type fillKey struct {
	name  trace.Sym
	shape profile.LaunchShape
	gpu   string // "" is unknown
	step  profile.StepKind
	batch int32
}

// persistent are texts in the names of kernels that start at most one block per multiprocessor.
var persistent = []string{"persistent", "nvjet", "streamk", "stream_k", "sm90", "sm100", "sm103", "nccl", "cross_device_reduce", "allreduce", "all_reduce", "device::flash", "ampere_persist"}

// isPersistent reports whether the name of a kernel says that it is persistent.
func isPersistent(name string) bool {
	lower := strings.ToLower(name)
	return slices.ContainsFunc(persistent, func(text string) bool { return strings.Contains(lower, text) })
}

// waves returns how many times the blocks fill all multiprocessors, one wave after another; NaN is unknown.
func (f *Fill) waves() float64 {
	if f.Resident == 0 {
		return math.NaN()
	}
	return float64(f.Shape.Blocks) / float64(f.Units*f.Resident)
}

// few reports whether there are fewer blocks than multiprocessors.
func (f *Fill) few() bool { return f.Shape.Blocks < f.Units }

// idle returns the share of the time for which multiprocessors have no block, on average, if blocks take equally long:
// those for which there are too few blocks, and in the last of several waves those that have nothing more to do.
func (f *Fill) idle() float64 {
	waves := f.waves()
	switch {
	case f.few():
		return 1 - float64(f.Shape.Blocks)/float64(f.Units)
	case waves > 1 && !f.Persistent:
		return 1 - waves/math.Ceil(waves)
	}
	return 0
}

const (
	muchUnfilled = 0.2  // idle share from which on the last wave counts: less is within the variation of blocks
	lowOccupancy = 0.25 // of the threads: fewer may not hide the latency of memory
)

// why says how a kernel fails to fill the GPU; "" means that it does fill it.
func (f *Fill) why() string {
	switch {
	case f.Shape.Blocks == 1 && f.Shape.Threads == 1:
		return "one thread"
	case f.few():
		return "few blocks"
	case f.idle() >= muchUnfilled:
		return "last wave"
	case f.Occupancy > 0 && f.Occupancy <= lowOccupancy && (f.Limit == operators.ByRegisters || f.Limit == operators.ByShared) && !f.Tensor:
		return "low occupancy"
	}
	return ""
}

// fillSums are the kernels of a stream, by how they fill a GPU.
type fillSums struct {
	all  int64 // ns
	rows map[fillKey]*Fill
}

func sumFills(set *profile.Set, s profile.Stream, steps *profilewalk.KernelSteps, opt *profilewalk.Options) fillSums {
	x := fillSums{rows: map[fillKey]*Fill{}}
	names := make([]string, len(set.Ranks))
	for rank := range names {
		names[rank] = set.GPU(int32(rank))
	}
	for k := range s.Kernels {
		if k.Graph || !opt.Keeps(&k.Event) {
			continue
		}
		dur := k.Dur()
		x.all = distribution.AddTimes(x.all, dur)
		if k.Shape.Blocks == 0 || names[k.Rank] == "" {
			continue
		}
		kind, batch := steps.Kind(&k.Event)
		key := fillKey{k.Name, k.Shape, names[k.Rank], kind, batch}
		row := order.Memo(x.rows, key, func() *Fill { return &Fill{} })
		row.Instances++
		row.Total = distribution.AddTimes(row.Total, dur)
	}
	return x
}

// fillsOf adds up the sums of all streams, and returns the kernels that do not fill the GPU.
func fillsOf(set *profile.Set, streams []fillSums) *Fills {
	all := &Fills{shapes: map[string]map[profile.LaunchShape]bool{}}
	rows := map[fillKey]*Fill{}
	for _, x := range streams {
		all.All = distribution.AddTimes(all.All, x.all)
		for key, row := range x.rows {
			sum := order.Memo(rows, key, func() *Fill {
				return &Fill{Kernel: set.Syms.Name(key.name), Shape: key.shape, Step: key.step, Batch: key.batch}
			})
			sum.Instances += row.Instances
			sum.Total = distribution.AddTimes(sum.Total, row.Total)
		}
	}
	for key, row := range rows {
		order.Memo(all.shapes, row.Kernel, func() map[profile.LaunchShape]bool { return map[profile.LaunchShape]bool{} })[row.Shape] = true
		all.add(row, key.gpu)
	}
	slices.SortFunc(all.Rows, func(a, b Fill) int {
		return cmp.Or(cmp.Compare(b.Total, a.Total), strings.Compare(a.Kernel, b.Kernel), cmp.Compare(a.Shape.Blocks, b.Shape.Blocks), cmp.Compare(a.Shape.Threads, b.Shape.Threads),
			cmp.Compare(a.Shape.Shared, b.Shape.Shared), cmp.Compare(a.Shape.Registers, b.Shape.Registers), cmp.Compare(a.Units, b.Units), cmp.Compare(a.Step, b.Step), cmp.Compare(a.Batch, b.Batch))
	})
	return all
}

// add adds the kernels of one name and launch, if they do not fill their GPU.
func (f *Fills) add(row *Fill, gpu string) {
	g, ok := operators.GPUOf(gpu)
	if !ok {
		return
	}
	row.Units, row.amd = g.Units, strings.HasPrefix(g.Source, "AMD")
	row.Persistent = isPersistent(row.Kernel)
	switch kernelname.KindOf(row.Kernel) {
	case kernelname.KindGEMM, kernelname.KindExperts, kernelname.KindAttention:
		row.Tensor = true
	}
	row.Resident, row.Occupancy, row.Limit, _ = g.Resident(row.Shape)
	f.Known = distribution.AddTimes(f.Known, row.Total)
	if row.few() {
		f.Under = distribution.AddTimes(f.Under, row.Total)
	}
	if row.why() != "" {
		f.Rows = append(f.Rows, *row)
	}
}

// Report returns the table.
func (f *Fills) Report() *table.Table {
	count := func(name, doc string, of func(*Fill) int64) table.Field[Fill] {
		return table.Field[Fill]{Column: table.Column{Name: name, Unit: table.Count, Doc: doc}, Cell: func(r *Fill) table.Cell { n := of(r); return table.Cell{N: n, Unknown: n == 0} }}
	}
	kernel := table.TextColumn("kernel", "name of the kernel", func(r *Fill) string { return r.Kernel })
	kernel.Most = table.MaxName
	t := table.New("sgtrace.report.kernels.fill/v1", "Kernels that do not fill the GPU", f.Rows, []table.Field[Fill]{
		table.ShareColumn("time", "share of the time of all kernels", func(r *Fill) float64 { return distribution.Fraction(r.Total, f.All) }),
		table.NsColumn("total", "total duration", func(r *Fill) int64 { return r.Total }),
		table.CountColumn("instances", "number of kernels", func(r *Fill) int64 { return r.Instances }),
		table.TextColumn("why", "one thread: a single thread; few blocks: fewer blocks than multiprocessors; last wave: a partly filled last wave loses a fifth of the time or more; low occupancy: registers or shared memory allow at most a quarter of the threads", (*Fill).why),
		count("blocks", "blocks in the grid", func(r *Fill) int64 { return r.Shape.Blocks }),
		count("units", "multiprocessors or compute units of the GPU", func(r *Fill) int64 { return r.Units }),
		table.NumberColumn("waves", "waves: blocks divided by the number that the whole GPU holds at once", (*Fill).waves),
		table.ShareColumn("idle", "share of multiprocessor time without a block, if all blocks take equally long", (*Fill).idle),
		table.ShareColumn("occupancy", "resident threads per multiprocessor as a share of the maximum", func(r *Fill) float64 {
			if r.Resident == 0 {
				return math.NaN()
			}
			return r.Occupancy
		}),
		table.TextColumn("limited by", "what limits occupancy: threads, registers, shared memory, or blocks", func(r *Fill) string { return string(r.Limit) }),
		count("threads", "threads per block", func(r *Fill) int64 { return int64(r.Shape.Threads) }),
		count("registers", "registers per thread", func(r *Fill) int64 { return int64(r.Shape.Registers) }),
		count("shared", "shared memory per block in bytes", func(r *Fill) int64 { return int64(r.Shape.Shared) }),
		table.TextColumn("step", "kind of step: prefill, decode, or other (unknown or both)", func(r *Fill) string { return profilewalk.StepKinds[r.Step] }),
		table.NumberColumn("fills at", "factor by which the blocks would have to grow to fill the GPU: units / blocks; empty unless blocks are few", (*Fill).fillsAt),
		table.NumberColumn("fills at batch", "decode batch size at which there would be one block per multiprocessor, if blocks grow with the batch", func(r *Fill) float64 {
			if r.Step != profile.StepDecode || r.Batch <= 0 {
				return math.NaN()
			}
			return math.Ceil(float64(r.Batch) * r.fillsAt())
		}),
		table.YesColumn("persistent", "yes if the kernel launches few blocks on purpose, judged by its name", func(r *Fill) bool { return r.Persistent }),
		kernel,
	})
	f.note(t)
	return t
}

// fillsAt returns by which factor there are too few blocks to fill the GPU; NaN if there are enough.
func (f *Fill) fillsAt() float64 {
	if !f.few() {
		return math.NaN()
	}
	return float64(f.Units) / float64(f.Shape.Blocks)
}

func (f *Fills) note(t *table.Table) {
	if f.Known == 0 {
		return
	}
	t.Note("%.1f %% of kernel time is in kernels with fewer blocks than the GPU has multiprocessors", 100*distribution.Fraction(f.Under, f.All))
	sums := map[string]int64{}
	for i := range f.Rows {
		sums[f.Rows[i].why()] += f.Rows[i].Total
	}
	for _, why := range []string{"last wave", "low occupancy", "one thread"} {
		if share := distribution.Fraction(sums[why], f.All); share >= minSaved {
			t.Note("%s: %s of the time", why, fmt.Sprintf("%.1f %%", 100*share))
		}
	}
	if unknown := 1 - distribution.Fraction(f.Known, f.All); unknown > 0 && !math.IsNaN(unknown) {
		t.Note("for %.1f %% of the time, blocks were not recorded", 100*unknown)
	}
}

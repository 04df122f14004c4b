package opportunity

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/roof"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/walk"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// A Fill is the kernels of one name and launch, which has fewer blocks than the GPU has multiprocessors.
type Fill struct {
	Kernel    string
	Shape     profile.LaunchShape
	Units     int64 // multiprocessors, or compute units, of the GPU
	Instances int64
	Total     int64 // ns
	// Persistent tells by its name that the kernel is written to start few blocks, each of which does
	// many parts of the work: few blocks then say nothing.
	Persistent bool
}

// Fills are how kernels fill the GPU.
type Fills struct {
	Rows         []Fill
	Under, Known int64 // ns of kernels with fewer blocks than units, and of those whose blocks are known
	All          int64 // ns of all kernels
}

// A fillKey says what a Fill is of.
type fillKey struct {
	name  trace.Sym
	shape profile.LaunchShape
	units int64
}

// persistent are texts in the names of kernels that start at most one block per multiprocessor.
var persistent = []string{"persistent", "nvjet", "streamk", "stream_k", "sm90", "sm100", "sm103", "nccl", "cross_device_reduce", "allreduce", "device::flash", "ampere_persist"}

// isPersistent tells it by the name of a kernel.
func isPersistent(name string) bool {
	lower := strings.ToLower(name)
	return slices.ContainsFunc(persistent, func(text string) bool { return strings.Contains(lower, text) })
}

// SumFills finds the kernels with fewer blocks than the GPU has multiprocessors.
func SumFills(set *profile.Set, opt walk.Options) *Fills {
	type sums struct {
		rows map[fillKey]*Fill
		f    Fills
	}
	streams := make([]sums, len(set.Streams))
	units := make([]int64, len(set.Ranks))
	for rank := range units {
		if g, ok := roof.GPUOf(set.GPU(int32(rank))); ok {
			units[rank] = g.Units
		}
	}
	walk.EachStream(set, func(i int, s profile.Stream) {
		x := &streams[i]
		x.rows = map[fillKey]*Fill{}
		for k := range s.Kernels {
			if k.Graph || !opt.Keeps(&k.Event) {
				continue
			}
			dur := k.Dur()
			x.f.All = distribution.AddTimes(x.f.All, dur)
			of := units[k.Rank]
			if k.Shape.Blocks == 0 || of == 0 {
				continue
			}
			x.f.Known = distribution.AddTimes(x.f.Known, dur)
			if k.Shape.Blocks >= of {
				continue
			}
			x.f.Under = distribution.AddTimes(x.f.Under, dur)
			key := fillKey{k.Name, k.Shape, of}
			row := x.rows[key]
			if row == nil {
				row = &Fill{Shape: k.Shape, Units: of}
				x.rows[key] = row
			}
			row.Instances++
			row.Total = distribution.AddTimes(row.Total, dur)
		}
	})
	all := &Fills{}
	rows := map[fillKey]*Fill{}
	for _, x := range streams {
		all.All = distribution.AddTimes(all.All, x.f.All)
		all.Known = distribution.AddTimes(all.Known, x.f.Known)
		all.Under = distribution.AddTimes(all.Under, x.f.Under)
		for key, row := range x.rows {
			if rows[key] == nil {
				rows[key] = &Fill{Kernel: set.Syms.Name(key.name), Shape: row.Shape, Units: row.Units}
				rows[key].Persistent = isPersistent(rows[key].Kernel)
			}
			rows[key].Instances += row.Instances
			rows[key].Total = distribution.AddTimes(rows[key].Total, row.Total)
		}
	}
	for _, row := range rows {
		all.Rows = append(all.Rows, *row)
	}
	slices.SortFunc(all.Rows, func(a, b Fill) int {
		return cmp.Or(cmp.Compare(b.Total, a.Total), strings.Compare(a.Kernel, b.Kernel), cmp.Compare(a.Shape.Blocks, b.Shape.Blocks), cmp.Compare(a.Shape.Threads, b.Shape.Threads),
			cmp.Compare(a.Shape.Shared, b.Shape.Shared), cmp.Compare(a.Shape.Registers, b.Shape.Registers), cmp.Compare(a.Units, b.Units))
	})
	return all
}

// Report returns the table.
func (f *Fills) Report() *table.Table {
	kernel := table.TextColumn("kernel", "name of the kernel", func(r *Fill) string { return r.Kernel })
	kernel.Most = table.MostName
	known := func(n int64) table.Cell { return table.Cell{N: n, Unknown: n == 0} }
	count := func(name, doc string, of func(*Fill) int64) table.Field[Fill] {
		return table.Field[Fill]{Column: table.Column{Name: name, Unit: table.Count, Doc: doc}, Cell: func(r *Fill) table.Cell { return known(of(r)) }}
	}
	t := table.New("sgtrace.report.kernels.fill/v1", "Kernels with fewer blocks than the GPU has multiprocessors", f.Rows, []table.Field[Fill]{
		table.ShareColumn("time", "part of the time of all kernels", func(r *Fill) float64 { return distribution.Fraction(r.Total, f.All) }),
		table.NsColumn("total", "sum of the durations", func(r *Fill) int64 { return r.Total }),
		table.CountColumn("instances", "how many ran", func(r *Fill) int64 { return r.Instances }),
		count("blocks", "of the grid", func(r *Fill) int64 { return r.Shape.Blocks }),
		count("units", "multiprocessors, or compute units, of the GPU", func(r *Fill) int64 { return r.Units }),
		count("threads", "of a block", func(r *Fill) int64 { return int64(r.Shape.Threads) }),
		count("registers", "of a thread", func(r *Fill) int64 { return int64(r.Shape.Registers) }),
		count("shared", "bytes of shared memory of a block", func(r *Fill) int64 { return int64(r.Shape.Shared) }),
		table.NumberColumn("fills at", "how many times the blocks fill the GPU: so many times the requests, where blocks grow with them", func(r *Fill) float64 { return float64(r.Units) / float64(r.Shape.Blocks) }),
		table.TextColumn("persistent", "yes: by its name, the kernel starts few blocks on purpose", func(r *Fill) string {
			if r.Persistent {
				return "yes"
			}
			return ""
		}),
		kernel,
	})
	if f.Known == 0 {
		return t
	}
	share := distribution.Fraction(f.Under, f.All)
	t.Note("%.1f %% of the time of kernels is in ones with fewer blocks than the GPU has multiprocessors", 100*share)
	if unknown := 1 - distribution.Fraction(f.Known, f.All); unknown > 0 && !math.IsNaN(unknown) {
		t.Note("of %.1f %% of the time, blocks were not recorded", 100*unknown)
	}
	return t
}

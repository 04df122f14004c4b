package operators

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/profilewalk"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// Report returns the table.
func (o *Rooflines) Report() *table.Table {
	row := func(r *Roofed) *profilewalk.Row { return &r.Row }
	shapes := table.TextColumn("shapes", "shapes of the inputs of the operator", func(r *Roofed) string { return r.Shapes })
	types := table.TextColumn("types", "data types of the inputs", func(r *Roofed) string { return r.Types })
	operator := table.TextColumn("operator", "operator that launched the kernels: the innermost one with a known formula", func(r *Roofed) string { return r.Row.Name })
	kernel := table.TextColumn("kernel", "name of the longest kernel of the operator", func(r *Roofed) string { return r.Kernel })
	step := table.TextColumn("step", "kind of step: prefill, decode, or other (unknown or both)", func(r *Roofed) string { return profilewalk.StepKinds[r.Step] })
	kernel.Most, shapes.Most, types.Most, types.Detail = table.MaxName, maxShapes, maxTypes, true
	fields := append(profilewalk.RankFields(o.ByRank, row),
		profilewalk.ShareField("share of the time of all rows", func(r *Roofed) float64 { return r.Share }),
		table.NsColumn("total", "total time of its kernels; a kernel counts from when the one before it on its stream ended", func(r *Roofed) int64 { return r.Time }),
		table.CountColumn("instances", "number of calls of the operator", func(r *Roofed) int64 { return r.Instances }),
		table.NumberColumn("flops", "total floating-point operations; empty if unknown", func(r *Roofed) float64 { return r.Work.FLOPs }),
		table.NumberColumn("bytes", "minimum total bytes to move; empty if unknown", func(r *Roofed) float64 { return r.Work.Bytes }),
		table.NumberColumn("tflops", "achieved TFLOP/s (10^12)", func(r *Roofed) float64 { return r.Work.FLOPs / float64(r.Time) / 1e3 }),
		table.NumberColumn("tb per s", "achieved TB/s (10^12)", func(r *Roofed) float64 { return r.Work.Bytes / float64(r.Time) / 1e3 }),
		table.NumberColumn("intensity", "arithmetic intensity: operations per byte", func(r *Roofed) float64 { return r.Work.FLOPs / r.Work.Bytes }),
		table.TextColumn("bound", "what limits the work on this GPU: compute, memory, or link (sending to other GPUs)", func(r *Roofed) string { return string(r.Bound) }),
		table.ShareColumn("roof share", "minimum time on this GPU as a share of total; above 100 %, the formula does not describe the work", func(r *Roofed) float64 { return r.Of() }),
	)
	fields = append(fields, profilewalk.RanksFields(o.ByRank, o.ranks, row)...)
	t := table.New("sgtrace.report.kernels.roof/v1", "Kernels and what the GPU can do", o.Rows, append(fields, step, operator, shapes, types, windowColumn(func(r *Roofed) profile.Mask { return r.Mask }), kernel))
	o.note(t)
	return t
}

// Any reports whether the roof of any row is known.
func (o *Rooflines) Any() bool {
	return slices.ContainsFunc(o.Rows, func(r Roofed) bool { return !math.IsNaN(r.Of()) })
}

// atClock says at which clock the peaks of a GPU are given.
func (o *Rooflines) atClock(name string, g *GPU) string {
	least, most, unknown := math.Inf(1), 0.0, false
	for rank, clock := range o.clocks {
		switch {
		case rank >= len(o.gpus) || o.gpus[rank] != name:
		case clock == 0:
			unknown = true
		default:
			least, most = min(least, clock), max(most, clock)
		}
	}
	switch {
	case most == 0:
		return ", at boost clock: that of its units was not recorded"
	case g.rated() == 0:
		return ", at boost clock: which that is, is not known"
	}
	text := fmt.Sprintf("; TFLOP/s are scaled from %.0f MHz to the clock that was measured, %.0f", g.rated(), least)
	if most > least {
		text += fmt.Sprintf(" to %.0f", most)
	}
	if unknown {
		text += ", except of ranks without one"
	}
	return text
}

// faster says how large a share of its keys attention that is faster than its roof has time to read,
// and which layers of the same shapes attend to all; "" if there are none.
func (o *Rooflines) faster(r *Roofed) string {
	if _, attends := profile.AttentionOf(r.Row.Name); !attends || !(r.Of() > 1) || r.Bound != ByMemory {
		return ""
	}
	i := slices.IndexFunc(o.Rows, func(a Roofed) bool {
		return a.Known() && a.Row.Name == r.Row.Name && a.Shapes == r.Shapes && a.Step == r.Step && a.Row.Rank == r.Row.Rank && a.Kernel != r.Kernel
	})
	if i < 0 {
		return ""
	}
	all := &o.Rows[i]
	return fmt.Sprintf("%s: %s of %s have time to read at most %.0f %% of the keys; layers of the same shapes run %s, %.1f times as long each. It attends to a window, whose size was not recorded",
		r.Row.Name, words.Counted(int(r.Instances), "call"), profile.BareName(r.Kernel), 100/r.Of(), profile.BareName(all.Kernel), float64(all.Time)/float64(all.Instances)/(float64(r.Time)/float64(r.Instances)))
}

// farFromRoof is the share of the roof below which kernels are far from it. Large kernels that are
// written well reach 75 to 95 %.
const farFromRoof = 0.4

// note says how much of the time is far from the roof, and for how much that is unknown.
func (o *Rooflines) note(t *table.Table) {
	if len(o.Rows) == 0 {
		return
	}
	far, unknown, over := 0.0, 0.0, 0
	for i := range o.Rows {
		switch r := &o.Rows[i]; {
		case math.IsNaN(r.Of()):
			unknown += r.Share
		case r.Of() > 1:
			over++
			unknown += r.Share
		case r.Of() < farFromRoof:
			far += r.Share
		}
	}
	for _, name := range order.Distinct(slices.Clone(o.gpus)) {
		if g, ok := GPUOf(name); ok {
			t.Note("%s: %g TFLOP/s of 16-bit numbers, %g TB/s, by its data sheet (%s)%s", name, g.Half, g.Bandwidth, g.Source, o.atClock(name, &g))
		} else if name == "" {
			t.Note("no roof: the files do not name the GPU")
		} else {
			t.Note("no roof: nothing is known of %s", name)
		}
	}
	t.Note("%.0f %% of the time is in kernels below %.0f %% of their roof; for %.0f %%, it is unknown", 100*far, 100*farFromRoof, 100*unknown)
	if over > 0 {
		t.Note("rows faster than their roof: %d. They have less to do than the formula says, such as attention to a window, or read from a cache, and count as not known", over)
		for i := range o.Rows {
			if text := o.faster(&o.Rows[i]); text != "" {
				t.Note("%s", text)
			}
		}
	}
}

// A Beside is what inputs other than profiles say about the limits of GPUs.
type Beside struct {
	Routed *RoutedTokens // nil if it was not recorded which experts tokens went to
	Clocks []float64     // of the units of each rank's GPU while it was recorded, MHz; 0, or missing, is unknown
}

// clockCounters are the profilers' names for the clock of the units that compute, in MHz: Nsight Systems samples
// the clock of graphics processing clusters, which contain the multiprocessors, and RPD asks ROCm's SMI.
var clockCounters = []string{"GPC Clock Frequency", "sclk"}

// clocksOf returns the clock of the units of each rank's GPU, in MHz: the median of what the recording
// itself sampled in a window, or else the one in beside; 0 is unknown. A rank with several GPUs has none.
func clocksOf(set *profile.Set, beside []float64, opt *profilewalk.Options) []float64 {
	clocks := make([]float64, len(set.Ranks))
	copy(clocks, beside)
	var names []trace.Sym
	for _, name := range clockCounters {
		if sym, ok := set.Syms.Lookup(name); ok {
			names = append(names, sym)
		}
	}
	if len(names) == 0 {
		return clocks
	}
	mega, _ := set.Syms.Lookup("MHz")
	sampled := make([][]float64, len(set.Ranks))
	source := make([]trace.Sym, len(set.Ranks))
	for _, s := range set.Streams {
		for c := range s.CounterValues {
			if c.Rank < 0 || c.Value <= 0 || c.Unit != mega || !slices.Contains(names, c.Name) || opt.From != 0 && c.Time < opt.From || opt.To != 0 && c.Time > opt.To {
				continue
			}
			source[c.Rank] = cmp.Or(source[c.Rank], c.Source)
			if source[c.Rank] == c.Source {
				sampled[c.Rank] = append(sampled[c.Rank], c.Value)
			} else {
				source[c.Rank] = severalSources
			}
		}
	}
	for rank, list := range sampled {
		if len(list) > 0 && source[rank] != severalSources {
			clocks[rank] = order.SortedMedian(list)
		}
	}
	return clocks
}

// severalSources marks a rank whose counters have several sources.
const severalSources = ^trace.Sym(0)

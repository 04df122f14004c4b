package profile

import (
	"iter"
	"slices"
	"strconv"

	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/trace"
)

// CallCategories are the categories of calls that launch work on devices, and
// CopyCategories those of copies, in the terms of PyTorch's profiler.
var (
	CallCategories = []string{"cuda_runtime", "cuda_driver", "xpu_runtime", "xpu_driver", "mtia_runtime", "glow_runtime", "hpu_op",
		"privateuse1_runtime", "privateuse1_driver"}
	CopyCategories = []string{"gpu_memcpy", "gpu_memset"}
	// FrameCategories are those of what threads did beside these calls.
	FrameCategories = []string{OperatorCategory, PythonCategory, SystemCategory}
)

// Categories of kernels, of annotations, and of what threads did.
const (
	KernelCategory     = "kernel"
	AnnotationCategory = "user_annotation"
	InstantCategory    = "cpu_instant_event"
	OperatorCategory   = "cpu_op"
	PythonCategory     = "python_function"
	SystemCategory     = "osrt" // calls into the operating system, of Nsight Systems
)

// Stream returns the events of p as a [Stream]. of tells the rank and the process
// that a part of p is; a part with a negative rank is left out. Annotations of
// PyTorch's profiler are ranges, as NVTX ranges are in those of Nsight Systems.
func (p *Profile) Stream(syms *trace.Symbols, args *trace.Args, of func(part string) (rank, pid int32)) Stream {
	r := &replay{p: p, syms: syms, args: args, rows: make([]Event, len(p.Rows)), correlations: memory.Make[int64](len(p.Events))}
	for i := range p.Rows {
		r.rows[i].Rank, r.rows[i].PID = of(p.Rows[i].Part)
	}
	for _, links := range [][]Link{p.Launches, p.Work} {
		for _, l := range links {
			if l.Event != NoEvent {
				r.correlations[l.Event] = l.Correlation
			}
		}
	}
	return r
}

// replay passes the events of a profile.
type replay struct {
	p            *Profile
	syms         *trace.Symbols
	args         *trace.Args
	rows         []Event // rank and process of each row
	correlations []int64 // of each event; 0 is none
}

// each calls f for the events of some categories, with their index, until it returns false.
func (r *replay) each(f func(i int32, e Event, row *Row) bool, cats ...string) {
	var wanted []trace.Sym
	for _, c := range cats {
		if sym, ok := r.syms.Lookup(c); ok {
			wanted = append(wanted, sym)
		}
	}
	for i := range r.p.Events {
		s := &r.p.Events[i]
		e := r.rows[s.Track]
		if e.Rank < 0 || !slices.Contains(wanted, s.Cat) {
			continue
		}
		e.Start, e.End, e.Name, e.Correlation = s.Time, r.p.Meta.Cut(s.End()), s.Name, r.correlations[i]
		if !f(int32(i), e, &r.p.Rows[s.Track]) {
			return
		}
	}
}

// countThreads are the correlations of calls that give the sizes of grids in threads: what profilers write
// with the kernels is the same.
func (r *replay) countThreads() map[int64]bool {
	var calls []trace.Sym
	for _, name := range threadCalls {
		if sym, ok := r.syms.Lookup(name); ok {
			calls = append(calls, sym)
		}
	}
	if calls == nil {
		return nil
	}
	all := map[int64]bool{}
	for i := range r.p.Events {
		if slices.Contains(calls, r.p.Events[i].Name) && r.correlations[i] != 0 {
			all[r.correlations[i]] = true
		}
	}
	return all
}

// Cut returns when an event ended that was recorded to end at some time.
func (m *Meta) Cut(end trace.Time) trace.Time {
	if m.Until != 0 {
		return min(end, m.Until)
	}
	return end
}

func (r *replay) Kernels(yield func(*Kernel) bool) {
	var k Kernel
	single, launches, counted := r.p.OneBlock, newLaunchArgs(r.syms, r.args), r.countThreads()
	r.each(func(i int32, e Event, row *Row) bool {
		k = Kernel{Event: e, Device: int32(row.PID), Stream: uint32(row.TID)}
		if id := r.p.Events[i].Args; id != 0 {
			l := launches.of(id)
			if k.Shape, k.Node = l.shape, l.node; counted[e.Correlation] {
				k.Shape = k.Shape.InBlocks()
			}
		}
		for len(single) > 0 && single[0].Event < i {
			single = single[1:]
		}
		if len(single) > 0 && single[0].Event == i {
			k.OneBlock = single[0].Threads
		}
		return yield(&k)
	}, KernelCategory)
}

func (r *replay) Calls(yield func(*Call) bool) {
	var c Call
	launches := newLaunchArgs(r.syms, r.args)
	kernels := map[string]trace.Sym{}
	r.each(func(i int32, e Event, row *Row) bool {
		c = Call{Event: e, TID: row.TID, Result: UnknownResult}
		if id := r.p.Events[i].Args; id != 0 {
			l := launches.of(id)
			if c.Shape = l.shape; slices.Contains(threadCalls, r.syms.Name(e.Name)) {
				c.Shape = c.Shape.InBlocks()
			}
			if l.name != nil {
				sym, ok := kernels[string(l.name)]
				if !ok {
					sym = r.syms.Intern(string(l.name))
					kernels[string(l.name)] = sym
				}
				c.Kernel = sym
			}
		}
		return yield(&c)
	}, CallCategories...)
}

func (r *replay) Ranges(yield func(*Range) bool) {
	var n Range
	r.each(func(i int32, e Event, row *Row) bool {
		n = Range{Event: e, TID: row.TID, Open: e.End < r.p.Events[i].End()}
		return yield(&n)
	}, AnnotationCategory)
}

func (r *replay) Frames(yield func(*Frame) bool) {
	kinds := map[trace.Sym]FrameKind{}
	for cat, kind := range map[string]FrameKind{PythonCategory: PythonFrame, SystemCategory: SystemFrame} {
		if sym, ok := r.syms.Lookup(cat); ok {
			kinds[sym] = kind
		}
	}
	inputs := newInputTexts(r.syms, r.args)
	var f Frame
	r.each(func(i int32, e Event, row *Row) bool {
		s := &r.p.Events[i]
		f = Frame{Event: e, TID: row.TID, Kind: kinds[s.Cat]}
		if f.Kind == OperatorFrame {
			f.Shapes, f.Types = inputs.of(s.Args)
			f.Causal = inputs.causality(s.Name, s.Args)
		}
		return yield(&f)
	}, FrameCategories...)
}

// PyTorch's profiler interrupts no thread, and its stacks are frames.
func (r *replay) Samples(func(*Sample) bool) {}
func (r *replay) Backtraces(func(*Sample) bool) iter.Seq[*Sample] {
	return func(func(*Sample) bool) {}
}
func (r *replay) Runs(func(*Run) bool) {}

func (r *replay) Copies(yield func(*Copy) bool) {
	bytes, _ := r.syms.Lookup("bytes")
	type meaning struct {
		operation trace.Sym
		kind      CopyKind
	}
	known := map[trace.Sym]meaning{} // by name
	var c Copy
	r.each(func(i int32, e Event, row *Row) bool {
		m, ok := known[e.Name]
		if !ok {
			operation, kind := parseCopy(r.syms.Name(e.Name))
			m = meaning{r.syms.Intern(operation), kind}
			known[e.Name] = m
		}
		e.Name = m.operation
		c = Copy{Event: e, Device: int32(row.PID), Stream: uint32(row.TID), Bytes: -1, Kind: m.kind}
		if a, ok := r.args.Find(r.p.Events[i].Args, bytes); ok {
			c.Bytes = a.Int()
		}
		return yield(&c)
	}, CopyCategories...)
}

// memoryInstant is what PyTorch's profiler calls an allocation or what ends it, with
// profile_memory=True. Its arguments are what the allocator of a device holds from then on.
const memoryInstant = "[memory]"

// memoryCounters are what reports call its arguments.
var memoryCounters = [...]struct{ arg, name string }{
	{"Total Allocated", MemoryAllocated}, {"Total Reserved", MemoryReserved},
}

// Names of counters of memory: what tensors take, and what the allocator has of the device.
const (
	MemoryAllocated = "memory allocated"
	MemoryReserved  = "memory reserved"
)

// CounterValues yields what PyTorch's allocators held of devices; that of the host is left out.
func (r *replay) CounterValues(yield func(*CounterValue) bool) {
	memory, ok := r.syms.Lookup(memoryInstant)
	if !ok {
		return
	}
	const host = 0 // c10::DeviceType
	kind, _ := r.syms.Lookup("Device Type")
	device, _ := r.syms.Lookup("Device Id")
	sources := map[int64]trace.Sym{}
	for i := range r.p.Instants {
		x := &r.p.Instants[i]
		rank := r.rows[x.Track].Rank
		if on, ok := r.args.Find(x.Args, kind); x.Name != memory || rank < 0 || !ok || on.Int() == host {
			continue
		}
		number := int64(0)
		if d, ok := r.args.Find(x.Args, device); ok {
			number = d.Int()
		}
		if sources[number] == 0 {
			sources[number] = r.syms.Intern("GPU " + strconv.FormatInt(number, 10))
		}
		if !r.memory(x, CounterValue{Time: x.Time, Rank: rank, Source: sources[number], Unit: r.syms.Intern("bytes"), Kind: MemoryCounter}, yield) {
			return
		}
	}
}

// memory yields the values of an instant, until that returns false.
func (r *replay) memory(x *trace.Instant, s CounterValue, yield func(*CounterValue) bool) bool {
	for _, c := range memoryCounters {
		key, _ := r.syms.Lookup(c.arg)
		if a, ok := r.args.Find(x.Args, key); ok {
			s.Name, s.Value = r.syms.Intern(c.name), float64(a.Int())
			if !yield(&s) {
				return false
			}
		}
	}
	return true
}

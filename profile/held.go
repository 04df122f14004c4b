package profile

import (
	"iter"
	"slices"
	"strconv"

	"github.com/sgtrace/sgtrace/trace"
)

// Stream returns the events of p as a [Stream]. of returns the rank and the process of a part of p; parts with
// a negative rank are omitted. Without args, data from arguments is unknown. Annotations of PyTorch's profiler
// become ranges, like the NVTX ranges of Nsight Systems.
func (p *Profile) Stream(syms *trace.Symbols, args *trace.Args, of func(part string) (rank, pid int32)) Stream {
	h := &held{p: p, syms: syms, args: args, rows: make([]Event, len(p.Rows))}
	for i := range p.Rows {
		h.rows[i].Rank, h.rows[i].PID = of(p.Rows[i].Part)
	}
	return h
}

// held streams the events of a profile.
type held struct {
	p    *Profile
	syms *trace.Symbols
	args *trace.Args
	rows []Event // rank and process, by row
}

// each calls f for the events of the kinds from first to last until it returns false.
func (h *held) each(first, last SliceKind, f func(e Event, row *Row) bool) {
	for i := range h.p.Events {
		s := &h.p.Events[i]
		kind, row := s.Place.Kind(), s.Place.Row()
		if kind < first || kind > last || h.rows[row].Rank < 0 || h.p.Meta.Until != 0 && s.Time > h.p.Meta.Until {
			continue
		}
		e := h.rows[row]
		e.Start, e.End, e.Name, e.Correlation, e.At = s.Time, h.p.Meta.Cut(s.End()), s.Name, s.Correlation, int32(i)
		if !f(e, &h.p.Rows[row]) {
			return
		}
	}
}

// argsOf returns the arguments of an event, if they are needed.
func (h *held) argsOf(e *Event) trace.ArgsID {
	if h.args == nil {
		return 0
	}
	return h.p.Events[e.At].Args
}

// countThreads returns the correlations of calls whose grid sizes count threads: profilers write the same sizes
// for the kernels.
func (h *held) countThreads() map[int64]bool {
	var calls []trace.Sym
	for _, name := range threadCalls {
		if sym, ok := h.syms.Lookup(name); ok {
			calls = append(calls, sym)
		}
	}
	if calls == nil {
		return nil
	}
	all := map[int64]bool{}
	for i := range h.p.Events {
		if e := &h.p.Events[i]; e.Correlation != 0 && slices.Contains(calls, e.Name) {
			all[e.Correlation] = true
		}
	}
	return all
}

// Cut returns the end of an event, limited to the end of the recording.
func (m *Meta) Cut(end trace.Time) trace.Time {
	if m.Until != 0 {
		return min(end, m.Until)
	}
	return end
}

// EndWithDevices ends the recording with the last work of a device, if there is any. Profilers write what devices did last:
// a file that is cut off has what the host did later, and no work that it launched then.
func (p *Profile) EndWithDevices() {
	last := trace.Time(0)
	for i := range p.Events {
		if s := &p.Events[i]; s.Place.Kind() == KernelSlice || s.Place.Kind() == CopySlice {
			last = max(last, s.End())
		}
	}
	if last != 0 && (p.Meta.Until == 0 || last < p.Meta.Until) {
		p.Meta.Until = last
	}
}

func (h *held) Kernels(yield func(*Kernel) bool) {
	var k Kernel
	grids, launches, counted := h.p.Grids, newLaunchArgs(h.syms, h.args), h.countThreads()
	h.each(KernelSlice, KernelSlice, func(e Event, row *Row) bool {
		k = Kernel{Event: e, Device: int32(row.PID), Stream: uint32(row.TID)}
		if id := h.argsOf(&e); id != 0 {
			l := launches.shapeOf(id)
			if k.Shape, k.Node = l.shape, l.node; counted[e.Correlation] {
				k.Shape = k.Shape.inBlocks()
			}
		}
		for len(grids) > 0 && grids[0].Event < e.At {
			grids = grids[1:]
		}
		if len(grids) > 0 && grids[0].Event == e.At {
			k.Grid = grids[0].Grid
		}
		return yield(&k)
	})
}

func (h *held) Calls(yield func(*Call) bool) {
	var c Call
	launches := newLaunchArgs(h.syms, h.args)
	kernels := map[string]trace.Sym{}
	h.each(CallSlice, CallSlice, func(e Event, row *Row) bool {
		c = Call{Event: e, TID: row.TID, Result: UnknownResult}
		if id := h.argsOf(&e); id != 0 {
			l := launches.shapeOf(id)
			if c.Shape = l.shape; slices.Contains(threadCalls, h.syms.Name(e.Name)) {
				c.Shape = c.Shape.inBlocks()
			}
			if l.name != nil {
				sym, ok := kernels[string(l.name)]
				if !ok {
					sym = h.syms.Intern(string(l.name))
					kernels[string(l.name)] = sym
				}
				c.Kernel = sym
			}
		}
		return yield(&c)
	})
}

func (h *held) Ranges(yield func(*Range) bool) {
	var n Range
	h.each(RangeSlice, RangeSlice, func(e Event, row *Row) bool {
		n = Range{Event: e, TID: row.TID, Open: e.End < h.p.Events[e.At].End()}
		return yield(&n)
	})
}

// frameKinds are the kinds of frames.
var frameKinds = [...]FrameKind{OperatorSlice: OperatorFrame, PythonSlice: PythonFrame, SystemSlice: SystemFrame}

func (h *held) Frames(yield func(*Frame) bool) {
	inputs := newInputTexts(h.syms, h.args)
	var f Frame
	h.each(OperatorSlice, SystemSlice, func(e Event, row *Row) bool {
		s := &h.p.Events[e.At]
		f = Frame{Event: e, TID: row.TID, Kind: frameKinds[s.Place.Kind()]}
		if f.Kind == OperatorFrame {
			f.Shapes, f.Types = inputs.texts(h.argsOf(&e))
			f.Mask = inputs.mask(s.Name, h.argsOf(&e))
			f.Values = inputs.values(s.Name, h.argsOf(&e))
		}
		return yield(&f)
	})
}

// PyTorch's profiler takes no samples, and its stacks are frames.
func (h *held) Samples(func(*Sample) bool) {}
func (h *held) Backtraces(func(*Sample) bool) iter.Seq[*Sample] {
	return func(func(*Sample) bool) {}
}
func (h *held) Runs(func(*Run) bool) {}

func (h *held) Copies(yield func(*Copy) bool) {
	bytes, _ := h.syms.Lookup("bytes")
	type meaning struct {
		operation trace.Sym
		kind      CopyKind
	}
	known := trace.EachName(h.syms, func(name string) meaning {
		operation, kind := parseCopy(name)
		return meaning{h.syms.Intern(operation), kind}
	})
	var c Copy
	h.each(CopySlice, CopySlice, func(e Event, row *Row) bool {
		m := known.Of(e.Name)
		e.Name = m.operation
		c = Copy{Event: e, Device: int32(row.PID), Stream: uint32(row.TID), Bytes: -1, Kind: m.kind}
		if a, ok := h.args.Find(h.argsOf(&e), bytes); ok {
			c.Bytes = a.Int()
		}
		return yield(&c)
	})
}

// memoryInstant is the name in PyTorch's profiler of an allocation or a release, with profile_memory=True. Its
// arguments are the totals of the device's allocator from then on.
const memoryInstant = "[memory]"

// memoryCounters are the names of these arguments in reports.
var memoryCounters = [...]struct{ arg, name string }{
	{"Total Allocated", MemoryAllocated}, {"Total Reserved", MemoryReserved},
}

// Names of counters of memory: the bytes in tensors, and the bytes that the allocator holds of the device.
const (
	MemoryAllocated = "memory allocated"
	MemoryReserved  = "memory reserved"
)

// CounterValues yields the counters, and the memory that PyTorch's allocators held of devices, but not of the
// host.
func (h *held) CounterValues(yield func(*CounterValue) bool) {
	for _, c := range h.p.Counters {
		if c.Rank = h.rows[0].Rank; c.Rank >= 0 && !yield(&c) {
			return
		}
	}
	memory, ok := h.syms.Lookup(memoryInstant)
	if !ok {
		return
	}
	const host = 0 // c10::DeviceType
	kind, _ := h.syms.Lookup("Device Type")
	device, _ := h.syms.Lookup("Device Id")
	sources := map[int64]trace.Sym{}
	for i := range h.p.Instants {
		x := &h.p.Instants[i]
		rank := h.rows[x.Row].Rank
		if on, ok := h.args.Find(x.Args, kind); x.Name != memory || rank < 0 || !ok || on.Int() == host {
			continue
		}
		number := int64(0)
		if d, ok := h.args.Find(x.Args, device); ok {
			number = d.Int()
		}
		if sources[number] == 0 {
			sources[number] = h.syms.Intern("GPU " + strconv.FormatInt(number, 10))
		}
		if !h.memory(x, CounterValue{Time: x.Time, Rank: rank, Source: sources[number], Unit: h.syms.Intern("bytes"), Kind: MemoryCounter}, yield) {
			return
		}
	}
}

// memory yields the values of an instant, until yield returns false.
func (h *held) memory(x *Instant, s CounterValue, yield func(*CounterValue) bool) bool {
	for _, c := range memoryCounters {
		key, _ := h.syms.Lookup(c.arg)
		if a, ok := h.args.Find(x.Args, key); ok {
			s.Name, s.Value = h.syms.Intern(c.name), float64(a.Int())
			if !yield(&s) {
				return false
			}
		}
	}
	return true
}

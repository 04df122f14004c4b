package dataset

import (
	"bytes"
	"iter"
	"sync"

	"github.com/sgtrace/sgtrace/format"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// stream yields the rows of a walked recording, as in the original walk.
type stream struct {
	*Capture
	name  string // of the input
	syms  *trace.Symbols
	diags *trace.Diags
	rank  func(pid int32) int32
	met   func() (map[string][]trace.Diag, error) // diagnostics by walk

	from, to trace.Time // see [stream.Within]
}

// Within returns the stream without most of what a window of time does not need; see [profile.Within]. It
// keeps all calls.
func (s *stream) Within(from, to trace.Time) profile.Stream {
	within := *s
	within.from, within.to = from, to
	return &within
}

// newStream returns the rows of a capture as a stream.
func (c *Capture) newStream(name string, opt *format.Options, rank func(pid int32) int32) profile.Stream {
	once := sync.OnceValues(func() (map[string][]trace.Diag, error) { return c.readDiags() })
	return &stream{Capture: c, name: name, syms: opt.Syms, diags: opt.Diags, rank: rank, met: once}
}

// A walk is a walk over the rows of a file.
type walk struct {
	*stream
	in                            *rows
	start, dur, name, correlation *cell
	pid                           *cell
	ranks                         map[int64]int32
	during                        string
}

func (s *stream) walk(file, during string) *walk { return s.walkRows(s.openRows(file, s.syms), during) }

// walkWithin walks over the rows that may matter to the window.
func (s *stream) walkWithin(file *file, during string) *walk {
	in := s.openRows(file.name, s.syms)
	in.overlapping(s.from, s.to)
	return s.walkRows(in, during)
}

func (s *stream) walkRows(in *rows, during string) *walk {
	w := &walk{stream: s, in: in, ranks: map[int64]int32{}, during: during}
	w.start, w.dur, w.name, w.correlation, w.pid = w.in.column("start"), w.in.column("dur"), w.in.column("name"), w.in.column("correlation"), w.in.column("pid")
	return w
}

// each calls row for each row, except those of processes without a rank, until it returns false, and then
// reports the diagnostics of the walk.
func (w *walk) each(row func(e profile.Event) bool) {
	for w.in.next() {
		rank := w.rankOf(w.pid.int())
		if rank < 0 {
			continue
		}
		e := profile.Event{Start: trace.Time(w.start.int()), End: trace.Time(w.start.int() + w.dur.int()), Correlation: w.correlation.int(), Name: w.name.sym(),
			Rank: rank, PID: int32(w.pid.int())}
		if !row(e) {
			break
		}
	}
	w.end()
}

func (w *walk) rankOf(pid int64) int32 {
	return order.Memo(w.ranks, pid, func() int32 { return w.rank(int32(pid)) })
}

// end reports the diagnostics of the original walk, and problems with reading the capture itself.
func (w *walk) end() {
	met, err := w.met()
	addAll(w.diags, met[w.during])
	for _, err := range []error{w.in.close(), err} {
		if err != nil {
			w.diags.Add(trace.InputDamaged.Of(w.stream.name, err))
		}
	}
}

func (s *stream) Kernels(yield func(*profile.Kernel) bool) {
	w := s.walkWithin(kernelsFile, duringKernels)
	kind, device, number, blocks, single := w.in.column("kind"), w.in.column("device"), w.in.column("stream"), w.in.column("blocks"), w.in.column("one_block")
	var k profile.Kernel
	w.each(func(e profile.Event) bool {
		k = profile.Kernel{Event: e, Device: int32(device.int()), Stream: uint32(number.int()), Grid: gridOf(blocks, single), Graph: string(kind.text()) == graphKind}
		return yield(&k)
	})
}

func (s *stream) Copies(yield func(*profile.Copy) bool) {
	w := s.walkWithin(copiesFile, duringCopies)
	device, number, size, from, to := w.in.column("device"), w.in.column("stream"), w.in.column("bytes"), w.in.column("memory_from"), w.in.column("memory_to")
	var c profile.Copy
	w.each(func(e profile.Event) bool {
		c = profile.Copy{Event: e, Device: int32(device.int()), Stream: uint32(number.int()), Bytes: -1,
			Kind: profile.CopyKind{From: profile.MemoryOf(string(from.text())), To: profile.MemoryOf(string(to.text()))}}
		if !size.null() {
			c.Bytes = size.int()
		}
		return yield(&c)
	})
}

func (s *stream) Calls(yield func(*profile.Call) bool) {
	w := s.walk(callsFile.name, duringCalls)
	tid, result := w.in.column("tid"), w.in.column("result")
	var c profile.Call
	w.each(func(e profile.Event) bool {
		c = profile.Call{Event: e, TID: tid.int(), Result: profile.UnknownResult}
		if !result.null() {
			c.Result = int32(result.int())
		}
		return yield(&c)
	})
}

func (s *stream) Ranges(yield func(*profile.Range) bool) {
	w := s.walkWithin(rangesFile, duringRanges)
	tid, style, open := w.in.column("tid"), w.in.column("style"), w.in.column("never_closed")
	var r profile.Range
	w.each(func(e profile.Event) bool {
		r = profile.Range{Event: e, TID: tid.int(), Style: profile.RangeStyle(rangeStyles.number(style.text())), Open: open.int() != 0}
		return yield(&r)
	})
}

func (s *stream) Frames(yield func(*profile.Frame) bool) {
	w := s.walkWithin(systemFile, duringFrames)
	tid, kind, shapes, types := w.in.column("tid"), w.in.column("kind"), w.in.column("shapes"), w.in.column("types")
	var f profile.Frame
	w.each(func(e profile.Event) bool {
		f = profile.Frame{Event: e, TID: tid.int(), Kind: profile.FrameKind(frameKinds.number(kind.text())), Shapes: shapes.sym(), Types: types.sym()}
		return yield(&f)
	})
}

func (s *stream) Samples(yield func(*profile.Sample) bool) {
	s.stacked("samples", duringSamples, yield)
}

func (s *stream) Backtraces(wanted func(*profile.Sample) bool) iter.Seq[*profile.Sample] {
	return func(yield func(*profile.Sample) bool) {
		s.stacked("backtraces", duringBacktraces, func(x *profile.Sample) bool { return wanted != nil && !wanted(x) || yield(x) })
	}
}

// stacked yields rows that have stacks.
func (s *stream) stacked(name, during string, yield func(*profile.Sample) bool) {
	stacks, err := s.readStacks("stacks-" + name)
	if err != nil {
		s.diags.Add(trace.InputDamaged.Of(s.name, err))
		return
	}
	w := s.walk("samples-"+name, during)
	tid, cpu, stack := w.in.column("tid"), w.in.column("cpu"), w.in.column("stack")
	var x profile.Sample
	w.each(func(e profile.Event) bool {
		id := profile.StackID(stack.int())
		if id < 0 || int(id) > stacks.Len() {
			id = 0
		}
		x = profile.Sample{Event: e, TID: tid.int(), CPU: int32(cpu.int()), Stack: id, Stacks: stacks}
		return yield(&x)
	})
}

// readStacks reads stacks; each stack follows the stack of its caller.
func (s *stream) readStacks(file string) (*profile.Stacks, error) {
	in := s.openRows(file, s.syms)
	caller, function, module := in.column("caller"), in.column("function_name"), in.column("module")
	stacks := &profile.Stacks{}
	for in.next() {
		stacks.Push(profile.StackFrame{Caller: profile.StackID(caller.int()), Function: function.sym(), Module: module.sym()})
	}
	return stacks, in.close()
}

func (s *stream) Runs(yield func(*profile.Run) bool) {
	w := s.walk("samples-runs", duringRuns)
	tid, cpu := w.in.column("tid"), w.in.column("cpu")
	var r profile.Run
	w.each(func(e profile.Event) bool {
		r = profile.Run{Event: e, TID: tid.int(), CPU: int32(cpu.int())}
		return yield(&r)
	})
}

// CounterValues yields counters. Those of a device belong to the rank that has the device to itself; if
// that rank is left out, they belong to the host.
func (s *stream) CounterValues(yield func(*profile.CounterValue) bool) {
	w := s.walk("counters-samples", duringCounters)
	time, host, source, name, unit := w.in.column("time"), w.in.column("host"), w.in.column("source"), w.in.column("name"), w.in.column("unit")
	kind, value := w.in.column("kind"), w.in.column("value")
	for w.in.next() {
		v := profile.CounterValue{Time: trace.Time(time.int()), Rank: -1, Source: source.sym(), Name: name.sym(), Unit: unit.sym(),
			Kind: profile.CounterKind(counterKinds.number(kind.text())), Value: value.real()}
		if owned := w.pid.int() >= 0; owned {
			v.Rank = w.rankOf(w.pid.int())
			switch {
			case v.Rank >= 0:
			case v.Kind == profile.MemoryCounter:
				continue
			case len(host.text()) > 0:
				v.Source = s.syms.Intern(string(bytes.Join([][]byte{source.text(), host.text()}, []byte(" of "))))
			}
		}
		if !yield(&v) {
			break
		}
	}
	w.end()
}

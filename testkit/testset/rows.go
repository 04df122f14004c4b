package testset

import (
	"iter"
	"math/rand/v2"
	"slices"

	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// A RowStream passes rows that a test made. As documented, the next row overwrites the previous one. Only Shuffled supports
// samples, stacks of calls, and runs; other methods that change rows drop them.
type RowStream struct {
	KernelRows  []profile.Kernel
	CopyRows    []profile.Copy
	CallRows    []profile.Call
	RangeRows   []profile.Range
	FrameRows   []profile.Frame
	SampleRows  []profile.Sample
	TraceRows   []profile.Sample // stacks of calls
	RunRows     []profile.Run
	CounterRows []profile.CounterValue
}

func (s *RowStream) Kernels(yield func(*profile.Kernel) bool) { passRows(s.KernelRows, yield) }
func (s *RowStream) Copies(yield func(*profile.Copy) bool)    { passRows(s.CopyRows, yield) }
func (s *RowStream) Calls(yield func(*profile.Call) bool)     { passRows(s.CallRows, yield) }
func (s *RowStream) Ranges(yield func(*profile.Range) bool)   { passRows(s.RangeRows, yield) }
func (s *RowStream) Frames(yield func(*profile.Frame) bool)   { passRows(s.FrameRows, yield) }

func (s *RowStream) Samples(yield func(*profile.Sample) bool) { passRows(s.SampleRows, yield) }
func (s *RowStream) Backtraces(wanted func(*profile.Sample) bool) iter.Seq[*profile.Sample] {
	return func(yield func(*profile.Sample) bool) {
		passRows(s.TraceRows, func(x *profile.Sample) bool { return wanted != nil && !wanted(x) || yield(x) })
	}
}
func (s *RowStream) CounterValues(yield func(*profile.CounterValue) bool) {
	passRows(s.CounterRows, yield)
}
func (s *RowStream) Runs(yield func(*profile.Run) bool) { passRows(s.RunRows, yield) }

func passRows[T any](rows []T, yield func(*T) bool) {
	var row T
	for _, row = range rows {
		if !yield(&row) {
			return
		}
	}
}

// Shuffled returns the rows in another order.
func (s *RowStream) Shuffled(r *rand.Rand) *RowStream {
	return &RowStream{KernelRows: shuffle(r, s.KernelRows), CopyRows: shuffle(r, s.CopyRows), CallRows: shuffle(r, s.CallRows),
		RangeRows: shuffle(r, s.RangeRows), FrameRows: shuffle(r, s.FrameRows), SampleRows: shuffle(r, s.SampleRows),
		TraceRows: shuffle(r, s.TraceRows), RunRows: shuffle(r, s.RunRows), CounterRows: shuffle(r, s.CounterRows)}
}

func shuffle[T any](r *rand.Rand, rows []T) []T {
	rows = slices.Clone(rows)
	r.Shuffle(len(rows), func(i, k int) { rows[i], rows[k] = rows[k], rows[i] })
	return rows
}

// Split returns two streams: the rows for which first is true, and the others.
func (s *RowStream) Split(first func(e *profile.Event) bool) []profile.Stream {
	var a, b RowStream
	a.KernelRows, b.KernelRows = split(s.KernelRows, func(k *profile.Kernel) bool { return first(&k.Event) })
	a.CopyRows, b.CopyRows = split(s.CopyRows, func(c *profile.Copy) bool { return first(&c.Event) })
	a.CallRows, b.CallRows = split(s.CallRows, func(c *profile.Call) bool { return first(&c.Event) })
	a.RangeRows, b.RangeRows = split(s.RangeRows, func(r *profile.Range) bool { return first(&r.Event) })
	a.FrameRows, b.FrameRows = split(s.FrameRows, func(f *profile.Frame) bool { return first(&f.Event) })
	return []profile.Stream{&a, &b}
}

func split[T any](rows []T, first func(*T) bool) (a, b []T) {
	for i := range rows {
		if first(&rows[i]) {
			a = append(a, rows[i])
		} else {
			b = append(b, rows[i])
		}
	}
	return a, b
}

// SetOf makes a set of streams.
func SetOf(syms *trace.Symbols, ranks []string, streams ...profile.Stream) *profile.Set {
	return &profile.Set{Syms: syms, Ranks: ranks, Streams: streams}
}

// RandomStream has two ranks with two threads each, ranges that nest and cross, calls within and across them, graphs,
// orphans, and times from 0 ns to minutes. Many times are equal.
func RandomStream(r *rand.Rand, syms *trace.Symbols) *RowStream {
	s := &RowStream{}
	name := func(names ...string) trace.Sym { return syms.Intern(names[r.IntN(len(names))]) }
	event := func(rank int32, start, dur int64, corr int, n trace.Sym) profile.Event {
		return profile.Event{Start: trace.Time(start), End: trace.Time(start + dur), Correlation: int64(corr), Name: n, Rank: rank, PID: 10 + rank}
	}
	length := func() int64 {
		switch r.IntN(20) {
		case 0:
			return 0
		case 1:
			return 5e9 + r.Int64N(1e9) // beyond 32 bits
		}
		return r.Int64N(100)
	}
	for rank := range int32(2) {
		for tid := range int64(2) {
			for range r.IntN(40) {
				s.RangeRows = append(s.RangeRows, profile.Range{Event: event(rank, r.Int64N(400), r.Int64N(200), 0, name("a", "b", "c")),
					TID: tid, Style: profile.RangeStyle(r.IntN(2)), Open: r.IntN(10) == 0})
			}
		}
		corr := 1
		for i := range 60 {
			call := profile.Call{Event: event(rank, int64(i)*8, 1+r.Int64N(7), corr, name("cudaLaunchKernel", "cudaGraphLaunch_v10000")), TID: r.Int64N(2)}
			if r.IntN(8) > 0 { // otherwise its kernels are orphans
				s.CallRows = append(s.CallRows, call)
			}
			for range r.IntN(4) {
				start := int64(call.Start) + r.Int64N(300)
				if r.IntN(4) == 0 {
					s.CopyRows = append(s.CopyRows, profile.Copy{Event: event(rank, start, length(), corr, name("[copy]", "[set]")), Bytes: r.Int64N(1000) - 1,
						Kind: profile.CopyKind{From: profile.Memory(r.IntN(3)), To: profile.Memory(r.IntN(3))}})
				} else {
					s.KernelRows = append(s.KernelRows, profile.Kernel{Event: event(rank, start, length(), corr, name("k1", "k2")), Device: int32(r.IntN(2)), Graph: r.IntN(9) == 0})
				}
			}
			corr += 1 + r.IntN(3)
		}
	}
	return s
}

// Later returns the rows shifted by some time.
func (s *RowStream) Later(by trace.Time) *RowStream {
	return s.changed(func(e *profile.Event) { e.Start, e.End = e.Start+by, e.End+by })
}

// changed returns the rows with changed events.
func (s *RowStream) changed(change func(e *profile.Event)) *RowStream {
	out := &RowStream{KernelRows: slices.Clone(s.KernelRows), CopyRows: slices.Clone(s.CopyRows), CallRows: slices.Clone(s.CallRows),
		RangeRows: slices.Clone(s.RangeRows), FrameRows: slices.Clone(s.FrameRows)}
	for i := range out.KernelRows {
		change(&out.KernelRows[i].Event)
	}
	for i := range out.CopyRows {
		change(&out.CopyRows[i].Event)
	}
	for i := range out.CallRows {
		change(&out.CallRows[i].Event)
	}
	for i := range out.RangeRows {
		change(&out.RangeRows[i].Event)
	}
	for i := range out.FrameRows {
		change(&out.FrameRows[i].Event)
	}
	return out
}

// A GPURow is a row of one rank.
type GPURow struct {
	Name                    string
	Start, End, Correlation int64
}

func GPUSetOf(calls, kernels, ranges []GPURow) *profile.Set {
	syms := trace.NewSymbols()
	s := &RowStream{}
	event := func(r GPURow) profile.Event {
		return profile.Event{Start: trace.Time(r.Start), End: trace.Time(r.End), Correlation: r.Correlation, Name: syms.Intern(r.Name)}
	}
	for _, r := range calls {
		s.CallRows = append(s.CallRows, profile.Call{Event: event(r)})
	}
	for _, r := range kernels {
		s.KernelRows = append(s.KernelRows, profile.Kernel{Event: event(r)})
	}
	for _, r := range ranges {
		s.RangeRows = append(s.RangeRows, profile.Range{Event: event(r)})
	}
	return SetOf(syms, []string{"TP0"}, s)
}

// Renumbered returns a set of the rows with other symbols for the same names.
func Renumbered(s *RowStream, syms *trace.Symbols, ranks []string) *profile.Set {
	other := trace.NewSymbols()
	for _, name := range slices.Backward(syms.Names()) {
		other.Intern(name)
	}
	return SetOf(other, ranks, s.changed(func(e *profile.Event) { e.Name = other.Intern(syms.Name(e.Name)) }))
}

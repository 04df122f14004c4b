package assembly

import (
	"cmp"
	"runtime"
	"slices"
	"time"

	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/internal/parallel"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/request/spantable"
	"github.com/sgtrace/sgtrace/trace"
)

// An Assembly is a Set, together with the spans that it was made from, for as long as it may have to be
// rebuilt: until it is decided how clocks relate.
type Assembly struct {
	Set  *request.Set
	dump *spantable.Table
	tree *spantable.Tree
	// steps are the clocks that Unstep found to have been set.
	steps []request.ClockStep
	// unmeasured computes the metrics of requests, and finds what is missing from them; nil once it has.
	unmeasured *builder
}

// Measure measures the requests, and finds what is missing from them, unless that was done.
func (a *Assembly) Measure() {
	if a.unmeasured != nil {
		a.unmeasured.measureRequests()
		a.unmeasured = nil
	}
}

// Unstep corrects the times of clocks that were set in between, so that each duration is on a steady clock.
func (a *Assembly) Unstep() {
	if a.steps = a.Set.ClockSteps(); len(a.steps) == 0 {
		return
	}
	a.Move(func(proc int) func(trace.Time) trace.Time { return request.Unstepped(a.steps, a.Set.ClockKey(proc)) })
	for _, x := range a.steps {
		how, by := "forward", x.By
		if by < 0 {
			how, by = "back", -by
		}
		a.Set.Diags.Add(trace.ClockSet.Of(x.Host, how, trace.FormatDuration(by), trace.FormatDuration(x.Err), time.Unix(0, int64(x.At)).UTC().Format("2006-01-02 15:04:05.000 UTC")))
	}
}

// OnOneClock puts all times on the reference clock of c. It rebuilds the tables if any times move.
func (a *Assembly) OnOneClock(c *request.HostClocks) {
	if c.Moves() {
		a.Move(func(proc int) func(trace.Time) trace.Time {
			shift := c.Shift(proc)
			return func(t trace.Time) trace.Time { return t + shift }
		})
	}
	a.Set.Clocks = c
}

// Move moves the times of each proc and rebuilds the tables: the previous Set cannot be used afterward.
// Requests that were measured are measured again.
func (a *Assembly) Move(to func(proc int) func(trace.Time) trace.Time) {
	measured := a.unmeasured == nil
	of := make([]func(trace.Time) trace.Time, len(a.Set.Procs))
	for p := range of {
		of[p] = to(p)
	}
	n := a.dump.Len()
	parallel.Rows(n, request.RowSize, func(from, to int) {
		for i := from; i < to; i++ {
			p := a.Set.ProcOf(i)
			if a.tree.Duplicate(i) {
				p = a.Set.ProcOf(a.tree.First(i))
			}
			if p == request.None {
				continue
			}
			row, moved := a.Set.Row(i), of[p]
			row.Start, row.End = moved(row.Start), moved(row.End)
			for e := range a.dump.Events(i) {
				e.Time = moved(e.Time)
			}
		}
	})
	maker := newRowMaker(a.dump)
	parallel.Rows(n, request.RowSize, func(from, to int) {
		for i := from; i < to; i++ {
			maker.clear(i, a.Set.Row(i))
		}
	})
	// Problems with the spans were reported the first time.
	diags := a.dump.Diags
	a.dump.Diags = &trace.Diags{}
	a.tree.Sort(func(i, j uint32) int {
		return cmp.Or(a.Set.Compare(int(i), int(j)), a.tree.CompareIDs(int(i), int(j)))
	})
	before := a.Set
	parallel.Rows(len(before.Instants), instantSize, func(from, to int) {
		for i := from; i < to; i++ {
			before.Instants[i].Time = a.dump.Event(i).Time
		}
	})
	rows, links, instants, names := before.Rows, before.Links, before.Instants, before.Names // Names: other inputs may have contributed to it
	before.Free()
	a.Set, a.unmeasured = nil, nil
	a.build(rows, links, instants)
	a.Set.Names = names
	if measured {
		a.Measure()
	}
	a.dump.Diags, a.Set.Diags = diags, diags
}

// Release measures the requests and releases the spans; the tables stay as they are.
func (a *Assembly) Release() {
	a.Measure()
	const many = 1 << 17 // number of spans
	collect := a.dump.Len() >= many
	a.dump.Release()
	a.tree.Release()
	a.tree = nil
	if collect {
		// Otherwise, the next step allocates more memory before this is returned. A collection takes
		// milliseconds, since the tables of spans and rows hold no pointers.
		runtime.GC()
	}
}

// scattered is roughly how many bytes the kernel maps for the spans of a trace: traces are visited in
// random order here.
const scattered = 32 * 512

// BreakTies fills the column Ties, which a timeline needs, in order of trace ID, then span ID. Spans with
// equal IDs stay tied.
func (a *Assembly) BreakTies() {
	type identified struct {
		id     [2]uint64
		number uint32
		begin  uint32 // its first tie number
	}
	traces := make([]identified, a.dump.Traces())
	for t := range traces {
		traces[t] = identified{id: a.dump.TraceID(uint32(t)), number: uint32(t)}
	}
	slices.SortFunc(traces, func(x, y identified) int {
		return cmp.Or(cmp.Compare(x.id[0], y.id[0]), cmp.Compare(x.id[1], y.id[1]))
	})
	// The spans of each trace follow those of the previous one.
	begin := uint32(0)
	for k := range traces {
		traces[k].begin = begin
		begin += uint32(len(a.tree.OfTrace(traces[k].number)))
	}
	ties := memory.Make[uint32](a.dump.Len())
	parallel.Rows(len(traces), scattered, func(from, to int) {
		for _, t := range traces[from:to] {
			spans := a.tree.OfTrace(t.number)
			for k, i := range spans {
				ties[i] = t.begin + uint32(k)
				if k > 0 && a.dump.Identity(int(spans[k-1])).ID == a.dump.Identity(int(i)).ID {
					ties[i] = ties[spans[k-1]]
				}
			}
		}
	})
	a.Set.Ties = ties
}

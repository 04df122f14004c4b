package assembly

import (
	"cmp"
	"slices"

	"github.com/sgtrace/sgtrace/otlpjson"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// An Assembly is a Set, together with the spans that it was made of as long as it may
// have to be made again: until it is decided how clocks relate.
type Assembly struct {
	Set  *request.Set
	dump *otlpjson.Dump
	tree *otlpjson.Tree
}

// OnOneClock puts all times on the clock of the first proc, if the requests prove that
// clocks differ. The tables are made anew then. All times of a clock are moved by the
// same, that of the middle of the dump, so that no duration changes.
func (a *Assembly) OnOneClock() {
	c := a.Set.HostClocks()
	if !c.Moved {
		return
	}
	first, last, _ := a.Set.Bounds()
	middle := first + (last-first)/2
	a.Move(func(proc int) func(trace.Time) trace.Time {
		shift := c.Shift(proc, 0, middle)
		return func(t trace.Time) trace.Time { return t + shift }
	})
	a.Set.ClocksMoved = true
}

// Move moves the times of each proc and makes the tables anew: the Set before is of no
// more use.
func (a *Assembly) Move(to func(proc int) func(trace.Time) trace.Time) {
	of := make([]func(trace.Time) trace.Time, len(a.Set.Procs))
	for p := range of {
		of[p] = to(p)
	}
	for i := range a.dump.Len() {
		span, first := a.dump.Span(i), i
		if a.tree.Duplicate(i) {
			first = a.tree.Find(span.TraceHi, span.TraceLo, span.ID) // or it would be none any more
		}
		p := a.Set.ProcOf(first)
		if p == request.None {
			continue
		}
		moved := of[p]
		span.Start, span.End = moved(span.Start), moved(span.End)
		for e := range a.dump.Events(i) {
			e.Time = moved(e.Time)
		}
	}
	// What is wrong with the spans was reported when they were put together first.
	diags := a.dump.Diags
	a.dump.Diags = &trace.Diags{}
	a.build(a.Set.Rows)
	a.dump.Diags, a.Set.Diags = diags, diags
}

// Release gives up the spans: the tables stay as they are.
func (a *Assembly) Release() {
	a.dump.Release()
	a.tree = nil
}

// BreakTies fills the column Ties, which a timeline needs.
func (a *Assembly) BreakTies() {
	order := make([]uint32, a.dump.Len())
	for i := range order {
		order[i] = uint32(i)
	}
	compare := func(x, y uint32) int {
		s, t := a.dump.Span(int(x)), a.dump.Span(int(y))
		return cmp.Or(cmp.Compare(s.TraceHi, t.TraceHi), cmp.Compare(s.TraceLo, t.TraceLo), cmp.Compare(s.ID, t.ID))
	}
	slices.SortFunc(order, compare)
	ties := make([]uint32, len(order))
	for k := 1; k < len(order); k++ {
		ties[order[k]] = ties[order[k-1]]
		if compare(order[k-1], order[k]) != 0 {
			ties[order[k]]++
		}
	}
	a.Set.Ties = ties
}

package trace

import (
	"slices"

	"github.com/sgtrace/sgtrace/internal/memory"
)

// Room is how many rows a table of a [Builder] has room for.
type Room struct{ Slices, Instants, Flows int }

// A Fork is a second Builder that fills the end of the tables of a first one,
// from another goroutine. Both share symbols, arguments, subjects and clocks;
// subjects and clocks must have been added before.
type Fork struct {
	*Builder
	first *Builder
	// The tables of the first Builder at their full length. Its own end where
	// the fork's begin.
	rows     []Slice
	about    []SubjectID
	instants []Instant
	flows    []Flow
}

// Fork reserves own rows for b and the given room behind them for the fork.
// Either may turn out to need more or less; only then rows are copied by Join.
func (b *Builder) Fork(own, fork Room) *Fork {
	b.Grow(own.Slices+fork.Slices, own.Instants+fork.Instants, own.Flows+fork.Flows)
	t := b.t
	f := &Fork{first: b, rows: t.Slices[:cap(t.Slices)], about: t.About[:cap(t.About)],
		instants: t.Instants[:cap(t.Instants)], flows: t.Flows[:cap(t.Flows)]}
	at := Room{len(t.Slices) + own.Slices, len(t.Instants) + own.Instants, len(t.Flows) + own.Flows}
	second := *b
	second.moved = map[ArgsID]bool{}
	second.t = &Trace{
		Syms: t.Syms, Args: t.Args, Tracks: make([]Track, 1), Subjects: t.Subjects,
		// Row 0 of the fork is the last row of b: no Builder writes row 0.
		Slices: f.rows[at.Slices-1 : at.Slices], About: f.about[at.Slices-1 : at.Slices],
		Instants: f.instants[at.Instants:at.Instants], Flows: f.flows[at.Flows:at.Flows],
	}
	t.Slices, t.About = t.Slices[:len(t.Slices):at.Slices], t.About[:len(t.About):at.Slices]
	t.Instants, t.Flows = t.Instants[:len(t.Instants):at.Instants], t.Flows[:len(t.Flows):at.Flows]
	f.Builder = &second
	return f
}

// Join returns the trace of the first Builder with that of the fork behind it.
// Both must be finished.
func (f *Fork) Join() *Trace {
	t, o := f.first.t, f.t
	track, slice := TrackID(len(t.Tracks)-1), SliceID(len(t.Slices)-1)
	t.Tracks = slices.Grow(t.Tracks, len(o.Tracks)-1)
	for _, x := range o.Tracks[1:] {
		if x.Parent != 0 {
			x.Parent += track
		}
		t.Tracks = append(t.Tracks, x)
	}
	for i := range o.AllSlices() {
		o.Slices[i].Track += track
	}
	for i := range o.Instants {
		o.Instants[i].Track += track
	}
	for i := range o.Flows {
		o.Flows[i].From += slice
		o.Flows[i].To += slice
	}
	for _, x := range o.Samples {
		x.Track += track
		t.Samples = memory.Append(t.Samples, x)
	}
	t.Slices, t.About = join(f.rows, t.Slices, o.Slices[1:]), join(f.about, t.About, o.About[1:])
	t.Instants, t.Flows = join(f.instants, t.Instants, o.Instants), join(f.flows, t.Flows, o.Flows)
	return t
}

// join returns a and b as one table. If b lies behind a in full, nothing moves.
func join[T any](full, a, b []T) []T {
	n := len(a) + len(b)
	inPlace := len(b) > 0 && n <= len(full) && &full[len(a)] == &b[0]
	if inPlace && (len(a) == 0 || &full[0] == &a[0]) {
		return full[:n]
	}
	return append(a, b...)
}

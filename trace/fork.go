package trace

import (
	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/internal/parallel"
)

// Capacity is how many rows the tables of a [Builder] have room for.
type Capacity struct{ Slices, Instants, Samples, Flows int }

// Plus returns room for the rows of both.
func (r Capacity) Plus(o Capacity) Capacity {
	return Capacity{r.Slices + o.Slices, r.Instants + o.Instants, r.Samples + o.Samples, r.Flows + o.Flows}
}

// A Fork is a Builder that draws a part of a trace from another goroutine. It shares the symbols,
// arguments and subjects of the first one, which has all subjects by then. Its tracks and slices have
// IDs of their own until [Join].
type Fork struct {
	*Builder
	// Under is the track of the first Builder that those without a parent lie below; 0 is none.
	Under TrackID

	first *Builder
	full  *Trace   // the tables of the first one with all of their room
	end   Capacity // where the room of this fork ends in them
}

// Fork makes a Builder for each of some rooms, which lie behind one another, and behind room for rows that b
// gets before they join. Any of them may turn out to need more or less; only then rows are moved by [Join].
func (b *Builder) Fork(own Capacity, rooms ...Capacity) []*Fork {
	total := own
	for _, r := range rooms {
		total = total.Plus(r)
	}
	b.Grow(total)
	t := b.t
	full := &Trace{Slices: t.Slices[:cap(t.Slices)], About: t.About[:cap(t.About)], Instants: t.Instants[:cap(t.Instants)],
		Samples: t.Samples[:cap(t.Samples)], Flows: t.Flows[:cap(t.Flows)]}
	at := Capacity{len(t.Slices), len(t.Instants), len(t.Samples), len(t.Flows)}.Plus(own)
	t.Slices, t.About = t.Slices[:len(t.Slices):at.Slices], t.About[:len(t.About):at.Slices]
	t.Instants, t.Samples, t.Flows = t.Instants[:len(t.Instants):at.Instants], t.Samples[:len(t.Samples):at.Samples], t.Flows[:len(t.Flows):at.Flows]
	forks := make([]*Fork, len(rooms))
	for i, r := range rooms {
		end := at.Plus(r)
		if i == len(rooms)-1 {
			end = Capacity{len(full.Slices), len(full.Instants), len(full.Samples), len(full.Flows)}
		}
		second := *b
		second.t = &Trace{
			Syms: t.Syms, Args: t.Args, Tracks: make([]Track, 1), Subjects: t.Subjects,
			// Row 0 is the last row before: no Builder writes row 0.
			Slices: full.Slices[at.Slices-1 : at.Slices : end.Slices], About: full.About[at.Slices-1 : at.Slices : end.Slices],
			Instants: full.Instants[at.Instants:at.Instants:end.Instants], Samples: full.Samples[at.Samples:at.Samples:end.Samples],
			Flows: full.Flows[at.Flows:at.Flows:end.Flows],
		}
		forks[i] = &Fork{Builder: &second, first: b, full: full, end: end}
		at = end
	}
	return forks
}

// Join puts the rows of forks, all of one call of [Builder.Fork] in its order, behind those of the Builder that they
// are of. It returns by how much the IDs of the slices of each grew.
func Join(forks ...*Fork) []SliceID {
	shifts, tracks := make([]SliceID, len(forks)), make([]TrackID, len(forks))
	for i, f := range forks {
		to, own := f.first.t, f.t.Tracks[1:]
		tracks[i] = TrackID(len(to.Tracks) - 1)
		for _, x := range own {
			if x.Parent != 0 {
				x.Parent += tracks[i]
			} else {
				x.Parent = f.Under
			}
			to.Tracks = append(to.Tracks, x)
		}
		shifts[i] = SliceID(len(to.Slices) - 1)
		if i > 0 {
			shifts[i] = shifts[i-1] + SliceID(len(forks[i-1].t.Slices)-1)
		}
	}
	parallel.Each(len(forks), func(i int) { forks[i].t.shift(tracks[i], shifts[i]) })
	for _, f := range forks {
		to, own := f.first.t, f.t
		to.Slices = join(f.full.Slices, to.Slices, own.Slices[1:], f.end.Slices)
		to.About = join(f.full.About, to.About, own.About[1:], f.end.Slices)
		to.Instants = join(f.full.Instants, to.Instants, own.Instants, f.end.Instants)
		to.Samples = join(f.full.Samples, to.Samples, own.Samples, f.end.Samples)
		to.Flows = join(f.full.Flows, to.Flows, own.Flows, f.end.Flows)
	}
	return shifts
}

// shift adds to the IDs of tracks and slices in all rows.
func (t *Trace) shift(track TrackID, slice SliceID) {
	for i := range t.AllSlices() {
		t.Slices[i].Track += track
	}
	for i := range t.AllInstants() {
		t.Instants[i].Track += track
	}
	for i := range t.Samples {
		t.Samples[i].Track += track
	}
	for i := range t.Flows {
		t.Flows[i].From += slice
		t.Flows[i].To += slice
	}
}

// join returns the rows of a table and those of a fork behind it, whose room ends there in the full one.
func join[T any](full, table, fork []T, end int) []T {
	n := len(table) + len(fork)
	if n > end || len(table) > 0 && &table[0] != &full[0] { // one of them had too little room
		return memory.Append(table, fork...)
	}
	if len(fork) > 0 && &fork[0] != &full[len(table)] {
		copy(full[len(table):n], fork)
	}
	return full[:n:end]
}

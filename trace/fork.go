package trace

import (
	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/internal/parallel"
)

// Capacity is a number of rows for each table of a [Builder].
type Capacity struct{ Slices, Instants, Samples, Flows int }

// Plus returns the sum of both capacities.
func (r Capacity) Plus(o Capacity) Capacity {
	return Capacity{r.Slices + o.Slices, r.Instants + o.Instants, r.Samples + o.Samples, r.Flows + o.Flows}
}

// A Fork is a Builder that draws a part of a trace from another goroutine. It shares the symbols,
// arguments, and subjects of the first Builder, which must have all subjects by then. Its tracks and slices
// have their own IDs until [Join].
type Fork struct {
	*Builder
	// Under is the track of the first Builder that becomes the parent of tracks without one; 0 is none.
	Under TrackID

	first *Builder
	full  *Trace   // the tables of the first Builder with all of their room
	end   Capacity // where the room of this fork ends in them
}

// Fork makes a Builder for each of rooms, which follow one another in memory after the room for rows that b
// adds before the join. If one of them needs more or less than its room, [Join] moves rows.
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
			// Row 0 is the last row before this room: no Builder writes row 0.
			Slices: full.Slices[at.Slices-1 : at.Slices : end.Slices], About: full.About[at.Slices-1 : at.Slices : end.Slices],
			Instants: full.Instants[at.Instants:at.Instants:end.Instants], Samples: full.Samples[at.Samples:at.Samples:end.Samples],
			Flows: full.Flows[at.Flows:at.Flows:end.Flows],
		}
		forks[i] = &Fork{Builder: &second, first: b, full: full, end: end}
		at = end
	}
	return forks
}

// Join appends the rows of forks, all from one call of [Builder.Fork] and in its order, to the Builder that they
// came from. It returns how much the slice IDs of each fork were increased.
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

// shift increases the IDs of tracks and slices in all rows.
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

// join appends the rows of a fork to a table; end is where the fork's room ends in the full table.
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

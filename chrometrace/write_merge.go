package chrometrace

import "github.com/sgtrace/sgtrace/trace"

// kind says which table a run of rows is in. At one time, slices come first:
// importers give the ends of arrows to slices that they have seen, but not to
// instants.
type kind uint32

const (
	slice kind = iota
	arrow      // index into arrows.ends
	instant
	sample
)

// run is a stretch of a table whose rows are ordered by time.
type run struct {
	time      trace.Time // of row next
	kind      kind
	next, end uint32
}

// before orders runs by their next rows, then by kind; rows of one kind by
// their place in the table, which is by track.
func (r *run) before(o *run) bool {
	if r.time != o.time {
		return r.time < o.time
	}
	if r.kind != o.kind {
		return r.kind < o.kind
	}
	return r.next < o.next
}

// merge calls visit for every row of every table of events, ordered by time, up
// to the first failed write.
func (e *encoder) merge(visit func(kind, uint32)) {
	heap := e.runs()
	for i := len(heap)/2 - 1; i >= 0; i-- {
		sink(heap, i)
	}
	for len(heap) > 0 && e.err == nil {
		top := &heap[0]
		visit(top.kind, top.next)
		if top.next++; top.next < top.end {
			top.time = e.timeOf(top.kind, top.next)
		} else {
			heap[0] = heap[len(heap)-1]
			heap = heap[:len(heap)-1]
		}
		sink(heap, 0)
	}
}

// sink moves heap[i] down to where no child is before it.
func sink(heap []run, i int) {
	for {
		child := 2*i + 1
		if child >= len(heap) {
			return
		}
		if child+1 < len(heap) && heap[child+1].before(&heap[child]) {
			child++
		}
		if !heap[child].before(&heap[i]) {
			return
		}
		heap[i], heap[child] = heap[child], heap[i]
		i = child
	}
}

// runs cuts the tables where the track changes.
func (e *encoder) runs() (runs []run) {
	add := func(k kind, n int, track func(i int) trace.TrackID, from int) {
		for i := from; i < n; i++ {
			if i == from || track(i) != track(i-1) {
				runs = append(runs, run{e.timeOf(k, uint32(i)), k, uint32(i), uint32(i)})
			}
			runs[len(runs)-1].end++
		}
	}
	t := e.t
	add(slice, len(t.Slices), func(i int) trace.TrackID { return t.Slices[i].Track }, 1)
	add(arrow, len(e.arrows.ends), func(int) trace.TrackID { return 0 }, 0)
	add(instant, len(t.Instants), func(i int) trace.TrackID { return t.Instants[i].Track }, 0)
	add(sample, len(t.Samples), func(i int) trace.TrackID { return t.Samples[i].Track }, 0)
	return runs
}

func (e *encoder) timeOf(k kind, i uint32) trace.Time {
	switch k {
	case slice:
		return e.t.Slices[i].Time
	case arrow:
		return e.t.Slices[e.arrows.ends[i].slice].Time
	case instant:
		return e.t.Instants[i].Time
	default:
		return e.t.Samples[i].Time
	}
}

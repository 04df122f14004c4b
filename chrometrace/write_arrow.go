package chrometrace

import (
	"cmp"
	"slices"

	"github.com/sgtrace/sgtrace/trace"
)

// arrows says how every flow is written.
//
// The usual form is a pair of events "s" and "f" with an id of their own. Such
// an event belongs to the slice that started last on its thread, even one that
// is over. So it bears the start time of its slice, at which importers see the
// slice before it, and the instants of that time come after it in the file.
//
// That fails where a child starts together with its parent: the event would
// belong to the child. Such an arrow is written on the slices themselves, as
// bind_id with flow_out and flow_in, as long as both are free to bear it: a
// slice has one bind_id, which several arrows may start from. Otherwise the
// first form is used, and the arrow is drawn from or to the child.
//
// Viewers draw arrows forward in time. One whose target starts before its
// source is therefore written from target to source, as the native format must.
type arrows struct {
	ends  []arrowEnd // ordered by time
	binds map[trace.SliceID]bind
}

// arrowEnd is an event "s" or "f".
type arrowEnd struct {
	slice trace.SliceID
	flow  uint32 // index into Flows; its id is one more
	phase byte
}

// bind holds the arrows that a slice bears itself.
type bind struct {
	id  int
	out bool // arrows start here; else one ends
}

func newArrows(t *trace.Trace) arrows {
	a := arrows{binds: map[trace.SliceID]bind{}}
	for i, f := range t.Flows {
		if t.Slices[f.To].Time < t.Slices[f.From].Time {
			f.From, f.To = f.To, f.From
		}
		// Perfetto numbers the other form from 0 and shares the ids.
		id := len(t.Flows) + 1 + i
		if (!isLastStarted(t, f.From) || !isLastStarted(t, f.To)) && a.bind(t, f, id) {
			continue
		}
		a.ends = append(a.ends, arrowEnd{f.From, uint32(i), 's'}, arrowEnd{f.To, uint32(i), 'f'})
	}
	slices.SortStableFunc(a.ends, func(x, y arrowEnd) int {
		return cmp.Compare(t.Slices[x.slice].Time, t.Slices[y.slice].Time)
	})
	return a
}

// bind puts a flow on its slices, if they are free and in the right order.
func (a *arrows) bind(t *trace.Trace, f trace.Flow, id int) bool {
	from, taken := a.binds[f.From]
	if taken && !from.out || !before(t, f.From, f.To) {
		return false
	}
	if _, taken := a.binds[f.To]; taken {
		return false
	}
	if !taken {
		from = bind{id, true}
		a.binds[f.From] = from
	}
	a.binds[f.To] = bind{from.id, false}
	return true
}

// before says whether importers see slice a before slice b: by start, longest
// first, then in file order.
func before(t *trace.Trace, a, b trace.SliceID) bool {
	x, y := &t.Slices[a], &t.Slices[b]
	return cmp.Or(cmp.Compare(x.Time, y.Time), cmp.Compare(y.Dur, x.Dur), cmp.Compare(a, b)) < 0
}

// isLastStarted says whether importers see no later slice start with s on its
// track. Such slices are neighbors in the table; a longer one can come after a
// shorter one there, if the model had to cut their starts.
func isLastStarted(t *trace.Trace, s trace.SliceID) bool {
	starts := func(o trace.SliceID) bool {
		return t.Slices[o].Track == t.Slices[s].Track && t.Slices[o].Time == t.Slices[s].Time
	}
	for o := s + 1; int(o) < len(t.Slices) && starts(o); o++ {
		if before(t, s, o) {
			return false
		}
	}
	for o := s - 1; o > 0 && starts(o); o-- {
		if before(t, s, o) {
			return false
		}
	}
	return true
}

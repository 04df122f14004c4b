package convert

import (
	"cmp"
	"slices"
	"sort"
	"strings"

	"github.com/sgtrace/sgtrace/chrometrace"
	"github.com/sgtrace/sgtrace/trace"
)

// drawnRange says which slices a range of events became.
type drawnRange struct {
	span
	first trace.SliceID
}

// slice returns the slice that event i became in the group "By rank", 0 if none.
// The ranges must have been sorted.
func (f *torchFile) slice(i int32) trace.SliceID {
	at := sort.Search(len(f.drawn), func(k int) bool { return f.drawn[k].to > int(i) })
	if i == chrometrace.NoEvent || at == len(f.drawn) || int(i) < f.drawn[at].from {
		return 0
	}
	return f.drawn[at].first + trace.SliceID(int(i)-f.drawn[at].from)
}

// link draws the arrows within a file, once all of its events are drawn: from
// calls to what they started on the device, and those that the file has itself.
func (m *merging) link(f *torchFile) {
	slices.SortFunc(f.drawn, func(a, b drawnRange) int { return cmp.Compare(a.from, b.from) })
	m.linkLaunches(f)
	m.linkArrows(f)
}

// linkLaunches joins launches and work by correlation id. One launch may start
// hundreds of kernels (CUDA graphs), each with an arrow of its own.
func (m *merging) linkLaunches(f *torchFile) {
	type key struct {
		part        string
		correlation int64
	}
	launch := make(map[key]int32, len(f.Launches))
	for _, l := range f.Launches {
		if l.Event != chrometrace.NoEvent {
			launch[key{f.Rows[l.Row].Part, l.Correlation}] = l.Event
		}
	}
	name := m.Intern("launch")
	for _, w := range f.Work {
		from, ok := launch[key{f.Rows[w.Row].Part, w.Correlation}]
		if !ok || w.Event == chrometrace.NoEvent {
			continue
		}
		if a, b := f.slice(from), f.slice(w.Event); a != 0 && b != 0 {
			m.Flow(trace.Flow{From: a, To: b, Name: name})
		}
	}
}

// linkArrows draws the flows of the file. Ids are unique within a part, category
// and name: SGLang's merger gives all ranks the same ones.
func (m *merging) linkArrows(f *torchFile) {
	key := func(a *chrometrace.Arrow) [4]string {
		return [4]string{f.Rows[a.Row].Part, m.name(a.Cat), m.name(a.Name), m.name(a.ID)}
	}
	arrows := f.Arrows
	slices.SortStableFunc(arrows, func(a, b chrometrace.Arrow) int {
		x, y := key(&a), key(&b)
		return cmp.Or(slices.CompareFunc(x[:], y[:], strings.Compare), cmp.Compare(a.Time, b.Time), cmp.Compare(phaseOrder(a.Phase), phaseOrder(b.Phase)))
	})
	lost, prev := 0, trace.SliceID(0)
	for i := range arrows {
		a := &arrows[i]
		if i == 0 || key(a) != key(&arrows[i-1]) {
			prev = 0
		}
		at := f.slice(m.bind(f, a))
		if at == 0 || a.Phase != chrometrace.FlowStart && prev == 0 {
			lost++
		} else if a.Phase != chrometrace.FlowStart && prev != at {
			m.Flow(trace.Flow{From: prev, To: at, Name: a.Name})
		}
		prev = at
		if a.Phase == chrometrace.FlowEnd {
			prev = 0
		}
	}
	if lost > 0 {
		m.diags.Add(trace.Diag{Severity: trace.Notice, Code: "flow-without-end", Pos: trace.Pos{File: f.Name, Offset: -1}, Count: lost,
			Msg: "a flow event has no slice, or no beginning; its arrow is left out"})
	}
}

func phaseOrder(p chrometrace.FlowPhase) int {
	return strings.IndexByte("stf", byte(p))
}

// bind returns the event that a flow event belongs to: the innermost one around
// its time on its row, or for an end without bp:"e" the next one to start.
func (m *merging) bind(f *torchFile, a *chrometrace.Arrow) int32 {
	l := &f.lines[f.lineOf[a.Row]]
	best := int32(chrometrace.NoEvent)
	for _, lane := range l.lanes {
		events := f.Events[lane.from:lane.to]
		next := sort.Search(len(events), func(i int) bool { return events[i].Time > a.Time })
		i := next - 1
		if a.Phase == chrometrace.FlowEnd && !a.Enclosing {
			for i = next; i > 0 && events[i-1].Time == a.Time; i-- {
			}
		} else {
			for depth := 0; i >= 0 && events[i].End() < a.Time && depth < maxClimb; depth++ {
				i--
			}
		}
		if i < 0 || i >= len(events) || a.Phase != chrometrace.FlowEnd && events[i].End() < a.Time {
			continue
		}
		if at := int32(lane.from + i); best == chrometrace.NoEvent || f.Events[best].Time < f.Events[at].Time {
			best = at
		}
	}
	return best
}

// maxClimb bounds the search for the slice around a flow event among those that
// start before it.
const maxClimb = 10_000

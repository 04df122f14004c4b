package convert

import (
	"cmp"
	"slices"
	"sort"
	"strings"

	"github.com/sgtrace/sgtrace/chrometrace"
	"github.com/sgtrace/sgtrace/trace"
)

// slice returns the slice that event i became in the group "By rank", 0 if none.
func (f *torchFile) slice(i int32) trace.SliceID {
	if i == chrometrace.NoEvent || len(f.slices) == 0 {
		return 0
	}
	return f.slices[i]
}

// finish draws the arrows within a file, once all of its events are drawn, and
// gives up the events.
func (m *merging) finish(f *torchFile) {
	m.linkLaunches(f)
	m.linkArrows(f)
	for e, s := range f.joined {
		f.joined[e] = cmp.Or(s, f.slice(e))
	}
	f.Events, f.slices, f.lines = nil, nil, nil
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
		event := func(i int) *trace.Slice { return &f.Events[lane[i]] }
		next := sort.Search(len(lane), func(i int) bool { return event(i).Time > a.Time })
		i := next - 1
		if a.Phase == chrometrace.FlowEnd && !a.Enclosing {
			for i = next; i > 0 && event(i-1).Time == a.Time; i-- {
			}
		} else {
			for depth := 0; i >= 0 && event(i).End() < a.Time && depth < maxClimb; depth++ {
				i--
			}
		}
		if i < 0 || i >= len(lane) || a.Phase != chrometrace.FlowEnd && event(i).End() < a.Time {
			continue
		}
		if best == chrometrace.NoEvent || f.Events[best].Time < event(i).Time {
			best = int32(lane[i])
		}
	}
	return best
}

// maxClimb bounds the search for the slice around a flow event among those that
// start before it.
const maxClimb = 10_000

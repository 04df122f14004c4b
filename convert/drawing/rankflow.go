package drawing

import (
	"cmp"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/convert/inputs"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// manyEvents is from where on a table of events is large beside all else.
const manyEvents = 1 << 20

// finish draws the arrows within a file, once all of its events are drawn, and
// gives up the events.
func (m *merging) finish(f *inputs.Recording) {
	m.linkLaunches(f)
	m.linkArrows(f)
	d := m.drawn[f]
	for e, s := range d.joined {
		d.joined[e] = cmp.Or(s, d.slice(e))
	}
	many := len(f.Events) > manyEvents
	f.Events, f.Launches, f.Work, f.Samples, f.Instants, d.slices, f.Lines = nil, nil, nil, nil, nil, nil, nil
	if many {
		// What the timeline grows by, these tables shrink by; but only memory that is
		// given back at once counts for that.
		debug.FreeOSMemory()
	}
}

// linkLaunches joins launches and work by correlation id. One launch may start
// hundreds of kernels (CUDA graphs), each with an arrow of its own.
func (m *merging) linkLaunches(f *inputs.Recording) {
	parts, d := f.Parts(), m.drawn[f]
	name := m.b.Intern("launch")
	for _, part := range parts {
		launches := profile.NewJoin(f.Launches, func(l *profile.Link) bool {
			return l.Event != profile.NoEvent && (len(parts) == 1 || f.Rows[l.Row].Part == part)
		})
		for i := range f.Work {
			w := &f.Work[i]
			if w.Event == profile.NoEvent || len(parts) > 1 && f.Rows[w.Row].Part != part {
				continue
			}
			if l := launches.Of(w.Correlation); l >= 0 {
				if a, b := d.slice(f.Launches[l].Event), d.slice(w.Event); a != 0 && b != 0 {
					m.b.Flow(trace.Flow{From: a, To: b, Name: name})
				}
			}
		}
	}
}

// arrowKey is what the flow events of one chain have in common. Ids are unique
// within a part, category and name: SGLang's merger gives all ranks the same ones.
// Flows that slices bear themselves have ids of their own.
type arrowKey struct {
	part, cat, name, id string
	own                 bool
}

func (m *merging) arrowKey(f *inputs.Recording, a *profile.Arrow) arrowKey {
	return arrowKey{f.Rows[a.Row].Part, m.name(a.Cat), m.name(a.Name), m.name(a.ID), a.Event != profile.NoEvent}
}

func (k arrowKey) compare(o arrowKey) int {
	return cmp.Or(strings.Compare(k.part, o.part), strings.Compare(k.cat, o.cat), strings.Compare(k.name, o.name),
		strings.Compare(k.id, o.id), order.Bool(k.own, o.own))
}

// linkArrows draws the flows of the file.
func (m *merging) linkArrows(f *inputs.Recording) {
	slices.SortStableFunc(f.Arrows, func(a, b profile.Arrow) int {
		return cmp.Or(m.arrowKey(f, &a).compare(m.arrowKey(f, &b)), cmp.Compare(a.Time, b.Time), cmp.Compare(phaseOrder(a.Phase), phaseOrder(b.Phase)))
	})
	bound, d := bindArrows(f), m.drawn[f]
	lost, prev := 0, trace.SliceID(0)
	for i := range f.Arrows {
		a := &f.Arrows[i]
		if i == 0 || m.arrowKey(f, a) != m.arrowKey(f, &f.Arrows[i-1]) {
			prev = 0
		}
		at := d.slice(bound[i])
		if at == 0 || a.Phase != profile.FlowStart && prev == 0 {
			lost++
		} else if a.Phase != profile.FlowStart && prev != at {
			m.b.Flow(trace.Flow{From: prev, To: at, Name: a.Name})
		}
		switch {
		case a.Phase != profile.FlowEnd:
			prev = at
		case a.Event == profile.NoEvent:
			prev = 0
		} // of flows that slices bear, one start may have several ends
	}
	if lost > 0 {
		m.in.Diags.Add(trace.FlowWithoutEnd.Of(f.Name).Times(lost))
	}
}

func phaseOrder(p profile.FlowPhase) int {
	return strings.IndexByte("stf", byte(p))
}

// bindArrows returns the event that each flow event belongs to: the innermost one
// around its time on its row, or for an end without bp:"e" the next one to start;
// NoEvent if there is none.
func bindArrows(f *inputs.Recording) []int32 {
	bound := make([]int32, len(f.Arrows))
	byLine := map[int32][]int32{}
	for i := range f.Arrows {
		if bound[i] = f.Arrows[i].Event; bound[i] != profile.NoEvent {
			continue
		}
		line := f.LineOf[f.Arrows[i].Row]
		byLine[line] = append(byLine[line], int32(i))
	}
	for line, arrows := range byLine {
		slices.SortStableFunc(arrows, func(a, b int32) int { return cmp.Compare(f.Arrows[a].Time, f.Arrows[b].Time) })
		for _, lane := range f.Lines[line].Lanes {
			bindToLane(f, arrows, lane, bound)
		}
	}
	return bound
}

// bindToLane sweeps over a lane and the flow events of its line, both by time. Of
// events of several lanes, the one that starts last wins.
func bindToLane(f *inputs.Recording, arrows []int32, lane []uint32, bound []int32) {
	var open []uint32 // events under way, innermost last
	next := 0
	for _, i := range arrows {
		a := &f.Arrows[i]
		forward := a.Phase == profile.FlowEnd && !a.Enclosing
		for next < len(lane) && (f.Events[lane[next]].Time < a.Time || !forward && f.Events[lane[next]].Time == a.Time) {
			open = append(over(f, open, f.Events[lane[next]].Time), lane[next])
			next++
		}
		found := int32(profile.NoEvent)
		switch {
		case forward && next < len(lane):
			found = int32(lane[next])
		case !forward:
			if open = over(f, open, a.Time); len(open) > 0 {
				found = int32(open[len(open)-1])
			}
		}
		if found != profile.NoEvent && (bound[i] == profile.NoEvent || f.Events[bound[i]].Time < f.Events[found].Time) {
			bound[i] = found
		}
	}
}

// over takes off what has ended before t.
func over(f *inputs.Recording, open []uint32, t trace.Time) []uint32 {
	for len(open) > 0 && f.Events[open[len(open)-1]].End() < t {
		open = open[:len(open)-1]
	}
	return open
}

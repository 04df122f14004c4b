package convert

import (
	"fmt"

	"github.com/sgtrace/sgtrace/trace"
)

// RankLayout says which groups of tracks PyTorch traces become.
type RankLayout uint8

const (
	LayoutBoth    RankLayout = iota
	LayoutRanks              // "By rank": rank > threads and streams
	LayoutCompare            // "Side by side": role > ranks
)

// ParseRankLayout reads the value of --layout.
func ParseRankLayout(s string) (RankLayout, error) {
	switch s {
	case "both":
		return LayoutBoth, nil
	case "ranks":
		return LayoutRanks, nil
	case "compare":
		return LayoutCompare, nil
	}
	return 0, fmt.Errorf("--layout %q: want ranks, compare or both", s)
}

// merging is a Merge being drawn.
type merging struct {
	*Merge
	*trace.Builder
	layout   RankLayout
	clockIDs []trace.ClockID // of each of Merge.clocks
	classes  *classifier
	compare  [roles]trace.TrackID // the groups of "Side by side"; 0 is none
}

// Layout draws everything and returns the finished trace. The events of PyTorch
// traces are given up on the way: a Merge can be drawn once.
func (m *Merge) Layout(view View, ranks RankLayout) *trace.Trace {
	b := trace.NewBuilder(m.dump.Syms, m.dump.Args, m.diags)
	d := &merging{Merge: m, Builder: b, layout: ranks, classes: newClassifier(m.dump.Syms)}
	d.addClocks()
	describe(b, m.Requests, m.files)
	if m.Requests == nil {
		room := d.room()
		b.Grow(room.Slices, room.Instants, room.Flows)
		d.drawRanks()
		d.linkRanks()
		return b.Finish()
	}
	l := newLayout(m.Requests, b)
	l.clocks = make([]trace.ClockID, len(m.Requests.Procs))
	for p := range m.Requests.Procs {
		l.clocks[p] = d.clockIDs[m.clockOfProc(p)]
	}
	return l.drawViews(b, view, d.room(), func(requests *drawing) {
		if len(m.ranks) > 0 {
			d.drawRanks()
			d.linkRanks()
			d.linkSteps(requests)
		}
	})
}

// room returns how many rows the ranks will take, as far as that is known before.
func (m *merging) room() (r trace.Room) {
	for _, f := range m.files {
		if m.layout != LayoutCompare {
			r.Slices += len(f.Events)
			r.Flows += len(f.Work) + len(f.Arrows)/2
		}
		if m.layout != LayoutRanks {
			r.Slices += len(f.Steps) + len(f.Work)
		}
		r.Instants += len(f.Instants)
	}
	return r
}

// name returns the string of a symbol.
func (m *merging) name(s trace.Sym) string { return m.dump.Syms.Name(s) }

package drawing

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/sgtrace/sgtrace/convert/clocks"
	"github.com/sgtrace/sgtrace/convert/drawing/counters"
	"github.com/sgtrace/sgtrace/convert/inputs"
	"github.com/sgtrace/sgtrace/convert/ranks"
	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// RankLayout says which groups of tracks profiles become.
type RankLayout uint8

const (
	LayoutBoth    RankLayout = iota
	LayoutRanks              // "By rank": rank > threads and streams
	LayoutCompare            // "Side by side": role > ranks
)

// ParseRankLayout reads the value of --layout.
func ParseRankLayout(s string) (RankLayout, error) {
	return chosenBy[RankLayout]("--layout", s, "both", "ranks", "compare")
}

// merging is the state of drawing ranks.
type merging struct {
	in      *inputs.Loaded
	of      *ranks.Assignment
	clocks  *clocks.Alignment
	b       *trace.Builder
	layout  RankLayout
	classes *classifier
	compare [roles]trace.TrackID // the groups of "Side by side"; 0 is none
	drawn   map[*inputs.ProcessProfile]*drawnFile
	nestKey trace.Sym // key of the argument that holds shapes
}

// drawnFile is the state of drawing a recording.
type drawnFile struct {
	nested  []Nested
	begins  map[int32]int   // by first event, the first of nested that begins with it
	slices  []trace.SliceID // of each event, in the group "By rank"; 0 is none
	joined  joinedSlices
	pending int // number of captures not drawn yet
}

// slice returns the slice of event i in the group "By rank", 0 if there is none.
func (d *drawnFile) slice(i int32) trace.SliceID {
	if i == profile.NoEvent || len(d.slices) == 0 {
		return 0
	}
	return d.slices[i]
}

// joinedSlices are the slices of collectives and steps, which arrows between files may join: in the group
// "Side by side" if they are there, or else in "By rank".
type joinedSlices map[int32]trace.SliceID

func (j joinedSlices) has(event int32) bool {
	_, ok := j[event]
	return ok
}

// joinable returns the events of a recording that arrows between files may join.
func joinable(f *profile.Profile) joinedSlices {
	joined := joinedSlices{}
	for i := range f.Collectives.Len() {
		if c := f.Collectives.At(i); c.Event != profile.NoEvent && c.OnGPU {
			joined[c.Event] = 0
		}
	}
	for i := range f.Steps {
		if s := &f.Steps[i]; s.Event != profile.NoEvent {
			joined[s.Event] = 0
		}
	}
	return joined
}

// Draw draws everything and returns the finished trace. It releases the events of profiles on the way, so
// they can be drawn only once.
func Draw(in *inputs.Loaded, of *ranks.Assignment, aligned *clocks.Alignment, opt Options) *trace.Trace {
	b := trace.NewBuilder(in.Spans.Syms, in.Spans.Args, in.Diags)
	d := &merging{in: in, of: of, clocks: aligned, b: b, layout: opt.Ranks, classes: &classifier{syms: in.Spans.Syms}, drawn: map[*inputs.ProcessProfile]*drawnFile{}}
	used := of.CapturesByFile()
	for i, f := range of.Files {
		d.drawn[f] = &drawnFile{joined: joinable(f.Profile), pending: used[f]}
		if i < len(opt.Nested) {
			d.nest(d.drawn[f], opt.Nested[i])
		}
	}
	d.noteClocks()
	describe(b, in.Requests, in.Series, of.Files)
	profiles := d.recorded()
	if in.Requests == nil {
		told := d.told(opt.Window)
		drawFindings(b, &opt, nil, cmp.Or(told, profiles), cmp.Or(profiles, told))
		drawLoad(b, nil, d)
		counters.Draw(b, in.Series, aligned, &opt.Chosen, loggedOrder)
		room := d.room()
		b.Grow(room)
		if len(of.Tracks) > 0 {
			d.drawRanks()
			d.linkRanks()
		}
		return noteOpening(b.Finish(), opt.Findings, profiles)
	}
	l := newLayout(in.Requests, b, opt)
	drawFindings(b, &opt, in.Requests, l.during, cmp.Or(profiles, l.during))
	l.waits = drawPaths(b, opt.Paths)
	drawLoad(b, l, d)
	counters.Draw(b, in.Series, aligned, &opt.Chosen, loggedOrder)
	t := l.drawViews(b, opt.View, d.room(), func(requests *drawing) {
		if len(of.Tracks) > 0 {
			d.drawRanks()
			d.linkRanks()
			d.linkSteps(requests)
		}
	})
	return noteOpening(t, opt.Findings, profiles)
}

// room estimates the capacity that the ranks need.
func (m *merging) room() (r trace.Capacity) {
	for _, f := range m.of.Files {
		work := order.Count(f.Events, func(s profile.Slice) bool { return s.IsWork() })
		if m.layout != LayoutCompare {
			r.Slices += len(f.Events)
			r.Flows += work + len(f.Arrows)/2
		}
		if m.layout != LayoutRanks {
			r.Slices += len(f.Steps) + work
		}
		r.Instants += len(f.Instants)
	}
	return r
}

// name returns the string of a symbol.
func (m *merging) name(s trace.Sym) string { return m.in.Spans.Syms.Name(s) }

// reach is how far from the median start a span may be and still be drawn. Anything farther is a broken
// clock or an unset time; a timeline of decades would show nothing, and Chrome JSON, whose times are
// doubles, could not resolve microseconds.
const reach = trace.Time(30 * 24 * time.Hour)

// leaveOutStrays leaves out the spans out of reach of the median, and returns the extent within reach.
func leaveOutStrays(set *request.Set) inputs.Extent {
	const samples = 1001
	n := set.Len()
	var starts []trace.Time
	for k := range memory.Each(min(n, samples), memory.FarApart) {
		starts = append(starts, set.Row(k*n/min(n, samples)).Start)
	}
	slices.Sort(starts)
	median := starts[len(starts)/2]
	e := inputs.Extent{From: max(0, median-min(median, reach)), To: median + min(reach, math.MaxInt64-median)}
	if count, first := set.LeaveOut(e.From, e.To); count > 0 {
		set.Diags.Add(trace.TimeOutOfReach.At(set.Pos(first), set.Name(first)).Times(count))
	}
	return e
}

// noteClocks records in the trace how the clocks of hosts relate.
func (m *merging) noteClocks() {
	report := m.clocks.Report(m.of)
	for i, c := range m.clocks.HostClocks {
		m.b.Attribute("sgtrace.clock."+c.Label(), strings.TrimPrefix(report.Clocks[i].String(), "clock of "))
	}
}

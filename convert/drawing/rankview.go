package drawing

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/sgtrace/sgtrace/convert/inputs"
	"github.com/sgtrace/sgtrace/convert/ranks"
	"github.com/sgtrace/sgtrace/format"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// row is a line of a rank, across all captures that have it.
type row struct {
	key   inputs.TrackKey
	first profile.Row
	lines []*inputs.TrackRow // by capture; nil if a capture has no such line
}

// rowsOf returns the rows of a rank in drawing order: the threads of each process, the main one first, then
// streams by device, asynchronous events, counters, and finally rows that matter only to the profiler.
func rowsOf(r *ranks.Track) []*row {
	index := map[inputs.TrackKey]*row{}
	var rows []*row
	for c, capture := range r.Captures {
		for i := range capture.File.Lines {
			l := &capture.File.Lines[i]
			if l.Key.Part != capture.Part || l.Empty() {
				continue
			}
			l = asProfilerRow(l)
			have, ok := index[l.Key]
			if !ok {
				have = &row{key: l.Key, first: l.Row, lines: make([]*inputs.TrackRow, len(r.Captures))}
				index[l.Key] = have
				rows = append(rows, have)
			}
			if have.lines[c] != nil {
				l = joinLines(capture.File, have.lines[c], l)
			}
			have.lines[c] = l
			have.first.Folder = cmp.Or(have.first.Folder, l.Row.Folder)
		}
	}
	slices.SortStableFunc(rows, func(a, b *row) int {
		x, y := &a.first, &b.first
		return cmp.Or(
			cmp.Compare(rowOrder[x.Kind], rowOrder[y.Kind]),
			cmp.Compare(x.ProcessSort, y.ProcessSort),
			cmp.Compare(x.PID, y.PID), strings.Compare(x.PIDText, y.PIDText),
			order.Bool(x.TID != x.PID, y.TID != y.PID),
			cmp.Compare(x.Sort, y.Sort),
			cmp.Compare(x.TID, y.TID), strings.Compare(x.TIDText, y.TIDText),
			strings.Compare(x.Name, y.Name),
		)
	})
	return rows
}

var rowOrder = [...]int{
	profile.RowThread: 0, profile.RowStream: 1, profile.RowAsync: 2,
	profile.RowCounter: 3, profile.RowOther: 4,
}

// drawRanks draws the groups "By rank", with a process for every rank, and "Side by side". It releases the
// events of a file as soon as they are drawn.
func (m *merging) drawRanks() {
	var group trace.TrackID
	if m.layout != LayoutCompare {
		group = m.b.Track(trace.Track{Kind: trace.KindGroup, Name: m.b.Intern(profile.ByRank), Order: 2, Rank: trace.NoRank,
			Desc: m.b.Intern(m.sources() + ", a group for every rank.")})
	}
	if m.layout != LayoutRanks {
		m.addCompareGroups()
	}
	for n, r := range m.of.Tracks {
		if m.layout != LayoutCompare {
			r.Track = m.b.Track(trace.Track{Parent: group, Kind: trace.KindProcess, Name: m.b.Intern(r.Name), Order: int32(n),
				Host: m.b.Intern(r.Host), PID: r.PID, Rank: r.Rank, Desc: m.b.Intern(r.Source())})
			m.drawRank(r)
		}
		if m.layout != LayoutRanks {
			m.drawCompared(r, n)
		}
		for _, c := range r.Captures {
			d := m.drawn[c.File]
			if d.pending--; d.pending == 0 {
				m.finish(c.File)
			}
		}
	}
}

// sources names the kinds of recordings that the ranks come from.
func (m *merging) sources() string {
	by := map[*format.Format]bool{}
	for _, r := range m.of.Files {
		for _, f := range r.Formats() {
			by[f] = true
		}
	}
	names := order.Each(format.Sorted(by), func(f *format.Format) string { return f.Noun + "s" })
	if last := len(names) - 1; last > 0 {
		return strings.Join(names[:last], ", ") + " and " + names[last]
	}
	return strings.Join(names, "")
}

// drawRank draws the rows of a rank below its track.
func (m *merging) drawRank(r *ranks.Track) {
	rows := rowsOf(r)
	processes := processesOf(rows)
	groups := rankGroups{m: m, rank: r, tracks: map[groupKey]trace.TrackID{}}
	for n, row := range rows {
		parent := r.Track
		if row.isOfProcess() && len(processes) > 1 {
			parent = groups.track(parent, processes[row.key.PID], trace.KindProcess, row.first.PID, n)
		}
		if row.first.Folder != "" {
			for name := range strings.SplitSeq(row.first.Folder, " > ") {
				parent = groups.track(parent, name, trace.KindGroup, row.first.PID, n)
			}
		}
		m.drawRow(r, row, parent, int32(n))
	}
}

// rankGroups are the tracks that group the rows of a rank: its processes, if there are several, and the
// folders that rows name.
type rankGroups struct {
	m      *merging
	rank   *ranks.Track
	tracks map[groupKey]trace.TrackID
}

type groupKey struct {
	parent trace.TrackID
	name   string
}

// track returns the track of a group, which is placed where its first row is.
func (g *rankGroups) track(parent trace.TrackID, name string, kind trace.TrackKind, pid int64, place int) trace.TrackID {
	key := groupKey{parent, name}
	return order.Memo(g.tracks, key, func() trace.TrackID {
		return g.m.b.Track(trace.Track{Parent: parent, Kind: kind, Name: g.m.b.Intern(name), Order: int32(place), PID: pid, Rank: g.rank.Rank})
	})
}

// isOfProcess reports whether a row belongs to a process rather than to a device with a folder of its own.
func (r *row) isOfProcess() bool {
	switch r.key.Kind {
	case profile.RowStream, profile.RowOther:
		return false
	case profile.RowCounter:
		return r.first.Folder == ""
	}
	return true
}

// processesOf returns the names of the processes that own threads and counters, by pid.
func processesOf(rows []*row) map[string]string {
	names := map[string]string{}
	for _, r := range rows {
		if !r.isOfProcess() {
			continue
		}
		name := strings.TrimSpace(r.first.Process)
		switch pid := r.first.PIDText; {
		case name == "":
			name = "process " + pid
		case !strings.Contains(name, pid):
			name += " " + pid
		}
		names[r.key.PID] = name
	}
	return names
}

// drawRow draws one row of a rank, with a track for every lane.
func (m *merging) drawRow(r *ranks.Track, row *row, parent trace.TrackID, place int32) {
	lanes, counter := 1, row.key.Kind == profile.RowCounter
	for _, l := range row.lines {
		if l != nil {
			lanes = max(lanes, len(l.Lanes))
		}
	}
	track := trace.Track{Parent: parent, Kind: trackKinds[row.key.Kind], Order: place, TID: row.first.TID, PID: row.first.PID,
		Rank: r.Rank, Host: m.b.Intern(r.Host), Unit: m.b.Intern(row.first.Unit)}
	name := m.rowName(r, row)
	defer m.drawNested(r, row, track, name)
	for k := range lanes {
		track.Name = m.laneName(name, k)
		id := m.b.Track(track)
		for c, l := range row.lines {
			if l == nil {
				continue
			}
			if k < len(l.Lanes) {
				m.drawEvents(r.Captures[c], l.Lanes[k], id)
			}
			if k == 0 {
				m.drawPoints(r.Captures[c], l, id, counter)
			}
		}
	}
}

// laneName returns the name of lane k of a row: the first has the name of the row; lane k holds events that
// started while k others were running.
func (m *merging) laneName(row string, k int) trace.Sym {
	if k > 0 {
		row = fmt.Sprintf("%s, %d at once", row, k+1)
	}
	return m.b.Intern(row)
}

var trackKinds = [...]trace.TrackKind{
	profile.RowThread: trace.KindThread, profile.RowStream: trace.KindStream, profile.RowAsync: trace.KindThread,
	profile.RowCounter: trace.KindCounter, profile.RowOther: trace.KindThread,
}

// drawEvents draws events of a capture on one track.
func (m *merging) drawEvents(c *ranks.Capture, events []uint32, track trace.TrackID) {
	f, d := c.File, m.drawn[c.File]
	if len(d.slices) == 0 {
		d.slices = make([]trace.SliceID, len(f.Events))
	}
	for _, e := range events {
		d.slices[e] = m.drawEvent(c, &f.Events[e], track)
	}
}

// drawEvent draws one event on a track, on the common clock.
func (m *merging) drawEvent(c *ranks.Capture, event *profile.Slice, track trace.TrackID) trace.SliceID {
	from := c.Time(event.Time)
	return m.b.Slice(trace.Slice{Time: from, Dur: int64(c.Time(event.End()) - from), Track: track, Name: event.Name, Cat: event.Cat, Args: event.Args}, 0)
}

// drawPoints draws the instants and samples of a line.
func (m *merging) drawPoints(c *ranks.Capture, l *inputs.TrackRow, track trace.TrackID, counter bool) {
	for _, i := range l.Instants {
		x := &c.File.Instants[i]
		m.b.Instant(trace.Instant{Time: c.Time(x.Time), Track: track, Name: x.Name, Args: x.Args})
	}
	if !counter {
		return
	}
	for _, i := range l.Samples {
		x := &c.File.Samples[i]
		m.b.Sample(trace.Sample{Time: c.Time(x.Time), Value: x.Value, Track: track})
	}
}

// rowName returns the name of a row: the producer's name for a thread; the device, stream, and main use for
// a stream.
func (m *merging) rowName(r *ranks.Track, row *row) string {
	name := strings.TrimSpace(row.first.Name)
	switch row.key.Kind {
	case profile.RowStream:
		name = cmp.Or(name, "stream "+row.first.TIDText)
		if r.Devices > 1 && row.first.Folder == "" {
			name = fmt.Sprintf("GPU %s %s", row.first.PIDText, name)
		}
		if role := m.streamRole(r, row); role != "" { // files written by this program have it already
			name = strings.TrimSuffix(name, " ("+role+")") + " (" + role + ")"
		}
	case profile.RowThread:
		name = cmp.Or(name, "thread "+row.first.TIDText)
	case profile.RowOther:
		name = cmp.Or(name, row.first.TIDText, row.first.PIDText, "profiler")
	}
	return cmp.Or(name, row.key.TID, strconv.Itoa(int(row.key.Kind)))
}

// profilerRow is the row for everything that a profiler says about itself. profilerRows are PyTorch's own
// names for such rows, each of which has only a slice or two.
const profilerRow = "profiler"

var profilerRows = []string{"PyTorch Profiler", "Trace PyTorch Profiler", "Trace", profilerRow}

// asProfilerRow moves a line that is about the profiler itself to the profiler's row, and returns any other
// line unchanged.
func asProfilerRow(l *inputs.TrackRow) *inputs.TrackRow {
	name := cmp.Or(strings.TrimSpace(l.Row.Name), l.Row.TIDText, l.Row.PIDText)
	if l.Key.Kind != profile.RowOther || !slices.Contains(profilerRows, name) {
		return l
	}
	own := *l
	own.Key = inputs.TrackKey{Part: l.Key.Part, Kind: profile.RowOther, TID: profilerRow}
	own.Row.Name = profilerRow
	return &own
}

// joinLines merges two lines of a file into one, in lanes in which events nest.
func joinLines(f *inputs.ProcessProfile, a, b *inputs.TrackRow) *inputs.TrackRow {
	events := slices.Concat(slices.Concat(a.Lanes, b.Lanes)...)
	slices.SortStableFunc(events, func(x, y uint32) int {
		p, q := &f.Events[x], &f.Events[y]
		return cmp.Or(cmp.Compare(p.Time, q.Time), cmp.Compare(q.Dur, p.Dur))
	})
	joined := *a
	joined.Lanes = inputs.SplitLanes(f.Events, events, f.Tolerance)
	joined.Instants = slices.Concat(a.Instants, b.Instants)
	joined.Samples = slices.Concat(a.Samples, b.Samples)
	return &joined
}

// Categories of the modules and operators that launched kernels. They differ from those of modules and operators
// that ran, so that a reader of the timeline does not count them.
const (
	moduleCategory   = "graph_module"
	operatorCategory = "graph_operator"
)

// nest prepares a file for drawing the modules and operators that launched its kernels.
func (m *merging) nest(d *drawnFile, nested []Nested) {
	d.nested, d.begins = nested, make(map[int32]int, len(nested))
	for i := range nested {
		if _, ok := d.begins[nested[i].First]; !ok {
			d.begins[nested[i].First] = i
		}
	}
	m.nestKey = m.b.Intern("Input Dims")
}

// drawNested adds a track behind a stream's row, with the modules and operators that launched its graph kernels.
// track and name are those of the row.
func (m *merging) drawNested(r *ranks.Track, row *row, track trace.Track, name string) {
	if row.key.Kind != profile.RowStream {
		return
	}
	id := trace.TrackID(0)
	module, operator := m.b.Intern(moduleCategory), m.b.Intern(operatorCategory)
	for c, l := range row.lines {
		capture := r.Captures[c]
		d := m.drawn[capture.File]
		if l == nil || len(d.nested) == 0 {
			continue
		}
		for _, lane := range l.Lanes {
			for _, event := range lane {
				at, ok := d.begins[int32(event)]
				if !ok {
					continue
				}
				if id == 0 {
					track.Name = m.b.Intern(name + ": modules and operators")
					track.Desc = m.b.Intern("what launched the kernels of CUDA graphs when these were captured")
					id = m.b.Track(track)
				}
				for ; at < len(d.nested) && d.nested[at].First == int32(event); at++ {
					n := &d.nested[at]
					from := capture.Time(n.From)
					s := trace.Slice{Time: from, Dur: int64(capture.Time(n.To) - from), Track: id, Name: n.Name, Cat: module}
					if n.Operator {
						s.Cat = operator
					}
					if n.Shapes != 0 {
						s.Args = m.b.Args().Put(trace.ArgList(nil).String(m.nestKey, m.name(n.Shapes)))
					}
					m.b.Slice(s, 0)
				}
			}
		}
	}
}

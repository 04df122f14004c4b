package dataset

import (
	"strconv"

	"github.com/sgtrace/sgtrace/format"
	"github.com/sgtrace/sgtrace/profile"
)

// Names of walks over rows in diagnostics.
const (
	duringKernels    = "kernels"
	duringCopies     = "copies"
	duringCalls      = "calls"
	duringRanges     = "ranges"
	duringFrames     = "frames"
	duringSamples    = "samples"
	duringBacktraces = "backtraces"
	duringRuns       = "runs"
	duringCounters   = "counters"
)

// A walking writes rows that are walked, one kind after another.
type walking struct {
	*writer
	profile.Stream
	pids   []int32          // by the rank that the stream uses
	places map[int32]*Place // by pid
}

// walked writes the rows of a walked recording.
func (w *writer) walked() {
	if w.content.Source == nil || w.content.Source.Rows == nil {
		return
	}
	x := &walking{writer: w, places: map[int32]*Place{}}
	numbers := map[int32]int32{}
	x.Stream = w.content.Source.Rows(func(pid int32) int32 {
		n, ok := numbers[pid]
		if !ok {
			n = int32(len(x.pids))
			numbers[pid], x.pids = n, append(x.pids, pid)
		}
		return n
	})
	for _, walk := range []struct {
		during string
		write  func()
	}{
		{duringKernels, x.kernels}, {duringCopies, x.copies}, {duringCalls, x.calls}, {duringRanges, x.ranges}, {duringFrames, x.frames},
		{duringSamples, x.samples}, {duringBacktraces, x.backtraces}, {duringRuns, x.runs}, {duringCounters, x.counters},
	} {
		walk.write()
		w.content.Note(walk.during)
	}
}

// place returns the place of the rows of a process.
func (x *walking) place(pid int32) Place {
	if p := x.places[pid]; p != nil {
		return *p
	}
	p := &Place{Process: -1, Thread: -1, PID: int64(pid)}
	if len(x.content.Source.Profiles) > 0 {
		p.Host = x.content.Source.Profiles[0].Meta.Host
	}
	for _, is := range x.content.identityOf(int64(pid)) {
		p.Rank = is.Rank.String()
	}
	x.places[pid] = p
	return *p
}

// slice returns the table row for an event.
func (x *walking) slice(e *profile.Event, kind string) sliceRow {
	return sliceRow{Start: int64(e.Start), Dur: int64(e.End - e.Start), Place: x.place(e.PID), Kind: kind, Name: x.name(e.Name), Device: -1, Stream: -1, Correlation: e.Correlation}
}

func (x *walking) kernels() {
	l := lazy[sliceRow]{of: x.writer, name: kernelsFile.name}
	x.Kernels(func(k *profile.Kernel) bool {
		row := x.slice(&k.Event, KernelKind(k))
		row.Device, row.Stream, row.Blocks, row.OneBlock = k.Device, int64(k.Stream), known(k.Grid.Blocks()), known(k.Grid.OneBlock())
		l.write(row)
		return true
	})
	l.close()
}

func (x *walking) copies() {
	l := lazy[sliceRow]{of: x.writer, name: copiesFile.name}
	x.Copies(func(c *profile.Copy) bool {
		row, bytes := x.slice(&c.Event, copiesFile.kind), c.Bytes
		row.Device, row.Stream, row.From, row.To = c.Device, int64(c.Stream), c.Kind.From.String(), c.Kind.To.String()
		if bytes >= 0 {
			row.Bytes = &bytes
		}
		l.write(row)
		return true
	})
	l.close()
}

func (x *walking) calls() {
	l := lazy[sliceRow]{of: x.writer, name: callsFile.name}
	x.Calls(func(c *profile.Call) bool {
		row, result := x.slice(&c.Event, callsFile.kind), c.Result
		row.TID = c.TID
		if result != profile.UnknownResult {
			row.Result = &result
		}
		l.write(row)
		return true
	})
	l.close()
}

func (x *walking) ranges() {
	l := lazy[sliceRow]{of: x.writer, name: rangesFile.name}
	x.Ranges(func(r *profile.Range) bool {
		row := x.slice(&r.Event, rangesFile.kind)
		row.TID, row.Style, row.Open = r.TID, rangeStyles[r.Style], r.Open
		l.write(row)
		return true
	})
	l.close()
}

func (x *walking) frames() {
	l := lazy[operatorRow]{of: x.writer, name: systemFile.name}
	x.Frames(func(f *profile.Frame) bool {
		l.write(operatorRow{Start: int64(f.Start), Dur: int64(f.End - f.Start), Place: x.place(f.PID), Kind: frameKinds[f.Kind], Name: x.name(f.Name), TID: f.TID,
			Shapes: x.name(f.Shapes), Types: x.name(f.Types)})
		return true
	})
	l.close()
}

func (x *walking) sample(s *profile.Sample, kind string) sampleRow {
	return sampleRow{Start: int64(s.Start), Dur: int64(s.End - s.Start), Place: x.place(s.PID), Kind: kind, Name: x.name(s.Name), TID: s.TID, CPU: s.CPU,
		Stack: int32(s.Stack), Correlation: s.Correlation}
}

func (x *walking) samples()    { x.stacked("samples", sampleKind, x.Samples) }
func (x *walking) backtraces() { x.stacked("backtraces", backtraceKind, x.Backtraces(nil)) }

// stacked writes samples or backtraces, and the stacks that they refer to.
func (x *walking) stacked(name, kind string, walk func(func(*profile.Sample) bool)) {
	l := lazy[sampleRow]{of: x.writer, name: "samples-" + name}
	var stacks *profile.Stacks
	walk(func(s *profile.Sample) bool {
		stacks = s.Stacks
		l.write(x.sample(s, kind))
		return true
	})
	l.close()
	if stacks == nil {
		return
	}
	t := lazy[stackRow]{of: x.writer, name: "stacks-" + name}
	for id := range stacks.Len() {
		f := stacks.Frame(profile.StackID(id + 1))
		t.write(stackRow{Stack: int32(id + 1), Caller: int32(f.Caller), Function: x.name(f.Function), Module: x.name(f.Module), Kind: kind})
	}
	t.close()
}

func (x *walking) runs() {
	l := lazy[sampleRow]{of: x.writer, name: "samples-runs"}
	x.Runs(func(r *profile.Run) bool {
		l.write(sampleRow{Start: int64(r.Start), Dur: int64(r.End - r.Start), Place: x.place(r.PID), Kind: runKind, TID: r.TID, CPU: r.CPU})
		return true
	})
	l.close()
}

func (x *walking) counters() {
	l := lazy[counterRow]{of: x.writer, name: "counters-samples"}
	x.CounterValues(func(v *profile.CounterValue) bool {
		pid := int32(-1)
		if v.Rank >= 0 {
			pid = x.pids[v.Rank]
		}
		l.write(counterRow{Time: int64(v.Time), Place: x.place(pid), Source: x.name(v.Source), Name: x.name(v.Name), Unit: x.name(v.Unit), Kind: counterKinds[v.Kind], Value: v.Value})
		return true
	})
	l.close()
}

// drawn returns the profiles of a walked recording, with the events that a filter keeps, for timelines
// without the original. They have only what the capture stores, and generic names for rows.
func (c *Capture) drawn(name string, opt *format.Options) ([]*profile.Profile, error) {
	index := *opt
	index.Filter = profile.Filter{IndexOnly: true}
	outlines, err := c.readProfiles(name, "", &index)
	if err != nil {
		return nil, err
	}
	plain := *opt // rows that are walked have no fingerprint
	plain.Filter.Fingerprint = false
	profiles, err := c.readProfiles(name, collectivesView, &plain)
	for _, p := range profiles {
		for _, o := range outlines {
			if o.Meta.PID == p.Meta.PID {
				p.First, p.Last, p.Total = o.First, o.Last, o.Total
			}
		}
	}
	return profiles, err
}

// A walkedSpot locates rows of a walked recording, which name no thread of a profile, but a process and
// thread, or a device and stream.
type walkedSpot struct {
	profiles   map[int64]*profile.Profile // by pid
	rows       map[*profile.Profile]map[profile.Row]int32
	kind       profile.RowKind
	word       string // prefix of the names of new rows
	pid        *cell
	above, own *cell // process or device, and thread or stream
}

func (r *restoring) walkedSpot(file *file, in *rows) *walkedSpot {
	w := &walkedSpot{profiles: map[int64]*profile.Profile{}, rows: map[*profile.Profile]map[profile.Row]int32{}, pid: in.column("pid")}
	w.kind, w.word, w.above, w.own = profile.RowThread, "thread ", w.pid, in.column("tid")
	if file == kernelsFile || file == copiesFile {
		w.kind, w.word, w.above, w.own = profile.RowStream, "stream ", in.column("device"), in.column("stream")
	}
	for _, p := range r.profiles {
		known := map[profile.Row]int32{}
		for i, row := range p.Rows {
			known[profile.Row{Kind: row.Kind, PID: row.PID, TID: row.TID}] = int32(i)
		}
		w.profiles[p.Meta.PID], w.rows[p] = p, known
	}
	return w
}

// place returns the profile of the current row, nil if there is none, and the row there, which is added if
// it is new.
func (w *walkedSpot) place() (*profile.Profile, int32) {
	p := w.profiles[w.pid.int()]
	if p == nil {
		return nil, 0
	}
	row := profile.Row{Kind: w.kind, PID: w.above.int(), TID: w.own.int()}
	i, ok := w.rows[p][row]
	if !ok {
		i = int32(len(p.Rows))
		w.rows[p][row] = i
		row.PIDText, row.TIDText = strconv.FormatInt(row.PID, 10), strconv.FormatInt(row.TID, 10)
		row.Name = w.word + row.TIDText
		p.Rows = append(p.Rows, row)
	}
	return p, i
}

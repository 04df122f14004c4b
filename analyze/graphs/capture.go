package graphs

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/profilewalk"
	"github.com/sgtrace/sgtrace/internal/lazyregexp"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// Unknown stands for an unknown number.
const Unknown = -1

// A Capture is what was launched between the begin and the end of one capture of a graph.
type Capture struct {
	File   string
	Rank   string // that captured it
	Tokens int64  // number of tokens it was captured for; Unknown
	Number int    // among the captures of the same file, rank and tokens, in the order of time
	// Eager reports that nothing was captured: it is a pass through the model that ran without a graph.
	Eager bool
	// Launches are in the order of time. Their names are symbols of the replays' set.
	Launches []Captured
	// Frames are what the launches were in: operators and Python functions, outer ones first.
	Frames []Frame
	// sizes maps shapes in Frames and places to those that they stand for; nil if they stand for themselves.
	sizes   map[trace.Sym]trace.Sym
	places  []Place // by launch
	modules []int32 // by launch: frame of the innermost module around it; none
	batch   int64   // sequences of an eager pass; Unknown
}

// Work is the kind of a node of a graph.
type Work uint8

const (
	KernelWork Work = iota
	CopyWork
	FillWork
)

// A Captured is a launch at capture.
type Captured struct {
	Name  trace.Sym // of the kernel; 0 is unknown
	Work  Work
	Shape profile.LaunchShape
	Frame int32 // innermost frame around it: an index into Frames; none
	part  int32 // frame for the part of its operator that launched it, see Parts; none, or 0
}

// none stands for no frame, and for no launch.
const none = -1

// A Frame is an operator or a function of Python around launches at capture.
type Frame struct {
	Around        int32 // none
	Kind          profile.FrameKind
	Name          trace.Sym
	Shapes, Types trace.Sym // of the inputs of an operator; 0 is unknown. See [Capture.ShapesOf]
	Mask          profile.Mask
	Values        trace.Sym // [profile.Frame.Values]
}

// A process identifies a process of a stream.
type process struct{ rank, pid int32 }

// A window is the time of one capture.
type window struct {
	process
	from, to trace.Time
	tokens   int64
	batch    int64 // sequences
	pass     bool  // an eager one: what it was called from is not part of it
	launches []launchCall
	threads  map[int64][]threadFrame
}

func newWindow(of process, from, to trace.Time) *window {
	return &window{process: of, from: from, to: to, tokens: Unknown, batch: Unknown, threads: map[int64][]threadFrame{}}
}

// A launchCall is a call at capture.
type launchCall struct {
	Captured
	at          trace.Time
	tid         int64
	correlation int64
}

// A threadFrame is what a thread was in at capture.
type threadFrame struct {
	Frame
	from, to trace.Time
}

// captureReader reads the captures of one stream.
type captureReader struct {
	syms    *trace.Symbols
	begins  *trace.PerName[bool]
	ends    *trace.PerName[bool]
	works   *trace.PerName[work]
	windows []*window // by process and time
}

// readCaptures returns the captures in a stream, whose symbols are syms; nil if it has none.
func readCaptures(syms *trace.Symbols, ranks []string, s profile.Stream) []*Capture {
	r := &captureReader{syms: syms, begins: profilewalk.NamesWith(syms, "StreamBeginCapture"), ends: profilewalk.NamesWith(syms, "StreamEndCapture"),
		works: trace.EachName(syms, workOf)}
	if r.findWindows(s); len(r.windows) == 0 {
		return nil
	}
	r.readSizes(s)
	r.readLaunches(s)
	r.readFrames(s)
	var captures []*Capture
	type group struct {
		rank   string
		tokens int64
	}
	numbers := map[group]int{}
	slices.SortStableFunc(r.windows, func(a, b *window) int { return cmp.Compare(a.from, b.from) })
	for _, w := range r.windows {
		if len(w.launches) == 0 {
			continue // a warm-up that captures nothing
		}
		c := w.capture(r.syms)
		c.Rank = ranks[w.rank]
		key := group{c.Rank, c.Tokens}
		c.Number = numbers[key]
		numbers[key]++
		captures = append(captures, c)
	}
	return captures
}

// findWindows finds the begins and ends of captures.
func (r *captureReader) findWindows(s profile.Stream) {
	var begins, ends []profile.Call
	for c := range s.Calls {
		switch {
		case r.begins.Of(c.Name):
			begins = append(begins, *c)
		case r.ends.Of(c.Name):
			ends = append(ends, *c)
		}
	}
	byStart := func(a, b profile.Call) int { return cmp.Compare(a.Start, b.Start) }
	slices.SortStableFunc(begins, byStart)
	slices.SortStableFunc(ends, byStart)
	for i := range begins {
		b := &begins[i]
		at := slices.IndexFunc(ends, func(e profile.Call) bool {
			return e.Rank == b.Rank && e.PID == b.PID && e.TID == b.TID && e.Start >= b.End
		})
		if at < 0 {
			continue // the recording ended first
		}
		r.windows = append(r.windows, newWindow(process{b.Rank, b.PID}, b.End, ends[at].Start))
		ends = slices.Delete(ends, at, at+1)
	}
	r.sortWindows()
}

// sortWindows sorts the windows as overlapping needs them.
func (r *captureReader) sortWindows() {
	slices.SortStableFunc(r.windows, func(a, b *window) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.pid, b.pid), cmp.Compare(a.from, b.from))
	})
}

// overlapping yields the windows of a process that overlap a time.
func (r *captureReader) overlapping(e *profile.Event) func(yield func(*window) bool) {
	return func(yield func(*window) bool) {
		p := process{e.Rank, e.PID}
		at, _ := slices.BinarySearchFunc(r.windows, e, func(w *window, e *profile.Event) int {
			return cmp.Or(cmp.Compare(w.rank, p.rank), cmp.Compare(w.pid, p.pid), cmp.Compare(w.to, e.Start))
		})
		for ; at < len(r.windows) && r.windows[at].process == p && r.windows[at].from <= e.End; at++ {
			if !yield(r.windows[at]) {
				return
			}
		}
	}
}

// captureName is how servers annotate a capture: "capture_32_FULL".
var captureName = lazyregexp.New(`^capture_(\d+)_[A-Za-z]+$`)

// readSizes reads the annotations around captures.
func (r *captureReader) readSizes(s profile.Stream) {
	for a := range s.Ranges {
		for w := range r.overlapping(&a.Event) {
			m := captureName.FindStringSubmatch(r.syms.Name(a.Name))
			if m == nil {
				break
			}
			w.tokens, _ = strconv.ParseInt(m[1], 10, 64)
		}
	}
}

// A work is the node that a call puts into a graph; some is false if it puts none.
type work struct {
	work Work
	some bool
}

// workOf returns what a call captures, by its name.
func workOf(call string) work {
	switch {
	case strings.Contains(call, "GraphLaunch"), strings.Contains(call, "HostFunc"), strings.Contains(call, "GetAttribute"):
		return work{}
	case strings.Contains(call, "Launch"):
		return work{KernelWork, true}
	case strings.Contains(call, "Memcpy"):
		return work{CopyWork, true}
	case strings.Contains(call, "Memset"):
		return work{FillWork, true}
	}
	return work{}
}

// readLaunches reads what was launched in captures. A driver call within the runtime call that
// has its correlation is the same launch.
func (r *captureReader) readLaunches(s profile.Stream) {
	seen := map[process]map[int64]bool{}
	for c := range s.Calls {
		of := r.works.Of(c.Name)
		if !of.some {
			continue
		}
		for w := range r.overlapping(&profile.Event{Start: c.Start, End: c.Start, Rank: c.Rank, PID: c.PID}) {
			if seen[w.process] == nil {
				seen[w.process] = map[int64]bool{}
			}
			if c.Correlation != 0 && seen[w.process][c.Correlation] {
				break
			}
			seen[w.process][c.Correlation] = true
			w.launches = append(w.launches, launchCall{Captured{c.Kernel, of.work, c.Shape, none, none}, c.Start, c.TID, c.Correlation})
			break
		}
	}
}

// readFrames reads what threads were in during captures.
func (r *captureReader) readFrames(s profile.Stream) {
	for f := range s.Frames {
		if f.Kind != profile.SystemFrame {
			r.addFrame(f)
		}
	}
}

// addFrame adds a frame to the captures that it overlaps.
func (r *captureReader) addFrame(f *profile.Frame) {
	for w := range r.overlapping(&f.Event) {
		if w.pass && f.Start < w.from {
			continue
		}
		w.threads[f.TID] = append(w.threads[f.TID], threadFrame{Frame{none, f.Kind, f.Name, f.Shapes, f.Types, f.Mask, f.Values}, f.Start, max(f.End, f.Start+1)})
	}
}

// capture makes the capture of a window. It keeps only the frames around launches.
func (w *window) capture(syms *trace.Symbols) *Capture {
	slices.SortStableFunc(w.launches, func(a, b launchCall) int { return cmp.Compare(a.at, b.at) })
	c := &Capture{Tokens: w.tokens, batch: w.batch}
	stacks := map[int64]*openFrames{}
	for tid, frames := range w.threads {
		slices.SortStableFunc(frames, func(a, b threadFrame) int {
			return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(b.to, a.to), cmp.Compare(b.Kind, a.Kind))
		})
		stacks[tid] = &openFrames{frames: frames}
	}
	parts := NewParts(syms)
	for i := range w.launches {
		l := &w.launches[i]
		if stack := stacks[l.tid]; stack != nil {
			l.Frame = stack.at(l.at, c)
			l.part = stack.part(stack.launched, parts, c)
			stack.launched = l.at
		}
		c.Launches = append(c.Launches, l.Captured)
	}
	return c
}

// openFrames go through the frames of a thread in the order of time.
type openFrames struct {
	frames []threadFrame
	next   int
	open   []int   // indices of frames
	kept   []int32 // by open frame: its index in the capture; none so far
	// launched is the time of the previous launch.
	launched trace.Time
}

// at returns the innermost frame at a time, and puts it and those around it into the capture.
func (o *openFrames) at(t trace.Time, c *Capture) int32 {
	for ; o.next < len(o.frames) && o.frames[o.next].from <= t; o.next++ {
		o.close(o.frames[o.next].from)
		o.open, o.kept = append(o.open, o.next), append(o.kept, none)
	}
	o.close(t)
	around := int32(none)
	for i, at := range o.open {
		if o.kept[i] == none {
			f := o.frames[at].Frame
			f.Around = around
			o.kept[i] = int32(len(c.Frames))
			c.Frames = append(c.Frames, f)
		}
		around = o.kept[i]
	}
	return around
}

// close closes the frames that ended by a time.
func (o *openFrames) close(t trace.Time) {
	for n := len(o.open); n > 0 && o.frames[o.open[n-1]].to <= t; n = len(o.open) {
		o.open, o.kept = o.open[:n-1], o.kept[:n-1]
	}
}

// translate brings the names of a capture into the symbols of the replays.
func (c *Capture) translate(from, to *trace.Symbols) {
	if from == to {
		return
	}
	names := trace.EachName(from, to.Intern)
	in := func(sym *trace.Sym) { *sym = names.Of(*sym) }
	for i := range c.Launches {
		in(&c.Launches[i].Name)
	}
	for i := range c.Frames {
		f := &c.Frames[i]
		in(&f.Name)
		in(&f.Shapes)
		in(&f.Types)
		in(&f.Values)
	}
}

// ShapesOf returns the shapes of the inputs of a frame; 0 is unknown.
func (c *Capture) ShapesOf(frame int32) trace.Sym { return c.sized(c.Frames[frame].Shapes) }

// sized returns the shapes that shapes in Frames stand for.
func (c *Capture) sized(shapes trace.Sym) trace.Sym {
	if c.sizes == nil {
		return shapes
	}
	return c.sizes[shapes]
}

// operator returns the innermost operator around a launch, as an index into Frames; none.
func (c *Capture) operator(launch int32) int32 { return c.innermost(c.Launches[launch].Frame) }

// innermost returns the innermost operator among a frame and those around it.
func (c *Capture) innermost(at int32) int32 {
	for at != none && c.Frames[at].Kind != profile.OperatorFrame {
		at = c.Frames[at].Around
	}
	return at
}

package drawing

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/sgtrace/sgtrace/convert/inputs"
	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/internal/parallel"
	"github.com/sgtrace/sgtrace/internal/similar"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// View says which groups of tracks a layout has.
type View uint8

const (
	ViewBoth    View = iota
	ViewThread       // host > process > lanes
	ViewRequest      // request > thread > stages
)

// ParseView reads the value of --view.
func ParseView(s string) (View, error) {
	return chosenBy[View]("--view", s, "both", "thread", "request")
}

// chosenBy parses the value of a flag that takes one of three values; the first one stands for the other two together.
func chosenBy[T ~uint8](flag, s, both, one, other string) (T, error) {
	if k := slices.Index([]string{both, one, other}, s); k >= 0 {
		return T(k), nil
	}
	return 0, fmt.Errorf("%s %q%s want %s, %s, or %s", flag, s, cmp.Or(similar.Hint(s, []string{one, other, both}), ":"), one, other, both)
}

// A layout is what both views of a Set share. A span becomes one slice per view.
//
// A unit is a span with everything that is drawn inside it: whatever the same thread did below it, as far
// as it nests. Lanes are packed with units.
type layout struct {
	set      *request.Set
	extent   inputs.Extent // of drawable times
	during   inputs.Extent // of the spans that are drawn
	edges    []edge
	counters []procCounters                     // by proc
	loads    []*serverLoad                      // in display order
	subject  []trace.SubjectID                  // of each part, with the color of its request
	identity []trace.ArgsID                     // of each part: its rid and related ids
	colored  requestSubjects                    // in the view by request
	groups   []requestGroup                     // of the view by request
	places   []requestPlace                     // of each request in that view
	parts    []trace.Sym                        // names of the parts
	cats     [request.Unselected + 1]trace.Sym  // category of each span kind
	phases   [request.DecodePhase + 1]trace.Sym // category of the stages of each phase
	names    layoutNames
	scopes   scopes
	waits    []drawnPiece // pieces of critical paths that wait for a stage
	outlined bool         // views of very many spans get an outline
}

type layoutNames struct {
	traceID, status, reason, aborted, failed, span trace.Sym
}

// Layout draws set and returns the finished trace. Lanes, names, and order depend only on the spans, not on
// how they were read.
func Layout(set *request.Set, opt Options) *trace.Trace {
	b := trace.NewBuilder(set.Syms, set.Args, set.Diags)
	l := newLayout(set, b, opt)
	l.noteClocks(b)
	describe(b, set, nil, nil)
	drawFindings(b, &opt, set, l.during, inputs.Extent{})
	l.waits = drawPaths(b, opt.Paths)
	drawLoad(b, l, nil)
	t := l.drawViews(b, opt.View, trace.Capacity{}, func(*drawing) {})
	return noteOpening(t, opt.Findings, inputs.Extent{})
}

// drawViews draws the views, and lets more draw the rest into room. more gets the thread view, or the
// request view if that is the only one. The two views are drawn in parallel.
func (l *layout) drawViews(b *trace.Builder, view View, room trace.Capacity, more func(d *drawing)) *trace.Trace {
	own, byRequest := l.rooms(), trace.Capacity{}
	if view != ViewThread {
		l.reportLeftOut()
		byRequest = l.requestRoom()
	}
	room.Flows += len(l.waits)
	if view == ViewRequest {
		l.reportForeign()
		b.Grow(room.Plus(byRequest).Plus(outlineRoom))
		l.drawMain(l.drawRequests(b, byRequest.Slices), more)
		return b.Finish()
	}
	room.Flows += len(l.edges)
	fork := b.Fork(room.Plus(total(own)).Plus(outlineRoom), byRequest.Plus(outlineRoom))[0]
	parallel.All(
		func() { l.drawMain(l.drawThreads(b, own), more) },
		func() {
			if view == ViewBoth {
				l.drawRequests(fork.Builder, byRequest.Slices)
			}
		})
	trace.Join(fork)
	return b.Finish()
}

// drawMain draws what belongs to the main view.
func (l *layout) drawMain(d *drawing, more func(d *drawing)) {
	d.linkPaths()
	more(d)
}

// total adds up capacities.
func total(rooms []trace.Capacity) (sum trace.Capacity) {
	for _, r := range rooms {
		sum = sum.Plus(r)
	}
	return sum
}

// outlineRoom is the capacity that an outline needs.
var outlineRoom = trace.Capacity{Slices: 1}

// fewSpans is how many spans the viewer draws quickly in a closed group.
const fewSpans = 20_000

// outline gives the group of a view with very many spans a slice that covers all of its time. The viewer
// draws a closed group from everything below it, unless the group has slices of its own: with 400,000
// spans, that took three quarters of a frame. A timeline without findings is meant for programs rather than
// people, and has only the spans.
func (l *layout) outline(b *trace.Builder, group trace.TrackID, spans int) {
	if !l.outlined || spans <= fewSpans {
		return
	}
	b.Slice(trace.Slice{Time: l.during.From, Dur: int64(l.during.To - l.during.From), Track: group, Name: b.Intern("expand this row to see the spans")}, 0)
}

// reportForeign reports the spans that belong to no request, and so have no place in the request view.
func (l *layout) reportForeign() {
	n, first := 0, request.None
	for i := range l.set.All() {
		if l.drawn(i) && l.set.RequestOf(i) == request.None {
			if n++; first == request.None {
				first = i
			}
		}
	}
	if n > 0 {
		l.set.Diags.Add(trace.NoRequest.At(l.set.Pos(first), l.set.Name(first)).Times(n))
	}
}

// newLayout collects what the views share. After that, the arguments of spans are no longer read, since the
// views add to them.
func newLayout(set *request.Set, b *trace.Builder, opt Options) *layout {
	l := &layout{set: set, outlined: opt.Findings != nil, extent: leaveOutStrays(set), parts: make([]trace.Sym, len(set.Parts))}
	for kind, cat := range map[request.Kind]string{
		request.Generic: "service", request.Root: "request", request.Envelope: "request",
		request.ThreadRow: "thread", request.Gateway: "gateway",
	} {
		l.cats[kind] = b.Intern(cat)
	}
	for phase := range l.phases {
		l.phases[phase] = b.Intern(request.Phase(phase).String())
	}
	l.names = layoutNames{b.Intern("trace_id"), b.Intern("status"), b.Intern("reason"),
		b.Intern(request.Aborted.String()), b.Intern(request.Failed.String()), b.Intern("span")}
	var groups []requestGroup
	parallel.All( // only one of these adds to the builder
		func() {
			for p := range l.parts {
				l.parts[p] = b.Intern(l.partName(p))
			}
			l.addSubjects(b)
		},
		func() { l.collectCounters() },
		func() { l.findEdges(b) },
		func() { l.collectLoads() },
		func() {
			if opt.View != ViewThread {
				groups = chooseRequests(set, opt)
			}
		},
		func() { l.scopes, l.during = newScopes(set, b), l.extentOf() })
	if opt.View != ViewThread {
		l.placeRequests(groups)
		l.addRequestSubjects(b)
	}
	return l
}

// rooms returns the capacity that the thread view needs for each proc, and reports the instants that it
// does not draw.
func (l *layout) rooms() []trace.Capacity {
	rooms := make([]trace.Capacity, len(l.set.Procs))
	for p := range l.counters {
		rooms[p].Samples = l.counters[p].room()
	}
	begin := func() *[]trace.Capacity {
		part := make([]trace.Capacity, len(rooms))
		return &part
	}
	parallel.Fold(l.set.Len(), request.RowSize, begin, func(part *[]trace.Capacity, from, to int) {
		for i := from; i < to; i++ {
			if l.drawn(i) {
				r := &(*part)[l.set.ProcOf(i)]
				r.Slices++
				r.Instants += l.instantsDrawn(i)
			}
		}
	}, func(part *[]trace.Capacity) {
		for p, r := range *part {
			rooms[p] = rooms[p].Plus(r)
		}
	})
	return rooms
}

// instantsDrawn returns how many instants of span i are drawn, and reports the others.
func (l *layout) instantsDrawn(i int) (n int) {
	for _, e := range l.set.InstantsOf(i) {
		if l.extent.Has(e.Time) {
			n++
			continue
		}
		l.set.Diags.Add(trace.EventOutOfReach.At(l.set.Pos(i), l.set.Syms.Name(e.Name), l.set.Name(i)))
	}
	if l.set.Kind(i) == request.ThreadRow && l.set.Threads[l.set.ThreadOf(i)].Status != request.Finished {
		n++
	}
	return n
}

// describe records which inputs the trace was made from.
func describe(b *trace.Builder, set *request.Set, said *series.Set, files []*inputs.ProcessProfile) {
	var names []string
	if set != nil {
		for _, f := range set.Files {
			names = append(names, f.Name)
		}
	}
	if said != nil {
		for i := range said.Sources {
			names = order.With(names, said.Sources[i].Name) // records can also be requests
		}
	}
	for _, f := range files {
		for _, x := range append([]*inputs.ProcessProfile{f}, f.Duplicates...) {
			names = order.With(names, x.Name) // an export is a recording of each of its processes
		}
	}
	b.Attribute("sgtrace.inputs", strings.Join(names, ", "))
	if set != nil {
		b.Attribute("sgtrace.requests", strconv.Itoa(len(set.Requests)))
		b.Attribute("sgtrace.spans", strconv.Itoa(spansOf(set)))
		describeScopes(b, set)
	}
}

// spansOf returns how many spans the files of a set hold, read or not.
func spansOf(set *request.Set) (n int) {
	return order.SumRows(set.Files, func(f *request.File) int { return f.Rows })
}

// drawn reports whether span i is drawn.
func (l *layout) drawn(i int) bool {
	k := l.set.Kind(i)
	return k != request.Duplicate && k != request.Unselected
}

// above returns the nearest drawn ancestor of span i, or None.
func (l *layout) above(i int) int {
	for p := l.set.Tree.Parent(i); p != request.None; p = l.set.Tree.Parent(p) {
		if l.drawn(p) {
			return p
		}
	}
	return request.None
}

// below calls f for the nearest drawn descendants of span i, by start.
func (l *layout) below(i int, f func(c int)) {
	for _, c := range l.set.Tree.Children(i) {
		if l.drawn(int(c)) {
			f(int(c))
		} else {
			l.below(int(c), f)
		}
	}
}

// A drawing is a view being drawn.
type drawing struct {
	*layout
	b       *trace.Builder
	isTop   []bool
	subject []trace.SubjectID                        // of each part
	roots   map[int]rootSlice                        // spans that stand for a whole request; nil if there are none
	slice   []trace.SliceID                          // of each span
	name    func(i int, kind request.Kind) trace.Sym // of request and thread spans
	scratch trace.ArgList
	text    []byte // scratch
}

func (l *layout) newDrawing(b *trace.Builder, isTop []bool) *drawing {
	return &drawing{layout: l, b: b, isTop: isTop, subject: l.subject, slice: memory.Make[trace.SliceID](l.set.Len())}
}

// on returns a copy of d for part of its spans, whose slices another goroutine adds to b.
func (d *drawing) on(b *trace.Builder) *drawing {
	part := *d
	part.b, part.scratch, part.text = b, nil, nil
	return &part
}

// unitSize is roughly how many bytes drawing a unit touches: some rows, their places in the tree, their
// arguments, and what the kernel maps with them.
const unitSize = 128 << 10

// draw draws units on the given track.
func (d *drawing) draw(units []unit, track trace.TrackID) {
	for _, u := range units {
		memory.Touch(unitSize)
		d.drawSpan(int(u.span), 0, track, d.about(int(u.span)))
	}
}

// drawSpan draws span i with the given subject inside slice parent, and everything that nests in it.
func (d *drawing) drawSpan(i int, parent trace.SliceID, track trace.TrackID, about trace.SubjectID) {
	s := d.set.Row(i)
	kind := d.set.Kind(i)
	slice := trace.Slice{Time: s.Start, Dur: s.Dur(), Track: track, Name: s.Name, Cat: d.category(s), Args: s.Args}
	if kind == request.Root || kind == request.ThreadRow {
		slice.Name = d.name(i, kind)
		about = d.about(i) // an envelope holds several parts
	}
	if kind == request.Root {
		slice.Args = d.rootArgs(i)
	}
	slice.Args = d.withScope(s, slice.Args)
	if slice.Dur < 0 {
		d.b.SetPos(d.set.Pos(i))
	}
	id := d.addSlice(i, parent, slice, about)
	for _, e := range d.set.InstantsOf(i) {
		if !d.extent.Has(e.Time) {
			continue
		}
		d.b.Instant(trace.Instant{Time: e.Time, Track: track, Name: e.Name, Args: e.Args})
	}
	if kind == request.ThreadRow {
		d.drawEnd(i, track)
	}
	proc := d.set.ProcOf(i)
	d.below(i, func(c int) {
		if !d.isTop[c] && d.set.ProcOf(c) == proc {
			d.drawSpan(c, id, track, about)
		}
	})
}

// addSlice adds the slice of span i. A span that stands for a whole request gets the request's name and the
// color of its outcome, and keeps its own name as an argument.
func (d *drawing) addSlice(i int, parent trace.SliceID, s trace.Slice, about trace.SubjectID) trace.SliceID {
	if root, ok := d.roots[i]; ok {
		d.scratch = d.scratch[:0].String(d.names.span, d.set.Name(i))
		s.Name, s.Args, about = root.name, d.b.Args().Put(d.scratch.Extend(s.Args)), root.about
	}
	if parent == 0 {
		d.slice[i] = d.b.Slice(s, about)
	} else {
		d.slice[i] = d.b.Child(parent, s, about)
	}
	return d.slice[i]
}

// rootArgs returns the attributes of a request span, with the trace ID and status of the request.
func (d *drawing) rootArgs(i int) trace.ArgsID {
	args := d.set.Row(i).Args
	r := d.set.RequestOf(i)
	if r == request.None {
		return args
	}
	req := &d.set.Requests[r]
	d.scratch = d.scratch[:0].String(d.names.traceID, d.set.TraceID(req)).String(d.names.status, req.Status.String())
	return d.b.Args().Put(d.scratch.Extend(args))
}

// drawEnd marks the end of a thread span that was aborted or failed.
func (d *drawing) drawEnd(i int, track trace.TrackID) {
	thread := d.set.ThreadOf(i)
	t := &d.set.Threads[thread]
	if t.Status == request.Finished {
		return
	}
	name := d.names.failed
	if t.Status == request.Aborted {
		name = d.names.aborted
	}
	args := d.b.Args().Put(trace.ArgList(nil).String(d.names.reason, d.set.ReasonOf(thread)))
	d.b.Instant(trace.Instant{Time: d.set.Row(i).End, Track: track, Name: name, Args: args})
}

// category returns the phase of a stage, and the kind of any other span.
func (l *layout) category(row *request.Row) trace.Sym {
	if row.Kind == request.Stage {
		return l.phases[row.Phase]
	}
	return l.cats[row.Kind]
}

// shorten returns the first eight characters of an ID, or the last eight of an ID made from a trace ID,
// since SGLang's own trace IDs begin with zeros.
func shorten(id string) string {
	if hex, ok := strings.CutPrefix(id, "trace:"); ok {
		return "trace " + hex[max(0, len(hex)-8):]
	}
	return id[:min(8, len(id))]
}

// source says where the events of p come from, for the viewer's help popup.
func source(p *request.Proc) string {
	var b strings.Builder
	fmt.Fprintf(&b, "OTLP spans of service %q, thread label %q", p.Service, p.Label)
	if p.Host != "" {
		fmt.Fprintf(&b, ", host %s", p.Host)
	}
	if p.PID != 0 {
		fmt.Fprintf(&b, ", pid (native thread ID) %d", p.PID)
	}
	if p.Instance != "" {
		fmt.Fprintf(&b, ", service instance %s", p.Instance)
	}
	return b.String()
}

// edge is an arrow between two spans.
type edge struct {
	from, to int32
	name     trace.Sym
}

// noteClocks records in the trace how the clocks of hosts relate. Spans carry the Unix time of the host
// that emitted them; the hosts are assumed to agree, and nothing is shifted.
func (l *layout) noteClocks(b *trace.Builder) {
	noted := map[string]bool{}
	for p := range l.set.Procs {
		host, why := l.set.Procs[p].Host, trace.SyncAssumed
		if len(noted) == 0 {
			why = trace.SyncRecorded
		}
		if !noted[host] {
			noted[host] = true
			b.Attribute("sgtrace.clock."+cmp.Or(host, "unknown host"), why.String()+": Unix time of the host, offset 0")
		}
	}
}

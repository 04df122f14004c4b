package trace

import (
	"cmp"
	"slices"
	"unsafe"

	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/internal/order"
)

// A Builder fills a [Trace]. Use one per output, from one goroutine.
type Builder struct {
	t     *Trace
	diags *Diags
	pos   Pos
	// names of the arguments that keep the true interval of a moved slice
	trueStart, trueEnd Sym
	// moved are the argument lists that keep one: a slice may be cut more than once.
	moved map[ArgsID]bool
}

// NewBuilder returns an empty Builder that shares the readers' symbols and
// arguments, and reports to diags.
func NewBuilder(syms *Symbols, args *Args, diags *Diags) *Builder {
	return &Builder{
		t: &Trace{
			Syms: syms, Args: args,
			Tracks: make([]Track, 1), Slices: make([]Slice, 1), About: make([]SubjectID, 1),
			Subjects: make([]Subject, 1),
		},
		diags:     diags,
		trueStart: syms.Intern("true_start_ns"),
		trueEnd:   syms.Intern("true_end_ns"),
		moved:     map[ArgsID]bool{},
	}
}

// Grow makes room for that many more slices, instants and flows.
func (b *Builder) Grow(slice, instant, flow int) {
	b.t.Slices = memory.Grow(b.t.Slices, slice)
	b.t.About = memory.Grow(b.t.About, slice)
	b.t.Instants = memory.Grow(b.t.Instants, instant)
	b.t.Flows = memory.Grow(b.t.Flows, flow)
}

// SetPos says where in the inputs the events that follow come from.
func (b *Builder) SetPos(p Pos) { b.pos = p }

// Intern returns the symbol of s.
func (b *Builder) Intern(s string) Sym { return b.t.Syms.Intern(s) }

// Args returns the arena for the arguments of events.
func (b *Builder) Args() *Args { return b.t.Args }

// Attribute adds to the description of the whole trace.
func (b *Builder) Attribute(key, value string) {
	b.t.Attributes = append(b.t.Attributes, Attribute{key, value})
}

// Track adds a track.
func (b *Builder) Track(t Track) TrackID {
	b.t.Tracks = append(b.t.Tracks, t)
	return TrackID(len(b.t.Tracks) - 1)
}

// Subject adds something that slices can be about.
func (b *Builder) Subject(s Subject) SubjectID {
	b.t.Subjects = append(b.t.Subjects, s)
	return SubjectID(len(b.t.Subjects) - 1)
}

// Slice adds a slice. One that ends before it starts is kept with no duration,
// its true times in its arguments, and counted.
func (b *Builder) Slice(s Slice, about SubjectID) SliceID {
	if s.Dur < 0 {
		b.diags.Add(NegativeDuration.At(b.pos, b.t.Syms.Name(s.Name), FormatDuration(-s.Dur)))
		s.Args = b.keepTrue(s.Args, s.Time, s.End())
		s.Dur = 0
	}
	b.t.Slices = memory.Append(b.t.Slices, s)
	b.t.About = memory.Append(b.t.About, about)
	return SliceID(len(b.t.Slices) - 1)
}

// Child adds a slice inside the slice parent, on the same track. Where it
// reaches over its parent it is cut, and its true times stay in its arguments.
// Producers whose clock has a coarse grid (SGLang: 256 ns) overreach normally.
func (b *Builder) Child(parent SliceID, s Slice, about SubjectID) SliceID {
	id := b.Slice(s, about)
	p, c := b.t.Slices[parent], &b.t.Slices[id]
	c.Track = p.Track
	b.cut(c, max(c.Time, p.Time), min(c.End(), p.End()))
	return id
}

// Instant adds a point event.
func (b *Builder) Instant(i Instant) { b.t.Instants = memory.Append(b.t.Instants, i) }

// Sample adds a value of a counter.
func (b *Builder) Sample(s Sample) { b.t.Samples = memory.Append(b.t.Samples, s) }

// Flow adds an arrow; one that lacks an end is counted and left out.
func (b *Builder) Flow(f Flow) {
	if f.From == 0 || f.To == 0 || f.From == f.To {
		b.diags.Add(FlowLost.At(b.pos, b.t.Syms.Name(f.Name)))
		return
	}
	b.t.Flows = memory.Append(b.t.Flows, f)
}

// keepTrue returns args with the true interval of a slice that is being moved in
// front, unless they have it already.
func (b *Builder) keepTrue(args ArgsID, from, to Time) ArgsID {
	if b.moved[args] {
		return args
	}
	id := b.t.Args.Put(ArgList(nil).Int(b.trueStart, int64(from)).Int(b.trueEnd, int64(to)).Extend(args))
	b.moved[id] = true
	return id
}

// cut changes s to [from, to), or to no duration at from if that is empty.
func (b *Builder) cut(s *Slice, from, to Time) {
	to = max(from, to)
	if from == s.Time && to == s.End() {
		return
	}
	s.Args = b.keepTrue(s.Args, s.Time, s.End())
	s.Time, s.Dur = from, int64(to-from)
}

// Finish orders all tables, makes the slices of every track nest and returns
// the trace. The Builder must not be used afterward.
func (b *Builder) Finish() *Trace {
	b.orderSlices()
	for from := 1; from < len(b.t.Slices); {
		to := from + 1
		for to < len(b.t.Slices) && b.t.Slices[to].Track == b.t.Slices[from].Track {
			to++
		}
		memory.Touch((to - from) * int(unsafe.Sizeof(Slice{})))
		b.nest(b.t.Slices[from:to])
		from = to
	}
	slices.SortStableFunc(b.t.Instants, func(x, y Instant) int {
		return cmp.Or(cmp.Compare(x.Track, y.Track), cmp.Compare(x.Time, y.Time))
	})
	slices.SortStableFunc(b.t.Samples, func(x, y Sample) int {
		return cmp.Or(cmp.Compare(x.Track, y.Track), cmp.Compare(x.Time, y.Time))
	})
	return b.t
}

// scattered is about how many bytes the kernel maps for each slice of a track: they lie between
// those of others.
const scattered = 512

// flowSize is about how many bytes a walk over arrows looks at in each: what it has of the slices
// at its ends lies apart.
const flowSize = 256

// orderSlices sorts slices by track, time and falling duration, and renames
// them in the flows. Tracks are ordered by counting, so that the comparison
// sort sees one track at a time, and none that was filled in order.
func (b *Builder) orderSlices() {
	n := len(b.t.Slices)
	at := make([]uint32, len(b.t.Tracks)+1)
	for i := range b.t.AllSlices() {
		at[b.t.Slices[i].Track+1]++
	}
	at[0] = 1
	for i := 1; i < len(at); i++ {
		at[i] += at[i-1]
	}
	by := memory.Make[SliceID](n)
	for i := range b.t.AllSlices() {
		track := b.t.Slices[i].Track
		by[at[track]] = i
		at[track]++
	}
	before := func(x, y SliceID) int {
		p, q := &b.t.Slices[x], &b.t.Slices[y]
		return cmp.Or(cmp.Compare(p.Time, q.Time), cmp.Compare(q.Dur, p.Dur), cmp.Compare(x, y))
	}
	for from := uint32(1); from < uint32(n); {
		to := at[b.t.Slices[by[from]].Track]
		group := by[from:to]
		memory.Touch(len(group) * scattered)
		if !slices.IsSortedFunc(group, before) {
			slices.SortFunc(group, before)
		}
		from = to
	}
	if !slices.IsSorted(by) { // the identity is sorted
		b.permute(by)
	}
}

// permute puts slice by[i] at place i.
func (b *Builder) permute(by []SliceID) {
	if len(b.t.Flows) > 0 {
		place := memory.Make[SliceID](len(by))
		for i, old := range by {
			place[old] = SliceID(i)
		}
		for i := range memory.Each(len(b.t.Flows), flowSize) {
			f := &b.t.Flows[i]
			f.From, f.To = place[f.From], place[f.To]
		}
	}
	order.Apply(b.t.Slices, by)
	order.Apply(b.t.About, by)
}

// maxDepth is how deep slices may nest; Perfetto drops what is below 512.
const maxDepth = 500

// closeUntil returns how many of the open slices are still open at t.
func closeUntil(open []*Slice, t Time) int {
	n := len(open)
	for n > 0 && open[n-1].End() <= t {
		n--
	}
	return n
}

// flatten takes the duration from a slice that is nested too deep.
func (b *Builder) flatten(s *Slice) {
	b.diags.Add(NestedTooDeep.At(b.pos, b.t.Syms.Name(s.Name), maxDepth))
	b.cut(s, s.Time, s.Time)
}

// nest makes the slices of one track, ordered by time, nest. Of two that
// overlap in part, the later one is cut where less is lost: at its end, as a
// child that overhangs, or at its start, as a sibling that begins too early.
func (b *Builder) nest(track []Slice) {
	var open []*Slice
	for i := range track {
		s := &track[i]
		if open = open[:closeUntil(open, s.Time)]; len(open) >= maxDepth {
			b.flatten(s)
		}
		for {
			if open = open[:closeUntil(open, s.Time)]; len(open) == 0 {
				break
			}
			top := open[len(open)-1]
			overlap, overhang := top.End()-max(s.Time, top.Time), s.End()-top.End()
			if overhang > 0 && overlap <= overhang {
				b.cut(s, top.End(), s.End())
				continue
			}
			b.cut(s, max(s.Time, top.Time), min(s.End(), top.End()))
			break
		}
		open = append(open, s)
	}
}

// Room is how many rows a table of a [Builder] has room for.
type Room struct{ Slices, Instants, Flows int }

// A Fork is a second Builder that fills the end of the tables of a first one,
// from another goroutine. Both share symbols, arguments, subjects and clocks;
// subjects and clocks must have been added before.
type Fork struct {
	*Builder
	first *Builder
	// The tables of the first Builder at their full length. Its own end where
	// the fork's begin.
	rows     []Slice
	about    []SubjectID
	instants []Instant
	flows    []Flow
}

// Fork reserves own rows for b and the given room behind them for the fork.
// Either may turn out to need more or less; only then rows are copied by Join.
func (b *Builder) Fork(own, fork Room) *Fork {
	b.Grow(own.Slices+fork.Slices, own.Instants+fork.Instants, own.Flows+fork.Flows)
	t := b.t
	f := &Fork{first: b, rows: t.Slices[:cap(t.Slices)], about: t.About[:cap(t.About)],
		instants: t.Instants[:cap(t.Instants)], flows: t.Flows[:cap(t.Flows)]}
	at := Room{len(t.Slices) + own.Slices, len(t.Instants) + own.Instants, len(t.Flows) + own.Flows}
	second := *b
	second.moved = map[ArgsID]bool{}
	second.t = &Trace{
		Syms: t.Syms, Args: t.Args, Tracks: make([]Track, 1), Subjects: t.Subjects,
		// Row 0 of the fork is the last row of b: no Builder writes row 0.
		Slices: f.rows[at.Slices-1 : at.Slices], About: f.about[at.Slices-1 : at.Slices],
		Instants: f.instants[at.Instants:at.Instants], Flows: f.flows[at.Flows:at.Flows],
	}
	t.Slices, t.About = t.Slices[:len(t.Slices):at.Slices], t.About[:len(t.About):at.Slices]
	t.Instants, t.Flows = t.Instants[:len(t.Instants):at.Instants], t.Flows[:len(t.Flows):at.Flows]
	f.Builder = &second
	return f
}

// Join returns the trace of the first Builder with that of the fork behind it.
// Both must be finished.
func (f *Fork) Join() *Trace {
	t, o := f.first.t, f.t
	track, slice := TrackID(len(t.Tracks)-1), SliceID(len(t.Slices)-1)
	t.Tracks = slices.Grow(t.Tracks, len(o.Tracks)-1)
	for _, x := range o.Tracks[1:] {
		if x.Parent != 0 {
			x.Parent += track
		}
		t.Tracks = append(t.Tracks, x)
	}
	for i := range o.AllSlices() {
		o.Slices[i].Track += track
	}
	for i := range o.Instants {
		o.Instants[i].Track += track
	}
	for i := range o.Flows {
		o.Flows[i].From += slice
		o.Flows[i].To += slice
	}
	for _, x := range o.Samples {
		x.Track += track
		t.Samples = memory.Append(t.Samples, x)
	}
	t.Slices, t.About = join(f.rows, t.Slices, o.Slices[1:]), join(f.about, t.About, o.About[1:])
	t.Instants, t.Flows = join(f.instants, t.Instants, o.Instants), join(f.flows, t.Flows, o.Flows)
	return t
}

// join returns a and b as one table. If b lies behind a in full, nothing moves.
func join[T any](full, a, b []T) []T {
	n := len(a) + len(b)
	inPlace := len(b) > 0 && n <= len(full) && &full[len(a)] == &b[0]
	if inPlace && (len(a) == 0 || &full[0] == &a[0]) {
		return full[:n]
	}
	return append(a, b...)
}

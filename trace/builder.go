package trace

import (
	"cmp"
	"slices"
	"sync"
	"unsafe"

	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/internal/parallel"
)

// A Builder fills a [Trace]. Use one per output, from one goroutine.
type Builder struct {
	t     *Trace
	diags *Diags
	pos   Pos
	// names of the arguments that keep the true interval of a slice that was moved
	trueStart, trueEnd Sym
	moved              *moved
}

// moved records the argument lists that already have a true interval, since a slice may be cut more than once.
type moved struct {
	sync.Mutex
	lists map[ArgsID]bool
}

// NewBuilder returns an empty Builder that shares the readers' symbols and arguments, and reports to diags.
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
		moved:     &moved{lists: map[ArgsID]bool{}},
	}
}

// Grow makes room for additional rows.
func (b *Builder) Grow(r Capacity) {
	parallel.All( // clearing new memory takes a second for some gigabytes
		func() { b.t.Slices = memory.Grow(b.t.Slices, r.Slices) },
		func() { b.t.Flows = memory.Grow(b.t.Flows, r.Flows) },
		func() { b.t.Instants = memory.Grow(b.t.Instants, r.Instants) },
		func() { b.t.About = memory.Grow(b.t.About, r.Slices) },
		func() { b.t.Samples = memory.Grow(b.t.Samples, r.Samples) })
}

// SetPos sets where in the inputs the following events come from.
func (b *Builder) SetPos(p Pos) { b.pos = p }

// Intern returns the symbol of s.
func (b *Builder) Intern(s string) Sym { return b.t.Syms.Intern(s) }

// Args returns the arena for the arguments of events.
func (b *Builder) Args() *Args { return b.t.Args }

// Attribute adds an attribute of the whole trace.
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

// Slice adds a slice. One that ends before it starts gets zero duration, with its true times in its
// arguments, and is reported.
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

// Child adds a slice inside the slice parent, on the same track. If it extends beyond its parent, it is
// cut, with its true times in its arguments. That is normal for producers with a coarse clock (SGLang: 256
// ns).
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

// Flow adds an arrow; an arrow without both ends is reported and left out.
func (b *Builder) Flow(f Flow) {
	if f.From == 0 || f.To == 0 || f.From == f.To {
		b.diags.Add(FlowLost.At(b.pos, b.t.Syms.Name(f.Name)))
		return
	}
	b.t.Flows = memory.Append(b.t.Flows, f)
}

// keepTrue returns args preceded by the true interval of a slice that is being moved, unless they have one
// already.
func (b *Builder) keepTrue(args ArgsID, from, to Time) ArgsID {
	b.moved.Lock()
	defer b.moved.Unlock()
	if b.moved.lists[args] {
		return args
	}
	id := b.t.Args.Put(ArgList(nil).Int(b.trueStart, int64(from)).Int(b.trueEnd, int64(to)).Extend(args))
	b.moved.lists[id] = true
	return id
}

// cut changes s to [from, to), or to zero duration at from if that is empty.
func (b *Builder) cut(s *Slice, from, to Time) {
	to = max(from, to)
	if from == s.Time && to == s.End() {
		return
	}
	s.Args = b.keepTrue(s.Args, s.Time, s.End())
	s.Time, s.Dur = from, int64(to-from)
}

// Finish sorts all tables, makes the slices of every track nest, and returns the trace. The Builder must
// not be used afterward.
func (b *Builder) Finish() *Trace {
	byTrack := b.orderSlices()
	parallel.All(
		func() {
			parallel.Each(len(b.t.Tracks), func(i int) {
				of := b.t.Slices[byTrack[i]:byTrack[i+1]]
				memory.Touch(len(of) * int(unsafe.Sizeof(Slice{})))
				b.nest(of)
			})
		},
		func() {
			sortStable(b.t.Instants, func(x, y Instant) int { return cmp.Or(cmp.Compare(x.Track, y.Track), cmp.Compare(x.Time, y.Time)) })
		},
		func() {
			sortStable(b.t.Samples, func(x, y Sample) int { return cmp.Or(cmp.Compare(x.Track, y.Track), cmp.Compare(x.Time, y.Time)) })
		})
	return b.t
}

// sortStable sorts a table that is usually sorted already.
func sortStable[T any](table []T, compare func(x, y T) int) {
	if !slices.IsSortedFunc(table, compare) {
		slices.SortStableFunc(table, compare)
	}
}

// scattered is roughly how many bytes the kernel maps for each slice of a track: slices of different tracks
// are interleaved.
const scattered = 512

// flowSize is roughly how many bytes a walk over arrows touches per arrow: the slices at its ends are far
// apart.
const flowSize = 256

// orderSlices sorts slices by track, time, and descending duration, and renumbers them in the flows. The
// slices of track i are then from begin[i] to begin[i+1]. Tracks are sorted by counting, so that the
// comparison sort handles one track at a time, and skips those that are sorted.
func (b *Builder) orderSlices() (begin []uint32) {
	tracks := len(b.t.Tracks)
	begin = make([]uint32, tracks+2)
	for i := range b.t.AllSlices() {
		begin[b.t.Slices[i].Track+2]++
	}
	begin[0], begin[1] = 1, 1
	for i := 2; i < len(begin); i++ {
		begin[i] += begin[i-1]
	}
	// begin[i+1] is now where the slices of track i begin; filling moves it to their end.
	by := memory.Make[SliceID](len(b.t.Slices))
	for i := range b.t.AllSlices() {
		at := &begin[b.t.Slices[i].Track+1]
		by[*at] = i
		*at++
	}
	before := func(x, y SliceID) int {
		p, q := &b.t.Slices[x], &b.t.Slices[y]
		return cmp.Or(cmp.Compare(p.Time, q.Time), cmp.Compare(q.Dur, p.Dur), cmp.Compare(x, y))
	}
	parallel.Each(tracks, func(i int) {
		of := by[begin[i]:begin[i+1]]
		memory.Touch(len(of) * scattered)
		if !slices.IsSortedFunc(of, before) {
			slices.SortFunc(of, before)
		}
	})
	if !slices.IsSorted(by) { // the identity permutation is sorted
		b.permute(by)
	}
	return begin
}

// permute moves slice by[i] to index i.
func (b *Builder) permute(by []SliceID) {
	if len(b.t.Flows) > 0 {
		place := memory.Make[SliceID](len(by))
		parallel.Rows(len(by), int(unsafe.Sizeof(Slice{})), func(from, to int) {
			for i, old := range by[from:to] {
				place[old] = SliceID(from + i)
			}
		})
		parallel.Rows(len(b.t.Flows), flowSize, func(from, to int) {
			for i := from; i < to; i++ {
				f := &b.t.Flows[i]
				f.From, f.To = place[f.From], place[f.To]
			}
		})
		memory.Free(place)
	}
	parallel.All(
		func() { order.Apply(b.t.Slices, by) },
		func() { order.Apply(b.t.About, by) })
}

// maxDepth is the maximum nesting depth of slices; Perfetto drops anything below 512.
const maxDepth = 500

// closeUntil returns how many of the open slices are still open at t.
func closeUntil(open []*Slice, t Time) int {
	n := len(open)
	for n > 0 && open[n-1].End() <= t {
		n--
	}
	return n
}

// flatten sets the duration of a slice that is nested too deep to zero.
func (b *Builder) flatten(s *Slice) {
	b.diags.Add(NestedTooDeep.At(b.pos, b.t.Syms.Name(s.Name), maxDepth))
	b.cut(s, s.Time, s.Time)
}

// nest makes the slices of one track, which are sorted by time, nest. Of two that partly overlap, the later
// one is cut where less is lost: at its end, as a child that overhangs, or at its start, as a sibling that
// begins too early.
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

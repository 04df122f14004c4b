package kernel

import (
	"cmp"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/profilewalk"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// A nest holds the ranges of one stream and finds those that a call lies in: on the same thread, and
// around all of the call. It takes 24 bytes per range.
//
// Ranges of a thread mostly nest. Where one crosses another, as StartEnd ranges do, and ranges whose
// clocks were corrected, they are spread over lanes, in each of which ranges nest.
type nest struct {
	spans   []span // by thread, lane and start: parents come before their children
	classes []rangeClass
	threads threadIndex
	lanes   [][]lane // by thread

	// Where several lanes of a thread have a range around a call, the call lies in all
	// of them: at a crossing, which consecutive calls share.
	crossings [][]int32 // innermost spans, one of each lane that has any
	crossing  []int32   // by thread: the crossing of the last call, plus one
	at        []int32   // scratch space

	open openRanges // ranges that were left out
}

// A span is a range. Its class has its name, style, and thread.
type span struct {
	start, end trace.Time
	class      int32
	parent     int32 // index of the range around it in its lane; none if there is none
}

const none = -1

// A rangeClass is the ranges of one name, style and thread.
type rangeClass struct {
	thread int32
	name   trace.Sym
	style  profile.RangeStyle
}

// A lane is a part of the spans, and the last one that began before the current call: calls come
// roughly in order.
type lane struct{ from, to, last int32 }

// A threadKey identifies a thread.
type threadKey struct {
	rank, pid int32
	tid       int64
}

// A threadIndex numbers threads.
type threadIndex struct {
	keys   []threadKey
	number map[threadKey]int32
	last   []int32 // by rank: the thread met last, plus one
}

func newThreadIndex(ranks int) threadIndex {
	return threadIndex{number: map[threadKey]int32{}, last: make([]int32, ranks)}
}

func (x *threadIndex) of(e *profile.Event, tid int64) int32 {
	key := threadKey{e.Rank, e.PID, tid}
	if last := x.last[e.Rank]; last > 0 && x.keys[last-1] == key {
		return last - 1
	}
	n := order.At(x.number, &x.keys, key, func() threadKey { return key })
	x.last[e.Rank] = n + 1
	return n
}

// A nestBuilder collects the ranges of a stream.
type nestBuilder struct {
	nest    *nest
	threads []nestThread
}

type nestThread struct {
	blocks  [][]span
	classes order.Paged[int32] // by name and style, plus one
}

// newNest reads the ranges of a stream that lie in the window. Ranges around one of them lie there,
// too.
func newNest(set *profile.Set, stream profile.Stream, opt *profilewalk.Options) *nest {
	b := &nestBuilder{nest: &nest{threads: newThreadIndex(len(set.Ranks))}}
	for r := range profile.Within(stream, opt.From, opt.To).Ranges {
		switch {
		case !opt.Keeps(&r.Event):
		case r.Open && !opt.Open:
			b.nest.open.add(1, r.Name)
		default:
			b.add(r)
		}
	}
	b.build(set.Syms.Names())
	return b.nest
}

func (b *nestBuilder) add(r *profile.Range) {
	const block = 4096
	thread := b.nest.threads.of(&r.Event, r.TID)
	for int(thread) >= len(b.threads) {
		b.threads = append(b.threads, nestThread{})
	}
	t := &b.threads[thread]
	class := t.classes.At(int64(r.Name)<<1 | int64(r.Style))
	if *class == 0 {
		b.nest.classes = append(b.nest.classes, rangeClass{thread, r.Name, r.Style})
		*class = int32(len(b.nest.classes))
	}
	if n := len(t.blocks); n == 0 || len(t.blocks[n-1]) == block {
		t.blocks = append(t.blocks, make([]span, 0, block))
	}
	last := &t.blocks[len(t.blocks)-1]
	*last = append(*last, span{r.Start, r.Start + trace.Time(r.Dur()), *class - 1, none})
}

// build orders the ranges.
func (b *nestBuilder) build(names []string) {
	n := b.nest
	total := 0
	for _, t := range b.threads {
		for _, block := range t.blocks {
			total += len(block)
		}
	}
	n.spans = make([]span, 0, total)
	n.lanes = make([][]lane, len(b.threads))
	n.crossing = make([]int32, len(b.threads))
	for i := range b.threads {
		from := len(n.spans)
		for _, block := range b.threads[i].blocks {
			n.spans = append(n.spans, block...)
		}
		b.threads[i] = nestThread{}
		n.lanes[i] = n.arrange(from, names)
	}
}

// arrange orders the ranges of a thread, which begin at from, and finds the parent of each.
func (n *nest) arrange(from int, names []string) []lane {
	spans := n.spans[from:]
	slices.SortFunc(spans, func(a, b span) int {
		if c := cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(b.end, a.end)); c != 0 || a.class == b.class {
			return c
		}
		x, y := n.classes[a.class], n.classes[b.class]
		return cmp.Or(strings.Compare(names[x.name], names[y.name]), cmp.Compare(x.style, y.style))
	})
	sizes := spread(spans)
	var lanes []lane
	for _, size := range sizes {
		to := from + size
		n.setParents(from, to)
		lanes = append(lanes, lane{int32(from), int32(to), int32(from)})
		from = to
	}
	return lanes
}

// setParents finds the parents within a lane.
func (n *nest) setParents(from, to int) {
	around := int32(none) // the range that began last among those that are open
	for i := from; i < to; i++ {
		s := &n.spans[i]
		for around != none && n.spans[around].end < s.end {
			around = n.spans[around].parent
		}
		s.parent = around
		around = int32(i)
	}
}

// spread orders spans by lane, and returns the sizes of the lanes. A span is in the
// first lane in which it crosses no other.
func spread(spans []span) []int {
	var stacks [][]int32 // by lane: spans that are open, innermost last
	var of []int32       // lane of every span; nil while all are in the first one
	sizes := []int{0}
	for i := range spans {
		l := 0
		for l < len(stacks) && !fits(spans, &stacks[l], &spans[i]) {
			l++
		}
		if l == len(stacks) {
			stacks = append(stacks, nil)
			sizes = append(sizes, 0)[:len(stacks)]
		}
		if l > 0 && of == nil {
			of = make([]int32, len(spans))
		}
		if of != nil {
			of[i] = int32(l)
		}
		stacks[l] = append(stacks[l], int32(i))
		sizes[l]++
	}
	if of == nil {
		return sizes
	}
	next := make([]int, len(sizes))
	for l := 1; l < len(sizes); l++ {
		next[l] = next[l-1] + sizes[l-1]
	}
	sorted := make([]span, len(spans))
	for i, s := range spans {
		sorted[next[of[i]]] = s
		next[of[i]]++
	}
	copy(spans, sorted)
	return sizes
}

// fits reports whether s crosses none of the spans that are open in a lane, which it
// first closes where they end before s begins.
func fits(spans []span, open *[]int32, s *span) bool {
	for n := len(*open); n > 0; n-- {
		top := &spans[(*open)[n-1]]
		if top.end >= s.end {
			return true
		}
		if top.end > s.start {
			return false
		}
		*open = (*open)[:n-1]
	}
	return true
}

// around returns the innermost span of a lane that begins not after start and ends
// not before end, none if there is none.
func (n *nest) around(l *lane, start, end trace.Time) int32 {
	if l.from == l.to {
		return none
	}
	const near = 8 // steps that are cheaper than a search
	i := l.last
	for step := 0; step < near && i+1 < l.to && n.spans[i+1].start <= start; step++ {
		i++
	}
	if n.spans[i].start > start || i+1 < l.to && n.spans[i+1].start <= start {
		lane := n.spans[l.from:l.to]
		at, _ := slices.BinarySearchFunc(lane, start, func(s span, t trace.Time) int {
			if s.start <= t {
				return -1
			}
			return 1
		})
		if at == 0 {
			return none
		}
		i = l.from + int32(at) - 1
	}
	l.last = i
	for i != none && n.spans[i].end < end {
		i = n.spans[i].parent
	}
	return i
}

// place returns where a call of a thread lies: the innermost span around it or, if the number is beyond
// the spans, one of the crossings. none is outside of all ranges.
func (n *nest) place(thread int32, start, end trace.Time) int32 {
	if int(thread) >= len(n.lanes) {
		return none
	}
	lanes := n.lanes[thread]
	if len(lanes) == 1 {
		return n.around(&lanes[0], start, end)
	}
	n.at = n.at[:0]
	for i := range lanes {
		if s := n.around(&lanes[i], start, end); s != none {
			n.at = append(n.at, s)
		}
	}
	switch len(n.at) {
	case 0:
		return none
	case 1:
		return n.at[0]
	}
	last := &n.crossing[thread]
	if *last == 0 || !slices.Equal(n.crossings[*last-1], n.at) {
		n.crossings = append(n.crossings, slices.Clone(n.at))
		*last = int32(len(n.crossings))
	}
	return int32(len(n.spans)) + *last - 1
}

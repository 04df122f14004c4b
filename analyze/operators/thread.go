package operators

import (
	"cmp"
	"slices"

	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// A class is operators of one rank and name whose inputs have one shape.
type class struct {
	rank                int32
	name, shapes, types trace.Sym
	mask                profile.Mask
	values              trace.Sym // [profile.Frame.Values]
}

// A frame is an operator that a thread was in.
type frame struct {
	start, end trace.Time
	class      int32
	around     int32 // index of the operator around it; none
	nested     nesting
}

// none is no operator.
const none = -1

// nesting says in what the operators around a frame are like it, so that totals count it once, and
// whether it launched work.
type nesting uint8

const (
	inName  nesting = 1 << iota // an operator around it has its name
	inClass                     // an operator around it has its class
	working                     // it or an operator in it launched work
)

// A threadID identifies a thread of a stream.
type threadID struct {
	rank, pid int32
	tid       int64
}

// A thread is the operators of a thread, in order once all are read.
type thread struct {
	frames []frame
	last   int // first frame that began after the last call
	// launched is the time of the last call that launched something.
	launched trace.Time
}

// settle sorts the frames, and finds the operator around each. A frame that begins with another one and
// ends before it is in that one; of equal frames, the one that was written first is around the other.
func (t *thread) settle(classes []class) {
	slices.SortStableFunc(t.frames, func(a, b frame) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(b.end, a.end))
	})
	for i := range t.frames {
		f := &t.frames[i]
		f.around = t.open(int32(i)-1, f.start)
		for at := f.around; at != none; at = t.frames[at].around {
			if o := t.frames[at].class; o == f.class {
				f.nested |= inClass | inName
			} else if classes[o].name == classes[f.class].name {
				f.nested |= inName
			}
		}
	}
}

// open returns the innermost operator, among frame i and those around it, that is still open at an
// instant.
func (t *thread) open(i int32, at trace.Time) int32 {
	for i != none && t.frames[i].end <= at {
		i = t.frames[i].around
	}
	return i
}

// at returns the innermost operator that a call begins in. Calls come roughly in order.
func (t *thread) at(start trace.Time) int32 {
	const near = 8 // steps that are cheaper than a search
	i := t.last
	for range near {
		if i >= len(t.frames) || t.frames[i].start > start {
			break
		}
		i++
	}
	if i > 0 && t.frames[i-1].start > start || i < len(t.frames) && t.frames[i].start <= start {
		i, _ = slices.BinarySearchFunc(t.frames, start+1, func(f frame, to trace.Time) int { return cmp.Compare(f.start, to) })
	}
	t.last = i
	return t.open(int32(i)-1, start)
}

// before returns the last operator that began at a time or earlier; none.
func (t *thread) before(at trace.Time) int {
	i, _ := slices.BinarySearchFunc(t.frames, at+1, func(f frame, to trace.Time) int { return cmp.Compare(f.start, to) })
	return i - 1
}

// threads are the threads of a stream, with the classes of their operators.
type threads struct {
	list    []*thread
	number  map[threadID]int32
	last    threadID // the one that was looked up last
	lastAt  int32
	classes []class
	index   map[class]int32
}

// numberOf returns the number of a thread; none if it has no operators and add is false.
func (t *threads) numberOf(e *profile.Event, tid int64, add bool) int32 {
	id := threadID{e.Rank, e.PID, tid}
	if t.lastAt != none && t.last == id {
		return t.lastAt
	}
	at, ok := t.number[id]
	switch {
	case !ok && !add:
		return none
	case !ok:
		at = int32(len(t.list))
		t.number[id] = at
		t.list = append(t.list, &thread{})
	}
	t.last, t.lastAt = id, at
	return at
}

// add adds an operator under a name.
func (t *threads) add(f *profile.Frame, name trace.Sym) {
	at := t.classOf(class{f.Rank, name, f.Shapes, f.Types, f.Mask, f.Values})
	in := t.list[t.numberOf(&f.Event, f.TID, true)]
	in.frames = append(in.frames, frame{start: f.Start, end: f.Start + trace.Time(f.Dur()), class: at, around: none})
}

// classOf returns the number of a class.
func (t *threads) classOf(c class) int32 {
	return order.At(t.index, &t.classes, c, func() class { return c })
}

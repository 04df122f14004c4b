package host

import (
	"cmp"
	"slices"

	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// A Kind is what a frame of a thread is. The order is that of frames that begin and end
// together, from the outside in.
type Kind uint8

const (
	RangeFrame Kind = iota
	PythonFrame
	OperatorFrame
	StackFrame // the innermost function of the code itself that a call was in
	SystemFrame
	CallFrame
	PageableFrame // a call that launched a copy of pageable memory; [Read] does not tell it from others
	numKinds
)

// A Frame is what a thread did between two instants.
type Frame struct {
	From, To    trace.Time // To is later than From: what takes no time takes 1 ns
	Correlation int64      // of a call, see [profile.Event]
	Name        trace.Sym
	Kind        Kind
}

// FrameOf returns the frame that an event is.
func FrameOf(kind Kind, e *profile.Event) Frame {
	return Frame{e.Start, max(e.End, e.Start+1), e.Correlation, e.Name, kind}
}

// A ThreadID tells the threads of a rank apart.
type ThreadID struct {
	PID int32
	TID int64
}

// Compare orders threads.
func (t ThreadID) Compare(o ThreadID) int {
	return cmp.Or(cmp.Compare(t.PID, o.PID), cmp.Compare(t.TID, o.TID))
}

// Read passes what threads did in a stream: calls, then ranges that nest and were closed, then
// frames. Each comes in about the order of time.
func Read(s profile.Stream, what func(kind Kind, e *profile.Event, tid int64)) {
	s.Calls(func(c *profile.Call) bool {
		what(CallFrame, &c.Event, c.TID)
		return true
	})
	s.Ranges(func(r *profile.Range) bool {
		if r.Style == profile.PushPop && !r.Open {
			what(RangeFrame, &r.Event, r.TID)
		}
		return true
	})
	kinds := [...]Kind{profile.OperatorFrame: OperatorFrame, profile.PythonFrame: PythonFrame, profile.SystemFrame: SystemFrame}
	s.Frames(func(f *profile.Frame) bool {
		what(kinds[f.Kind], &f.Event, f.TID)
		return true
	})
}

// Frames are what one thread did. The zero value is nothing.
type Frames struct {
	list []Frame // as they were added
	runs []run   // of list
}

// A run is where frames begin that [Read] passed together, mostly in order.
type run struct {
	from int
	walk uint8
}

// walks tells the passes of [Read] apart.
var walks = [...]uint8{CallFrame: 0, PageableFrame: 0, RangeFrame: 1, PythonFrame: 2, OperatorFrame: 2, SystemFrame: 2, StackFrame: 3}

// Add adds a frame, in the order of [Read]; those of stacks of calls come behind.
func (t *Frames) Add(f Frame) {
	walk := walks[f.Kind]
	if n := len(t.runs); n == 0 || t.runs[n-1].walk != walk {
		t.runs = append(t.runs, run{len(t.list), walk})
	}
	t.list = append(t.list, f)
}

// Join moves the frames of the same thread in another stream here.
func (t *Frames) Join(o *Frames) {
	if t.list == nil {
		t.list, t.runs = o.list, o.runs
	} else {
		for _, r := range o.runs {
			t.runs = append(t.runs, run{len(t.list) + r.from, r.walk})
		}
		t.list = append(t.list, o.list...)
	}
	*o = Frames{}
}

// compareFrames orders frames by their start, the outer one of two first.
func compareFrames(a, b Frame) int {
	return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(b.To, a.To), cmp.Compare(a.Kind, b.Kind))
}

// Settle returns all frames in order: it merges the runs, which it gives up.
func (t *Frames) Settle() []Frame {
	var settled []Frame
	end := len(t.list)
	for _, r := range slices.Backward(t.runs) {
		frames := t.list[r.from:end]
		end = r.from
		if !slices.IsSortedFunc(frames, compareFrames) {
			slices.SortStableFunc(frames, compareFrames)
		}
		settled = merge(frames, settled)
	}
	*t = Frames{}
	return settled
}

// merge merges two lists in order. What is equal comes from the first one first.
func merge(a, b []Frame) []Frame {
	if len(b) == 0 {
		return a
	}
	merged := make([]Frame, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		if compareFrames(a[0], b[0]) <= 0 {
			merged, a = append(merged, a[0]), a[1:]
		} else {
			merged, b = append(merged, b[0]), b[1:]
		}
	}
	return append(append(merged, a...), b...)
}

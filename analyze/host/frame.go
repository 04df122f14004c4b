package host

import (
	"cmp"

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

// KindsOf returns the kinds of frames that a stream has, as far as the first calls, ranges, and
// others tell.
func KindsOf(s profile.Stream) (has Recorded) {
	for range s.Calls {
		has[CallFrame] = true
		break
	}
	for r := range s.Ranges {
		if has[RangeFrame] = isFrame(r); has[RangeFrame] {
			break
		}
	}
	for f := range s.Frames {
		has[frameKinds[f.Kind]] = true
		break
	}
	return has
}

// Read passes what threads did in a stream: calls, then ranges that nest and were closed, then
// frames. Each comes in about the order of time.
func Read(s profile.Stream, what func(kind Kind, e *profile.Event, tid int64)) {
	s.Calls(func(c *profile.Call) bool {
		what(CallFrame, &c.Event, c.TID)
		return true
	})
	s.Ranges(func(r *profile.Range) bool {
		if isFrame(r) {
			what(RangeFrame, &r.Event, r.TID)
		}
		return true
	})
	s.Frames(func(f *profile.Frame) bool {
		what(frameKinds[f.Kind], &f.Event, f.TID)
		return true
	})
}

// frameKinds are the kinds of what [profile.Stream.Frames] passes.
var frameKinds = [...]Kind{profile.OperatorFrame: OperatorFrame, profile.PythonFrame: PythonFrame, profile.SystemFrame: SystemFrame}

// isFrame reports whether a thread is in a range until it is closed.
func isFrame(r *profile.Range) bool { return r.Style == profile.PushPop && !r.Open }

// walks tells the passes of [Read] apart.
var walks = [...]uint8{CallFrame: 0, PageableFrame: 0, RangeFrame: 1, PythonFrame: 2, OperatorFrame: 2, SystemFrame: 2, StackFrame: 3}

// compareFrames orders frames by their start, the outer one of two first.
func compareFrames(a, b Frame) int {
	return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(b.To, a.To), cmp.Compare(a.Kind, b.Kind))
}

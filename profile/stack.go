package profile

import (
	"iter"

	"github.com/sgtrace/sgtrace/trace"
)

// A StackID is a stack of functions in [Stacks]; 0 is the empty one.
type StackID int32

// A StackFrame is the innermost function of a stack, and the stack of its caller.
type StackFrame struct {
	Caller   StackID
	Function trace.Sym // "[libcuda.so.1]" if it has no name
	Module   trace.Sym // path of the program or library; 0 is unknown
}

// Stacks are stacks of functions as a tree: stacks that begin alike share their frames, 12 bytes each. The zero
// value is empty.
type Stacks struct {
	frames []StackFrame // of stack 1, 2, ...
	index  map[StackFrame]StackID
}

// Push returns the stack of a function called from another stack.
func (s *Stacks) Push(f StackFrame) StackID {
	id, ok := s.index[f]
	if !ok {
		if s.index == nil {
			s.index = map[StackFrame]StackID{}
		}
		s.frames = append(s.frames, f)
		id = StackID(len(s.frames))
		s.index[f] = id
	}
	return id
}

// Len returns the number of stacks, without the empty one. Their ids are 1 to Len, and a caller has a smaller
// id than its callees.
func (s *Stacks) Len() int { return len(s.frames) }

// Frame returns the innermost function of a stack that is not empty.
func (s *Stacks) Frame(id StackID) StackFrame { return s.frames[id-1] }

// From yields the functions of a stack, the innermost one first.
func (s *Stacks) From(id StackID) iter.Seq[StackFrame] {
	return func(yield func(StackFrame) bool) {
		for id != 0 {
			f := s.Frame(id)
			if !yield(f) {
				return
			}
			id = f.Caller
		}
	}
}

// A Sample is the stack of a thread, at an instant at which a profiler interrupted it, or in a call. The name
// of the event is that of the innermost function, or of the call.
//
// Profilers may record the whole stack only for every few samples: the others have one function, without its
// callers.
type Sample struct {
	Event  // has no duration if the thread was interrupted
	TID    int64
	CPU    int32 // -1 is unknown
	Stack  StackID
	Stacks *Stacks // immutable; holds the stack and all others of its kind
}

// A Run is a time during which a thread had a core. Between two runs it waited, or other threads had the core.
type Run struct {
	Event // nameless
	TID   int64
	CPU   int32 // -1 is unknown
}

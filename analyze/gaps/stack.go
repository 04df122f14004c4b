package gaps

import (
	"github.com/sgtrace/sgtrace/analyze/host"
	"github.com/sgtrace/sgtrace/trace"
)

// A site is what the stack of a thread says about a moment. Symbols are 0 where there is no
// such frame.
type site struct {
	did host.Did
	// call is the innermost call, into CUDA or the operating system.
	call trace.Sym
	// operator is the outermost of the operators in the innermost Python function: the one
	// that the code asked for.
	operator trace.Sym
	// function is the Python function, of a library or built in, that frame calls; where there
	// is no frame, the innermost one.
	function trace.Sym
	// frame is the innermost function that is of no library: of Python, or of a stack that was
	// recorded as a whole.
	frame trace.Sym
	// span is the innermost range where no frame is known; all steps of a kind are one.
	span trace.Sym
}

// within returns the site in a frame that is entered at s.
func within(n *host.Names, s site, f *host.Frame) site {
	m := n.Of(f.Kind, f.Name)
	if s.did == host.Collecting {
		return s // finalizers run in it
	}
	s.did = m.Did
	kind := f.Kind
	if m.Did == host.InOperator {
		kind = host.OperatorFrame // some are ranges
	}
	switch kind {
	case host.RangeFrame:
		s.call, s.operator, s.function, s.span = 0, 0, 0, m.Name
		if s.frame != 0 {
			s.did, s.span = host.InPython, 0 // the frame says more, and the range divides it
		}
	case host.PythonFrame:
		s.call, s.operator = 0, 0
		switch {
		case m.Own:
			s.frame, s.function, s.span = m.Name, 0, 0
		case m.Clear:
		case s.function == 0 || s.frame == 0 || m.Did == host.Collecting:
			s.function = m.Name
		}
	case host.OperatorFrame:
		if s.call = 0; s.operator == 0 && !m.Clear {
			s.operator = m.Name
		}
	case host.StackFrame:
		if s.frame == 0 {
			s.frame, s.function, s.span = m.Name, 0, 0
		}
	default:
		s.call = m.Name
	}
	return s
}

// A sweep passes over the frames of a thread, and knows the site at any moment.
type sweep = host.Sweep[site]

// newSweep returns a sweep over frames in order.
func newSweep(n *host.Names, frames []host.Frame) sweep {
	return sweep{Enter: func(around site, f *host.Frame) site { return within(n, around, f) }, Ahead: frames}
}

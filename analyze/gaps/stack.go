package gaps

import "github.com/sgtrace/sgtrace/trace"

// A site is what the stack of a thread says about a moment. Symbols are 0 where there is no
// such frame.
type site struct {
	did Did
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
func (n *names) within(s site, f *frame) site {
	m := n.of(f.kind, f.name)
	if s.did == Collecting {
		return s // finalizers run in it
	}
	s.did = m.did
	kind := f.kind
	if m.did == InOperator {
		kind = operatorFrame // some are ranges
	}
	switch kind {
	case rangeFrame:
		s.call, s.operator, s.function, s.span = 0, 0, 0, m.name
		if s.frame != 0 {
			s.did, s.span = InPython, 0 // the frame says more, and the range divides it
		}
	case pythonFrame:
		s.call, s.operator = 0, 0
		switch {
		case m.own:
			s.frame, s.function, s.span = m.name, 0, 0
		case m.clear:
		case s.function == 0 || s.frame == 0 || m.did == Collecting:
			s.function = m.name
		}
	case operatorFrame:
		if s.call = 0; s.operator == 0 && !m.clear {
			s.operator = m.name
		}
	case stackFrame:
		if s.frame == 0 {
			s.frame, s.function, s.span = m.name, 0, 0
		}
	default:
		s.call = m.name
	}
	return s
}

// A sweep passes over the frames of a thread, forward in time.
type sweep struct {
	names  *names
	frames []frame // in order
	open   []openFrame
	// changed is when a frame last began or ended.
	changed trace.Time
}

// An openFrame is one that has begun and not ended, with the site in it.
type openFrame struct {
	to trace.Time
	at site
}

// moveTo moves on to an instant, which is not before the last one.
func (s *sweep) moveTo(t trace.Time) {
	s.close(t)
	for len(s.frames) > 0 && s.frames[0].from <= t {
		f := &s.frames[0]
		s.frames = s.frames[1:]
		if f.to > t {
			s.open = append(s.open, openFrame{f.to, s.names.within(s.site(), f)})
		}
		s.changed = max(s.changed, f.from)
		if f.to <= t {
			s.changed = max(s.changed, f.to)
		}
	}
}

// close leaves the frames that ended. One that ends after the frames in it stays below these.
func (s *sweep) close(t trace.Time) {
	n := len(s.open)
	for n > 0 && s.open[n-1].to <= t {
		n--
		s.changed = max(s.changed, s.open[n].to)
	}
	s.open = s.open[:n]
}

// site returns what the stack says now.
func (s *sweep) site() site {
	if n := len(s.open); n > 0 {
		return s.open[n-1].at
	}
	return site{}
}

// until returns how long the site stays the same, at most to limit.
func (s *sweep) until(limit trace.Time) trace.Time {
	if len(s.frames) > 0 {
		limit = min(limit, s.frames[0].from)
	}
	if n := len(s.open); n > 0 {
		limit = min(limit, s.open[n-1].to)
	}
	return limit
}

package gaps

import (
	"slices"

	"github.com/sgtrace/sgtrace/analyze/host"
	"github.com/sgtrace/sgtrace/analyze/profilewalk"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// A thread is what a thread of a rank did in late gaps.
type thread struct {
	id      host.ThreadID
	read    host.Frames  // until all frames are read
	frames  []host.Frame // in order, once they are
	seen    observed
	queries []query
	sweep   sweep // for the current device
	others  others
}

// A rankHost is what the threads of a rank did.
type rankHost struct {
	threads []*thread
	index   map[host.ThreadID]*thread
	last    *thread // the thread that was looked up last
	saw     host.RecordedThreads
	// withRuns are the threads whose runs on cores were recorded.
	withRuns map[host.ThreadID]bool
	ranges   rangeStarts
	late     spans
	near     int // index into late of the last lookup
}

// rankHosts are what a stream recorded of the threads of its ranks.
type rankHosts struct {
	late  []spans // by rank
	has   host.RecordedFrames
	ranks profilewalk.PerRank[rankHost]
}

func (h *rankHosts) of(rank int32) *rankHost {
	of := h.ranks.At(rank)
	of.late = h.late[rank]
	return of
}

func (h *rankHost) thread(id host.ThreadID) *thread {
	if h.last != nil && h.last.id == id {
		return h.last
	}
	t := h.index[id]
	if t == nil {
		if h.index == nil {
			h.index = map[host.ThreadID]*thread{}
		}
		t = &thread{id: id}
		h.index[id] = t
		h.threads = append(h.threads, t)
	}
	h.last = t
	return t
}

// readHosts reads what the threads of all ranks in a stream did in late gaps that are in the window of
// opt.
func readHosts(s profile.Stream, late []spans, opt *Options) *rankHosts {
	hosts := &rankHosts{late: late}
	if opt.From != 0 || opt.To != 0 {
		hosts.has = host.KindsOf(s)
	}
	pageable := pageableCopies(s)
	host.Read(profile.Within(s, opt.From, opt.To), func(kind host.Kind, e *profile.Event, tid int64) {
		hosts.has[kind] = true
		if kind == host.RangeFrame {
			hosts.of(e.Rank).ranges.add(e.Name, e.Start)
		}
		h, f := hosts.of(e.Rank), host.FrameOf(kind, e)
		if !h.during(f.From, f.To) {
			return
		}
		if kind == host.CallFrame && pageable[correlated{e.Rank, e.Correlation}] {
			f.Kind = host.PageableFrame
		}
		h.thread(host.ThreadID{PID: e.PID, TID: tid}).read.Add(f)
	})
	return hosts
}

// A correlated identifies a call of a rank, and all that it launched.
type correlated struct {
	rank        int32
	correlation int64
}

// pageableCopies returns the calls that copy pageable memory.
func pageableCopies(s profile.Stream) map[correlated]bool {
	all := map[correlated]bool{}
	for c := range s.Copies {
		if c.Kind.Pageable() && c.Correlation != 0 {
			all[correlated{c.Rank, c.Correlation}] = true
		}
	}
	return all
}

// joinHosts merges what the streams recorded of each rank.
func joinHosts(streams []*rankHosts, ranks int) []rankHost {
	hosts := make([]rankHost, ranks)
	for _, of := range streams {
		for rank, h := range of.ranks.All() {
			to := &hosts[rank]
			to.saw.Join(&h.saw)
			for _, name := range h.ranges.names {
				to.ranges.add(name, *h.ranges.at.At(int64(name))...)
			}
			for _, t := range h.threads {
				joined := to.thread(t.id)
				joined.read.Join(&t.read)
				joined.seen.join(&t.seen)
			}
		}
	}
	return hosts
}

// settle sorts the threads, so that the order of the streams does not matter, and what each of them did.
func (h *rankHost) settle() {
	slices.SortFunc(h.threads, func(a, b *thread) int { return a.id.Compare(b.id) })
	for _, t := range h.threads {
		all := t.read.Settle()
		t.frames = all.Next(make([]host.Frame, all.Len()))
		t.seen.settle()
	}
}

// findLaunches finds the threads that ended gaps: those whose calls are the launches that package gpu
// saw. Such a call began in the gap, or before it and lasted into it.
func (h *rankHost) findLaunches(devices []*deviceGaps) {
	for k, t := range h.threads {
		near := make([]int, len(devices)) // where the last call was looked for
		for i := range t.frames {
			f := &t.frames[i]
			if f.Kind != host.CallFrame && f.Kind != host.PageableFrame {
				continue
			}
			for n, d := range devices {
				at := d.lateAt(f.From, near[n])
				near[n] = at
				for ; at < len(d.late) && d.late[at].Gap.From < f.To; at++ {
					if d.late[at].launch == f.From && max(d.late[at].launched, 1) == int64(f.To-f.From) {
						d.late[at].thread = int32(k)
					}
				}
			}
		}
	}
}

// A site is what the stack of a thread says about a moment. Symbols are 0 where there is no
// such frame.
type site struct {
	did host.Activity
	// call is the innermost call into CUDA or the operating system. What a call into CUDA asks of the
	// operating system counts as that call, unless it waits there.
	call trace.Sym
	// operator is the outermost of the operators in the innermost Python function: the one
	// that the code asked for.
	operator trace.Sym
	// function is the Python function, of a library or built in, that frame calls; without a frame, the
	// innermost one.
	function trace.Sym
	// frame is the innermost function that belongs to no library: of Python, or of a stack that was
	// recorded as a whole.
	frame trace.Sym
	// span is the innermost range if no frame is known; all steps of a kind are one.
	span trace.Sym
}

// within returns the site inside f, a frame that is entered at s.
func within(n *host.Names, s site, f *host.Frame) site {
	m := n.Of(f.Kind, f.Name)
	switch {
	case s.did == host.Collecting:
		return s // finalizers run during collection
	case s.did == host.LoadingData && f.Kind == host.PythonFrame && !m.Own:
		return s // the loader waits, or moves its data
	case s.call != 0 && f.Kind == host.SystemFrame && m.Activity == host.SystemCall:
		return s // the outer call says what it is for: a launch that reads a file loads code
	case m.Activity == host.LoadingData:
		return site{did: host.LoadingData, span: m.Name}
	}
	s.did = m.Activity
	kind := f.Kind
	if m.Activity == host.InOperator {
		kind = host.OperatorFrame // some operators are ranges
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
		case s.function == 0 || s.frame == 0 || m.Activity == host.Collecting:
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

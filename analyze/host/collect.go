package host

import (
	"cmp"
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/profilewalk"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// A threadID identifies a thread of a stream.
type threadID struct {
	rank     int32
	ThreadID ThreadID
}

// An Around is an operator, or a call in Python, in which a kernel of a graph was launched at capture.
type Around struct {
	Kind Kind
	Name trace.Sym
}

// Captures know where kernels of graphs were launched at capture.
type Captures interface {
	// AppendAround appends what was around the launch of some work of a stream at capture, the
	// innermost first. It appends nothing if the work belongs to no graph whose capture is known.
	AppendAround(list []Around, stream int, e *profile.Event) []Around
}

// A thread is what one thread did, until it is counted.
type thread struct {
	rank    int32
	frames  Frames
	samples []sample // in the order of time, once it is counted
}

// A collector makes the tree of one stream.
type collector struct {
	*tree
	set      *profile.Set
	stream   int // of the set
	captures Captures
	around   []Around // of a node of a graph
	opt      *profilewalk.Options
	names    *Names
	threads  []*thread
	index    map[threadID]*thread
	lastID   threadID // of last
	last     *thread
	launches []order.Paged[int32] // by rank and correlation: the stack in the call
	unknown  trace.Sym            // the name of launches that were not recorded

	recordings recordings
	period     trace.Time // between two samples of a thread that runs, ns; 0 is unknown

	recorded RecordedFrames
	seen     RecordedThreads
	work     bool  // something ran on devices
	graphs   int64 // ns of CUDA graphs whose kernels were not recorded
}

// collect reads a stream. Meanwhile, it holds about 10 bytes per event of a thread, and 4 per call.
func collect(set *profile.Set, stream int, s profile.Stream, opt *profilewalk.Options, captures Captures) *collector {
	c := &collector{tree: newTree(), set: set, stream: stream, captures: captures, opt: opt, names: NewNames(set.Syms), index: map[threadID]*thread{},
		launches: make([]order.Paged[int32], len(set.Ranks)), unknown: set.Syms.Intern("(launch not recorded)"), recordings: recordings{syms: set.Syms}}
	Read(s, func(kind Kind, e *profile.Event, tid int64) {
		c.recorded[kind] = true
		c.thread(e, tid).frames.Add(FrameOf(kind, e))
	})
	c.readSamples(s)
	for i, t := range c.threads {
		c.countThread(t)
		c.threads[i] = nil
	}
	c.seen.Python = c.recordings.python
	for k := range s.Kernels {
		if c.countWork(&k.Event) && k.Graph {
			c.graphs = distribution.AddTimes(c.graphs, k.Dur())
		}
	}
	for k := range s.Copies {
		c.countWork(&k.Event)
	}
	return c
}

// thread returns the thread of an event.
func (c *collector) thread(e *profile.Event, tid int64) *thread {
	id := threadID{e.Rank, ThreadID{PID: e.PID, TID: tid}}
	if c.last != nil && c.lastID == id {
		return c.last
	}
	t := c.index[id]
	if t == nil {
		t = &thread{rank: e.Rank}
		c.index[id] = t
		c.threads = append(c.threads, t)
	}
	c.last, c.lastID = t, id
	return t
}

// ofRank returns the stack that all stacks of a rank start from.
func (c *collector) ofRank(rank int32) int32 {
	if !c.opt.ByRank {
		return bottom
	}
	return c.enter(bottom, c.set.Syms.Intern(c.set.Ranks[rank]), NotRecorded)
}

// readAhead is how many frames of a thread are unpacked at once. Frames that begin together may be
// entered in two moves to the same instant, with no time between these.
const readAhead = 256

// countThread counts the time of a thread, and keeps the stacks in its calls.
func (c *collector) countThread(t *thread) {
	outside := c.ofRank(t.rank)
	s := Sweep[int32]{Enter: func(around int32, f *Frame) int32 {
		if around == bottom {
			around = outside
		}
		at := around
		if f.Kind == StackFrame {
			return c.push(around, stackID(f.Correlation))
		}
		if c.depth[around] < maxDepth {
			m := c.names.Of(f.Kind, f.Name)
			at = c.enter(around, m.Name, m.Activity)
		}
		if f.Correlation != 0 {
			c.launched(t.rank, f.Correlation, at)
		}
		return at
	}}
	slices.SortStableFunc(t.samples, func(a, b sample) int { return cmp.Compare(a.at, b.at) })
	frames, buffer := t.frames.Settle(), make([]Frame, readAhead)
	for now := trace.Time(math.MinInt64); now < math.MaxInt64; s.MoveTo(now) {
		if len(s.Ahead) == 0 {
			s.Ahead = frames.Next(buffer)
		}
		next := s.Until(math.MaxInt64)
		if len(s.Open()) > 0 {
			c.fill(t, s.Here(), true, now, next)
		} else {
			c.fill(t, outside, false, now, next)
		}
		now = next
	}
}

// launched keeps the stack of a call. If several have the same correlation, the first one counts: the
// others are driver calls within that runtime call.
func (c *collector) launched(rank int32, correlation int64, at int32) {
	if p := c.launches[rank].At(correlation); *p == 0 {
		*p = at
	}
}

// spend adds time of a thread to a stack, as far as it lies in the window. A thread that is in no
// frame, and was interrupted in functions without names, has no stack.
func (c *collector) spend(at int32, from, to trace.Time) {
	if at == bottom {
		return
	}
	from = max(from, c.opt.From)
	if c.opt.To != 0 {
		to = min(to, c.opt.To)
	}
	if from >= to {
		return
	}
	if did := c.nodes[at].did; did.waits() {
		at = c.enter(at, 0, did)
	}
	c.add(CPU, at, distribution.Between(from, to))
}

// countWork adds what a device did below the stack that launched it, and reports whether it lies in the
// window.
func (c *collector) countWork(e *profile.Event) bool {
	if !c.opt.Keeps(e) {
		return false
	}
	c.work = true
	at := int32(bottom)
	if e.Correlation != 0 {
		if p := c.launches[e.Rank].Find(e.Correlation); p != nil {
			at = *p
		}
	}
	if at == bottom {
		at = c.enter(c.ofRank(e.Rank), c.unknown, NotRecorded)
	}
	if c.captures != nil {
		at = c.enterCapture(at, e)
	}
	c.add(GPU, c.enter(at, e.Name, OnDevice), e.Dur())
	return true
}

// enterCapture enters what was around the launch of some work at capture, below the launch of the graph.
func (c *collector) enterCapture(at int32, e *profile.Event) int32 {
	c.around = c.captures.AppendAround(c.around[:0], c.stream, e)
	for _, a := range slices.Backward(c.around) {
		if c.depth[at] >= maxDepth {
			break
		}
		m := c.names.Of(a.Kind, a.Name)
		at = c.enter(at, m.Name, m.Activity)
	}
	return at
}

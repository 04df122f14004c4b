package operators

import (
	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/graphs"
	"github.com/sgtrace/sgtrace/analyze/profilewalk"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// A spent is time in operators, ns.
type spent struct {
	self  int64 // not in an operator within
	class int64 // with operators within; counted once where one is in another of its class
	name  int64 // the same, for operators of one name
}

func (s *spent) add(o *spent) {
	s.self = distribution.AddTimes(s.self, o.self)
	s.class = distribution.AddTimes(s.class, o.class)
	s.name = distribution.AddTimes(s.name, o.name)
}

// count adds time in an operator to class and name.
func (s *spent) count(f *frame, dur int64) {
	if f.nested&inClass == 0 {
		s.class = distribution.AddTimes(s.class, dur)
	}
	if f.nested&inName == 0 {
		s.name = distribution.AddTimes(s.name, dur)
	}
}

// A sum is what operators of a class did.
type sum struct {
	calls    int64
	work     int64 // kernels and copies that they launched themselves
	working  int64 // calls that launched some, themselves or by operators in them
	cpu, gpu spent
}

func (s *sum) add(o *sum) {
	s.calls += o.calls
	s.work += o.work
	s.working += o.working
	s.cpu.add(&o.cpu)
	s.gpu.add(&o.gpu)
}

// An outside says why some work of devices has no operator.
type outside uint8

const (
	noOperator outside = iota // its call is in no operator
	inGraph                   // its call launched a CUDA graph, and is in no operator
	noCall                    // its call is not in the files
	numOutside
)

// A place is where a call was: in an operator, which is a frame of a thread, or outside of all.
type place struct {
	thread int32 // plus one; 0 if the call was not met
	frame  int32 // of the thread; none
	graph  bool  // it launched a CUDA graph
}

// A collector sums up one stream.
type collector struct {
	*threads
	opt      *profilewalk.Options
	graphs   *trace.PerName[bool]
	launches *trace.PerName[bool]
	ranks    []order.Paged[place] // by rank and correlation
	sums     []sum                // by class
	others   [][numOutside]sum    // by rank
	python   bool                 // functions of Python were recorded
	whole    int64                // ns of CUDA graphs whose kernels were not recorded
	calls    *copyCalls           // nil if nobody asks for them
	copies   map[copyKey]*profilewalk.Copied
	visit    *Visitor // nil if nobody asks
	replay   *replay  // nil without captures of graphs
	roofs    *roofs   // nil if nobody asks
}

// A pass says what to collect from a stream.
type pass struct {
	selected selection
	copies   bool
	visit    *Visitor // nil is nobody
	graphs   *graphs.Graphs
	roofs    *roofs // nil is not asked for
}

// A selection returns the name under which a frame is summed up; false leaves it out.
type selection func(*profile.Frame) (trace.Sym, bool)

// selectOperators selects operators.
func selectOperators(*trace.Symbols) selection {
	return func(f *profile.Frame) (trace.Sym, bool) { return f.Name, f.Kind == profile.OperatorFrame }
}

// collectAll sums up what is selected in all streams of a set, and the copies if they are asked
// for.
func collectAll(set *profile.Set, opt *profilewalk.Options, what func(*trace.Symbols) selection, g *graphs.Graphs, copies bool) []*collector {
	streams := make([]*collector, len(set.Streams))
	profilewalk.EachStream(set, func(i int, s profile.Stream) {
		c := collect(set, i, s, opt, pass{selected: what(set.Syms), copies: copies, graphs: g})
		c.threads.list, c.ranks, c.calls, c.replay = nil, nil, nil, nil // only the sums are needed from here on
		streams[i] = c
	})
	return streams
}

// collect sums up a stream. It holds 32 bytes per operator, 12 per call, and 48 per copy where
// there are functions of Python.
func collect(set *profile.Set, stream int, s profile.Stream, opt *profilewalk.Options, asked pass) *collector {
	c := &collector{threads: &threads{number: map[threadID]int32{}, lastAt: none, index: map[class]int32{}}, opt: opt, graphs: profilewalk.GraphLaunches(set.Syms), launches: profilewalk.NamesWith(set.Syms, "Launch"),
		ranks: make([]order.Paged[place], len(set.Ranks)), others: make([][numOutside]sum, len(set.Ranks)), visit: asked.visit, roofs: asked.roofs}
	for f := range s.Frames {
		c.python = c.python || f.Kind == profile.PythonFrame
		if name, ok := asked.selected(f); ok {
			c.add(f, name)
		}
	}
	emitted := profile.NewOperatorRanges(set.Syms)
	for r := range s.Ranges {
		if f, ok := emitted.Of(r); ok {
			if name, ok := asked.selected(&f); ok {
				c.add(&f, name)
			}
		}
	}
	if asked.graphs != nil {
		c.replay = &replay{asked.graphs.Streams[stream], asked.selected, map[capturedBy]*capturedClasses{}}
	}
	c.sums = make([]sum, len(c.classes))
	for i, t := range c.list {
		t.settle(c.classes)
		c.countCalls(t)
		if c.visit != nil {
			c.visitCalls(t, int32(i))
		}
	}
	if asked.copies && c.python {
		c.calls = readCopyCalls(set, s)
	}
	j := profilewalk.Joiner{Copies: c.roofs == nil, Call: c.call, Work: c.work, Orphan: c.orphan}
	j.Run(s, opt)
	c.countReplays()
	if c.calls != nil {
		c.calls.findFunctions(s, set.Syms)
	}
	if asked.copies {
		c.sumCopies(s)
	}
	return c
}

// countCalls sums up the operators of a thread.
func (c *collector) countCalls(t *thread) {
	for i := range t.frames {
		f := &t.frames[i]
		if f.around != none {
			if around := &t.frames[f.around]; c.keeps(around) {
				c.sums[around.class].cpu.self -= int64(min(f.end, around.end) - f.start)
			}
		}
		if c.keeps(f) {
			dur := int64(f.end - f.start)
			s := &c.sums[f.class]
			s.calls++
			s.cpu.self += dur
			s.cpu.count(f, dur)
		}
	}
}

func (c *collector) keeps(f *frame) bool {
	return c.opt.Keeps(&profile.Event{Start: f.start, End: f.end})
}

// call finds the place of a call.
func (c *collector) call(call *profile.Call) {
	if call.Correlation == 0 {
		return
	}
	p := c.ranks[call.Rank].At(call.Correlation)
	if p.thread != 0 {
		return // a driver call within the runtime call that has its correlation
	}
	*p = place{1, none, c.graphs.Of(call.Name)}
	if c.calls != nil {
		c.calls.called(call)
	}
	if n := c.numberOf(&call.Event, call.TID, false); n != none {
		p.thread, p.frame = n+1, c.list[n].at(call.Start)
		if c.roofs != nil && p.frame != none && c.launches.Of(call.Name) {
			c.notePart(call, n, p.frame)
		}
	}
}

// placeOf returns where the call was that launched some work; nil if it was not met.
func (c *collector) placeOf(e *profile.Event) *place {
	if e.Correlation == 0 {
		return nil
	}
	if p := c.ranks[e.Rank].Find(e.Correlation); p != nil && p.thread != 0 {
		return p
	}
	return nil
}

// work counts what a device did for the operators around its call. It returns false if that call was not met.
func (c *collector) work(k *profile.Kernel) bool {
	if !c.opt.Keeps(&k.Event) {
		return true
	}
	p := c.placeOf(&k.Event)
	if c.replay.has(&k.Event) {
		return true // countReplays counts it
	}
	if c.roofs != nil && p != nil && !k.Graph {
		c.countEager(k, p)
	}
	switch {
	case p == nil:
		return false
	case p.frame != none:
		t := c.list[p.thread-1]
		c.countGraph(k)
		c.launched(t, p.frame, k.Dur())
		if c.visit != nil {
			c.visit.Work(k, c.classes[t.frames[p.frame].class].name)
		}
	case p.graph:
		c.outside(k, inGraph)
	default:
		c.outside(k, noOperator)
	}
	return true
}

// launched counts work for the operator that launched it, and for the operators around that.
func (c *collector) launched(t *thread, at int32, dur int64) {
	c.own(t.frames[at].class, dur)
	c.around(t, at, dur)
}

// own counts work for the innermost operator.
func (c *collector) own(class int32, dur int64) {
	own := &c.sums[class]
	own.work++
	own.gpu.self = distribution.AddTimes(own.gpu.self, dur)
}

// around counts work for an operator, and those around it.
func (c *collector) around(t *thread, at int32, dur int64) {
	for ; at != none; at = t.frames[at].around {
		f := &t.frames[at]
		s := &c.sums[f.class]
		s.gpu.count(f, dur)
		if f.nested&working == 0 {
			f.nested |= working
			s.working++
		}
	}
}

func (c *collector) orphan(k *profile.Kernel) {
	if c.roofs != nil && !k.Graph {
		c.countEager(k, nil)
	}
	c.outside(k, noCall)
}

// countGraph counts the time of a CUDA graph whose kernels were not recorded.
func (c *collector) countGraph(k *profile.Kernel) {
	if k.Graph {
		c.whole = distribution.AddTimes(c.whole, k.Dur())
	}
}

// outside counts work that no operator launched.
func (c *collector) outside(k *profile.Kernel, why outside) {
	c.countGraph(k)
	c.countOutside(k, why)
}

func (c *collector) countOutside(k *profile.Kernel, why outside) {
	dur := k.Dur()
	c.others[k.Rank][why].add(&sum{work: 1, gpu: spent{dur, dur, dur}})
	if c.visit != nil {
		c.visit.Work(k, c.visit.outside[why])
	}
}

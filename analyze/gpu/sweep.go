package gpu

import (
	"cmp"
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/profilewalk"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/profile/kernelname"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// IdleCause says why nothing ran, in the terms of Holistic Trace Analysis.
type IdleCause uint8

const (
	// HostWait: what ended the gap was launched during it: the host was late.
	HostWait IdleCause = iota
	// KernelWait: it had been launched before, and the gap is shorter than kernelGap, the time it takes
	// to start a kernel behind another.
	KernelWait
	// OtherWait: it had been launched before and waited for something else, such as an event of another
	// stream; or its launch is unknown.
	OtherWait
	NumCauses
)

// kernelGap is the shortest gap that is not put down to starting a kernel, ns:
// consecutive_kernel_delay of Holistic Trace Analysis.
const kernelGap = 30_000

// Idle is time in which nothing ran, between the first row and the last.
type Idle struct {
	Time [NumCauses]int64 // ns
	Gaps [NumCauses]int64 // on a stream, including those of 0 ns between neighbors
}

// Total returns the time of all gaps in ns.
func (i *Idle) Total() int64 {
	return distribution.AddTimes(distribution.AddTimes(i.Time[HostWait], i.Time[KernelWait]), i.Time[OtherWait])
}

// add counts the gap from the end of what ran last to the start of r.
func (i *Idle) add(r *gpuRow, end trace.Time) {
	gap, cause := distribution.Between(end, r.start), OtherWait
	switch {
	case r.called() && r.launch > end:
		cause = HostWait
	case gap < kernelGap:
		cause = KernelWait
	}
	i.Time[cause] = distribution.AddTimes(i.Time[cause], gap)
	i.Gaps[cause]++
}

// Running is a set of classes that run at the same time: bit 1<<c is class c.
type Running uint8

const numRunning = 1 << kernelname.NumClasses

// Has reports whether class c runs.
func (r Running) Has(c kernelname.Class) bool { return r>>c&1 != 0 }

// A GPUStream is one stream of a device.
type GPUStream struct {
	Stream     int64
	Rows       int64 // kernels and copies
	Busy       int64 // ns in which one of them ran
	Idle       Idle
	first, end trace.Time
	unrecorded int64 // see GPU
	// communication is until when communication kernels run on it.
	communication latestEnd
}

// Length returns the time from the first start to the last end of each recording, in ns.
func (s *GPUStream) Length() int64 { return max(0, distribution.Between(s.first, s.end)-s.unrecorded) }

func (s *GPUStream) add(r *gpuRow, recorded recordings) {
	end := r.end()
	switch s.Rows++; {
	case s.Rows == 1:
		s.first, s.end, s.Busy = r.start, end, r.dur
		return
	case r.start >= s.end:
		if recorded.end(s.end, r.start) {
			s.unrecorded = distribution.AddTimes(s.unrecorded, distribution.Between(s.end, r.start))
		} else {
			s.Idle.add(r, s.end)
		}
		s.Busy = distribution.AddTimes(s.Busy, r.dur)
	case end > s.end:
		s.Busy = distribution.AddTimes(s.Busy, distribution.Between(s.end, end))
	}
	s.end = max(s.end, end)
}

// A gpuSweep measures what ran on a device. It takes rows in the order of their starts, and keeps
// little more than until when each class runs.
type gpuSweep struct {
	gpu      *GPU
	recorded recordings
	spans    []request.Interval // of steps, by recording: see workSpans
	steps    []profilewalk.Step // of the rank; nil if it has several devices
	startup  startup
	now      trace.Time                        // everything is counted up to here
	until    [kernelname.NumClasses]trace.Time // by class: end of what has started
	wide     trace.Time                        // until when anything but kernels of one block runs
	delays   distribution.Sample
	queue    queueTime
	step     int        // kind of the step that launched what started last
	pending  []earlyRow // kernels that wait for communication, by when that ends
	streams  []GPUStream
	stream   map[int64]int // index into streams
	kernels  *kernelTimes
	waits    waitSweep
	pieces   pieceSweep
	watch    DeviceWatch // nil if nobody asked for it
}

// newGPUSweep returns the sweep over a device of a rank.
func newGPUSweep(part *gpuPart, of *rankWork, spans []request.Interval, opt *Options) *gpuSweep {
	g := part.gpu
	if len(opt.Cuts) > 0 {
		g.Pieces = make([]Piece, len(opt.Cuts)+1)
	}
	waits := waitSweep{host: &of.host, kernels: &of.kernels, gaps: opt.Gaps, gap: IdleGap{Rank: g.RankIndex, Device: g.Device},
		held: newHeldSweep(of, part)}
	s := &gpuSweep{gpu: g, recorded: of.recorded, spans: spans, stream: map[int64]int{}, kernels: &of.kernels, waits: waits,
		pieces: pieceSweep{cuts: opt.Cuts, gpu: g}}
	if len(of.gpus) == 1 {
		s.steps = of.steps
	}
	if opt.Watch != nil {
		if w := opt.Watch.Device(g.RankIndex, g.Device); w != nil {
			s.watch = w
		}
	}
	return s
}

func (s *gpuSweep) add(r *gpuRow) {
	g := s.gpu
	if g.Rows == 0 {
		s.now = s.lead(r)
		g.First, g.began = s.now, r.start
		for c := range s.until {
			s.until[c] = s.now
		}
	}
	g.Rows++
	s.advance(r)
	s.step = r.step()
	stream := s.ofStream(r.stream)
	s.start(r, stream)
	stream.add(r, s.recorded)
	if r.flags&rowKernel != 0 {
		g.Kernels++
		g.KernelTime = distribution.AddTimes(g.KernelTime, r.dur)
		if r.flags&rowGraph != 0 {
			g.GraphKernels++
			g.GraphTime = distribution.AddTimes(g.GraphTime, r.dur)
		}
		if r.flags&rowUnknown != 0 {
			g.UnknownTime = distribution.AddTimes(g.UnknownTime, r.dur)
		}
		if r.called() && r.inStep == 0 {
			g.OutsideTime = distribution.AddTimes(g.OutsideTime, r.dur)
		}
		s.kernels.add(r)
	}
	if r.grid.OneBlock() == 0 {
		s.wide = max(s.wide, r.end())
	}
	switch {
	case r.called():
		s.queue.add(r)
		if s.watch != nil {
			s.watch.Queued(min(r.launch, r.start), r.start)
		}
		g.Called++
		s.delays.Add(max(0, int64(r.start-r.launch)-r.launched), distribution.NoLimit)
	case r.flags&rowMigrated != 0:
		g.Migrated++
	}
}

// An earlyRow is a kernel that has started and waits for communication on its stream.
type earlyRow struct {
	from, until trace.Time // when it works
	class       kernelname.Class
}

// start notes that a row runs. A kernel that starts on a stream while communication runs there, and
// ends after it, was launched ahead of its turn and waits until then. One that ends earlier belongs to
// a branch of a graph, and runs in parallel.
func (s *gpuSweep) start(r *gpuRow, stream *GPUStream) {
	end := stream.communication.endBefore(r.start)
	switch {
	case r.flags&rowKernel == 0:
	case r.class == kernelname.ClassCommunication:
		stream.communication.add(r)
	case r.start < end && end <= r.end():
		wait := earlyRow{end, r.end(), r.class}
		at, _ := slices.BinarySearchFunc(s.pending, end+1, func(e earlyRow, from trace.Time) int { return cmp.Compare(e.from, from) })
		s.pending = slices.Insert(s.pending, at, wait)
		r.waited = distribution.Between(r.start, end)
		s.gpu.Early = distribution.AddTimes(s.gpu.Early, r.waited)
		return
	}
	s.until[r.class] = max(s.until[r.class], r.end())
}

// A latestEnd is until when the kernels run that have started on a stream. They come in the order of
// their starts.
type latestEnd struct {
	start        trace.Time // of the last one to start
	before, last trace.Time // latest end of those that started before start, and of all
}

func (l *latestEnd) add(r *gpuRow) {
	if r.start > l.start {
		l.before, l.start = l.last, r.start
	}
	l.last = max(l.last, r.end())
}

// endBefore returns the latest end of those that started before at; 0 if there are none.
func (l *latestEnd) endBefore(at trace.Time) trace.Time {
	if l.start < at {
		return l.last
	}
	return l.before
}

// advance counts the time up to the start of r, by what runs.
func (s *gpuSweep) advance(r *gpuRow) {
	for len(s.pending) > 0 && s.pending[0].from <= r.start {
		e := s.pending[0]
		s.pending = s.pending[1:]
		s.runTo(e.from) // the communication that it waits for runs until then: there is no gap
		s.until[e.class] = max(s.until[e.class], e.until)
	}
	// A gap in which nothing was recorded is neither idle nor part of the length.
	for s.now < r.start {
		running, to := s.running(r.start)
		if running == 0 && s.recorded.end(s.now, to) {
			s.trail()
			from := s.lead(r)
			s.gpu.unrecorded = distribution.AddTimes(s.gpu.unrecorded, distribution.Between(s.now, from))
			s.now = from
			s.queue.cut()
			continue
		}
		if running == 0 {
			s.step = r.step()
			did := &s.gpu.BySteps[s.step]
			did.Idle.add(r, s.now)
			before := did.Waits.Time
			s.waits.add(&did.Waits, r, s.now)
			s.pieces.waits(s.now, &before, &did.Waits.Time)
			s.gap(did)
			s.unseen(r)
		}
		s.count(running, to)
	}
}

// running returns what runs now, and until when nothing about that changes, at most limit.
func (s *gpuSweep) running(limit trace.Time) (running Running, to trace.Time) {
	to = limit
	for c, until := range s.until {
		if until > s.now {
			running |= 1 << c
			to = min(to, until)
		}
	}
	if s.wide > s.now {
		to = min(to, s.wide)
	}
	return running, to
}

func (s *gpuSweep) count(running Running, to trace.Time) {
	time := &s.gpu.BySteps[s.step].Running[running]
	length := distribution.Between(s.now, to)
	*time = distribution.AddTimes(*time, length)
	if running.Has(kernelname.ClassCompute) || running.Has(kernelname.ClassCommunication) {
		s.startup.worked = distribution.AddTimes(s.startup.worked, length)
	}
	if running != 0 && s.wide <= s.now {
		s.gpu.Single = distribution.AddTimes(s.gpu.Single, length)
	}
	if p := s.pieces.at(s.now); p != nil {
		p.Running[running] = distribution.AddTimes(p.Running[running], length)
	}
	if s.watch != nil && running != 0 && to > s.now {
		s.watch.Ran(s.now, to, running)
	}
	s.now = to
}

// gap counts the cold parts of the gap that was divided last.
func (s *gpuSweep) gap(did *Activity) {
	sum := gapSum{Gap: s.waits.gap.Gap, parts: s.waits.parts, step: s.step, load: s.waits.load}
	did.Cold.addCold(&sum)
	s.startup.add(&sum)
}

// unseen adds unrecorded work in the gap that r ended to the steps of r that had begun on the device.
func (s *gpuSweep) unseen(r *gpuRow) {
	ns := s.waits.parts[Unseen]
	if ns == 0 || s.steps == nil {
		return
	}
	for i := r.inStep - 1; i != profilewalk.NoStep; i = s.steps[i].Around {
		if step := &s.steps[i]; holdsCall(step, r) && step.First <= s.now {
			step.Unseen = distribution.AddTimes(step.Unseen, ns)
		}
	}
}

// runTo counts the time up to limit, until which something runs.
func (s *gpuSweep) runTo(limit trace.Time) {
	for s.now < limit {
		s.count(s.running(limit))
	}
}

func (s *gpuSweep) ofStream(id int64) *GPUStream {
	if n := len(s.streams); n > 0 && s.streams[n-1].Stream == id {
		return &s.streams[n-1]
	}
	at := order.At(s.stream, &s.streams, id, func() GPUStream { return GPUStream{Stream: id} })
	return &s.streams[at]
}

// finish counts what still runs.
func (s *gpuSweep) finish() {
	for _, e := range s.pending {
		s.runTo(e.from)
		s.until[e.class] = max(s.until[e.class], e.until)
	}
	s.runTo(slices.Max(s.until[:]))
	g := s.gpu
	s.trail()
	g.Last = s.now
	s.startup.settle(g)
	for i := range g.BySteps {
		g.add(&g.BySteps[i])
	}
	delays := make([]int64, 0, g.Called)
	s.delays.Each(func(v int64) { delays = append(delays, v) })
	g.Delay = distribution.Summarize(delays)
	// Little's law: the time that all rows waited, divided by the time from the first launch to the last start
	// of each recording, is how many waited on average; in tenths.
	s.queue.cut()
	g.Queue = int64(math.Round(10 * distribution.Fraction(s.queue.waited, s.queue.before)))
	g.Held = s.waits.held.settle()
	g.Streams = s.streams
	slices.SortFunc(g.Streams, func(a, b GPUStream) int { return cmp.Compare(a.Stream, b.Stream) })
}

// A queueTime is the time that rows spent between launch and start.
type queueTime struct {
	rows        int64 // of this recording
	waited      int64 // ns of all rows
	first, last trace.Time
	before      int64 // ns from the first launch to the last start of earlier recordings
}

func (q *queueTime) add(r *gpuRow) {
	launch := min(r.launch, r.start)
	if q.rows == 0 {
		q.first = launch
	}
	q.first, q.last = min(q.first, launch), r.start
	q.rows++
	q.waited = distribution.AddTimes(q.waited, distribution.Between(launch, r.start))
}

// cut ends a recording.
func (q *queueTime) cut() {
	q.before = distribution.AddTimes(q.before, distribution.Between(q.first, q.last))
	q.rows, q.first, q.last = 0, 0, 0
}

// A Watch is told what devices do while they are measured, so that its owner can divide time in another
// way.
type Watch interface {
	// Ranges returns a function that takes the closed annotations of a stream, and whether they are
	// named like steps. It is called for several streams at once.
	Ranges(stream int) func(r *profile.Range, step bool)
	// Recorded tells when each rank was recorded. It is called once, after all annotations and before everything else.
	Recorded(ranks [][]request.Interval)
	// Device returns the watch over a device of a rank, nil for none. It is called for several ranks at
	// once, but for the devices of a rank one after the other.
	Device(rank, device int32) DeviceWatch
}

// A DeviceWatch is told what one device does. Times are on the clock of its host.
type DeviceWatch interface {
	// Ran takes the time in which exactly these classes ran, piece by piece, in order and
	// without overlaps. Time that is left out was idle, or not recorded.
	Ran(from, to trace.Time, running Running)
	// Queued takes a kernel or copy whose call is known, in order of its start: when the
	// call began, and when the work did.
	Queued(launched, started trace.Time)
	// Done ends the watch.
	Done()
}

// watched tells w when each rank was recorded.
func watched(w Watch, ranks []rankWork) {
	if w == nil {
		return
	}
	w.Recorded(order.EachRow(ranks, func(r *rankWork) []request.Interval { return slices.Clone(r.recorded) }))
}

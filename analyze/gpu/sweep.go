package gpu

import (
	"cmp"
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// IdleCause says why nothing ran, as Holistic Trace Analysis does.
type IdleCause uint8

const (
	// HostWait: what ended the gap was launched in it, so that the host was late.
	HostWait IdleCause = iota
	// KernelWait: it had been launched before and the gap is shorter than kernelGap,
	// which it takes to start a kernel behind another.
	KernelWait
	// OtherWait: it had been launched before and waited for something else, such as
	// an event of another stream. Or nobody knows when it was launched.
	OtherWait
	NumCauses
)

// kernelGap is the shortest gap that is not put down to starting a kernel, ns:
// consecutive_kernel_delay of Holistic Trace Analysis.
const kernelGap = 30_000

// Idle is time in which nothing ran, between the first and the last that did.
type Idle struct {
	Time [NumCauses]int64 // ns
	Gaps [NumCauses]int64 // on a stream, those of 0 ns between neighbors included
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

const numRunning = 1 << profile.NumClasses

// Has reports whether class c runs.
func (r Running) Has(c profile.Class) bool { return r>>c&1 != 0 }

// A GPUStream is one stream of a device.
type GPUStream struct {
	Stream     int64
	Rows       int64 // kernels and copies
	Busy       int64 // ns in which one of them ran
	Idle       Idle
	first, end trace.Time
	unrecorded int64 // as of a GPU
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

// A gpuSweep measures what ran on a device. It takes rows in the order of their
// starts, and holds no more of them than which class runs until when.
type gpuSweep struct {
	gpu      *GPU
	recorded recordings
	now      trace.Time                     // up to here all is counted
	until    [profile.NumClasses]trace.Time // ends of what has started
	delays   distribution.Sample
	queue    queueTime
	streams  []GPUStream
	stream   map[int64]int // index into streams
	kernels  *kernelTimes
}

func newGPUSweep(g *GPU, kernels *kernelTimes, recorded recordings) *gpuSweep {
	return &gpuSweep{gpu: g, recorded: recorded, stream: map[int64]int{}, kernels: kernels}
}

func (s *gpuSweep) add(r *gpuRow) {
	g := s.gpu
	if g.Rows == 0 {
		g.First, s.now = r.start, r.start
		for c := range s.until {
			s.until[c] = r.start
		}
	}
	g.Rows++
	if r.start > s.now {
		s.advance(r)
	}
	s.until[r.class] = max(s.until[r.class], r.end())
	s.ofStream(r.stream).add(r, s.recorded)
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
		s.kernels.add(r)
	}
	if r.called() {
		s.queue.add(r)
		g.Called++
		s.delays.Add(max(0, int64(r.start-r.launch)-r.launched), distribution.NoLimit)
	}
}

// advance counts the time up to the start of r, by what runs. A gap in which nothing was
// recorded is neither idle nor part of the length.
func (s *gpuSweep) advance(r *gpuRow) {
	for s.now < r.start {
		running, to := s.running(r.start)
		if running == 0 && s.recorded.end(s.now, to) {
			s.gpu.unrecorded = distribution.AddTimes(s.gpu.unrecorded, distribution.Between(s.now, to))
			s.now = to
			s.queue.cut()
			continue
		}
		if running == 0 {
			s.gpu.Idle.add(r, s.now)
		}
		s.count(running, to)
	}
}

// running returns what runs now, and until when no other of it ends, at most limit.
func (s *gpuSweep) running(limit trace.Time) (running Running, to trace.Time) {
	to = limit
	for c, until := range s.until {
		if until > s.now {
			running |= 1 << c
			to = min(to, until)
		}
	}
	return running, to
}

func (s *gpuSweep) count(running Running, to trace.Time) {
	s.gpu.Running[running] = distribution.AddTimes(s.gpu.Running[running], distribution.Between(s.now, to))
	s.now = to
}

func (s *gpuSweep) ofStream(id int64) *GPUStream {
	if n := len(s.streams); n > 0 && s.streams[n-1].Stream == id {
		return &s.streams[n-1]
	}
	at, ok := s.stream[id]
	if !ok {
		at = len(s.streams)
		s.stream[id] = at
		s.streams = append(s.streams, GPUStream{Stream: id})
	}
	return &s.streams[at]
}

// finish counts what still runs.
func (s *gpuSweep) finish() {
	for last := slices.Max(s.until[:]); s.now < last; {
		s.count(s.running(last))
	}
	g := s.gpu
	g.Last = s.now
	delays := make([]int64, 0, g.Called)
	s.delays.Each(func(v int64) { delays = append(delays, v) })
	g.Delay = distribution.Summarize(delays)
	g.Queue = s.queue.mean()
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

// mean returns how many rows waited on average, in tenths: the time that all of them
// waited, divided by the time from the first launch to the last start of each recording
// (Little's law).
func (q *queueTime) mean() int64 {
	return int64(math.Round(10 * distribution.Fraction(q.waited, distribution.AddTimes(q.before, distribution.Between(q.first, q.last)))))
}

package host

import (
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// A Sweep passes over the frames of a thread, forward in time. At any moment, it knows the S that
// stands for the stack.
type Sweep[S any] struct {
	// Enter returns the S inside a frame that is entered from around. Outside of all frames, it is the
	// zero value.
	Enter func(around S, f *Frame) S
	// Ahead are the frames that have not begun, in order.
	Ahead []Frame
	open  []Open[S]
	// Changed is when a frame last began or ended.
	Changed trace.Time
}

// An Open frame is one that has begun and not ended.
type Open[S any] struct {
	To trace.Time
	In S // the S inside it
}

// MoveTo moves on to an instant, which is not before the last one. It does not enter frames that end
// until then and had not begun.
func (s *Sweep[S]) MoveTo(t trace.Time) {
	s.close(t)
	for len(s.Ahead) > 0 && s.Ahead[0].From <= t {
		f := &s.Ahead[0]
		s.Ahead = s.Ahead[1:]
		if f.To > t {
			s.open = append(s.open, Open[S]{f.To, s.Enter(s.around(f), f)})
		}
		s.Changed = max(s.Changed, f.From)
		if f.To <= t {
			s.Changed = max(s.Changed, f.To)
		}
	}
}

// rounding is how much too early frames of old traces may end, ns: their times are whole microseconds.
const rounding = 1000

// around returns the S around a frame that begins now. A range that outlasts the function in which it
// begins, such as the __enter__ of a context manager, is not in that function.
func (s *Sweep[S]) around(f *Frame) (around S) {
	n := len(s.open)
	for f.Kind == RangeFrame && n > 0 && s.open[n-1].To < f.To-rounding {
		n--
	}
	if n > 0 {
		around = s.open[n-1].In
	}
	return around
}

// close leaves the frames that ended. One that ends before the frames in it stays until these end.
func (s *Sweep[S]) close(t trace.Time) {
	n := len(s.open)
	for n > 0 && s.open[n-1].To <= t {
		n--
		s.Changed = max(s.Changed, s.open[n].To)
	}
	s.open = s.open[:n]
}

// Here returns the S of the current stack.
func (s *Sweep[S]) Here() (here S) {
	if n := len(s.open); n > 0 {
		here = s.open[n-1].In
	}
	return here
}

// Open returns the frames that the thread is in now, the innermost last. It is valid until the
// next move.
func (s *Sweep[S]) Open() []Open[S] { return s.open }

// Until returns until when the stack stays the same, at most limit.
func (s *Sweep[S]) Until(limit trace.Time) trace.Time {
	if len(s.Ahead) > 0 {
		limit = min(limit, s.Ahead[0].From)
	}
	if n := len(s.open); n > 0 {
		limit = min(limit, s.open[n-1].To)
	}
	return limit
}

// LongestPeriod bounds the time between two samples of a thread that runs, ns.
const LongestPeriod = 20_000_000

// Periods are the times between samples of the same thread.
type Periods struct {
	last  map[ThreadID]trace.Time
	times []int64
}

// enoughPeriods is how many times between samples are enough to know the period.
const enoughPeriods = 1 << 16

// Add notes a sample.
func (p *Periods) Add(x *profile.Sample) {
	if len(p.times) == enoughPeriods {
		return
	}
	if p.last == nil {
		p.last = map[ThreadID]trace.Time{}
	}
	id := ThreadID{PID: x.PID, TID: x.TID}
	if last, ok := p.last[id]; ok && x.Start > last && x.Start-last < LongestPeriod {
		p.times = append(p.times, int64(x.Start-last))
	}
	p.last[id] = x.Start
}

// Period returns the period: the lower quartile, since threads that lose their core are interrupted
// later. 0 is unknown.
func (p *Periods) Period() int64 {
	if len(p.times) == 0 {
		return 0
	}
	slices.Sort(p.times)
	return p.times[len(p.times)/4]
}

// RecordedFrames says which kinds of frames profilers recorded.
type RecordedFrames [numKinds]bool

// Join adds the kinds of o.
func (r *RecordedFrames) Join(o *RecordedFrames) {
	for kind, has := range o {
		r[kind] = r[kind] || has
	}
}

// Code reports whether anything was recorded that shows where in its code a thread is.
func (r *RecordedFrames) Code() bool { return r[PythonFrame] || r[OperatorFrame] || r[RangeFrame] }

// RecordedThreads says what was recorded of threads besides frames.
type RecordedThreads struct {
	Samples, Runs, Backtraces bool
	Python                    bool // functions of Python are in samples
}

// Join adds what o has.
func (s *RecordedThreads) Join(o *RecordedThreads) {
	s.Samples, s.Runs = s.Samples || o.Samples, s.Runs || o.Runs
	s.Backtraces, s.Python = s.Backtraces || o.Backtraces, s.Python || o.Python
}

// Missing says what was not recorded of where in its code a thread is, and which options of profilers
// record it. export means that some inputs are exports of Nsight Systems.
func (r *RecordedFrames) Missing(seen *RecordedThreads, export bool) []string {
	var notes []string
	if !r[PythonFrame] && !seen.Python {
		notes = append(notes, "no Python functions were recorded: torch.profiler records them with with_stack=True")
	}
	if !r[OperatorFrame] && !r[RangeFrame] {
		notes = append(notes, "no operators or ranges were recorded: torch.profiler and NVTX ranges (--trace=cuda,nvtx,osrt of nsys) say what the host works on")
	}
	if options := seen.options(); export && options != "" {
		notes = append(notes, "nsys records more of what the host did with "+options)
	}
	return notes
}

// options lists the options of nsys that would have recorded what is missing of threads.
func (s *RecordedThreads) options() string {
	var options []string
	add := func(seen bool, option string) {
		if !seen {
			options = append(options, option)
		}
	}
	add(s.Samples, "--sample=process-tree (what threads run)")
	add(s.Python, "--python-sampling=true (their Python functions)")
	add(s.Runs, "--cpuctxsw=process-tree (when threads have a core)")
	add(s.Backtraces, "--cudabacktrace=all and --python-backtrace=cuda (where calls are made)")
	return strings.Join(options, "; ")
}

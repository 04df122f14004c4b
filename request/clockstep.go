package request

import (
	"cmp"
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/align"
	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/trace"
)

// A ClockStep is a change of a host's clock while requests were served.
type ClockStep struct {
	Clock ClockKey
	Host  string     // as in reports
	At    trace.Time // approximately the first time that it showed afterward
	By    int64      // ns that it was set forward; negative is back
	Err   int64      // largest error of By, ns
}

// ClockSteps finds which clocks were set, and when: requests that crossed hosts before contradict those
// that did so afterward. A single pair of clocks does not show which one was set, so it is the one that
// explains the most contradictions; between equals, it is one whose rows skip the time by which it was set
// forward, or else the later one.
func (s *Set) ClockSteps() (list []ClockStep) {
	var clocks order.Groups[ClockKey, struct{}]
	of := make([]int, len(s.Procs))
	for p := range of {
		of[p] = clocks.At(s.ClockKey(p))
	}
	keys := clocks.Keys
	if len(keys) < 2 {
		return nil
	}
	clockOf := func(p int) int { return of[p] }
	bounds := s.ClockBounds(clockOf)
	defer memory.Free(bounds)
	jumps := align.Jumps(bounds)
	for len(jumps) > 0 {
		x := s.blame(jumps, bounds, len(keys), clockOf)
		step := ClockStep{Clock: keys[x.clock], At: x.at, By: x.by, Err: x.err}
		for p := range s.Procs {
			if s.ClockKey(p) == step.Clock {
				step.Host = s.HostOf(p)
				break
			}
		}
		list = append(list, step)
		jumps = slices.DeleteFunc(jumps, func(j align.Jump) bool { return x.explains(&j) })
	}
	slices.SortStableFunc(list, func(x, y ClockStep) int { return cmp.Compare(x.At, y.At) })
	return list
}

// A setting is a clock that was set.
type setting struct {
	clock         int
	before, after trace.Time // the latest time it showed before, and the earliest afterward
	at            trace.Time
	by, err       int64
}

// on returns a jump as the setting of one of its clocks; ok is false if it is not about that clock.
func on(j *align.Jump, clock int) (x setting, ok bool) {
	switch clock {
	case j.A:
		return setting{clock, trace.Time(j.BeforeA), trace.Time(j.AfterA), 0, -j.By, j.Err}, true
	case j.B:
		return setting{clock, trace.Time(j.BeforeB), trace.Time(j.AfterB), 0, j.By, j.Err}, true
	}
	return x, false
}

// explains reports whether a jump is explained by this setting.
func (x *setting) explains(j *align.Jump) bool {
	o, ok := on(j, x.clock)
	return ok && o.before <= x.after && x.before <= o.after && max(o.by-x.by, x.by-o.by) <= max(x.by, -x.by)/4+x.err+o.err ||
		ok && o.before == x.before && o.after == x.after
}

// blame chooses the clock that explains the first jump and the most others, with the least contradicting evidence.
func (s *Set) blame(jumps []align.Jump, bounds []align.Bound, clocks int, clockOf func(int) int) (best setting) {
	most := math.MinInt
	for c := range clocks {
		x, ok := on(&jumps[0], c)
		if !ok {
			continue
		}
		n := 0
		for i := range jumps {
			o, of := on(&jumps[i], c)
			if of && x.explains(&jumps[i]) {
				n += 2
				x.before, x.after = max(x.before, o.before), min(x.after, o.after)
				if o.err < x.err {
					x.by, x.err = o.by, o.err
				}
			}
		}
		n -= 2 * align.Refuting(bounds, c, int64(x.before), int64(x.after), x.by)
		if s.place(&x, clockOf) {
			n++
		}
		if n >= most {
			best, most = x, n
		}
	}
	return best
}

// place finds when a clock was set, and reports whether its rows confirm it: a clock that is set forward
// skips that much time.
func (s *Set) place(x *setting, clockOf func(int) int) bool {
	x.at = x.after
	if x.by < 0 {
		x.at = x.after + (x.before-x.after)/2 // it showed some times twice
		return false
	}
	var times []trace.Time
	note := func(t trace.Time) {
		if t >= x.before && t <= x.after {
			times = append(times, t)
		}
	}
	for i := range s.All() {
		if p := s.ProcOf(i); p != None && clockOf(p) == x.clock {
			note(s.Row(i).Start)
			note(s.Row(i).End)
		}
	}
	slices.Sort(times)
	widest := trace.Time(0)
	for i := 1; i < len(times); i++ {
		if gap := times[i] - times[i-1]; gap > widest {
			widest, x.at = gap, times[i]
		}
	}
	return int64(widest) >= x.by-x.err-ClockSlack
}

// Unstepped returns a function that maps times of a clock to what it would have shown if it had not been set.
func Unstepped(steps []ClockStep, key ClockKey) func(trace.Time) trace.Time {
	own := order.Only(steps, func(x ClockStep) bool { return x.Clock == key })
	return func(t trace.Time) trace.Time {
		by := trace.Time(0)
		for _, x := range own {
			if t >= x.At {
				by += trace.Time(x.By)
			}
		}
		return t - by
	}
}

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

// A ClockStep is that the clock of a host was set while requests were served.
type ClockStep struct {
	Clock ClockKey
	Host  string     // as reports print it
	At    trace.Time // what it showed first afterward, about
	By    int64      // ns: it was set forward; below 0, back
	Err   int64      // ns, how far By may be off
}

// ClockSteps finds out which clocks were set, and when: requests that crossed hosts before
// contradict those that did so afterward. Nobody else reads the clock of a host, so of two
// clocks that is the one about which most others agree; of only two, the one whose rows leave
// out the time that it was set forward by, else the later one.
func (s *Set) ClockSteps() (list []ClockStep) {
	index := map[ClockKey]int{}
	var keys []ClockKey
	for p := range s.Procs {
		key := s.ClockKey(p)
		if _, ok := index[key]; !ok {
			index[key] = len(keys)
			keys = append(keys, key)
		}
	}
	if len(keys) < 2 {
		return nil
	}
	clockOf := func(p int) int { return index[s.ClockKey(p)] }
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
	before, after trace.Time // what it showed at the latest before, and at the earliest afterward
	at            trace.Time
	by, err       int64
}

// on returns a jump as it is if a clock was set.
func on(j *align.Jump, clock int) (x setting, ok bool) {
	switch clock {
	case j.A:
		return setting{clock, trace.Time(j.BeforeA), trace.Time(j.AfterA), 0, -j.By, j.Err}, true
	case j.B:
		return setting{clock, trace.Time(j.BeforeB), trace.Time(j.AfterB), 0, j.By, j.Err}, true
	}
	return x, false
}

// explains reports whether a jump is that of a clock that was set.
func (x *setting) explains(j *align.Jump) bool {
	o, ok := on(j, x.clock)
	return ok && o.before <= x.after && x.before <= o.after && max(o.by-x.by, x.by-o.by) <= max(x.by, -x.by)/4+x.err+o.err ||
		ok && o.before == x.before && o.after == x.after
}

// blame chooses the clock that explains the first of some jumps, and most others, with as few as possible that contradict it.
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

// place finds out when a clock was set, and reports whether its rows show it: a clock that
// is set forward leaves out as much time.
func (s *Set) place(x *setting, clockOf func(int) int) bool {
	x.at = x.after
	if x.by < 0 {
		x.at = x.after + (x.before-x.after)/2 // it shows some times twice
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

// Unstepped returns what the clock of a proc would have shown, had it not been set.
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

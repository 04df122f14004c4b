package gpu

import (
	"cmp"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/walk"
	"github.com/sgtrace/sgtrace/trace"
)

// Waits is the idle time of a device by reason, in ns, and how many gaps each reason
// explains most of. The times add up to Idle.Total.
type Waits struct {
	Time [NumReasons]int64
	Gaps [NumReasons]int64
	// Longest are the longest gaps of which each reason explains most.
	Longest [NumReasons]Gap
}

// join adds those of o.
func (w *Waits) join(o *Waits) {
	for reason := range w.Time {
		w.Time[reason] = distribution.AddTimes(w.Time[reason], o.Time[reason])
		w.Gaps[reason] += o.Gaps[reason]
		if a, b := w.Longest[reason], o.Longest[reason]; b.length() > a.length() || b.length() == a.length() && b.From < a.From {
			w.Longest[reason] = b
		}
	}
}

// A Gap is a time in which a device ran nothing.
type Gap struct{ From, To trace.Time }

// length is in ns.
func (g Gap) length() int64 { return distribution.Between(g.From, g.To) }

// A hostCall is a call that held up its thread.
type hostCall struct {
	start, end trace.Time
	reason     Reason
}

// hostTimes are what the host of a rank did, in the order of time: calls that hold up
// their threads, and steps as intervals that do not overlap.
type hostTimes struct {
	calls []hostCall
	steps []recordedSpan
}

// order puts calls in order and makes intervals of steps.
func (h *hostTimes) order(steps []walk.Step) {
	slices.SortFunc(h.calls, func(a, b hostCall) int { return cmp.Compare(a.start, b.start) })
	var spans recordings
	for i := range steps {
		spans = append(spans, recordedSpan{steps[i].Start, steps[i].End})
	}
	h.steps = spans.union()
}

// A waitSweep finds the reasons of the gaps of one device, which come in order.
type waitSweep struct {
	host   *hostTimes
	call   int        // the first of host.calls that did not begin before the last gap's end
	active []hostCall // began, and may not have ended
	step   int        // the first of host.steps that did not end before the last gap
}

// add counts the gap from the end of what ran last to the start of r.
func (s *waitSweep) add(w *Waits, r *gpuRow, from trace.Time) {
	to := r.start
	var parts [NumReasons]int64
	length := distribution.Between(from, to)
	switch {
	case r.called() && r.launch > from:
		s.ofHost(&parts, from, to, r.launch)
	case length < kernelGap:
		parts[LaunchGap] = length
	case r.called():
		parts[Dependency] = length
	case r.flags&rowMigrated != 0:
		parts[Migration] = length
	default:
		parts[NotRecorded] = length
	}
	most := Reason(0)
	for reason, t := range parts {
		w.Time[reason] = distribution.AddTimes(w.Time[reason], t)
		if t > parts[most] {
			most = Reason(reason)
		}
	}
	w.Gaps[most]++
	if length > w.Longest[most].length() {
		w.Longest[most] = Gap{from, to}
	}
}

// ofHost divides a gap that a late launch ended. What a call takes counts as that call;
// of the rest, what lies in no step is between steps, and all else is the host's own
// work, or the consequence of a call that let the device run dry.
func (s *waitSweep) ofHost(parts *[NumReasons]int64, from, to, launch trace.Time) {
	s.enter(from, to)
	var until [NumReasons]trace.Time
	drained := false
	now := from
	count := func(limit trace.Time) {
		for now < limit {
			reason, end := running(&until, now, limit)
			if reason == NoReason {
				s.withoutCall(parts, now, end, drained)
			} else {
				parts[reason] = distribution.AddTimes(parts[reason], distribution.Between(now, end))
			}
			now = end
		}
	}
	for i := range s.active { // in the order of their starts
		c := &s.active[i]
		start := max(c.start, from)
		drained = drained || c.reason == AfterSync && c.start <= from && c.end <= launch
		reason := c.reason
		switch {
		case reason != AfterSync && reason != BlockingCopy:
		case distribution.Between(start, min(c.end, to)) >= waitsUnseen:
			reason = Unseen
		case reason == AfterSync:
			continue
		}
		count(min(start, to))
		until[reason] = max(until[reason], c.end)
	}
	count(to)
}

// waitsUnseen is from how long on a call that waits for an idle device waits for work that
// was not recorded, ns: such calls return within microseconds, and staging what a blocking
// copy takes needs less, too.
const waitsUnseen = 1_000_000

// running returns the reason that holds now, the worst first, and until when.
func running(until *[NumReasons]trace.Time, now, limit trace.Time) (Reason, trace.Time) {
	for _, reason := range [...]Reason{Modules, Allocation, Unseen, BlockingCopy} {
		if until[reason] > now {
			return reason, min(limit, until[reason])
		}
	}
	return NoReason, limit
}

// enter makes active what may overlap a gap.
func (s *waitSweep) enter(from, to trace.Time) {
	s.active = slices.DeleteFunc(s.active, func(c hostCall) bool { return c.end <= from })
	for ; s.call < len(s.host.calls) && s.host.calls[s.call].start < to; s.call++ {
		if c := s.host.calls[s.call]; c.end > from {
			s.active = append(s.active, c)
		}
	}
}

// withoutCall counts time in which no call held the host up.
func (s *waitSweep) withoutCall(parts *[NumReasons]int64, from, to trace.Time, drained bool) {
	reason := HostWork
	if drained {
		reason = AfterSync
	}
	length := distribution.Between(from, to)
	inSteps := length
	if len(s.host.steps) > 0 {
		inSteps = s.inSteps(from, to)
	}
	parts[reason] = distribution.AddTimes(parts[reason], inSteps)
	parts[BetweenSteps] = distribution.AddTimes(parts[BetweenSteps], length-inSteps)
}

// inSteps returns how much of [from, to) lies in steps, in ns.
func (s *waitSweep) inSteps(from, to trace.Time) int64 {
	for s.step < len(s.host.steps) && s.host.steps[s.step].to <= from {
		s.step++
	}
	total := int64(0)
	for i := s.step; i < len(s.host.steps) && s.host.steps[i].from < to; i++ {
		step := s.host.steps[i]
		total = distribution.AddTimes(total, distribution.Between(max(from, step.from), min(to, step.to)))
	}
	return total
}

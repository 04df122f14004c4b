package gpu

import (
	"cmp"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/profilewalk"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// Waits is the idle time of a device by reason, in ns, and the number of gaps of which each reason
// explains most. The times add up to Idle.Total.
type Waits struct {
	Time [NumReasons]int64
	Gaps [NumReasons]int64
	// Longest are the longest of these gaps, by reason.
	Longest [NumReasons]Gap
}

// join adds the idle time of o.
func (w *Waits) join(o *Waits) {
	for reason := range w.Time {
		w.Time[reason] = distribution.AddTimes(w.Time[reason], o.Time[reason])
		w.Gaps[reason] += o.Gaps[reason]
		if a, b := w.Longest[reason], o.Longest[reason]; b.Length() > a.Length() || b.Length() == a.Length() && b.From < a.From {
			w.Longest[reason] = b
		}
	}
}

// A Gap is a time in which a device ran nothing.
type Gap struct{ From, To trace.Time }

// Length is in ns.
func (g Gap) Length() int64 { return distribution.Between(g.From, g.To) }

// A HostCall is a call that held up its thread.
type HostCall struct {
	Start, End trace.Time
	TID        int64
	PID        int32
	reason     Reason
	nobody     bool // it is not named as the call to blame
}

// hostTimes are what the host of a rank did, in order of time: calls that hold up their threads, and
// steps as intervals that do not overlap.
type hostTimes struct {
	calls []HostCall
	steps []request.Interval
}

// order sorts calls, and merges steps, including open ones, into intervals.
func (h *hostTimes) order(steps []profilewalk.Step, open []request.Interval) {
	slices.SortFunc(h.calls, func(a, b HostCall) int { return cmp.Compare(a.Start, b.Start) })
	spans := recordings(slices.Clone(open))
	for i := range steps {
		spans = append(spans, request.Interval{From: steps[i].Start, To: steps[i].End})
	}
	h.steps = request.Union(spans)
}

// A waitSweep finds the reasons of the gaps of one device, which come in order.
type waitSweep struct {
	host   *hostTimes
	call   int        // the first of host.calls that did not begin before the last gap's end
	active []HostCall // calls that began, and may not have ended
	step   int        // the first of host.steps that did not end before the last gap

	kernels *kernelTimes // that ran before the gap
	held    heldSweep

	gap   IdleGap // the one that is being divided
	parts [NumReasons]int64
	lost  int64          // ns of the calls that waited until the device had run dry
	load  int64          // ns of the launch that ended it, if that loaded code
	gaps  func(*IdleGap) // called with each gap, if not nil
}

// add counts the gap from the end of what ran last to the start of r.
func (s *waitSweep) add(w *Waits, r *gpuRow, from trace.Time) {
	to := r.start
	s.parts, s.load, s.lost = [NumReasons]int64{}, 0, 0
	s.gap.Gap, s.gap.Late, s.gap.Launch, s.gap.Launched = Gap{from, to}, r.launchedLate(from), r.launch, r.launched
	s.gap.Parts = s.gap.Parts[:0]
	switch {
	case r.called():
		s.launched(r, from)
	case r.flags&rowMigrated != 0:
		s.count(Migration, from, to, nil)
	default:
		s.count(NotRecorded, from, to, nil)
	}
	s.settle(w)
}

// launched divides a gap that ended with a row whose call is known. Once the host has launched a
// kernel, it is not to blame if the device holds that back.
func (s *waitSweep) launched(r *gpuRow, from trace.Time) {
	to, first := r.start, !s.kernels.ran(r.name)
	ready := min(to, s.held.readyAt(r, from))
	if !s.held.add(r, ready, s.gap.Late, first) {
		ready = to
	}
	length := distribution.Between(from, to)
	switch {
	case s.gap.Late:
		if r.launched >= slowLaunch && r.flags&rowKernel != 0 && first {
			s.load = r.launched
			s.activate(HostCall{Start: r.launch, End: r.launch + trace.Time(r.launched), reason: Modules, nobody: true})
		}
		until := r.givenAt(from, ready)
		s.ofHost(from, until, r.launch)
		s.count(Dependency, until, ready, nil)
	case length < kernelGap || ready < to:
		s.count(LaunchGap, from, ready, nil)
	case r.flags&rowKernel == 0 && r.launch+trace.Time(r.launched) > to:
		s.count(BlockingCopy, from, to, nil) // the driver works in the call: it stages memory
	default:
		s.count(Dependency, from, to, nil)
	}
	s.count(Withheld, ready, to, nil)
}

// givenAt returns until when the host kept a device waiting, in a gap that began at from and ended with
// r, which was late. The device could have started r at ready. If r starts long after a launch that was
// under way when the gap began, it waits for something else after that launch.
func (r *gpuRow) givenAt(from, ready trace.Time) trace.Time {
	end := r.launch + trace.Time(r.launched)
	if r.flags&rowKernel != 0 && r.launch <= from && r.launched < slowLaunch && ready >= end+heldFrom {
		return end
	}
	return ready
}

// trail counts the gap from the end of the last row until the steps end.
func (s *waitSweep) trail(did *Activity, from, to trace.Time) {
	s.parts, s.load, s.lost = [NumReasons]int64{}, 0, 0
	s.gap.Gap, s.gap.Late, s.gap.Launch, s.gap.Launched = Gap{from, to}, true, to, 0
	s.gap.Parts = s.gap.Parts[:0]
	s.ofHost(from, to, to)
	s.settle(&did.Waits)
}

// settle adds up the parts of the gap.
func (s *waitSweep) settle(w *Waits) {
	length := s.gap.Length()
	most := Reason(0)
	for reason, t := range s.parts {
		w.Time[reason] = distribution.AddTimes(w.Time[reason], t)
		if t > s.parts[most] {
			most = Reason(reason)
		}
	}
	w.Gaps[most]++
	if length > w.Longest[most].Length() {
		w.Longest[most] = s.gap.Gap
	}
	if s.gaps != nil {
		s.gaps(&s.gap)
	}
}

// count adds a part of the gap that has one reason, and the call that is to blame; nil if there is
// none.
func (s *waitSweep) count(reason Reason, from, to trace.Time, by *HostCall) {
	if from >= to {
		return
	}
	s.parts[reason] = distribution.AddTimes(s.parts[reason], distribution.Between(from, to))
	if s.gaps != nil {
		part := GapPart{Gap: Gap{from, to}, Reason: reason}
		if by != nil {
			part.By, part.Called = *by, true
		}
		s.gap.Parts = append(s.gap.Parts, part)
	}
}

// A holdup is until when a call holds up the host.
type holdup struct {
	until trace.Time
	by    *HostCall
}

// ofHost divides a gap that ended with a late launch. Time in a call that holds up the host counts as
// that call. Of the rest, time outside of steps is between steps, and all else is the host's own work,
// or the consequence of a call that let the device run dry.
func (s *waitSweep) ofHost(from, to, launch trace.Time) {
	s.enter(from, to)
	var holdups [NumReasons]holdup
	var drained *HostCall
	now := from
	countTo := func(limit trace.Time) {
		for now < limit {
			reason, end := running(&holdups, now, limit)
			if reason == NoReason {
				s.withoutCall(now, end, drained)
			} else {
				s.count(reason, now, end, holdups[reason].by)
			}
			now = end
		}
	}
	for i := range s.active { // in the order of their starts
		c := &s.active[i]
		start := max(c.Start, from)
		if c.reason == AfterSync && c.Start <= from && c.End <= launch {
			drained = c
			s.lost = distribution.AddTimes(s.lost, distribution.Between(c.Start, c.End))
		}
		by, reason := c, c.reason
		if c.nobody {
			by = nil
		}
		switch {
		case reason != AfterSync && reason != BlockingCopy:
		case distribution.Between(start, min(c.End, to)) >= waitsUnseen:
			reason = Unseen
		case reason == AfterSync:
			continue
		}
		countTo(min(start, to))
		if c.End > holdups[reason].until {
			holdups[reason] = holdup{c.End, by}
		}
	}
	countTo(to)
}

// waitsUnseen is how long a call that waits for an idle device must take, ns, to be waiting for work
// that was not recorded: otherwise such calls return within microseconds, and even staging the data of
// a blocking copy takes less.
const waitsUnseen = 1_000_000

// running returns the reason that applies now, the worst first, and until when.
func running(holdups *[NumReasons]holdup, now, limit trace.Time) (Reason, trace.Time) {
	for _, reason := range [...]Reason{Capturing, Modules, Allocation, Unseen, BlockingCopy, Compiling, ProfilerStart, Meeting} {
		if until := holdups[reason].until; until > now {
			return reason, min(limit, until)
		}
	}
	return NoReason, limit
}

// activate adds a call to those that may overlap the gap. It is one of the last of them.
func (s *waitSweep) activate(c HostCall) {
	s.enter(s.gap.From, s.gap.To)
	at, _ := slices.BinarySearchFunc(s.active, c.Start, func(a HostCall, start trace.Time) int { return cmp.Compare(a.Start, start) })
	s.active = slices.Insert(s.active, at, c)
}

// enter drops the calls that ended before a gap from active, and adds those that may overlap it.
func (s *waitSweep) enter(from, to trace.Time) {
	s.active = slices.DeleteFunc(s.active, func(c HostCall) bool { return c.End <= from })
	for ; s.call < len(s.host.calls) && s.host.calls[s.call].Start < to; s.call++ {
		if c := s.host.calls[s.call]; c.End > from {
			s.active = append(s.active, c)
		}
	}
}

// withoutCall counts time in which no call held up the host. drained is the earlier call that waited
// until the device had run dry; nil if there is none.
func (s *waitSweep) withoutCall(from, to trace.Time, drained *HostCall) {
	steps := s.host.steps
	if len(steps) == 0 {
		s.ofThread(from, to, drained)
		return
	}
	for s.step < len(steps) && steps[s.step].To <= from {
		s.step++
	}
	now := from
	for i := s.step; i < len(steps) && steps[i].From < to; i++ {
		start, end := max(from, steps[i].From), min(to, steps[i].To)
		s.count(BetweenSteps, now, start, nil)
		s.ofThread(start, end, drained)
		now = end
	}
	s.count(BetweenSteps, now, to, nil)
}

// ofThread counts time in which the host worked outside of calls. Had a call not waited until the
// device had run dry, the host would have been earlier by as much as that call took, and no more: the
// rest is work that would have kept the device waiting anyway.
func (s *waitSweep) ofThread(from, to trace.Time, drained *HostCall) {
	lost := from
	if drained != nil {
		lost = from + trace.Time(min(s.lost, distribution.Between(from, to)))
		s.lost -= distribution.Between(from, lost)
		s.count(AfterSync, from, lost, drained)
	}
	s.count(HostWork, lost, to, nil)
}

// An IdleGap is a gap of a device, divided by reason.
type IdleGap struct {
	Rank, Device int32
	Gap
	// Late reports that the host was late: it launched what ended the gap during the gap. Launch is when
	// that call began, which is before the gap if it was slow, and Launched how long it took, in ns.
	Late     bool
	Launch   trace.Time
	Launched int64
	Parts    []GapPart // in order; they add up to the gap
}

// A GapPart is a part of a gap with one reason.
type GapPart struct {
	Gap
	Reason Reason
	// By is the call that is to blame: the one that held up the host, or the earlier one that let the
	// device run dry. Called reports whether there is one.
	By     HostCall
	Called bool
}

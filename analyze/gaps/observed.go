package gaps

import (
	"cmp"
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/gpu"
	"github.com/sgtrace/sgtrace/analyze/host"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// An observed is what was seen of a thread from outside: where it was when it was interrupted, and when
// it had a core.
type observed struct {
	samples []sample
	period  int64 // ns between two samples of a running thread; 0 is unknown
	runs    spans
	// known is the time for which all runs of the thread were recorded: between these, it had no core.
	known gpu.Gap

	nextSample, nextRun int // of the sweep
}

// A sample is a place at an instant. It stands for the time up to the next one, but for no more than a
// period, and not beyond anything that the thread began or ended meanwhile.
type sample struct {
	from, to trace.Time // to is known once all samples are there
	place    place
}

// join adds what another stream recorded of the same thread.
func (o *observed) join(more *observed) {
	o.samples, o.runs = append(o.samples, more.samples...), append(o.runs, more.runs...)
	o.period = max(o.period, more.period)
	if o.known == (gpu.Gap{}) {
		o.known = more.known // two recordings that overlap say the same
	}
}

// settle sorts samples and runs, and sets until when samples hold.
func (o *observed) settle() {
	slices.SortStableFunc(o.samples, func(a, b sample) int { return cmp.Compare(a.from, b.from) })
	for i := range o.samples {
		s := &o.samples[i]
		s.to = s.from + trace.Time(o.period)
		if i+1 < len(o.samples) {
			s.to = min(s.to, o.samples[i+1].from)
		}
	}
	slices.SortFunc(o.runs, func(a, b gpu.Gap) int { return cmp.Compare(a.From, b.From) })
}

// rewind goes back to the beginning.
func (o *observed) rewind() { o.nextSample, o.nextRun = 0, 0 }

// refine returns what a thread did at an instant. Where its stack, which says at from since to limit,
// is too vague, it goes by what was seen of the thread. It also returns until when that holds, and how
// many samples show it. Instants only move forward.
func (o *observed) refine(at site, since, now, limit trace.Time) (refined site, until trace.Time, samples int) {
	if at.mayBeOff() {
		runs, end := o.runsAt(now)
		if limit = min(limit, end); !runs {
			return at.off(), limit, 0
		}
	}
	if at.did != host.NotRecorded && at.did != host.InRange {
		return at, limit, 0
	}
	for o.nextSample < len(o.samples) && o.samples[o.nextSample].to <= now {
		o.nextSample++
	}
	if o.nextSample == len(o.samples) {
		return at, limit, 0
	}
	s := &o.samples[o.nextSample]
	switch {
	case s.from > now:
		return at, min(limit, s.from), 0
	case s.from < since:
		return at, min(limit, s.to), 0
	}
	if s.from == now {
		samples = 1
	}
	at.did, at.function, at.frame = s.place.did, s.place.function, s.place.frame
	return at, min(limit, s.to), samples
}

// runsAt reports whether a thread may have had a core at an instant, and until when that holds.
func (o *observed) runsAt(now trace.Time) (runs bool, until trace.Time) {
	switch {
	case now < o.known.From:
		return true, o.known.From
	case now >= o.known.To:
		return true, math.MaxInt64
	}
	for o.nextRun < len(o.runs) && o.runs[o.nextRun].To <= now {
		o.nextRun++
	}
	switch {
	case o.nextRun == len(o.runs):
		return false, o.known.To
	case o.runs[o.nextRun].From > now:
		return false, o.runs[o.nextRun].From
	}
	return true, o.runs[o.nextRun].To
}

// mayBeOff reports whether nothing in the stack of a thread blocks, so that it does not explain why the
// thread has no core.
func (s *site) mayBeOff() bool {
	switch s.did {
	case host.NotRecorded, host.InRange, host.InPython, host.InOperator, host.Launching:
		return true
	}
	return false
}

// off returns the site of a thread that has no core.
func (s site) off() site {
	s.did = host.OffCPU
	return s
}

// readObserved reads what was seen of threads in late gaps.
func (c *Collector) readObserved(s profile.Stream, hosts *rankHosts) {
	places := newPlaces(c.set.Syms)
	var period host.Periods
	known := gpu.Gap{From: math.MaxInt64, To: math.MinInt64}
	s.Samples(func(x *profile.Sample) bool {
		h := hosts.of(x.Rank)
		h.saw.Samples = true
		period.Add(x)
		if h.during(x.Start, x.Start+host.LongestPeriod) {
			t, at := h.thread(host.ThreadID{PID: x.PID, TID: x.TID}), places.of(x)
			t.seen.samples = append(t.seen.samples, sample{from: x.Start, place: at})
			h.saw.Python = h.saw.Python || at.did == host.InPython
		}
		return true
	})
	s.Runs(func(x *profile.Run) bool {
		h := hosts.of(x.Rank)
		h.saw.Runs = true
		known.From, known.To = min(known.From, x.Start), max(known.To, x.End)
		h.scheduled(host.ThreadID{PID: x.PID, TID: x.TID})
		if h.during(x.Start, x.End) {
			t := h.thread(host.ThreadID{PID: x.PID, TID: x.TID})
			t.seen.runs = append(t.seen.runs, gpu.Gap{From: x.Start, To: x.End})
		}
		return true
	})
	for _, h := range hosts.ranks.All() {
		for _, t := range h.threads {
			if t.seen.period = period.Period(); h.withRuns[t.id] {
				t.seen.known = known
			}
		}
	}
}

// readBacktraces reads from which functions calls were made in late gaps.
func (c *Collector) readBacktraces(s profile.Stream, hosts *rankHosts) {
	places := newPlaces(c.set.Syms)
	inGap := func(x *profile.Sample) bool {
		h := hosts.of(x.Rank)
		h.saw.Backtraces = true
		return h.during(x.Start, max(x.End, x.Start+1))
	}
	for x := range s.Backtraces(inGap) {
		if at := places.of(x); at.frame != 0 {
			f := host.FrameOf(host.StackFrame, &x.Event)
			f.Name = at.frame
			hosts.of(x.Rank).thread(host.ThreadID{PID: x.PID, TID: x.TID}).read.Add(f)
		}
	}
}

// during reports whether some device was in a late gap in an interval.
func (h *rankHost) during(from, to trace.Time) bool {
	h.near = h.late.after(from, h.near)
	return h.near < len(h.late) && h.late[h.near].From < to
}

// scheduled notes that it was recorded when a thread had a core.
func (h *rankHost) scheduled(id host.ThreadID) {
	if h.withRuns == nil {
		h.withRuns = map[host.ThreadID]bool{}
	}
	h.withRuns[id] = true
}

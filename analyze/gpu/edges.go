package gpu

import (
	"cmp"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/trace"
)

// Time at the edges of steps is time: where steps are annotated, the time of a device is
// from the beginning of the first step of a recording to the end of the last one, if these
// are before the first and after the last that ran. A step that prepares data for most of
// its time leaves the device idle for as long. A step that went on when the recording ended has
// a beginning, but no end.

// workSpans returns, for each recording, the time of its steps; one of no steps is empty, and
// one of which the last step is open has no end.
// Only what lies in the window counts.
func (r *rankWork) workSpans(opt *Options) []recordedSpan {
	spans := make([]recordedSpan, len(r.recorded))
	for i, span := range r.recorded {
		if opt.From != 0 {
			span.from = max(span.from, opt.From)
		}
		if opt.To != 0 {
			span.to = min(span.to, opt.To)
		}
		at, _ := slices.BinarySearchFunc(r.host.steps, span.from, func(s recordedSpan, from trace.Time) int { return cmp.Compare(s.to, from+1) })
		for ; at < len(r.host.steps) && r.host.steps[at].from < span.to; at++ {
			step := r.host.steps[at]
			if spans[i] == (recordedSpan{}) {
				spans[i].from = max(step.from, span.from)
			}
			spans[i].to = min(step.to, span.to)
		}
		if slices.ContainsFunc(r.open, func(s recordedSpan) bool { return s.from < span.to && s.to >= spans[i].to }) {
			spans[i].to = 0 // nobody knows whether more was to come in this step
		}
	}
	return spans
}

// spanAt returns the time of the steps of the recording that an instant lies in.
func (s *gpuSweep) spanAt(t trace.Time) recordedSpan {
	i, _ := slices.BinarySearchFunc(s.recorded, t, func(span recordedSpan, at trace.Time) int { return cmp.Compare(span.to, at) })
	if i == len(s.recorded) {
		return recordedSpan{}
	}
	return s.spans[i]
}

// lead returns, and counts, from when on the device is known to have been idle before r, the first that
// ran in a recording: from the beginning of the steps, if r began as soon as it was launched.
// One that waited behind its launch waited for work from before the recording.
func (s *gpuSweep) lead(r *gpuRow) trace.Time {
	span := s.spanAt(r.start)
	switch {
	case span == (recordedSpan{}) || span.from >= r.start || !r.called() || r.launch <= span.from:
		return r.start
	case int64(r.start-r.launch)-r.launched >= waitsUnseen:
		return r.start
	}
	s.gpu.Lead = distribution.AddTimes(s.gpu.Lead, distribution.Between(span.from, r.start))
	return span.from
}

// trail counts the idle time behind the last that ran in a recording, until the steps end.
func (s *gpuSweep) trail() {
	to := s.spanAt(s.now).to
	if to <= s.now {
		return
	}
	s.gpu.Trail = distribution.AddTimes(s.gpu.Trail, distribution.Between(s.now, to))
	did := &s.gpu.BySteps[s.step]
	did.Idle.Time[HostWait] = distribution.AddTimes(did.Idle.Time[HostWait], distribution.Between(s.now, to))
	did.Idle.Gaps[HostWait]++
	before := did.Waits.Time
	s.waits.trail(did, s.now, to)
	s.pieces.waits(s.now, &before, &did.Waits.Time)
	s.gap(did)
	s.count(0, to)
}

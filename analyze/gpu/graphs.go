package gpu

import (
	"cmp"
	"maps"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/profilewalk"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// A GraphUse compares the decode steps of a rank at about one batch size: those launched as CUDA graphs
// with those launched kernel by kernel.
type GraphUse struct {
	Rank               string
	MinBatch, MaxBatch int32 // requests; -1 is unknown
	// Graph and Eager are the times from the first start to the last end of what a step launched, in
	// ns.
	Graph, Eager distribution.Summary
	// Beyond is how many of Eager have a larger batch than any decode step of the rank that ran as a
	// graph; 0 if none did.
	Beyond int

	rankIndex int32
}

// Lost returns how much longer steps without graphs took, in ns: their number times the difference of
// the medians. It is 0 if they were not slower or there is nothing to compare.
func (u *GraphUse) Lost() int64 {
	if u.Graph.N == 0 || u.Eager.P50 <= u.Graph.P50 {
		return 0
	}
	return int64(float64(u.Eager.N) * float64(u.Eager.P50-u.Graph.P50))
}

// groupGraphs groups the decode steps of a rank that launched kernels by batch size.
func groupGraphs(set *profile.Set, rank int32, steps []profilewalk.Step) []GraphUse {
	type key struct{ from, to int32 }
	type times struct{ graph, eager []int64 }
	of, beyond, largest := map[key]*times{}, map[key]int{}, largestGraph(steps)
	for i := range steps {
		s := &steps[i]
		if s.StepName.Kind != profile.StepDecode || s.Kernels == 0 {
			continue
		}
		var k key
		k.from, k.to = profilewalk.BatchBucket(s.StepName.Batch)
		if of[k] == nil {
			of[k] = &times{}
		}
		if took := distribution.Between(s.First, s.Last); s.AsGraph() {
			of[k].graph = append(of[k].graph, took)
		} else {
			of[k].eager = append(of[k].eager, took)
			if largest >= 0 && s.StepName.Batch > largest {
				beyond[k]++
			}
		}
	}
	var out []GraphUse
	for _, k := range slices.SortedFunc(maps.Keys(of), func(a, b key) int { return cmp.Compare(a.from, b.from) }) {
		out = append(out, GraphUse{Rank: set.Ranks[rank], rankIndex: rank, MinBatch: k.from, MaxBatch: k.to,
			Graph: distribution.Summarize(of[k].graph), Eager: distribution.Summarize(of[k].eager), Beyond: beyond[k]})
	}
	return out
}

// largestGraph returns the largest batch of a decode step that ran as a graph; -1 if none did.
func largestGraph(steps []profilewalk.Step) int32 {
	largest := int32(-1)
	for i := range steps {
		if s := &steps[i]; s.StepName.Kind == profile.StepDecode && s.Kernels > 0 && s.AsGraph() {
			largest = max(largest, s.StepName.Batch)
		}
	}
	return largest
}

// Time at the edges of steps counts: where steps are annotated, the time of a device is from the
// beginning of the first step of a recording to the end of the last one, if these are before the first
// row and after the last. A step that mostly prepares data leaves the device idle for as long. A step
// that was under way when the recording ended has a beginning, but no end.

// workSpans returns the time of the steps in each recording, clipped to the window. It is empty without
// steps, and has no end if the last step is open.
func (r *rankWork) workSpans(opt *Options) []request.Interval {
	spans := make([]request.Interval, len(r.recorded))
	for i, span := range r.recorded {
		if opt.From != 0 {
			span.From = max(span.From, opt.From)
		}
		if opt.To != 0 {
			span.To = min(span.To, opt.To)
		}
		at, _ := slices.BinarySearchFunc(r.host.steps, span.From, func(s request.Interval, from trace.Time) int { return cmp.Compare(s.To, from+1) })
		for ; at < len(r.host.steps) && r.host.steps[at].From < span.To; at++ {
			step := r.host.steps[at]
			if spans[i] == (request.Interval{}) {
				spans[i].From = max(step.From, span.From)
			}
			spans[i].To = min(step.To, span.To)
		}
		if slices.ContainsFunc(r.open, func(s request.Interval) bool { return s.From < span.To && s.To >= spans[i].To }) {
			spans[i].To = 0 // this step may have launched more
		}
	}
	return spans
}

// spanAt returns the time of the steps in the recording that contains t.
func (s *gpuSweep) spanAt(t trace.Time) request.Interval {
	i, _ := slices.BinarySearchFunc(s.recorded, t, func(span request.Interval, at trace.Time) int { return cmp.Compare(span.To, at) })
	if i == len(s.recorded) {
		return request.Interval{}
	}
	return s.spans[i]
}

// lead returns, and counts, since when the device is known to have been idle before r, the first row of
// a recording: since the steps began, if r started as soon as it was launched. A row that waited after
// its launch waited for work from before the recording.
func (s *gpuSweep) lead(r *gpuRow) trace.Time {
	span := s.spanAt(r.start)
	switch {
	case span == (request.Interval{}) || span.From >= r.start || !r.called() || r.launch <= span.From:
		return r.start
	case int64(r.start-r.launch)-r.launched >= waitsUnseen:
		return r.start
	}
	s.gpu.Lead = distribution.AddTimes(s.gpu.Lead, distribution.Between(span.From, r.start))
	return span.From
}

// trail counts the idle time after the last row of a recording, until its steps end.
func (s *gpuSweep) trail() {
	to := s.spanAt(s.now).To
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

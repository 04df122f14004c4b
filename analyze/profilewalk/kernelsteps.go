package profilewalk

import (
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/profile"
)

// KernelSteps finds the step of work on devices, by the call that launched it.
type KernelSteps struct {
	steps [][]Step             // by rank
	calls []order.Paged[int32] // by rank and correlation: index into steps, plus one
}

// ReadKernelSteps reads the steps of a stream, and the calls in them.
func ReadKernelSteps(set *profile.Set, s profile.Stream) *KernelSteps {
	threads := ReadSteps(set, s, &Options{})
	k := &KernelSteps{steps: make([][]Step, len(threads)), calls: make([]order.Paged[int32], len(threads))}
	any := false
	for rank := range threads {
		k.steps[rank] = threads[rank].Settle()
		any = any || len(k.steps[rank]) > 0
	}
	if !any {
		return k
	}
	for c := range s.Calls {
		if c.Correlation == 0 || len(k.steps[c.Rank]) == 0 {
			continue
		}
		at := threads[c.Rank].At(&profile.Call{Event: profile.Event{Start: c.Start, End: c.Start, PID: c.PID}, TID: c.TID})
		if at == NoStep {
			continue
		}
		if p := k.calls[c.Rank].At(c.Correlation); *p == 0 {
			*p = at + 1
		}
	}
	return k
}

// around yields the steps around the call that launched some work, innermost first.
func (k *KernelSteps) around(rank int32, correlation int64, yield func(*Step) bool) {
	if correlation == 0 {
		return
	}
	p := k.calls[rank].Find(correlation)
	if p == nil {
		return
	}
	for at := *p - 1; at != NoStep; at = k.steps[rank][at].Around {
		if !yield(&k.steps[rank][at]) {
			return
		}
	}
}

// Kind returns whether some work belongs to a prefill or a decode step, and the number of requests in its batch;
// StepOther and -1 are unknown.
func (k *KernelSteps) Kind(e *profile.Event) (kind profile.StepKind, batch int32) {
	batch = -1
	k.around(e.Rank, e.Correlation, func(s *Step) bool {
		kind, batch = s.StepName.Kind, s.StepName.Batch
		return kind == profile.StepOther
	})
	return kind, batch
}

// Lengths returns the sequence lengths of the step that some work belongs to, or nil if unknown.
func (k *KernelSteps) Lengths(e *profile.Event) (l *profile.Lengths) {
	k.around(e.Rank, e.Correlation, func(s *Step) bool {
		l = s.StepName.Lengths
		return l == nil
	})
	return l
}

// CountServer counts the steps of servers in a window.
func (k *KernelSteps) CountServer(opt *Options) (n int64) {
	for _, steps := range k.steps {
		for i := range steps {
			if s := &steps[i]; s.OfServer() && !s.Again && opt.Keeps(&profile.Event{Start: s.Start, End: s.End}) {
				n++
			}
		}
	}
	return n
}

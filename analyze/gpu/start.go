package gpu

import (
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// A Start is the first call of a process, which took long, before its devices ran anything: CUDA
// starts in it. It is no time of the devices, which is counted from when they first ran
// something, or from a step.
type Start struct {
	Rank, Call string
	Time       int64 // ns
	Captured   int64 // as of a [GPU]
}

// A firstCall is the call of a rank that began first.
type firstCall struct {
	start trace.Time
	dur   int64 // ns
	name  trace.Sym
}

func (f *firstCall) join(o *firstCall) {
	if o.name != 0 && (f.name == 0 || o.start < f.start || o.start == f.start && o.dur > f.dur) {
		*f = *o
	}
}

// addStart adds what a rank took to start CUDA.
func (g *GPUs) addStart(set *profile.Set, r *rankWork) {
	if r.first.dur < slowStart || len(r.gpus) == 0 {
		return
	}
	for _, part := range r.gpus {
		if part.gpu.began < r.first.start+trace.Time(r.first.dur) {
			return
		}
	}
	name := set.Syms.Name(r.first.name)
	if startsIn(name) != startsNothing || reasonOfCall(name) == Allocation {
		of := r.gpus[0].gpu
		g.Starts = append(g.Starts, Start{Rank: of.Rank, Call: name, Time: r.first.dur, Captured: of.Captured})
	}
}

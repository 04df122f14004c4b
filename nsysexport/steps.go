package nsysexport

import (
	"cmp"
	"slices"

	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// findGPUSteps adds the GPU part of each step of a thread: from the start of the first to the end of the last
// piece of work that its thread launched during the step.
func (r *profiler) findGPUSteps(f *process) {
	if len(f.Profile.Steps) == 0 || len(f.launches) == 0 {
		return
	}
	tid := func(row int32) int64 { return f.Profile.Rows[row].TID }
	steps := order.Sorted(len(f.Profile.Steps), func(a, b int32) int { // by thread and start
		x, y := &f.Profile.Steps[a], &f.Profile.Steps[b]
		return cmp.Or(cmp.Compare(tid(x.Row), tid(y.Row)), cmp.Compare(x.Time, y.Time))
	})
	stepAt := func(thread int64, at trace.Time) int32 {
		i, _ := slices.BinarySearchFunc(steps, at, func(s int32, at trace.Time) int {
			x := &f.Profile.Steps[s]
			return cmp.Or(cmp.Compare(tid(x.Row), thread), cmp.Compare(x.Time, at+1))
		})
		if i == 0 {
			return -1
		}
		x := &f.Profile.Steps[steps[i-1]]
		if tid(x.Row) != thread || at >= x.Time+trace.Time(x.Dur) {
			return -1
		}
		return steps[i-1]
	}
	launch := profile.NewJoin(len(f.launches), func(i int) int64 { return f.launches[i].Correlation })
	spans := make([]span, len(f.Profile.Steps))
	add := func(correlation int64, from, to trace.Time) {
		if l := launch.Of(correlation); l >= 0 {
			if s := stepAt(tid(f.launches[l].Row), f.launches[l].Time); s >= 0 {
				spans[s].add(from, to)
			}
		}
	}
	for _, w := range f.work {
		add(w.correlation, w.from, w.to)
	}
	if !r.sparse {
		for i := range f.Profile.Events {
			if e := &f.Profile.Events[i]; e.IsWork() {
				add(e.Correlation, e.Time, e.End())
			}
		}
	}
	r.addGPUSteps(f, spans)
}

// span is a time interval; the zero value is empty.
type span struct {
	from, to trace.Time
	some     bool
}

func (s *span) add(from, to trace.Time) {
	if !s.some {
		*s = span{from, to, true}
	}
	s.from, s.to = min(s.from, from), max(s.to, to)
}

func (r *profiler) addGPUSteps(f *process, spans []span) {
	own := newReader(r)
	c := own.category("gpu_user_annotation")
	row := int32(-1)
	for i, s := range spans {
		if !s.some {
			continue
		}
		if row < 0 {
			first := &f.Profile.Rows[0]
			row = f.row(profile.Row{Kind: profile.RowAsync, PID: first.PID, PIDText: first.PIDText, Process: first.Process, Name: "steps on the GPU"})
		}
		step := f.Profile.Steps[i]
		step.OnGPU, step.Event, step.Row, step.Time, step.Dur = true, profile.NoEvent, row, s.from, int64(s.to-s.from)
		if own.keeps(c, step.Name, s.from, s.to) {
			step.Event = int32(len(f.Profile.Events))
			f.Profile.Events = append(f.Profile.Events, profile.Slice{Time: s.from, Dur: step.Dur, Name: step.Name, Cat: c.sym, Place: c.kind.On(row)})
		}
		f.Profile.Steps = append(f.Profile.Steps, step)
	}
}

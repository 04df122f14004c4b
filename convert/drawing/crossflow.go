package drawing

import (
	"cmp"
	"slices"
	"sort"

	"github.com/sgtrace/sgtrace/align/matching"
	"github.com/sgtrace/sgtrace/convert/ranks"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// linkRanks joins the kernels of a collective over its ranks, in the order in
// which they arrived: the last arrow ends at the rank that the others waited for.
func (m *merging) linkRanks() {
	name := m.b.Intern("collective")
	rejected := m.clocks.Solution.Rejected
	for i, match := range m.clocks.Matches.All() {
		if len(rejected) > 0 && rejected[0] == i {
			rejected = rejected[1:]
			if match.Level > matching.BySeq {
				continue // ids hold whatever the clocks say, the order of calls does not
			}
		}
		members := slices.DeleteFunc(slices.Clone(match.Members), func(x matching.Member) bool { return m.clocks.AlignOf[x.Rank].IsOut })
		slices.SortFunc(members, func(a, b matching.Member) int {
			return cmp.Or(cmp.Compare(m.arrival(a), m.arrival(b)), cmp.Compare(m.nameOf(a), m.nameOf(b)))
		})
		prev := trace.SliceID(0)
		for _, member := range members {
			capture, c := m.clocks.Calls[member.Rank].Of(member.Index)
			at := m.drawn[capture.File].joined[c.Event]
			if prev != 0 && at != 0 {
				m.b.Flow(trace.Flow{From: prev, To: at, Name: name})
			}
			prev = cmp.Or(at, prev)
		}
	}
}

// arrival returns when a rank began a collective, on the common clock.
func (m *merging) arrival(x matching.Member) trace.Time {
	capture, c := m.clocks.Calls[x.Rank].Of(x.Index)
	return capture.Time(c.Time)
}

func (m *merging) nameOf(x matching.Member) string { return m.clocks.AlignOf[x.Rank].Name }

// A batch is one step of a scheduler, for finding it by time.
type batch struct {
	time  trace.Time // on the common clock
	step  *profile.Step
	slice trace.SliceID
}

// linkSteps draws an arrow from the stage of a request in which its scheduler
// made a batch to the step that ran the batch, on the same
// rank. Both come from one process and so from one clock.
func (m *merging) linkSteps(d *drawing) {
	batches := map[int][]batch{} // by proc
	for _, r := range m.of.Tracks {
		if r.Proc != request.None {
			batches[r.Proc] = m.batches(r)
		}
	}
	runBy := m.b.Intern("run by")
	for i := range m.in.Requests.All() {
		proc := m.in.Requests.ProcOf(i)
		if d.slice[i] == 0 || len(batches[proc]) == 0 {
			continue
		}
		for _, e := range m.in.Requests.InstantsOf(i) {
			if e.Kind == request.Scheduled {
				if to := stepOf(&e, batches[proc]); to != 0 {
					m.b.Flow(trace.Flow{From: d.slice[i], To: to, Name: runBy})
				}
			}
		}
	}
}

// batches returns the steps of a rank that are drawn, as its CPU thread ran
// them, by time.
func (m *merging) batches(r *ranks.Track) (all []batch) {
	for _, c := range r.Captures {
		for i := range c.File.Steps {
			s := &c.File.Steps[i]
			if s.OnGPU || c.File.Rows[s.Row].Part != c.Part {
				continue
			}
			if at := m.drawn[c.File].joined[s.Event]; at != 0 {
				all = append(all, batch{c.Time(s.Time), s, at})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b batch) int { return cmp.Compare(a.time, b.time) })
	return all
}

const (
	// ScheduleSlack is how far a step may begin before the event that scheduled it:
	// the event lies on a grid of 256 ns, its clock is recalibrated now and then.
	ScheduleSlack = 5_000 // ns
	// scheduleReach is how long after the event the step must have begun.
	scheduleReach = 50_000_000 // ns
)

// stepOf returns the slice of the step that ran the batch of a schedule event: the
// next one to begin, if it is of the same kind and size. 0 is none.
func stepOf(e *request.Instant, batches []batch) trace.SliceID {
	i := sort.Search(len(batches), func(i int) bool { return batches[i].time >= e.Time-ScheduleSlack })
	if i == len(batches) || batches[i].time > e.Time+scheduleReach {
		return 0
	}
	step := batches[i].step
	if e.Batch != request.Unknown && step.Batch >= 0 && int64(e.Batch) != int64(step.Batch) {
		return 0
	}
	if e.Mode != request.UnknownMode {
		prefill := e.Mode == request.PrefillMode
		if step.Kind == profile.StepPrefill && !prefill || step.Kind == profile.StepDecode && prefill {
			return 0
		}
	}
	return batches[i].slice
}

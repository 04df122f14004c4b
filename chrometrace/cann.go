package chrometrace

import (
	"cmp"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/chrometrace/internal/parse"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// Traces of Ascend have a process for CANN, the library that launches work, although its threads belong to a
// Python process, as its own pid and their names show. Its calls have no correlation with the device's tasks,
// only arrows.

const (
	cannProcess = "CANN"
	// cannCategory is Kineto's category of calls into the libraries of such devices.
	cannCategory = "privateuse1_runtime"
	// overlapProcess repeats the device's work, divided into computation and communication.
	overlapProcess = "Overlap Analysis"
)

// joinCANN turns the events on rows of CANN into calls, joins them to the work that they launched, and moves
// their threads to the process that they belong to.
func (c *collector) joinCANN(f *profile.Profile) {
	calls := map[int32][]int32{} // indexes of events, by row
	for i := range f.Rows {
		switch r := &f.Rows[i]; r.Process {
		case cannProcess:
			calls[int32(i)] = nil
			if of := owner(f.Rows, r); of != nil {
				r.PID, r.PIDText, r.Process, r.Labels, r.ProcessSort = of.PID, of.PIDText, of.Process, of.Labels, of.ProcessSort
			}
		case overlapProcess:
			r.Kind = profile.RowOther
		}
	}
	if len(calls) == 0 {
		return
	}
	type place struct {
		row int32
		at  trace.Time
	}
	category, work := c.opt.Syms.Intern(cannCategory), map[place]int32{}
	for i := range f.Events {
		e := &f.Events[i]
		row := e.Place.Row()
		if list, ok := calls[row]; ok {
			calls[row] = append(list, int32(i))
			e.Cat, e.Place = category, profile.CallSlice.On(row)
		} else if e.Place.Kind() == profile.KernelSlice || e.Place.Kind() == profile.CopySlice {
			work[place{row, e.Time}] = int32(i)
		}
	}
	arrow := c.opt.Syms.Intern(parse.LaunchArrow)
	begun, joined := map[trace.Sym]place{}, map[trace.Sym]bool{} // by ID
	for i := range f.Arrows {
		if a := &f.Arrows[i]; a.Cat == arrow && a.Phase == profile.FlowStart {
			begun[a.ID] = place{a.Row, a.Time}
		}
	}
	for row := range calls {
		slices.SortFunc(calls[row], func(a, b int32) int {
			return cmp.Or(cmp.Compare(f.Events[a].Time, f.Events[b].Time), cmp.Compare(f.Events[b].Dur, f.Events[a].Dur), cmp.Compare(a, b))
		})
	}
	for i := range f.Arrows {
		a := &f.Arrows[i]
		from, ok := begun[a.ID]
		if a.Cat != arrow || a.Phase != profile.FlowEnd || !ok {
			continue
		}
		task, ran := work[place{a.Row, a.Time}]
		call := enclosing(f.Events, calls[from.row], from.at)
		if !ran || call == profile.NoEvent {
			continue
		}
		f.Events[call].Correlation = int64(call) + 1
		f.Events[task].Correlation = f.Events[call].Correlation
		joined[a.ID] = true
	}
	f.Arrows = slices.DeleteFunc(f.Arrows, func(a profile.Arrow) bool { return a.Cat == arrow && joined[a.ID] })
}

// owner returns a row of the process that a thread of CANN belongs to, or nil: the process whose pid is a
// prefix of CANN's pid, as 43767 is of 4376752, or is CANN's pid without its ten lowest bits.
func owner(rows []profile.Row, of *profile.Row) (best *profile.Row) {
	for i := range rows {
		r := &rows[i]
		if r.Kind == profile.RowThread && r.PIDText != of.PIDText && (strings.HasPrefix(of.PIDText, r.PIDText) || of.PID>>10 == r.PID && r.PID > 0) && (best == nil || len(r.PIDText) > len(best.PIDText)) {
			best = r
		}
	}
	return best
}

// enclosing returns the innermost of some events, in the order of their starts, that contains an instant;
// profile.NoEvent if there is none.
func enclosing(events []profile.Slice, in []int32, at trace.Time) int32 {
	const deepest = 64 // finished calls may lie in between
	behind, _ := slices.BinarySearchFunc(in, at, func(i int32, at trace.Time) int {
		if events[i].Time <= at {
			return -1
		}
		return 1
	})
	for k := behind - 1; k >= max(0, behind-deepest); k-- {
		if events[in[k]].End() >= at {
			return in[k]
		}
	}
	return profile.NoEvent
}

// addHCCL adds the collectives of HCCL, the library of Ascend: "hcom_allReduce__868_0_1" is the first recorded
// one of group 868. All ranks use the same group number.
func (c *collector) addHCCL(f *profile.Profile, peers []parse.PeerTask) {
	byGroup := map[int32][]parse.PeerTask{} // in order of time
	for i := range peers {
		if group, ok := c.planes[peers[i].Row]; ok {
			byGroup[group] = append(byGroup[group], peers[i])
		}
	}
	for _, list := range byGroup {
		slices.SortStableFunc(list, func(a, b parse.PeerTask) int { return cmp.Compare(a.Time, b.Time) })
	}
	for i := range f.Events {
		e := &f.Events[i]
		if e.Place.Kind() != profile.KernelSlice {
			continue
		}
		call, ok := strings.CutPrefix(c.opt.Syms.Name(e.Name), "hcom_")
		op, of, named := strings.Cut(call, "__")
		group, _, numbered := strings.Cut(of, "_")
		if !ok || !named || !numbered {
			continue
		}
		f.Collectives.Add(&profile.Collective{Event: int32(i), Row: e.Place.Row(), Time: e.Time, Dur: e.Dur, OnGPU: true, Seq: -1, In: -1, Out: -1, GroupSize: -1,
			Name: c.opt.Syms.Intern("hcom_" + op), Op: c.opt.Syms.Intern(strings.ToLower(op)), Group: c.opt.Syms.Intern("HCCL " + group), Correlation: e.Correlation,
			Tasks: c.tasksWithin(byGroup[e.Place.Row()], e)})
	}
}

// tasksWithin sums up the tasks of a group that are within one of its collectives. A task that waits names the rank that it waits for.
func (c *collector) tasksWithin(tasks []parse.PeerTask, e *profile.Slice) (t profile.CollectiveTasks) {
	first, _ := slices.BinarySearchFunc(tasks, e.Time, func(x parse.PeerTask, at trace.Time) int { return cmp.Compare(x.Time, at) })
	waited := map[int32]int64{} // by rank
	for i := first; i < len(tasks) && tasks[i].Time < e.End(); i++ {
		x := &tasks[i]
		if x.From < 0 || x.From >= maxMember || x.To >= maxMember { // those that concern one rank only have no other, 2^32-1
			continue
		}
		t.Member, t.AtLeast = int32(x.From)+1, max(t.AtLeast, int32(max(x.From, x.To))+1)
		if isWait(c.opt.Syms.Name(x.Name)) && x.From != x.To {
			waited[int32(x.To)+1] += x.Dur
		}
	}
	for rank, ns := range waited {
		if ns > t.AwaitedNs || ns == t.AwaitedNs && ns > 0 && rank < t.Awaited {
			t.Awaited, t.AwaitedNs = rank, ns
		}
	}
	t.AwaitedNs = min(t.AwaitedNs, e.Dur)
	return t
}

// maxMember is more ranks than any group has.
const maxMember = 1 << 20

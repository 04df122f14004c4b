package profile

import (
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/trace"
)

// OtherCategory means, in a [Filter], all categories that PyTorch's profiler does not have.
const OtherCategory = "*"

// A LaneTime is the time that a row of a timeline spent in one step. The events have a category of their own,
// and the number of the step as an argument. Timelines of training runs, with one process per data parallel
// rank, look like that.
type LaneTime struct {
	Process, Row string // names
	Name         string
	Step         int64
	N, Time      int64      // number of events, and the sum of their durations in ns
	First, Last  trace.Time // start of the first of them, and end of the last, on the clock of the file
}

// LaneTimes sums up the events of p that have the number of a step, by row, name, and step.
func (p *Profile) LaneTimes(syms *trace.Symbols, args *trace.Args) []LaneTime {
	step, ok := syms.Lookup("step")
	if !ok {
		return nil
	}
	type key struct {
		row  int32
		name trace.Sym
		step int64
	}
	at := map[key]int{}
	none, _ := syms.Lookup("")
	instant, _ := syms.Lookup(InstantCategory)
	var out []LaneTime
	for i := range p.Events {
		s := &p.Events[i]
		if s.Args == 0 || s.Place.Kind() != OtherSlice || s.Cat == none || s.Cat == instant {
			continue
		}
		a, ok := args.Find(s.Args, step)
		if !ok || a.Kind != trace.ArgInt {
			continue
		}
		k := key{s.Place.Row(), s.Name, a.Int()}
		n, ok := at[k]
		if !ok {
			n = len(out)
			at[k] = n
			row := &p.Rows[s.Place.Row()]
			out = append(out, LaneTime{Process: row.Process, Row: row.Name, Name: syms.Name(s.Name), Step: a.Int(), First: s.Time, Last: s.End()})
			if row.Process == "" {
				out[n].Process = "process " + row.PIDText
			}
		}
		out[n].N++
		out[n].Time += max(0, s.Dur)
		out[n].First, out[n].Last = min(out[n].First, s.Time), max(out[n].Last, s.End())
	}
	slices.SortFunc(out, func(a, b LaneTime) int {
		if c := strings.Compare(a.Process, b.Process); c != 0 {
			return c
		}
		return strings.Compare(a.Row, b.Row)
	})
	return out
}

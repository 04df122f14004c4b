package convert

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/convert/inputs"
	"github.com/sgtrace/sgtrace/format/inventory"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/profile/recorder"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// Inspect reads inputs of any kind just far enough to list what they hold: dumps in full, traces
// without arguments, exports without events. It adds everything but requests to in; requests are
// nil without dumps. read lists the inputs that were recognized. An input that cannot be used is
// reported to diags and left out; it is an error if none remains.
func Inspect(files []inputs.Input, opt inputs.Options, diags *trace.Diags, in *inventory.Inventory) (requests *request.Set, read []inputs.Input, err error) {
	opt.Filter, opt.Walk = profile.Filter{Args: profile.ArgsNone}, true
	opt.Each = func(x *inputs.Source) {
		if x.Content.Inventory != nil {
			x.Content.Inventory(in, sizeOf(x), x.Identities())
		}
	}
	m, err := inputs.Load(files, opt, diags)
	if err != nil {
		return nil, nil, err
	}
	if m.Assembled != nil {
		m.Release()
	}
	listSeries(in, m.Series)
	listFlights(in, m.Flight)
	listExperts(in, m.Experts)
	return m.Requests, m.Used, m.Close()
}

// listSeries adds what logs and metrics hold.
func listSeries(in *inventory.Inventory, set *series.Set) {
	events := make([]int64, len(set.Sources))
	for i := range set.Instants {
		events[set.Instants[i].Source]++
	}
	for i := range set.Sources {
		src := &set.Sources[i]
		l := inventory.Log{File: src.Name, Format: src.Encoding, Lines: int64(src.Lines), Strange: int64(src.Other), Samples: int64(src.Samples),
			Events: events[i], Collectives: -1, Pending: -1, First: src.First, Last: src.Last, Timed: src.First != 0}
		if src.Lines == 0 {
			l.Lines, l.Strange = -1, -1
		}
		places := slices.Collect(src.About())
		slices.SortStableFunc(places, func(a, b int) int { return set.Places[a].Rank.Compare(set.Places[b].Rank) })
		for _, p := range places {
			about := &set.Places[p]
			l.Servers = addNew(l.Servers, serverWords(&set.Servers[about.Server]))
			switch {
			case about.Rank != trace.NoRank:
				l.Ranks = addNew(l.Ranks, about.Rank.String())
			case about.GPU != series.NoGPU:
				l.Ranks = addNew(l.Ranks, fmt.Sprintf("GPU %d", about.GPU))
			}
		}
		switch {
		case src.First == 0:
			l.NotKnown = append(l.NotKnown, "when it was")
		case src.Zone.By == series.Assumed:
			l.NotKnown = append(l.NotKnown, "the zone: taken for UTC")
		}
		if len(l.Servers) == 0 {
			l.NotKnown = append(l.NotKnown, "the host")
		}
		in.Logs = append(in.Logs, l)
	}
}

// serverWords describes a server; "" if nothing names it: all unnamed servers are one in the set.
func serverWords(x *series.Server) string {
	if x.Host == "" && x.Name == "" {
		return ""
	}
	return strings.Join(slices.DeleteFunc([]string{x.Host, x.Name, x.Engine, x.Role}, func(s string) bool { return s == "" }), " ")
}

// listFlights adds what flight recorder dumps hold.
func listFlights(in *inventory.Inventory, set *recorder.InFlight) {
	for _, d := range set.Dumps {
		l := inventory.Log{File: d.File, Format: d.By.String(), Lines: -1, Strange: -1, Samples: -1, Events: -1, Collectives: int64(len(d.Ops)), Pending: 0, Last: d.Time, Timed: d.Time != 0}
		if d.Version != "" {
			l.Format += " " + d.Version
		}
		if d.NCCL != "" {
			l.Format += ", NCCL " + d.NCCL
		}
		for i := range d.Ops {
			op := &d.Ops[i]
			if op.Pending() {
				l.Pending++
			}
			if op.Created != 0 && (l.First == 0 || op.Created < l.First) {
				l.First = op.Created
			}
		}
		switch d.By {
		case recorder.PySpy:
			l.Collectives, l.Pending = -1, -1
		case recorder.NCCL:
			l.Pending = -1 // it never says what has ended
		}
		l.First = cmp.Or(l.First, l.Last)
		if d.Rank >= 0 {
			l.Ranks = []string{fmt.Sprintf("rank %d", d.Rank)}
		} else {
			l.NotKnown = append(l.NotKnown, "the rank")
		}
		if d.Time == 0 {
			l.NotKnown = append(l.NotKnown, "when it was")
		}
		if d.Lost {
			l.NotKnown = append(l.NotKnown, "its end, which is cut off")
		}
		in.Logs = append(in.Logs, l)
	}
}

// listExperts adds the dumps of expert distribution recorders; their samples are forward passes.
func listExperts(in *inventory.Inventory, set *recorder.Experts) {
	for _, d := range set.Dumps {
		l := inventory.Log{File: d.File, Format: "SGLang expert distribution", Lines: -1, Strange: -1, Samples: int64(len(d.Passes)), Events: -1, Collectives: -1, Pending: -1, First: d.Time, Last: d.Time, Timed: d.Time != 0}
		if d.Rank >= 0 {
			l.Ranks = []string{fmt.Sprintf("rank %d", d.Rank)}
		}
		if d.Time == 0 {
			l.NotKnown = append(l.NotKnown, "when it was")
		}
		in.Logs = append(in.Logs, l)
	}
}

// addNew appends a name unless it is empty or already there.
func addNew(list []string, name string) []string {
	if name == "" || slices.Contains(list, name) {
		return list
	}
	return append(list, name)
}

// sizeOf returns the size of an input in bytes, or -1 if it is unknown.
func sizeOf(x *inputs.Source) int64 {
	size, _ := x.Input.Size()
	return size
}

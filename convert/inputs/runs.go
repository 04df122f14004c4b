package inputs

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"github.com/sgtrace/sgtrace/dataset"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// A Run is a set of inputs recorded at about the same time, on any number of hosts. Its times are on the
// clocks of the hosts. Reading weeks of inputs run by run needs memory for only one run at a time.
type Run struct {
	From, To trace.Time // of all inputs; 0 is unknown
	Inputs   []Input
}

const (
	// runsApart is the gap between runs, in ns: profilers that are restarted repeatedly during an incident
	// are not that slow, and clocks are not that wrong.
	runsApart = trace.Time(time.Hour)
	// day is the maximum length of a run, in ns, before it is divided by day: a server that writes dumps
	// continuously would never end its run.
	day = trace.Time(24 * time.Hour)
)

// errRunsOnce is returned if an input would have to be read twice.
var errRunsOnce = errors.New("cannot be read twice, but to find out which inputs belong together needs that; write it to a file")

// Runs finds the runs of inputs in order of time, followed by inputs with unknown times: one run for each
// label, or folder. It has to read inputs for that, one after another, except those in a dataset. An input
// that cannot be read is reported to diags and left out; it is an error if none remains.
func Runs(files []Input, opt Options, diags *trace.Diags) ([]Run, error) {
	found := Recognize(files, opt, diags)
	if len(found) == 0 {
		return nil, ErrNoEvents
	}
	var timed []Run
	other := map[string]*Run{}
	var err error
	for _, x := range found {
		if x.Once {
			err = errors.Join(err, fmt.Errorf("%s: %w", x.Input.Name, errRunsOnce))
		}
		from, to := trace.Time(0), trace.Time(0)
		if err == nil {
			from, to = extent(x, opt)
		}
		err = errors.Join(err, x.Close())
		in := x.Input
		in.Search = nil // its results were reported
		if from != 0 {
			timed = append(timed, Run{from, to, []Input{in}})
			continue
		}
		key := cmp.Or(in.Label, filepath.Dir(in.Name))
		if other[key] == nil {
			other[key] = &Run{}
		}
		other[key].Inputs = append(other[key].Inputs, in)
	}
	list := joinRuns(timed)
	for _, key := range slices.Sorted(maps.Keys(other)) {
		list = append(list, *other[key])
	}
	return list, err
}

// extent returns when an input begins and ends; 0 is unknown. Problems with the input are reported when its
// run is read.
func extent(x *Source, opt Options) (from, to trace.Time) {
	if c := x.Input.Capture(); c != nil {
		return c.First, c.Last
	}
	opt.Filter, opt.Walk = profile.Filter{IndexOnly: true}, true
	m, err := x.Apart(opt, &trace.Diags{})
	if err != nil {
		return 0, 0
	}
	content := dataset.Content{Source: x.Content}
	if x.Format.Requests {
		content = dataset.Content{Spans: m.Spans}
	}
	return content.Bounds()
}

// joinRuns joins inputs that overlap or are close in time into runs, and divides runs longer than a day by
// the UTC day on which inputs begin. Within a run, inputs keep their order.
func joinRuns(timed []Run) (list []Run) {
	order := make([]int, len(timed))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(timed[i].From, timed[j].From) })
	for first := 0; first < len(order); {
		next, to := first, timed[order[first]].To
		for next < len(order) && timed[order[next]].From-to < runsApart {
			to = max(to, timed[order[next]].To)
			next++
		}
		members := order[first:next]
		if to-timed[members[0]].From <= day {
			list = append(list, uniteRuns(timed, members))
		} else {
			list = append(list, runsByDay(timed, members)...)
		}
		first = next
	}
	return list
}

// runsByDay unites inputs, sorted by time, that begin on the same day.
func runsByDay(timed []Run, members []int) (list []Run) {
	for len(members) > 0 {
		today := timed[members[0]].From / day
		n := slices.IndexFunc(members, func(i int) bool { return timed[i].From/day != today })
		if n < 0 {
			n = len(members)
		}
		list, members = append(list, uniteRuns(timed, members[:n])), members[n:]
	}
	return list
}

// uniteRuns joins runs into one.
func uniteRuns(timed []Run, members []int) Run {
	run := timed[members[0]]
	run.Inputs = nil
	for _, i := range slices.Sorted(slices.Values(members)) {
		run.From, run.To = min(run.From, timed[i].From), max(run.To, timed[i].To)
		run.Inputs = append(run.Inputs, timed[i].Inputs...)
	}
	return run
}

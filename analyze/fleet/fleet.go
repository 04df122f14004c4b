package fleet

import (
	"cmp"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/finders"
	"github.com/sgtrace/sgtrace/analyze/finding"
)

// A Fleet is what several runs say together.
type Fleet struct {
	Runs      []*Run // in the order of time
	Offenders []Offender
	Totals    []Total
	Days      []Day
	Versions  []Use
}

// New puts runs together, given in the order of time.
func New(runs []*Run) *Fleet {
	f := &Fleet{Runs: runs, Offenders: offenders(runs), Totals: totals(runs), Versions: uses(runs)}
	f.Days = days(runs, f.Versions)
	return f
}

// A Total is what one kind of finding cost in all runs.
type Total struct {
	Loss
	Runs int // that have such a finding
}

// totals adds up what runs lost, the kind first that cost most GPU time, then most request time.
func totals(runs []*Run) (list []Total) {
	index := map[finding.Kind]int{}
	for _, r := range runs {
		for _, loss := range r.Losses {
			i, ok := index[loss.Kind]
			if !ok {
				i = len(list)
				index[loss.Kind] = i
				list = append(list, Total{Loss: Loss{Kind: loss.Kind}})
			}
			t := &list[i]
			t.Runs++
			t.Findings += loss.Findings
			t.GPU += loss.GPU
			t.Request += loss.Request
		}
	}
	slices.SortStableFunc(list, func(a, b Total) int { return cmp.Or(cmp.Compare(b.GPU, a.GPU), cmp.Compare(b.Request, a.Request)) })
	return list
}

// Recorded returns the time of GPUs and schedulers in all runs, and that of requests, ns.
func (f *Fleet) Recorded() (gpu, requests float64) {
	for _, r := range f.Runs {
		gpu += r.Recorded()
		requests += r.RequestTime
	}
	return gpu, requests
}

// Look asks the finders of what several runs say together.
func (f *Fleet) Look() finders.Result {
	m := finders.Measured{Of: finders.Inputs{Weeks: f}}
	return m.Look(finders.OfWeeks())
}

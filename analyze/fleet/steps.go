package fleet

import (
	"cmp"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/finders"
	"github.com/sgtrace/sgtrace/analyze/profilewalk"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/request"
)

// A Series is step times that can be compared from run to run.
type Series struct {
	// Of is what tells them: "devices", from the first kernel of a step to the end of the last,
	// or "requests", as traced by servers.
	Of   string
	Kind string // of steps: prefill, decode
}

// What tells step times.
const (
	ofDevices  = "devices"
	ofRequests = "requests"
)

// A stepTime is about the steps of a host in a run, ns.
type stepTime struct {
	Series
	host   string
	median int64
	total  int64 // of all of them
}

// stepsOfProfiles measures the steps of servers by host, on devices.
func stepsOfProfiles(m *finders.Measured, ranks *ranks) []stepTime {
	if m.GPUs == nil {
		return nil
	}
	by := map[stepTime][]int64{}
	for i := range m.GPUs.Served {
		served := &m.GPUs.Served[i]
		k, ok := ranks.profiled[served.Rank]
		if !ok || ranks.list[k].Host == "" {
			continue
		}
		for s := range served.Steps {
			x := &served.Steps[s]
			if x.StepName.Kind == profile.StepOther || !x.Projected {
				continue
			}
			of := stepTime{Series: Series{ofDevices, profilewalk.StepKinds[x.StepName.Kind]}, host: ranks.list[k].Host}
			by[of] = append(by[of], distribution.Between(x.First, x.Last))
		}
	}
	return medians(by)
}

// stepsOfRequests measures the decode steps that servers traced, by host.
func stepsOfRequests(s *request.Set) []stepTime {
	if s == nil {
		return nil
	}
	by := map[stepTime][]int64{}
	of := make([]stepTime, len(s.Procs))
	for p := range of {
		of[p] = stepTime{Series: Series{ofRequests, profilewalk.StepKinds[profile.StepDecode]}, host: knownHost(s, int32(p))}
	}
	for r := range s.AllRequests() {
		s.EachRowOf(r, func(i, proc int) {
			if proc == request.None || of[proc].host == "" || s.Row(i).Means != request.Stepping || s.Implausible(i) || s.Again(i) {
				return
			}
			by[of[proc]] = append(by[of[proc]], s.Row(i).Dur())
		})
	}
	return medians(by)
}

// medians returns the median of each list, in a certain order.
func medians(by map[stepTime][]int64) (list []stepTime) {
	for of, durations := range by {
		for _, d := range durations {
			of.total = distribution.AddTimes(of.total, d)
		}
		of.median = distribution.LowerMedian(durations)
		list = append(list, of)
	}
	slices.SortFunc(list, func(a, b stepTime) int {
		return cmp.Or(cmp.Compare(a.Of, b.Of), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.host, b.host))
	})
	return list
}

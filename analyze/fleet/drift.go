package fleet

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/finders"
	"github.com/sgtrace/sgtrace/analyze/profilewalk"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/changepoint"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
	"gonum.org/v1/gonum/stat"
)

const (
	// driftP is the largest probability of a change of step times if nothing changed.
	driftP = 0.01
	// minDrift is the smallest reported change, as a part of the step time.
	minDrift = 0.02
	// minDays is how many days it takes to find a change: half of them on each side.
	minDays = 10
)

// A Day has the step times of a series on one day.
type Day struct {
	Series
	Day   string     // "2026-01-15"
	From  trace.Time // begin of its first run
	Runs  int
	Hosts int
	// Median is the median over hosts of their median steps, ns.
	Median int64
	// Level is the factor by which steps take longer than on the median day. It does not depend on
	// which hosts have runs that day: see [levelsOf].
	Level float64
	Total int64  // total of all steps, ns
	Drift *Drift // one that begins on this day, or nil
}

// A Drift is a change of step times from one day on.
type Drift struct {
	Series
	Day         string  // first day of the new level
	First, Last string  // bounds of Day with a confidence of 95 %
	Ratio       float64 // level after / level before
	P           float64 // probability of such a change if nothing changed
	Lost        float64 // how much longer all steps took until the next change, ns; 0 if they became shorter
	// Versions are those that replaced others from First to Last.
	Versions []VersionUse
}

// A daily has the step times of hosts on one day: a median for each run.
type daily struct {
	from  trace.Time
	total int64
	runs  map[*Run]bool
	hosts map[string][]int64
}

// days sums up step times by series and day, in this order, and finds when they changed. Runs of unknown time have no day.
func days(runs []*Run, versions []VersionUse) (list []Day) {
	by := map[Series]map[string]*daily{}
	for _, r := range runs {
		if r.From == 0 {
			continue
		}
		for _, s := range r.steps {
			days := order.Memo(by, s.Series, func() map[string]*daily { return map[string]*daily{} })
			d := order.Memo(days, dayOf(r.From), func() *daily {
				return &daily{from: r.From, runs: map[*Run]bool{}, hosts: map[string][]int64{}}
			})
			d.runs[r], d.total = true, distribution.AddTimes(d.total, s.total)
			d.hosts[s.host] = append(d.hosts[s.host], s.median)
		}
	}
	byKind := func(a, b Series) int { return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Of, b.Of)) }
	for _, s := range slices.SortedFunc(maps.Keys(by), byKind) {
		list = append(list, daysOf(s, by[s], versions)...)
	}
	return list
}

// dayOf names the day of a time: "2026-01-15".
func dayOf(t trace.Time) string { return words.Clock(t).Format(time.DateOnly) }

// A hostStep is the logarithm of a host's step time on a day.
type hostStep struct {
	host string
	y    float64
}

// daysOf returns the days of one series.
func daysOf(s Series, by map[string]*daily, versions []VersionUse) (list []Day) {
	var steps [][]hostStep
	for _, day := range slices.Sorted(maps.Keys(by)) {
		d := by[day]
		var medians []int64
		var hosts []hostStep
		for _, host := range slices.Sorted(maps.Keys(d.hosts)) { // float sums depend on the order
			m := distribution.LowerMedian(d.hosts[host])
			medians, hosts = append(medians, m), append(hosts, hostStep{host, math.Log(float64(max(1, m)))})
		}
		list = append(list, Day{Series: s, Day: day, From: d.from, Total: d.total, Runs: len(d.runs), Hosts: len(d.hosts), Median: distribution.LowerMedian(medians)})
		steps = append(steps, hosts)
	}
	for i, level := range levelsOf(steps) {
		list[i].Level = level
	}
	findDrifts(list, versions)
	return list
}

// levelsOf separates the factors by which days and hosts make steps longer or shorter: by least
// squares of logarithms, alternating between the two. The level of a day is the median over its
// hosts of the step times without the host's factor, so that one slow host does not determine it.
func levelsOf(steps [][]hostStep) []float64 {
	const turns = 50
	ofDay, ofHost := make([]float64, len(steps)), map[string]float64{}
	rest := func(day int) (list []float64) {
		return order.Each(steps[day], func(h hostStep) float64 { return h.y - ofHost[h.host] })
	}
	for range turns {
		left := map[string][]float64{}
		for day, hosts := range steps {
			for _, h := range hosts {
				left[h.host] = append(left[h.host], h.y-ofDay[day])
			}
		}
		for host, list := range left {
			ofHost[host] = stat.Mean(list, nil)
		}
		for day := range steps {
			ofDay[day] = stat.Mean(rest(day), nil)
		}
	}
	levels := make([]float64, len(steps))
	for day := range steps {
		levels[day] = math.Exp(distribution.LowerMedian(rest(day)))
	}
	usual := distribution.LowerMedian(slices.Clone(levels))
	for day := range levels {
		levels[day] /= usual
	}
	return levels
}

// findDrifts finds the days on which the level of a series changed.
func findDrifts(list []Day, versions []VersionUse) {
	levels := order.EachRow(list, func(d *Day) float64 { return d.Level })
	ratio := func(from, k, to int) float64 {
		return distribution.LowerMedian(slices.Clone(levels[k:to])) / distribution.LowerMedian(slices.Clone(levels[from:k]))
	}
	changes := changepoint.Levels(levels, changepoint.Options{Alpha: driftP, Keep: func(from, k, to int) bool {
		r := ratio(from, k, to)
		return max(r, 1/r) >= 1+minDrift
	}})
	for _, c := range changes {
		d := &Drift{Series: list[c.At].Series, Day: list[c.At].Day, First: list[c.First].Day, Last: list[c.Last].Day,
			Ratio: ratio(c.From, c.At, c.To), P: c.P}
		for j := c.At; j < c.To; j++ {
			d.Lost += float64(list[j].Total) * max(0, 1-1/d.Ratio)
		}
		for _, u := range versions {
			if day := dayOf(u.First); u.Before != "" && day >= d.First && day <= d.Last {
				d.Versions = append(d.Versions, u)
			}
		}
		list[c.At].Drift = d
	}
}

// A version is a version of some software in a run, with the number of ranks or processes that ran it.
type version struct {
	Version profile.Version
	N       int
}

// versionsOf returns the versions in the inputs: by rank from profilers, and by process from dumps with service.version.
func versionsOf(m *finders.Measured) (list []version) {
	count := map[profile.Version]int{}
	if m.Of.Profiles != nil {
		for i := range m.Of.Profiles.Placements {
			for _, v := range m.Of.Profiles.Placements[i].Versions {
				count[v]++
			}
		}
	}
	if s := m.Of.Requests; s != nil {
		for i := range s.Writers {
			if w := &s.Writers[i]; w.Release != "" {
				count[profile.Version{Of: cmp.Or(s.Syms.Name(w.Service), "server"), Is: w.Release}]++
			}
		}
	}
	for v, n := range count {
		list = append(list, version{v, n})
	}
	slices.SortFunc(list, func(a, b version) int {
		return cmp.Or(cmp.Compare(a.Version.Of, b.Version.Of), cmp.Compare(a.Version.Is, b.Version.Is))
	})
	return list
}

// A VersionUse says when a version was seen.
type VersionUse struct {
	Version     profile.Version
	Runs        int
	First, Last trace.Time // begin of the first and the last of these runs; 0 if unknown
	// Before is the version of the same software that was last seen before First; "" if none.
	Before string
}

// String returns the change to this version: "GPU driver went from 550.54 to 560.28".
func (u *VersionUse) String() string {
	return fmt.Sprintf("%s went from %s to %s", u.Version.Of, u.Before, u.Version.Is)
}

// uses returns the versions of all runs, by software and first use.
func uses(runs []*Run) []VersionUse {
	var by order.Groups[profile.Version, VersionUse]
	for _, r := range runs {
		for _, v := range r.versions {
			u := by.Of(v.Version)
			if u.Runs == 0 {
				*u = VersionUse{Version: v.Version, First: r.From, Before: lastOf(by.List[:len(by.List)-1], v.Version.Of)}
			}
			u.Runs++
			u.Last = r.From
		}
	}
	slices.SortStableFunc(by.List, func(a, b VersionUse) int { return cmp.Compare(a.Version.Of, b.Version.Of) })
	return by.List
}

// lastOf returns the most recently seen version of some software.
func lastOf(list []VersionUse, of string) (before string) {
	last := trace.Time(0)
	for i := range list {
		if u := &list[i]; u.Version.Of == of && (before == "" || u.Last >= last) {
			before, last = u.Version.Is, u.Last
		}
	}
	return before
}

// A Series is a kind of step times that can be compared from run to run.
type Series struct {
	// Of is the source: "devices", from the first kernel of a step to the end of the last one, or "requests", as traced by servers.
	Of   string
	Kind string // of steps: prefill, decode
}

// Sources of step times.
const (
	ofDevices  = "devices"
	ofRequests = "requests"
)

// A stepTime describes the steps of a host in a run, ns.
type stepTime struct {
	Series
	host   string
	median int64
	total  int64 // total of all steps
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

// medians returns the median and the total of each list, in a fixed order.
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

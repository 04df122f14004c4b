package fleet

import (
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/finders"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/trace"
)

// A Run is what the finders say about one run. It keeps none of the tables that it was made from.
type Run struct {
	From, To     trace.Time // bounds of its inputs; 0 if unknown
	Inputs       int
	Hosts, Ranks int
	Findings     int     // number of findings in 'sgtrace report'
	Top          string  // text of the first one; "" if none
	topCost      float64 // its share of the time that it is about
	GPUTime      float64 // total recorded time of devices, ns
	RankTime     float64 // total time of schedulers that worked for requests, ns
	RequestTime  float64 // total E2E of finished requests, ns
	Losses       []Loss  // by kind, in order of the finders

	seen     map[key]*sighting // subjects that could have been found late or slow
	steps    []stepTime
	versions []version
}

// Reduce makes a run from its measurements. from and to bound its inputs; 0 if unknown.
func Reduce(m *finders.Measured, from, to trace.Time, inputs int) *Run {
	found := m.Look(finders.All)
	r := &Run{From: from, To: to, Inputs: inputs, Findings: len(found.Findings), seen: map[key]*sighting{}}
	if len(found.Findings) > 0 {
		r.Top, r.topCost = found.Findings[0].Text, found.Findings[0].Cost
	}
	ranks := findRanks(m)
	r.Ranks = len(ranks.list)
	r.measureTimes(m)
	r.Losses = r.lose(found.All, ranks)
	r.look(m, &found, ranks)
	for k := range r.seen {
		if k.level == Host {
			r.Hosts++
		}
	}
	r.steps = append(stepsOfProfiles(m, ranks), stepsOfRequests(m.Of.Requests)...)
	r.versions = versionsOf(m)
	return r
}

// measureTimes sets the total times that costs of findings are parts of.
func (r *Run) measureTimes(m *finders.Measured) {
	if m.GPUs != nil {
		r.GPUTime = float64(m.GPUs.Length())
	}
	if m.Of.Requests == nil {
		return
	}
	for i := range m.Tail.List {
		r.RequestTime += float64(m.Tail.List[i].E2E.Total())
	}
	r.RankTime = float64(m.RankLoads.Length) * float64(len(place.NewRankSet(m.Of.Requests).Places))
}

// recorded returns the total time, in ns, for which GPUs were recorded, or, without profilers,
// for which schedulers worked for requests.
func (r *Run) recorded() float64 {
	if r.GPUTime > 0 {
		return r.GPUTime
	}
	return r.RankTime
}

// tells reports whether a finding of the run costs enough to be worth a look.
func (r *Run) tells() bool {
	const least = 0.01
	return r.topCost >= least
}

// A Loss is what findings of one kind cost in a run. Findings at different places add up. Of those
// that may be at the same place, only the costliest counts, as the others may be about the same time.
type Loss struct {
	Kind     finding.Kind
	Findings int
	// GPU is time of devices and of waiting schedulers, Request is time of requests; ns.
	GPU, Request float64
}

// lose adds up what findings cost, by kind.
func (r *Run) lose(found []finding.Finding, ranks *ranks) (list []Loss) {
	var by order.Groups[finding.Kind, []*finding.Finding]
	for i := range found {
		of := by.Of(found[i].Kind)
		*of = append(*of, &found[i])
	}
	for i, of := range by.List {
		list = append(list, Loss{by.Keys[i], len(of), apart(of, ranks, r.gpuTime, r.recorded()), apart(of, ranks, r.requestTime, r.RequestTime)})
	}
	return list
}

// gpuTime returns the cost of a finding in recorded GPU time, in ns; 0 if its basis is another one.
func (r *Run) gpuTime(f *finding.Finding) float64 {
	if f.CostBasis == finding.GPUTime || f.CostBasis == finding.RankTime {
		return f.Cost * r.recorded()
	}
	return 0
}

// requestTime returns the cost of a finding to requests, in ns; 0 if its basis is another one.
func (r *Run) requestTime(f *finding.Finding) float64 {
	if f.CostBasis == finding.RequestTime {
		return f.Cost * r.RequestTime
	}
	return 0
}

// apart adds up what findings cost, each rank once, up to most. A finding about more than one
// rank may cover the same time as all of the others.
func apart(list []*finding.Finding, ranks *ranks, cost func(*finding.Finding) float64, most float64) float64 {
	type at struct {
		where place.Location
		cost  float64
	}
	var places []at
	widest := 0.0
	for _, f := range list {
		where, c := f.At, cost(f)
		if x := ranks.rankOf(f); x != nil {
			where = x.where // with the host, even if only the rank's recording has it
		}
		if where.Scope != place.OneRank {
			widest = max(widest, c)
			continue
		}
		i := slices.IndexFunc(places, func(p at) bool { return p.where.Overlaps(&where) })
		if i < 0 {
			places = append(places, at{where, c})
			continue
		}
		places[i].cost = max(places[i].cost, c)
	}
	sum := order.SumRows(places, func(a *at) float64 { return a.cost })
	return min(most, max(sum, widest))
}

// hours converts ns to hours.
func hours(ns float64) float64 { return ns / (3600 * 1e9) }

// gpuHours formats GPU time in ns for people: "3.20 GPU-hours", "51.2 GPU-seconds".
func gpuHours(ns float64) string {
	if h := hours(ns); h >= 0.1 {
		return words.ThreeDigits(h) + " GPU-hours"
	}
	return words.ThreeDigits(ns/1e9) + " GPU-seconds"
}

// share returns part/whole, or NaN if whole is not positive.
func share(part, whole float64) float64 {
	if whole <= 0 {
		return math.NaN()
	}
	return part / whole
}

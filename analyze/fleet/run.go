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

// A Run is what the finders say about one run. It holds nothing of the tables that it was made
// of.
type Run struct {
	From, To     trace.Time // of its inputs; 0 is unknown
	Inputs       int
	Hosts, Ranks int
	Findings     int     // as 'sgtrace report' would list them
	Top          string  // the first of them; "" is none
	GPUTime      float64 // of all devices that were recorded, ns
	RankTime     float64 // of all schedulers that worked for requests, ns
	RequestTime  float64 // E2E of the finished requests, ns
	Losses       []Loss  // by kind, in the order of the finders

	seen     map[key]*sighting // what could have been found late or slow
	steps    []stepTime
	versions []version
}

// Reduce makes a run of what was measured. from and to bound its inputs; 0 is unknown.
func Reduce(m *finders.Measured, from, to trace.Time, inputs int) *Run {
	found := m.Look(finders.All)
	r := &Run{From: from, To: to, Inputs: inputs, Findings: len(found.Findings), seen: map[key]*sighting{}}
	if len(found.Findings) > 0 {
		r.Top = found.Findings[0].Text
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

// measureTimes adds up of what findings cost a part.
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

// recorded returns how long GPUs were recorded, or without profilers, how long schedulers worked for
// requests; ns, added up over them.
func (r *Run) recorded() float64 {
	if r.GPUTime > 0 {
		return r.GPUTime
	}
	return r.RankTime
}

// A Loss is what findings of one kind cost in a run. Findings at different places add up; of
// those that may be at one place only the one that costs most counts, since the others may be
// about the same time.
type Loss struct {
	Kind     finding.Kind
	Findings int
	// GPU is of devices and of schedulers that wait, Request of the time of requests; ns.
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

// gpuTime returns the cost of a finding in recorded GPU time, ns; 0 if its cost is of something else.
func (r *Run) gpuTime(f *finding.Finding) float64 {
	if f.CostBasis == finding.GPUTime || f.CostBasis == finding.RankTime {
		return f.Cost * r.recorded()
	}
	return 0
}

// requestTime returns the cost of a finding to requests, ns; 0 if its cost is of something else.
func (r *Run) requestTime(f *finding.Finding) float64 {
	if f.CostBasis == finding.RequestTime {
		return f.Cost * r.RequestTime
	}
	return 0
}

// apart adds up what findings cost, each rank once, and most at most. A finding that is wider
// than a rank may be about the same time as all of them.
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
			where = x.where // with the host if only the rank's recording tells
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

// hours are ns in hours.
func hours(ns float64) float64 { return ns / (3600 * 1e9) }

// gpuHours writes the time of GPUs, in ns, for people: "3.20 GPU-hours", "51.2 GPU-seconds".
func gpuHours(ns float64) string {
	if h := hours(ns); h >= 0.1 {
		return words.ThreeDigits(h) + " GPU-hours"
	}
	return words.ThreeDigits(ns/1e9) + " GPU-seconds"
}

// share is NaN of nothing.
func share(part, whole float64) float64 {
	if whole <= 0 {
		return math.NaN()
	}
	return part / whole
}

package requests

import (
	"cmp"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/cause"
	"github.com/sgtrace/sgtrace/analyze/metric"
	"github.com/sgtrace/sgtrace/request"
)

// A Cause is a reason why requests missed an objective.
type Cause struct {
	Objective string // "ttft"; "finish" if the request got no answer
	Cause     string // the name of a cause, or how the request ended
	Phrase    string // Cause in a sentence
	Requests  []int  // indexes into Set.Requests, sorted by start
	More      int64  // ns beyond the mean of requests that meet the SLO, summed over Requests
}

// Blame finds the reason why each request missed the SLO: for the objective that it exceeds by the largest factor,
// the cause that took the most time beyond the mean of requests that meet the SLO. Requests that list lacks have an
// unknown cause.
func (g *Goodput) Blame(list []cause.Attribution) {
	usual, of := g.usual(list), map[int]*cause.Attribution{}
	for i := range list {
		of[list[i].Request] = &list[i]
	}
	for i, state := range g.states {
		r := &g.set.Requests[i]
		switch {
		case state != Missed:
		case r.Status == request.Failed || r.Status == request.Aborted:
			g.blame(i, "finish", r.Status.String(), r.Status.String(), 0)
		default:
			g.blameTime(i, of[i], usual)
		}
	}
	slices.SortStableFunc(g.Causes, func(a, b Cause) int {
		return cmp.Or(cmp.Compare(len(b.Requests), len(a.Requests)), cmp.Compare(b.More, a.More), cmp.Compare(a.Objective+a.Cause, b.Objective+b.Cause))
	})
}

// blameTime blames the cause with the most extra time in a request; a is nil if that is unknown.
func (g *Goodput) blameTime(i int, a *cause.Attribution, usual *usualTimes) {
	worst, factor := "", 1.0
	for k := range g.Objectives {
		o := &g.Objectives[k]
		if f := float64(o.of(&g.set.Requests[i].Metrics)) / float64(o.Limit); f > factor {
			worst, factor = o.Metric, f
		}
	}
	if a == nil {
		g.blame(i, worst, "unknown", "unknown causes", 0)
		return
	}
	main, most := cause.Unaccounted, int64(0)
	for c := range cause.Count {
		if more := usual.beyond(worst, c, a); more > most {
			main, most = c, more
		}
	}
	g.blame(i, worst, main.String(), main.Phrase(), most)
}

// blame adds a request to a cause.
func (g *Goodput) blame(i int, objective, name, phrase string, more int64) {
	k := slices.IndexFunc(g.Causes, func(c Cause) bool { return c.Objective == objective && c.Cause == name })
	if k < 0 {
		k = len(g.Causes)
		g.Causes = append(g.Causes, Cause{Objective: objective, Cause: name, Phrase: phrase})
	}
	c := &g.Causes[k]
	c.Requests, c.More = append(c.Requests, i), c.More+more
}

// usualTimes are means over requests that meet the SLO, in ns.
type usualTimes struct {
	e2e, ttft [cause.Count]float64
	gap       [cause.Count]float64 // per gap between tokens
}

func (g *Goodput) usual(list []cause.Attribution) *usualTimes {
	var u usualTimes
	n, gaps := 0.0, 0.0
	for i := range list {
		if a := &list[i]; g.states[a.Request] == Met {
			n, gaps = n+1, gaps+float64(a.Gaps)
			for c := range cause.Count {
				u.e2e[c] += float64(a.E2E[c])
				u.ttft[c] += float64(a.First[c])
				u.gap[c] += float64(a.E2E[c])
			}
		}
	}
	for c := range cause.Count {
		u.e2e[c], u.ttft[c], u.gap[c] = u.e2e[c]/max(1, n), u.ttft[c]/max(1, n), u.gap[c]/max(1, gaps)
	}
	return &u
}

// beyond returns how much longer than usual a request spent on a cause, in ns, if that counts for a metric.
func (u *usualTimes) beyond(of string, c cause.Cause, a *cause.Attribution) int64 {
	switch {
	case of == metric.TTFT.Name:
		return a.First[c] - int64(u.ttft[c])
	case of == metric.E2E.Name:
		return a.E2E[c] - int64(u.e2e[c])
	case c.PerToken() || c == cause.Retraction || c == cause.OutputLength: // these, and decoding at the usual pace
		return a.E2E[c] - int64(u.gap[c]*float64(a.Gaps))
	}
	return 0
}

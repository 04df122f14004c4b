package place

import (
	"cmp"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/request"
)

// A work is what the requests of a server are like: what a unit of them takes it, and how
// long they are.
type work struct {
	unit            []int64 // ns for every token after the first one; for one of the prompt where there are none
	prompts, output []int64 // tokens
}

// fewWorks are too few requests to say what a server does; maxWorks are enough.
const (
	fewWorks = 20
	maxWorks = 1000
)

// add notes a finished request.
func (w *work) add(m *request.Metrics) {
	if len(w.unit) >= maxWorks {
		return
	}
	switch {
	case m.TPOT > 0:
		w.unit = append(w.unit, m.TPOT)
	case m.CompletionTokens <= 1 && m.Prefill > 0 && m.PrefillTokens() > 0:
		w.unit = append(w.unit, m.Prefill/m.PrefillTokens())
	default:
		return
	}
	w.prompts, w.output = append(w.prompts, m.PromptTokens), append(w.output, m.CompletionTokens)
}

// What faults of one machine do not do: several servers that take so many times as long for
// a token as all others have another model.
const anotherModel = 2

// byWork divides servers of which nobody tells the models, where one group takes far longer
// for a unit of work than the other, with nothing in between. A single server that is slow may
// be broken: it has another model only if its requests are others, too.
func byWork(servers []*server) [][]*server {
	var known []*server
	for _, x := range servers {
		if len(x.models) > 0 {
			return [][]*server{servers}
		}
		if len(x.work.unit) >= fewWorks {
			known = append(known, x)
		}
	}
	unit := map[*server]int64{}
	for _, x := range known {
		unit[x] = distribution.LowerMedian(x.work.unit)
	}
	slices.SortStableFunc(known, func(x, y *server) int { return cmp.Compare(unit[x], unit[y]) })
	group := map[*server]string{}
	name, from := "a", 0
	for i, x := range known {
		if i > 0 && unit[x] >= anotherModel*unit[known[i-1]] && apart(known[from:i], known[i:]) {
			name, from = name+"a", i
		}
		group[x] = name
	}
	return split(servers, func(x *server) string { return group[x] })
}

// apart reports whether the requests of two groups tell that these have other models.
func apart(fast, slow []*server) bool {
	if len(fast) > 1 && len(slow) > 1 {
		return true
	}
	const farApart = 1.5 // times as long, in the middle
	middle := func(list []*server, of func(*work) []int64) float64 {
		var all []int64
		for _, x := range list {
			all = append(all, of(&x.work)...)
		}
		return float64(max(1, distribution.LowerMedian(all)))
	}
	for _, of := range []func(*work) []int64{func(w *work) []int64 { return slices.Clone(w.prompts) }, func(w *work) []int64 { return slices.Clone(w.output) }} {
		if a, b := middle(fast, of), middle(slow, of); max(a, b) >= farApart*min(a, b) {
			return true
		}
	}
	return false
}

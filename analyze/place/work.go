package place

import (
	"cmp"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/request"
)

// A work describes the requests of a server: the time per unit of work, and their lengths.
type work struct {
	unit            []int64 // ns per token after the first; per prompt token if there are none
	prompts, output []int64 // tokens
}

// Fewer than fewWorks requests are too few to say what a server does; maxWorks are enough.
const (
	fewWorks = 20
	maxWorks = 1000
)

// add adds a finished request.
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

// anotherModel is the least ratio of the time per token between groups of servers with different models: faults of a
// single machine do not affect several servers.
const anotherModel = 2

// byWork divides servers whose models are unknown if one group takes far longer for a unit of work than the other,
// with nothing in between. A single slow server may be broken, so it has another model only if its requests differ,
// too.
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

// apart reports whether two groups serve different models, according to their requests.
func apart(fast, slow []*server) bool {
	if len(fast) > 1 && len(slow) > 1 {
		return true
	}
	const farApart = 1.5 // least ratio of the median lengths
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

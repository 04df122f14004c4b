package rank

import (
	"cmp"
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// An Engine is the ranks of a server that take every step together: all of them, or those of one DP rank. They wait
// for each other, so that a stage takes equally long on all of them, and only other engines of their role can be
// compared with them.
type Engine struct {
	Name   string
	Ranks  int
	tp     int16                        // lowest TP rank; only its spans are counted, as the others' add nothing
	stages map[string]*[fineParts]tally // by stage, and by part of the time in which spans began
}

// fineParts is the number of parts of the time in which stages are counted. It has many divisors, because figures use
// fewer parts if there are few spans.
const fineParts = 120

// A tally sums up durations, in ns.
type tally struct {
	n            int
	sum, squares float64
}

func (t *tally) add(o tally) { t.n, t.sum, t.squares = t.n+o.n, t.sum+o.sum, t.squares+o.squares }

func (t *tally) mean() float64 { return t.sum / float64(t.n) }

// variance returns the variance of the mean, estimated from the durations.
func (t *tally) variance() float64 {
	n := float64(t.n)
	return max(0, t.squares-t.sum*t.sum/n) / (n - 1) / n
}

// Engines finds the engines of each role, and counts their stages from one time to another.
func Engines(set *request.Set, from, to trace.Time) (byRole [request.Other + 1][]*Engine) {
	ranks := place.NewRankSet(set)
	known, byTeam, ofPlace := ranks.KnownPlaces(), map[place.Location]*Engine{}, make([]*Engine, len(ranks.Places))
	for i := range ranks.Places {
		team, tp := ranks.Places[known[i]].Team(), ranks.Places[i].Rank.TP
		e := order.Memo(byTeam, team, func() *Engine {
			e := &Engine{Name: team.Group(), tp: tp, stages: map[string]*[fineParts]tally{}}
			byRole[team.Role] = append(byRole[team.Role], e)
			return e
		})
		if known[i] == int32(i) {
			e.Ranks++
		}
		e.tp, ofPlace[i] = min(e.tp, tp), e
	}
	for i := range set.All() {
		row, proc := set.Row(i), set.ProcOf(i)
		if set.Kind(i) != request.Stage || set.Implausible(i) || set.Again(i) || proc == request.None || ranks.Of[proc] == request.None ||
			row.Start < from || row.Start > to {
			continue
		}
		if at := ranks.Of[proc]; ranks.Places[at].Rank.TP == ofPlace[at].tp {
			ofPlace[at].count(set.Name(i), row, from, to)
		}
	}
	return byRole
}

func (e *Engine) count(stage string, row *request.Row, from, to trace.Time) {
	tallies := order.Memo(e.stages, stage, func() *[fineParts]tally { return new([fineParts]tally) })
	part := min(fineParts-1, int(float64(row.Start-from)/float64(max(1, to-from))*fineParts))
	ns := float64(row.Dur())
	tallies[part].add(tally{1, ns, ns * ns})
}

// whole returns the tally of a stage over all parts.
func (e *Engine) whole(stage string) (t tally) {
	if tallies := e.stages[stage]; tallies != nil {
		for i := range tallies {
			t.add(tallies[i])
		}
	}
	return t
}

// A StageHistory is a stage of several engines over time.
type StageHistory struct {
	Name    string
	Engines []*Engine
	total   float64 // ns
	// each is the number of fine parts in a part: as few as give the engine with the fewest spans usualSpans in each
	// on average.
	each int
}

const (
	usualSpans = 12 // spans of an engine in a part of the time
	minSpans   = 5  // fewest spans of an engine in a part for a comparison
)

// StageHistories returns the stages that several engines have, the longest total time first, and the number of stages
// left out because they took less than the fraction leastPart of the time.
func StageHistories(engines []*Engine, leastPart float64) (list []*StageHistory, small int) {
	byName := map[string]*StageHistory{}
	whole := 0.0
	for _, e := range engines {
		for name := range e.stages {
			s := order.Memo(byName, name, func() *StageHistory { return &StageHistory{Name: name} })
			t := e.whole(name)
			s.total, whole = s.total+t.sum, whole+t.sum
			s.Engines = append(s.Engines, e)
		}
	}
	for _, s := range byName {
		switch {
		case len(s.Engines) < 2:
		case s.total < leastPart*whole:
			small++
		default:
			s.divide()
			list = append(list, s)
		}
	}
	slices.SortFunc(list, func(a, b *StageHistory) int {
		return cmp.Or(cmp.Compare(b.total, a.total), cmp.Compare(a.Name, b.Name))
	})
	return list, small
}

// divide chooses the length of parts.
func (s *StageHistory) divide() {
	fewest := math.MaxInt
	for _, e := range s.Engines {
		t := e.whole(s.Name)
		fewest = min(fewest, t.n)
	}
	for s.each = 1; s.each < fineParts; s.each++ {
		if fineParts%s.each == 0 && fewest*s.each >= usualSpans*fineParts {
			return
		}
	}
}

// parts returns the spans of an engine, by part of the time.
func (s *StageHistory) parts(e *Engine) []tally {
	list := make([]tally, fineParts/s.each)
	for i, t := range e.stages[s.Name] {
		list[i/s.each].add(t)
	}
	return list
}

// A StagePart is a stage of an engine in a part of the time.
type StagePart struct {
	N           int     // number of spans
	Mean, Usual float64 // ns: mean of this engine, and median over the means of its peers and itself; Usual is NaN if there are too few spans
	// Longer is how much longer it takes, as a fraction of Usual: 0 if that may be chance, and NaN if there are too
	// few spans.
	Longer float64
}

// Compare compares the engines with each other, by engine and part of the time.
func (s *StageHistory) Compare() [][]StagePart {
	parts := order.Each(s.Engines, s.parts)
	list := make([][]StagePart, len(parts))
	for p := range parts[0] {
		var here []*tally
		for i := range parts {
			if parts[i][p].n >= minSpans {
				here = append(here, &parts[i][p])
			}
		}
		for i := range parts {
			list[i] = append(list[i], parts[i][p].compare(here))
		}
	}
	return list
}

// compare compares an engine with its peers, which include it.
func (t *tally) compare(peers []*tally) StagePart {
	if t.n < minSpans || len(peers) < 2 {
		return StagePart{t.n, t.mean(), math.NaN(), math.NaN()}
	}
	sorted := slices.SortedFunc(slices.Values(peers), func(a, b *tally) int { return cmp.Compare(a.mean(), b.mean()) })
	usual := sorted[(len(sorted)-1)/2]
	const chance = 3 // standard errors
	more := t.mean() - usual.mean()
	if usual.mean() <= 0 || math.Abs(more) <= chance*math.Sqrt(t.variance()+usual.variance()) {
		return StagePart{t.n, t.mean(), usual.mean(), 0}
	}
	return StagePart{t.n, t.mean(), usual.mean(), more / usual.mean()}
}

package pace

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/diff/compare"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/replay"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/internal/significance"
	"github.com/sgtrace/sgtrace/request"
)

// A Pace says whether steps of servers take longer for the same work, or because they have more work.
type Pace struct {
	Steps         string  // "decode steps"
	Before, After float64 // time of a step with the same work, ns
	Change        compare.Change
	all           [2]float64   // mean time of all steps, ns
	unit          string       // of work
	Work          compare.Load // per step
	Kind          replay.Kind
	How           significance.How
	Samples       [2]significance.Sample
	Annotated     bool
	OfTokens      bool       // Steps are output tokens of requests, each of which is one step
	most          [2]int64   // largest number of requests in a decode step
	atMost        [2]float64 // share of decode steps with that many requests
	N             [2]int64   // steps that are compared
	yield         [2]float64 // tokens per request and decode step, more than 1 if drafts are accepted; 1 for other steps
	Servers       []string   // of both sides
	only          onlyServers
	late          string // words about the rank that others wait for; "" if none
}

// withPrefills names what log lines and scrapes can't tell apart from a decode step.
const withPrefills = " and the prefills between them"

// Compare compares the steps that both sides know, each kind from its best source: as profilers annotated them at a level, on the
// host or on its device; or else as requests show them; or as logs or metrics report them; or as tokens of whole requests.
func Compare(before, after Side, level uint8, onDevice bool, captures bool) (paces []Pace) {
	keys := slices.SortedFunc(maps.Keys(before), func(a, b key) int { // decode first, as it takes most of the time
		return cmp.Or(cmp.Compare(b.kind, a.kind), cmp.Compare(b.level, a.level), cmp.Compare(a.said, b.said), cmp.Compare(a.role, b.role))
	})
	annotated, known := map[replay.Kind]bool{}, map[replay.Kind]Said{}
	for _, of := range keys {
		a := after[of]
		if named := of.level != 0; a == nil || named && (of.level != level || of.onDevice != onDevice) || !named && annotated[of.kind] {
			continue
		}
		if best, ok := known[of.kind]; ok && best != of.said {
			continue
		}
		annotated[of.kind], known[of.kind] = of.level != 0, of.said
		paces = append(paces, compareSteps(of, [2]*steps{before[of], a}, captures))
	}
	return paces
}

func compareSteps(of key, sides [2]*steps, captures bool) Pace {
	word := paced[of.said]
	p := Pace{Kind: of.kind, Annotated: of.level != 0, OfTokens: of.said.ofTokens(), Steps: word.before + cmp.Or(word.what, of.kind.String()+" steps") + word.also, Before: math.NaN(), After: math.NaN(), Change: compare.Change{Change: compare.UnknownChange}}
	p.unit = kindsOfWork[of.kind].unit
	name := p.unit + " per " + of.kind.String() + " step"
	if p.OfTokens {
		name = "requests decoded at a time"
	}
	p.Work = compare.Amounts(&compare.Amount{Name: name, Pieces: sides[0].work}, &compare.Amount{Pieces: sides[1].work}, captures)
	p.Servers = slices.Concat(sides[0].servers, sides[1].servers)
	for side, s := range sides {
		p.most[side], p.atMost[side] = s.fullest()
		p.yield[side] = 1
		if s.steps > 0 && of.kind == replay.Decode {
			p.yield[side] = s.tokens / s.steps
		}
		p.all[side] = order.SumRows(s.list, func(st *step) float64 { return float64(st.Took) }) / float64(len(s.list))
	}
	var common [2][]step
	for side, s := range sides {
		others := sizesOf(sides[1-side].list)
		common[side] = order.Only(s.list, func(st step) bool { return others[st.size] > 0 })
	}
	if min(len(common[0]), len(common[1])) == 0 {
		return p
	}
	// Fit a model to each side, and let it predict the steps of both. If one side's work differs from what
	// the other's model was fitted to, the two disagree; then the model that sees the smaller change counts.
	var by [2]significance.Change
	var samples [2][2]significance.Sample
	for model := range by {
		usual := newUsual(common[model])
		for side := range samples[model] {
			samples[model][side] = usual.sample(common[side])
		}
		s := &samples[model]
		p.How = compare.ChooseTest(s[0].Pieces, s[1].Pieces, captures)
		by[model] = p.How.Compare(s[0], s[1])
	}
	best := 0
	if !(by[0].P >= by[1].P) {
		best = 1
	}
	p.Samples, p.N = samples[best], [2]int64{int64(len(common[0])), int64(len(common[1]))}
	p.Before, p.After, p.Change.Change = samples[best][0].Quantity.Value, samples[best][1].Quantity.Value, by[best]
	c := &p.Change.Change
	c.Low, c.High = min(by[0].Low, by[1].Low), max(by[0].High, by[1].High)
	if (by[0].Ratio > 1) != (by[1].Ratio > 1) {
		c.P = max(c.P, 1)
	}
	if !captures {
		p.only = findOnly(sides, common)
	}
	p.late = p.whoIsLate(sides, common)
	return p
}

// sizesOf returns the number of steps of each size.
func sizesOf(list []step) map[[2]int16]int {
	n := map[[2]int16]int{}
	for i := range list {
		n[list[i].size]++
	}
	return n
}

// A usual predicts how long steps usually take: by a model, corrected for each size of steps. The model can't
// describe that kernels have room for certain numbers of requests, and that CUDA graphs are captured for some.
type usual struct {
	model  replay.Model
	bySize map[[2]int16]significance.Piece
	mean   float64 // ns
}

func newUsual(list []step) *usual {
	u := &usual{model: replay.FitModel(order.EachRow(list, func(st *step) replay.Timed { return st.Timed })), bySize: map[[2]int16]significance.Piece{}}
	for i := range list {
		st := &list[i]
		p := u.bySize[st.size]
		u.bySize[st.size] = significance.Piece{Sum: p.Sum + float64(st.Took), Of: p.Of + u.model.Of(st.Features)}
		u.mean += float64(st.Took) / float64(len(list))
	}
	return u
}

// sample returns the mean time of steps, each counted by how long its work usually takes, relative to a mean step.
func (u *usual) sample(list []step) significance.Sample {
	n := int16(0)
	for i := range list {
		n = max(n, list[i].piece+1)
	}
	pieces := make([]significance.Piece, n)
	for i := range list {
		st := &list[i]
		size := u.bySize[st.size]
		p := &pieces[st.piece]
		p.Sum += float64(st.Took)
		p.Of += u.model.Of(st.Features) * size.Sum / size.Of / u.mean
	}
	return significance.Sample{Quantity: significance.Apart.Mean(pieces), Pieces: pieces}
}

// Apart reports steps whose work differs so much that no step of one side is comparable to one of the other.
func (p *Pace) Apart() string {
	if p.N[0] > 0 || !p.Work.Change.Matters() {
		return ""
	}
	return fmt.Sprintf("%s take %s, and %s (%s): too different to tell what the same work takes", p.Steps, compare.PairInWords(int64(p.all[0]), int64(p.all[1])), p.works(), p.Work.Change.Sure)
}

// asLong is the largest relative difference, by the ends of the confidence interval, at which steps are said to take equally long.
const asLong = 0.05

// Told returns the change to report: that of some servers if only these changed.
func (p *Pace) Told() *compare.Change {
	if len(p.only.names) > 0 {
		return &p.only.change
	}
	return &p.Change
}

// Took returns how long a step with the same work took before and after, in ns, for the change that Told returns.
func (p *Pace) Took() (before, after float64) {
	if len(p.only.names) > 0 {
		return p.only.before, p.only.after
	}
	return p.Before, p.After
}

// At returns the server that changed; the zero location if several did.
func (p *Pace) At() place.Location {
	if len(p.only.names) != 1 || place.Named(p.only.names[0]).Role == request.Other {
		return place.Location{}
	}
	return place.Named(p.only.names[0])
}

// Slower reports steps that take longer or less time for the same work, and how long they take with the work they have.
func (p *Pace) Slower() string {
	before, after := p.Took()
	change, where := p.Told(), ""
	if len(p.only.names) > 0 {
		where = " on " + words.Some(p.only.names, compare.MaxNames) + " only"
	}
	if !change.Matters() {
		return ""
	}
	word := "longer"
	if change.Change.Ratio < 1 {
		word = "less time"
	}
	same := "the same work"
	if yield := p.yield[1] / p.yield[0]; math.Abs(yield-1) >= compare.MinChange {
		same = fmt.Sprintf("as many requests, and give %s -> %s tokens to each, which makes %+.0f %% per token", words.ThreeDigits(p.yield[0]), words.ThreeDigits(p.yield[1]), 100*(change.Change.Ratio/yield-1))
	}
	text := fmt.Sprintf("%s take %s for %s%s: %s%s%s", p.Steps, word, same, where, compare.PairInWords(int64(before), int64(after)), change.InBrackets(), p.late)
	if where == "" && p.Work.Change.Matters() && math.Abs(p.all[1]/p.all[0]/p.Change.Change.Ratio-1) >= compare.MinChange {
		text += fmt.Sprintf(", and all of them %s, as %s", compare.PairInWords(int64(p.all[0]), int64(p.all[1])), p.works())
	}
	return text
}

// Busier reports steps that take equally long for the same work, and became longer or shorter because they have more or less of it.
func (p *Pace) Busier() string {
	if !p.Work.Change.Matters() || !p.AsLong() || math.Abs(p.all[1]/p.all[0]-1) < compare.MinChange {
		return ""
	}
	return fmt.Sprintf("%s %s since %s (%s): for the same work they take as long (%s)",
		p.Steps, compare.PairInWords(int64(p.all[0]), int64(p.all[1])), p.works(), p.Work.Change.Sure, p.Change.Interval(", CI ", ""))
}

// Same reports steps that take equally long for the same work.
func (p *Pace) Same() string {
	if !p.AsLong() {
		return ""
	}
	return fmt.Sprintf("%s take as long for the same work (%s)", p.Steps, p.Change.Interval(", CI ", ""))
}

// AsLong reports whether steps certainly take equally long for the same work.
func (p *Pace) AsLong() bool {
	c := &p.Change.Change
	return p.Change.Tested() && !p.Change.Matters() && len(p.only.names) == 0 && c.Low >= 1-asLong && c.High <= 1+asLong
}

// Capped reports that decode steps gained or lost a limit on their requests, if requests wait
// longer or shorter than before: at least half of the steps are as full as the fullest one.
func (p *Pace) Capped(waits bool) string {
	const mostly = 0.5
	if p.Kind != replay.Decode || p.OfTokens || !waits || p.most[0] == p.most[1] {
		return ""
	}
	limited, when := 1, "have"
	if p.most[0] < p.most[1] {
		limited, when = 0, "had"
	}
	if p.atMost[limited] < mostly {
		return ""
	}
	return fmt.Sprintf("%s have %d -> %d requests at most, and %.0f %% of them %s %d: a limit, for which requests wait (%s)",
		p.Steps, p.most[0], p.most[1], 100*p.atMost[limited], when, p.most[limited], finding.Likely)
}

// works says how much work there is per step, before and after.
func (p *Pace) works() string {
	who, each := "they have", " each"
	if p.OfTokens {
		who, each = "servers decode", " at a time"
	}
	return fmt.Sprintf("%s %s -> %s %s%s", who, words.ThreeDigits(p.Work.Before), words.ThreeDigits(p.Work.After), p.unit, each)
}

// Loads returns the rows of a pace in the table of the load.
func (p *Pace) Loads() []compare.Load {
	return []compare.Load{p.Work, {Name: "ms of " + p.Steps + " for the same work", Before: p.Before / 1e6, After: p.After / 1e6, Change: p.Change}}
}

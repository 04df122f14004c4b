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

// A Pace tells whether steps of servers take longer for the same work, or because there is more of it.
type Pace struct {
	Steps         string  // "decode steps"
	Before, After float64 // what a step of the same work takes, in ns
	Change        compare.Change
	all           [2]float64   // what all steps take, in ns
	unit          string       // of work
	Work          compare.Load // of each step
	Kind          replay.Kind
	How           significance.How
	Samples       [2]significance.Sample
	Annotated     bool
	most          [2]int64   // requests that a decode step has
	atMost        [2]float64 // share of the decode steps that have as many
	N             [2]int64   // steps that are compared
	yield         [2]float64 // tokens that a decode step gives to a request, as drafts are accepted; 1 of others
	only          onlyServers
	late          string // for whom the others wait since
}

// withPrefills is what lines and scrapes count as part of a decode step.
const withPrefills = " and the prefills between them"

// Compare compares what both sides know of steps: as profilers annotated them at a level, on the host or on its device, where both
// have that.
func Compare(before, after Side, level uint8, onDevice bool, captures bool) (paces []Pace) {
	keys := slices.SortedFunc(maps.Keys(before), func(a, b key) int { // decode first, which is most of the time
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
	p := Pace{Kind: of.kind, Annotated: of.level != 0, Steps: [...]string{"", "logged ", "scraped "}[of.said] + of.kind.String() + " steps" + [...]string{"", withPrefills, withPrefills}[of.said], Before: math.NaN(), After: math.NaN(), Change: compare.Change{Change: compare.UnknownChange}}
	p.unit = kindsOfWork[of.kind].unit
	p.Work = compare.Amounts(&compare.Amount{Name: p.unit + " per " + of.kind.String() + " step", Pieces: sides[0].work}, &compare.Amount{Pieces: sides[1].work}, captures)
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
	// A model of either side says what the steps of the other would take. Where it has to say it of other work than it
	// is fitted to, the two disagree, and the one that sees less of a change counts.
	var by [2]significance.Change
	var samples [2][2]significance.Sample
	for model := range by {
		usual := newUsual(common[model])
		for side := range samples[model] {
			samples[model][side] = usual.sample(common[side])
		}
		s := &samples[model]
		p.How = compare.How(s[0].Pieces, s[1].Pieces, captures)
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

// sizesOf counts steps by their size.
func sizesOf(list []step) map[[2]int16]int {
	n := map[[2]int16]int{}
	for i := range list {
		n[list[i].size]++
	}
	return n
}

// A usual says what steps usually take: by a model, corrected for what steps of each size take, which no line
// describes: kernels have room for certain numbers of requests, and graphs are captured for some.
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

// sample counts every step as the part of a mean step that one of its work usually is.
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

// Apart tells of steps of which none of one side has as much to do as one of the other.
func (p *Pace) Apart() string {
	if p.N[0] > 0 || !p.Work.Change.Matters() {
		return ""
	}
	return fmt.Sprintf("%s have %s (%s) and take %s: the steps of both are too different to tell what the same work takes", p.Steps, p.works(), p.Work.Change.Sure, compare.PairInWords(int64(p.all[0]), int64(p.all[1])))
}

// asLong is how much longer or shorter steps may be, by the ends of the interval, of which it is said that they take
// as long.
const asLong = 0.05

// Told is the change that is told: that of some servers if it is theirs only.
func (p *Pace) Told() *compare.Change {
	if len(p.only.names) > 0 {
		return &p.only.change
	}
	return &p.Change
}

// Took returns what a step of the same work takes, in ns, as that is told.
func (p *Pace) Took() (before, after float64) {
	if len(p.only.names) > 0 {
		return p.only.before, p.only.after
	}
	return p.Before, p.After
}

// At is where the change is that is told; nothing of several servers.
func (p *Pace) At() place.Location {
	if len(p.only.names) != 1 || place.Named(p.only.names[0]).Role == request.Other {
		return place.Location{}
	}
	return place.Named(p.only.names[0])
}

// Slower tells of steps that take longer or shorter for the same work, and of what their work makes of that.
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
		text += fmt.Sprintf(", and all of them %s with %s", compare.PairInWords(int64(p.all[0]), int64(p.all[1])), p.works())
	}
	return text
}

// Busier tells of steps that take as long as they did for the same work, and are longer or shorter since there is more of it,
// or less.
func (p *Pace) Busier() string {
	if !p.Work.Change.Matters() || !p.asLong() || math.Abs(p.all[1]/p.all[0]-1) < compare.MinChange {
		return ""
	}
	return fmt.Sprintf("%s %s since they have %s (%s): for the same work they take as long (%s)",
		p.Steps, compare.PairInWords(int64(p.all[0]), int64(p.all[1])), p.works(), p.Work.Change.Sure, p.Change.Interval(", CI ", ""))
}

// Same tells of steps that take as long as they did.
func (p *Pace) Same() string {
	if !p.asLong() {
		return ""
	}
	return fmt.Sprintf("%s take as long for the same work (%s)", p.Steps, p.Change.Interval(", CI ", ""))
}

// asLong reports whether steps take as long as they did for the same work, beyond doubt.
func (p *Pace) asLong() bool {
	c := &p.Change.Change
	return p.Change.Tested() && !p.Change.Matters() && len(p.only.names) == 0 && c.Low >= 1-asLong && c.High <= 1+asLong
}

// Capped tells that decode steps have a limit which they did not have, or had one, if requests wait longer or shorter than before:
// most steps have exactly as many requests as any.
func (p *Pace) Capped(waits bool) string {
	const mostly = 0.5
	if p.Kind != replay.Decode || !waits || p.most[0] == p.most[1] {
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

// works says how much there is to do in a step.
func (p *Pace) works() string {
	return fmt.Sprintf("%s -> %s %s each", words.ThreeDigits(p.Work.Before), words.ThreeDigits(p.Work.After), p.unit)
}

// Loads are the rows of a pace in the table of the load.
func (p *Pace) Loads() []compare.Load {
	return []compare.Load{p.Work, {Name: "ms of " + p.Steps + " for the same work", Before: p.Before / 1e6, After: p.After / 1e6, Change: p.Change}}
}

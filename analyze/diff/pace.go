package diff

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/replay"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/internal/significance"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// A paceKey says which steps of servers are compared with each other: those of a kind, in a role.
type paceKey struct {
	kind replay.Kind
	role request.Role
}

// pacedSteps are the steps of a key on one side.
type pacedSteps struct {
	list   []pacedStep
	pieces int
	work   []significance.Piece // what steps have to do, and how many these are, in pieces that are longer than requests
	// tokens came out in so many steps of the requests that tell: more than one of each if drafts are accepted.
	tokens, steps float64
}

type pacedStep struct {
	replay.Timed
	size  [2]int16 // of what is compared: requests or tokens, and the tokens that they attend to
	piece int16
}

// kindsOfWork say what there is to do in steps.
var kindsOfWork = [...]struct {
	unit string
	of   func(*replay.Step) int64
}{replay.Prefill: {"prompt tokens", func(st *replay.Step) int64 { return st.New }}, replay.Decode: {"requests", func(st *replay.Step) int64 { return st.Requests }}}

// sizeOf tells how large a step is. Tokens are alike within a fifth, those that decode steps attend to within two fifths.
func sizeOf(st *replay.Step) [2]int16 {
	octaves := func(tokens int64, parts float64) int16 { return int16(parts * math.Log2(float64(max(1, tokens)))) }
	if st.Kind == replay.Decode {
		return [2]int16{int16(min(st.Requests, math.MaxInt16)), octaves(st.Context, 2)}
	}
	return [2]int16{octaves(st.New, 4), octaves(st.New+st.Prefix, 4)}
}

// addPaces adds the steps of all servers, as requests show when each began and ended, and what was in it. What a
// step takes beyond its work does not depend on how long requests are, so that these pieces may be short.
func (d *Collected) addPaces(s *request.Set, overlapping *diffPieces, window *Capture) {
	found := map[paceKey][]*replay.Step{}
	run := replay.Read(s)
	for i := range run.Engines {
		e := &run.Engines[i]
		for k := range e.Steps {
			if st := &e.Steps[k]; st.Start >= window.From && (window.To == 0 || st.Start < window.To) {
				key := paceKey{st.Kind, e.Role}
				found[key] = append(found[key], st)
			}
		}
	}
	tokens, steps := 0.0, 0.0
	for i := range s.AllRequests() {
		t, n := s.Requests[i].Metrics.StepYield()
		tokens, steps = tokens+float64(t), steps+float64(n)
	}
	for key, list := range found {
		starts := order.Each(list, func(st *replay.Step) trace.Time { return st.Start })
		cut := d.pieces(cutEvenly(starts, min(maxPieces, len(starts)/minRequests)))
		of := order.Memo(d.paces, key, func() *pacedSteps {
			return &pacedSteps{pieces: cut.n(), work: make([]significance.Piece, overlapping.n())}
		})
		of.tokens, of.steps = of.tokens+tokens, of.steps+steps
		for _, st := range list {
			of.list = append(of.list, pacedStep{st.Timed(), sizeOf(st), int16(cut.at(st.Start))})
			p := &of.work[overlapping.at(st.Start)]
			p.Sum, p.Of = p.Sum+float64(kindsOfWork[key.kind].of(st)), p.Of+1
		}
	}
}

// A Pace tells whether steps of servers take longer for the same work, or because there is more of it.
type Pace struct {
	steps         string  // "decode steps"
	Before, After float64 // what a step of the same work takes, in ns
	Change        Change
	all           [2]float64 // what all steps take, in ns
	unit          string     // of work
	work          Load       // of each step
	kind          replay.Kind
	how           significance.How
	samples       [2]significance.Sample
	n             [2]int64   // steps that are compared
	yield         [2]float64 // tokens that a decode step gives to a request, as drafts are accepted; 1 of others
}

// comparePaces compares what both sides know of steps.
func comparePaces(before, after *Collected) (paces []Pace) {
	keys := slices.SortedFunc(maps.Keys(before.paces), func(a, b paceKey) int {
		return cmp.Or(cmp.Compare(b.kind, a.kind), cmp.Compare(a.role, b.role)) // decode first, which is most of the time
	})
	for _, key := range keys {
		if a := after.paces[key]; a != nil {
			paces = append(paces, comparePace(key, [2]*pacedSteps{before.paces[key], a}, before.captures > 0))
		}
	}
	return paces
}

func comparePace(key paceKey, sides [2]*pacedSteps, captures bool) Pace {
	p := Pace{kind: key.kind, steps: key.kind.String() + " steps", Before: math.NaN(), After: math.NaN(), Change: Change{Change: unknownChange}}
	p.unit = kindsOfWork[key.kind].unit
	p.work = compareLoad(&diffLoad{p.unit + " per " + key.kind.String() + " step", sides[0].work}, &diffLoad{"", sides[1].work}, captures)
	for side, of := range sides {
		p.yield[side] = 1
		if of.steps > 0 && key.kind == replay.Decode {
			p.yield[side] = of.tokens / of.steps
		}
		p.all[side] = order.SumRows(of.list, func(st *pacedStep) float64 { return float64(st.Took) }) / float64(len(of.list))
	}
	var common [2][]pacedStep
	for side, of := range sides {
		own, others := sizesOf(of.list), sizesOf(sides[1-side].list)
		common[side] = order.Only(of.list, func(st pacedStep) bool { return min(own[st.size], others[st.size]) >= significance.Enough })
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
			samples[model][side] = usual.sample(common[side], sides[side].pieces)
		}
		s := &samples[model]
		p.how = howToCompare(s[0].Pieces, s[1].Pieces, captures)
		by[model] = p.how.Compare(s[0], s[1])
	}
	best := 0
	if !(by[0].P >= by[1].P) {
		best = 1
	}
	p.samples, p.n = samples[best], [2]int64{int64(len(common[0])), int64(len(common[1]))}
	p.Before, p.After, p.Change.Change = samples[best][0].Quantity.Value, samples[best][1].Quantity.Value, by[best]
	c := &p.Change.Change
	c.Low, c.High = min(by[0].Low, by[1].Low), max(by[0].High, by[1].High)
	if (by[0].Ratio > 1) != (by[1].Ratio > 1) {
		c.P = max(c.P, 1)
	}
	return p
}

// sizesOf counts steps by their size.
func sizesOf(list []pacedStep) map[[2]int16]int {
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

func newUsual(list []pacedStep) *usual {
	u := &usual{model: replay.FitModel(order.EachRow(list, func(st *pacedStep) replay.Timed { return st.Timed })), bySize: map[[2]int16]significance.Piece{}}
	for i := range list {
		st := &list[i]
		p := u.bySize[st.size]
		u.bySize[st.size] = significance.Piece{Sum: p.Sum + float64(st.Took), Of: p.Of + u.model.Of(st.Features)}
		u.mean += float64(st.Took) / float64(len(list))
	}
	return u
}

// sample counts every step as the part of a mean step that one of its work usually is.
func (u *usual) sample(list []pacedStep, n int) significance.Sample {
	pieces := make([]significance.Piece, n)
	for i := range list {
		st := &list[i]
		size := u.bySize[st.size]
		p := &pieces[st.piece]
		p.Sum += float64(st.Took)
		p.Of += u.model.Of(st.Features) * size.Sum / size.Of / u.mean
	}
	return significance.Sample{Quantity: significance.Mean(pieces), Pieces: pieces}
}

// asLong is how much longer or shorter steps may be, by the ends of the interval, of which it is said that they take
// as long.
const asLong = 0.05

// slower tells of steps that take longer or shorter for the same work, and of what their work makes of that.
func (p *Pace) slower() string {
	if !p.Change.matters() {
		return ""
	}
	word := "longer"
	if p.Change.Change.Ratio < 1 {
		word = "less time"
	}
	same := "the same work"
	if yield := p.yield[1] / p.yield[0]; math.Abs(yield-1) >= minChange {
		same = fmt.Sprintf("as many requests, and give %s -> %s tokens to each, which makes %+.0f %% per token", words.ThreeDigits(p.yield[0]), words.ThreeDigits(p.yield[1]), 100*(p.Change.Change.Ratio/yield-1))
	}
	text := fmt.Sprintf("%s take %s for %s: %s%s", p.steps, word, same, pairInWords(int64(p.Before), int64(p.After)), p.Change.inBrackets())
	if p.work.Change.matters() && math.Abs(p.all[1]/p.all[0]/p.Change.Change.Ratio-1) >= minChange {
		text += fmt.Sprintf(", and all of them %s with %s", pairInWords(int64(p.all[0]), int64(p.all[1])), p.works())
	}
	return text
}

// busier tells of steps that take as long as they did for the same work, and are longer or shorter since there is more of it,
// or less.
func (p *Pace) busier() string {
	if !p.work.Change.matters() || !p.asLong() || math.Abs(p.all[1]/p.all[0]-1) < minChange {
		return ""
	}
	return fmt.Sprintf("%s %s since they have %s (%s): for the same work they take as long (%s)",
		p.steps, pairInWords(int64(p.all[0]), int64(p.all[1])), p.works(), p.work.Change.Sure, p.Change.interval(", CI ", ""))
}

// same tells of steps that take as long as they did.
func (p *Pace) same() string {
	if !p.asLong() {
		return ""
	}
	return fmt.Sprintf("%s take as long for the same work (%s)", p.steps, p.Change.interval(", CI ", ""))
}

// asLong reports whether steps take as long as they did for the same work, beyond doubt.
func (p *Pace) asLong() bool {
	c := &p.Change.Change
	return p.Change.tested() && !p.Change.matters() && c.Low >= 1-asLong && c.High <= 1+asLong
}

// works says how much there is to do in a step.
func (p *Pace) works() string {
	return fmt.Sprintf("%s -> %s %s each", words.ThreeDigits(p.work.Before), words.ThreeDigits(p.work.After), p.unit)
}

// loads are the rows of a pace in the table of the load.
func (p *Pace) loads() []Load {
	return []Load{p.work, {"ms of " + p.steps + " for the same work", p.Before / 1e6, p.After / 1e6, p.Change}}
}

package diff

import (
	"fmt"
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/diff/compare"
	"github.com/sgtrace/sgtrace/analyze/diff/pace"
	"github.com/sgtrace/sgtrace/analyze/metric"
	"github.com/sgtrace/sgtrace/analyze/replay"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/significance"
)

// A Gauge is a number of both captures that can be held against a bound.
type Gauge struct {
	Before, After float64 // ns if Time, otherwise in the unit of the load
	Time          bool
	Change        significance.Change // not corrected for multiple tests

	how      significance.How
	samples  [2]significance.Sample
	share    float64  // which quantile it is, if compared by scatter; otherwise 0
	counted  string   // what its values are of: "request"
	n        [2]int64 // how many of these each side has
	perPiece int      // least number of these in a piece
	pieces   [2]int   // into how many pieces each side was cut
}

// gaugeRows gauges a number of all rows of a kind together, or, if name is not "", of the rows
// with that name. It returns nil if neither side has any.
func (d *Diff) gaugeRows(kind Kind, name, number string) *Gauge {
	var m [2]diffMeasure
	for side := range m {
		keys := slices.DeleteFunc(d.locate.sides[side].keys(), func(k diffKey) bool { return k.Kind != kind || name != "" && k.Name != name })
		m[side], _ = d.locate.measureKeys(side, diffKey{Kind: kind, Name: name}, keys)
	}
	if m[0].N+m[1].N == 0 {
		return nil
	}
	i := slices.IndexFunc(diffNumbers, func(n diffNumber) bool { return n.name == number })
	n := &diffNumbers[i]
	captures := d.locate.captures()
	g := &Gauge{Time: true, Change: n.compare(&m[0], &m[1], captures), how: n.how(&m[0], &m[1], captures),
		samples: [2]significance.Sample{m[0].sample(number), m[1].sample(number)}}
	g.Before, g.After = n.value(&m[0].Stat), n.value(&m[1].Stat)
	g.pieces = [2]int{len(m[0].work), len(m[1].work)}
	if number == "p99" {
		g.share = 0.99
	}
	g.count(d, kind, name, [2]int64{m[0].N, m[1].N})
	return g
}

// value returns the number, in ns.
func (n *diffNumber) value(s *Stat) float64 {
	v := float64(n.of(s))
	if n.tenths {
		v /= 10
	}
	return max(0, v)
}

// count sets what a gauge counts. For a quantile compared by its scatter, that is the values themselves.
func (g *Gauge) count(d *Diff, kind Kind, name string, values [2]int64) {
	switch {
	case d.locate.captures():
		g.counted, g.perPiece = "capture", 1
		g.n = [2]int64{int64(d.locate.sides[0].captures.N), int64(d.locate.sides[1].captures.N)}
	case g.share > 0 && g.how == significance.ByScatter:
		g.counted, g.perPiece, g.n = "request", compare.MinRequests, values
		switch {
		case kind.profiled():
			g.counted, g.perPiece = kind.String(), 1
		case kind == Stage:
			g.counted = "span"
		case name == metric.ITL.Name:
			g.counted = "gap"
		}
	case kind.profiled():
		g.counted, g.perPiece, g.n = d.per.String(), 1, [2]int64{d.Before.Steps, d.After.Steps}
	default:
		g.counted, g.perPiece, g.n = "request", compare.MinRequests, [2]int64{d.Before.Requests, d.After.Requests}
	}
}

// gaugeLoad gauges a mean; it returns nil unless both sides have it.
func (d *Diff) gaugeLoad(m *metric.Metric) *Gauge {
	var of [2]*compare.Amount
	for side, c := range d.locate.sides {
		if of[side] = c.loads[m]; of[side] == nil || sumOf(of[side].Pieces).Of == 0 {
			return nil
		}
	}
	l := compare.Amounts(of[0], of[1], d.locate.captures())
	g := &Gauge{Before: l.Before, After: l.After, Change: l.Change.Change,
		how: compare.ChooseTest(of[0].Pieces, of[1].Pieces, d.locate.captures()), samples: [2]significance.Sample{of[0].Sample(), of[1].Sample()},
		pieces: [2]int{len(of[0].Pieces), len(of[1].Pieces)}}
	kind := Request
	if m.Ratio == nil { // from profilers
		kind = Step
	}
	g.count(d, kind, "", [2]int64{})
	return g
}

// Above tests whether the number grew to more than bound times what it was.
func (g *Gauge) Above(bound float64) significance.Crossing {
	return g.crossing(bound, g.how.Above, g.Before, g.After, [2]int{0, 1})
}

// Below tests whether the number fell to less than bound times what it was.
func (g *Gauge) Below(bound float64) significance.Crossing {
	return g.crossing(bound, g.how.Below, g.After, g.Before, [2]int{1, 0})
}

// crossing tests in one direction. lacks is the value of the side, the first in sides, that is 0 if the number crossed
// the bound by appearing or vanishing; has is the value of the other side.
func (g *Gauge) crossing(bound float64, test func(before, after significance.Sample, bound float64) significance.Crossing, lacks, has float64, sides [2]int) significance.Crossing {
	switch {
	case g.Time || lacks != 0 && has != 0:
		return test(g.samples[0], g.samples[1], bound)
	case lacks != 0 || has <= 0:
		return significance.Crossing{P: 1}
	}
	without, with := g.samples[sides[0]].Pieces, g.samples[sides[1]].Pieces
	p := compare.Appeared(without, with)
	return significance.Crossing{P: p, Least: min(p, significance.Appeared(len(with), len(with), len(without)))}
}

// Shortage says what is missing to be sure at a level: "12 requests, 50 needed". It returns "" if nothing is.
func (g *Gauge) Shortage(c significance.Crossing, level float64) string {
	if c.P >= 0 && c.Least <= level {
		return ""
	}
	needed, least := g.needed(level), min(g.n[0], g.n[1])
	if g.how == significance.ByCapture {
		least = g.n[0] + g.n[1]
	}
	switch {
	case g.Before == 0 || g.After == 0:
		return "only one side has it"
	case least < needed:
		return fmt.Sprintf("%s, %s needed", words.Counted(int(least), g.counted), words.Thousands(needed))
	}
	return fmt.Sprintf("the captures have %d and %d independent pieces, which differ too much; longer captures needed", g.pieces[0], g.pieces[1])
}

// needed returns how many of the counted things the smaller side must have, if pieces are as
// small as allowed; for captures, how many both sides together must have.
func (g *Gauge) needed(level float64) int64 {
	switch {
	case g.how == significance.ByCapture:
		return significance.MinCaptures
	case g.how == significance.ByRanks:
		return int64(g.perPiece * significance.FewestPieces(max(g.pieces[0], g.pieces[1]), level))
	case g.share > 0:
		return int64(max(g.perPiece*significance.Enough, significance.FewestValues(g.share, level, compare.MaxPieces)))
	}
	return int64(g.perPiece * significance.Enough)
}

// Words returns how the number changed: "8.10 -> 9.40 ms, +16.1 % (+14.2 to +18.0)".
func (g *Gauge) Words() string {
	text := words.ThreeDigits(g.Before) + " -> " + words.ThreeDigits(g.After)
	if g.Time {
		text = compare.PairInWords(int64(math.Round(g.Before)), int64(math.Round(g.After)))
	}
	if math.IsNaN(g.Change.Ratio) {
		return text
	}
	c := compare.Change{Change: g.Change}
	return text + ", " + c.Interval(" (", ")")
}

// gaugeDecodeSteps gauges how long a decode step takes for the same work. The load of two captures is never quite the same, and
// moves the mean of all steps by more than a regression does. It returns nil if no steps of the two sides have comparable work.
func (d *Diff) gaugeDecodeSteps() *Gauge {
	i := slices.IndexFunc(d.Paces, func(p pace.Pace) bool { return p.Kind == replay.Decode && !p.OfTokens && p.N[0] > 0 })
	if i < 0 {
		return nil
	}
	p := &d.Paces[i]
	g := &Gauge{Before: p.Before, After: p.After, Time: true, Change: p.Change.Change, how: p.How, samples: p.Samples, counted: "decode step", perPiece: 1, n: p.N,
		pieces: [2]int{len(p.Samples[0].Pieces), len(p.Samples[1].Pieces)}}
	if !p.Annotated {
		g.perPiece = compare.MinRequests
	}
	if d.locate.captures() {
		g.count(d, Request, "", p.N)
	}
	return g
}

// sumOf adds up pieces.
func sumOf(pieces []significance.Piece) (sum significance.Piece) {
	for _, p := range pieces {
		sum.Sum, sum.Of = sum.Sum+p.Sum, sum.Of+p.Of
	}
	return sum
}

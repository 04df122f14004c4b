package diff

import (
	"cmp"
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/diff/compare"
	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/internal/significance"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/request"
)

// A Row compares the durations of one name in both captures.
type Row struct {
	diffKey
	Before, After         Stat
	P50, P99, Mean, Total compare.Change // Total is per request or step
	// Like is a kernel that only the other capture has, and that may be the same one under another name; "" if there is none.
	Like string
	// elsewhere reports that only one capture has the row, and that the captures record different spans.
	elsewhere bool
}

// A Stat describes the durations of one name in one capture, in ns. If there are none, N is 0.
type Stat struct {
	N        int64
	P50, P99 int64 // nearest rank
	Mean     int64 // in tenths of ns
	// PerUnit is the total per request or step, in tenths of ns; -1 if unknown: the rank has no steps.
	PerUnit int64
	Blocks  float64 // of the launches of a kernel, on average; 0 is unknown, or no kernel
}

// rate returns how many durations there are per request or step.
func (s *Stat) rate() float64 {
	if s.PerUnit < 0 || s.Mean == 0 {
		return 0
	}
	return float64(s.PerUnit) / float64(s.Mean)
}

// only reports whether one of the captures lacks the row.
func (r *Row) only() bool { return r.Before.N == 0 || r.After.N == 0 }

// Changed reports whether any number of the row changed significantly, and by enough to matter.
func (r *Row) Changed() bool { return slices.ContainsFunc(r.changes(), (*compare.Change).Matters) }

// changes returns the numbers that are compared.
func (r *Row) changes() []*compare.Change {
	return []*compare.Change{&r.P50, &r.P99, &r.Mean, &r.Total}
}

// Effect returns how much longer a request or step takes because of what changed, in tenths of ns: the largest effect of any number
// that changed. It ignores how much the total of a stage moved only because requests happen to be longer. For profiled rows it is how
// much the total moved: a mean that fell because many short durations were added makes nothing faster. It is 0 if nothing changed.
func (r *Row) Effect() int64 {
	if r.Kind.profiled() || r.only() {
		if r.Changed() {
			return r.Moved()
		}
		return 0
	}
	most := 0.0
	consider := func(c *compare.Change, effect float64) {
		if c.Matters() && math.Abs(effect) > math.Abs(most) {
			most = effect
		}
	}
	rate := r.After.rate()
	consider(&r.Mean, float64(r.After.Mean-r.Before.Mean)*rate)
	consider(&r.Total, float64(r.Moved()))
	consider(&r.P50, 10*float64(r.After.P50-r.Before.P50)*rate)
	consider(&r.P99, 10*float64(r.After.P99-r.Before.P99)*rate/100) // of one duration in a hundred
	return int64(most)
}

// Moved returns by how much the total per request or step grew, in tenths of ns; 0 if unknown.
func (r *Row) Moved() int64 {
	if min(r.Before.PerUnit, r.After.PerUnit) < 0 {
		return 0
	}
	return r.After.PerUnit - r.Before.PerUnit
}

// diffRows makes rows from what was collected.
type diffRows struct {
	sides       [2]*Collected
	pooled      [2]map[diffKey][]diffKey // by key without a rank: the keys of all its ranks
	tallies     [2]distribution.Tally
	approximate *int
}

func newDiffRows(sides [2]*Collected, approximate *int) *diffRows {
	r := &diffRows{sides: sides, approximate: approximate}
	for i, side := range sides {
		r.pooled[i] = map[diffKey][]diffKey{}
		for _, key := range side.keys() {
			all := diffKey{Kind: key.Kind, Name: key.Name}
			r.pooled[i][all] = append(r.pooled[i][all], key)
		}
	}
	return r
}

// rows returns a row for every name, or for every name and rank.
func (r *diffRows) rows(byRank bool) []Row {
	var keys []diffKey
	for i, side := range r.sides {
		if byRank {
			keys = append(keys, side.keys()...)
			continue
		}
		for key := range r.pooled[i] {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, diffKey.compare)
	keys = slices.Compact(keys)
	rows := make([]Row, len(keys))
	for i, key := range keys {
		rows[i] = r.row(key, func(side int) []diffKey {
			if byRank {
				return []diffKey{key}
			}
			return r.pooled[side][key]
		})
	}
	return rows
}

// ranks returns the rows of a name, one for each rank.
func (r *diffRows) ranks(of *Row) []Row {
	all := diffKey{Kind: of.Kind, Name: of.Name}
	keys := slices.Concat(r.pooled[0][all], r.pooled[1][all])
	slices.SortFunc(keys, diffKey.compare)
	var rows []Row
	for _, key := range slices.Compact(keys) {
		if key.Rank != "" {
			rows = append(rows, r.row(key, func(int) []diffKey { return []diffKey{key} }))
		}
	}
	return rows
}

// A diffMeasure describes a group of durations, with the uncertainty of its numbers.
type diffMeasure struct {
	Stat
	p50, p99, mean, total significance.Quantity
	work                  []significance.Piece // ns and units
	each                  []significance.Piece // ns and durations
	medians, tails        []significance.Piece // the p50 and p99 of each piece, if pieces are few or are captures
}

// row returns the comparison of both captures over some keys.
func (r *diffRows) row(key diffKey, keys func(side int) []diffKey) Row {
	before, rough := r.measureKeys(0, key, keys(0))
	after, rough2 := r.measureKeys(1, key, keys(1))
	if rough || rough2 {
		*r.approximate++
	}
	row := Row{diffKey: key, Before: before.Stat, After: after.Stat}
	row.compare(&before, &after, r.captures())
	return row
}

// measureKeys describes the durations that one side has under some keys, for a row with the given key.
func (r *diffRows) measureKeys(side int, key diffKey, keys []diffKey) (m diffMeasure, approximate bool) {
	var groups []*diffGroup
	for _, k := range keys {
		groups = append(groups, r.sides[side].groups[k]...)
	}
	return r.measure(side, groups, r.sides[side].units(key, keys))
}

// compare tests how the numbers changed. If pieces are so few that their scatter says little, it uses an exact test on the
// totals, means, and medians of pieces, but not on their 99th percentiles, as these depend on how many values a piece has.
func (r *Row) compare(before, after *diffMeasure, captures bool) {
	for i := range diffNumbers {
		n := &diffNumbers[i]
		if r.Kind.totalOnly() && n.name != "total" {
			n.change(r).Change = compare.UnknownChange
			continue
		}
		n.change(r).Change = n.compare(before, after, captures)
	}
	if (before.total.Value == 0) != (after.total.Value == 0) {
		r.Total.Change.P = compare.Appeared(before.work, after.work)
	}
}

// compare tests how one number changed. If pieces enter the test as one value each, it centers
// the result on the ratio of the values of the whole captures.
func (n *diffNumber) compare(before, after *diffMeasure, captures bool) significance.Change {
	how := n.how(before, after, captures)
	b, a := before.sample(n.name), after.sample(n.name)
	c := how.Compare(b, a)
	if how == significance.ByCapture || how == significance.ByRanks && n.name == "p50" {
		ratio := math.NaN()
		if b.Quantity.Value > 0 && a.Quantity.Value > 0 {
			ratio = a.Quantity.Value / b.Quantity.Value
		}
		return c.Around(ratio)
	}
	return c
}

// how chooses the test for a number.
func (n *diffNumber) how(before, after *diffMeasure, captures bool) significance.How {
	how := compare.ChooseTest(before.work, after.work, captures)
	if n.name == "p99" && how == significance.ByRanks {
		return significance.ByScatter
	}
	return how
}

// sample returns the observations of a number in a capture.
func (m *diffMeasure) sample(number string) significance.Sample {
	switch number {
	case "total":
		return significance.Sample{Quantity: m.total, Pieces: m.work}
	case "mean":
		return significance.Sample{Quantity: m.mean, Pieces: m.each}
	case "p50":
		return significance.Sample{Quantity: m.p50, Pieces: m.medians}
	}
	return significance.Sample{Quantity: m.p99, Pieces: m.tails}
}

// captures reports whether every piece is a whole capture.
func (r *diffRows) captures() bool { return r.sides[0].captures.Whole() }

// few reports whether one of the captures has too few pieces to measure their scatter.
func (r *diffRows) few() bool {
	return slices.ContainsFunc(r.sides[:], func(c *Collected) bool {
		return min(cmp.Or(c.side.RequestPieces, compare.MaxPieces), cmp.Or(c.side.StepPieces, compare.MaxPieces)) < significance.Few
	})
}

// measure describes the durations of some groups of one capture. units are the numbers of
// requests or steps in its pieces, nil if unknown.
func (r *diffRows) measure(side int, groups []*diffGroup, units []float64) (m diffMeasure, approximate bool) {
	m.PerUnit = -1
	var list []*distribution.Sample
	pieces, neighbors := len(units), significance.Apart
	for _, g := range groups {
		neighbors = max(neighbors, g.neighbors)
		pieces = max(pieces, len(g.pieces))
		for i := range g.pieces {
			g.pieces[i].Settle(r.sides[side].in)
			list = append(list, &g.pieces[i])
		}
	}
	t := &r.tallies[side]
	d, approximate := t.Of(list...)
	each := piecesOf(groups, pieces, func(s *distribution.Sample) float64 { return float64(s.Total()) })
	m.work, m.each = slices.Clone(each), each
	all := 0.0
	for i := range m.work {
		m.work[i].Of = 0
		if i < len(units) {
			m.work[i].Of = units[i]
			all += units[i]
		}
	}
	if all > 0 {
		m.PerUnit = int64(math.Round(10 * float64(d.Total) / all))
		m.total = neighbors.Mean(m.work)
	}
	if m.N = d.N; d.N == 0 {
		return m, approximate
	}
	m.Mean, m.mean, m.Blocks = d.MeanTenths, neighbors.Mean(each), blocksOf(groups)
	if r.few() || r.captures() {
		m.medians, m.tails = quantilesOf(t, groups, pieces)
		t.Of(list...)
	}
	m.P50, m.P99 = t.At(request.PercentileIndex(uint64(d.N), 50)), t.At(request.PercentileIndex(uint64(d.N), 99))
	m.p50 = quantileOf(t, 0.50, m.P50, groups, pieces, neighbors)
	m.p99 = quantileOf(t, 0.99, m.P99, groups, pieces, neighbors)
	return m, approximate
}

// piecesOf adds up, for each piece of a capture, the sum over some groups and the number of their values.
func piecesOf(groups []*diffGroup, n int, sum func(*distribution.Sample) float64) []significance.Piece {
	pieces := make([]significance.Piece, n)
	for _, g := range groups {
		for i := range g.pieces {
			pieces[i].Sum += sum(&g.pieces[i])
			pieces[i].Of += float64(g.pieces[i].Len())
		}
	}
	return pieces
}

// quantilesOf returns the p50 and the p99 of every piece that has values. It leaves other values in t than before.
func quantilesOf(t *distribution.Tally, groups []*diffGroup, n int) (medians, tails []significance.Piece) {
	medians, tails = make([]significance.Piece, n), make([]significance.Piece, n)
	for piece := range medians {
		var list []*distribution.Sample
		for _, g := range groups {
			if piece < len(g.pieces) {
				list = append(list, &g.pieces[piece])
			}
		}
		if d, _ := t.Of(list...); d.N > 0 {
			at := func(percent uint64) significance.Piece {
				return significance.Piece{Sum: float64(t.At(request.PercentileIndex(uint64(d.N), percent))), Of: 1}
			}
			medians[piece], tails[piece] = at(50), at(99)
		}
	}
	return medians, tails
}

// quantileOf returns the uncertainty of a quantile of the values of t, from how many values of every piece are at most the quantile.
func quantileOf(t *distribution.Tally, share float64, value int64, groups []*diffGroup, n int, neighbors significance.Neighbors) significance.Quantity {
	pieces := piecesOf(groups, n, func(s *distribution.Sample) float64 { return float64(s.AtMost(value)) })
	all := order.SumRows(pieces, func(p *significance.Piece) float64 { return p.Of })
	return neighbors.Quantile(share, pieces, int(all), func(i int) float64 {
		return float64(max(1, t.At(uint64(i)))) // 0 ns has no logarithm
	})
}

// matchRenamed finds kernels that only one capture has, and that the other one may call by another name: the same function with
// other template parameters, or as another profiler writes it. Of several candidates, it names the one with the largest total.
func (d *Diff) matchRenamed() {
	by := map[diffKey]*[2]*Row{} // by bare name: the largest kernel that is only before, and only after
	each := func(f func(r *Row, of *[2]*Row, side int)) {
		for i := range d.Rows {
			r := &d.Rows[i]
			if r.Kind != Kernel || !r.only() {
				continue
			}
			side := 0
			if r.Before.N == 0 {
				side = 1
			}
			f(r, order.Memo(by, diffKey{r.Kind, profile.BareName(r.Name), r.Rank}, func() *[2]*Row { return new([2]*Row) }), side)
		}
	}
	each(func(r *Row, of *[2]*Row, side int) {
		if of[side] == nil || distribution.Abs(of[side].Moved()) < distribution.Abs(r.Moved()) {
			of[side] = r
		}
	})
	each(func(r *Row, of *[2]*Row, side int) {
		if other := of[1-side]; other != nil {
			r.Like = other.Name
		}
	})
}

// Values returns the sorted durations of one kind and name in the capture, of all ranks, in
// ns. Kinds of which only totals have a meaning have none.
func (d *Collected) Values(kind Kind, name string) []int64 {
	var values []int64
	for key, groups := range d.groups {
		if key.Kind != kind || key.Name != name {
			continue
		}
		for _, g := range groups {
			for i := range g.pieces {
				g.pieces[i].Settle(d.in)
				g.pieces[i].Each(func(v int64) { values = append(values, v) })
			}
		}
	}
	slices.Sort(values)
	return values
}

package measured

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/diff/compare"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/internal/significance"
	"github.com/sgtrace/sgtrace/series"
)

// Compare compares what logs and metrics of both sides say.
func Compare(b, a *Loads, captures bool) (out []compare.Load) {
	var names []string
	for name := range b.loads {
		if a.loads[name] != nil && name != "" {
			names = append(names, name)
		}
	}
	for name, l := range b.loads { // count what happened on one side only as 0 on the other
		if name != "" && a.loads[name] == nil && b.order[name] >= int(series.KnownMetrics) && a.Any() {
			a.loads[name] = noneOf(l, a.pieces())
			names = append(names, name)
		}
	}
	for name, l := range a.loads {
		if name != "" && b.loads[name] == nil && a.order[name] >= int(series.KnownMetrics) && b.Any() {
			b.loads[name], b.order[name] = noneOf(l, b.pieces()), a.order[name]
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(x, y string) int { return cmp.Or(cmp.Compare(b.order[x], b.order[y]), cmp.Compare(x, y)) })
	for _, name := range names {
		if l := compare.Amounts(b.loads[name], a.loads[name], captures); l.Before > 0 || l.After > 0 {
			l.Follows = slices.Contains(followers, series.MetricID(b.order[name]))
			out = append(out, l)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(b.histograms)) {
		if l, ok := compareHistograms(name, b.histograms[name], a.histograms[name], captures); ok {
			out = append(out, l)
		}
	}
	return out
}

// Any reports whether logs or metrics have any loads.
func (m *Loads) Any() bool { return len(m.loads) > 0 }

// Extent returns the sum of the time that all levels and rates cover, in s.
func (m *Loads) Extent() (n float64) {
	for _, l := range m.loads {
		for _, p := range l.Pieces {
			n += p.Of
		}
	}
	return n
}

func (m *Loads) pieces() int {
	for _, l := range m.loads {
		return len(l.Pieces)
	}
	return 0
}

// noneOf returns a load like l of which nothing happened.
func noneOf(l *compare.Amount, pieces int) *compare.Amount {
	o := &compare.Amount{Name: l.Name, Pieces: make([]significance.Piece, pieces)}
	for i := range o.Pieces {
		o.Pieces[i].Of = 1
	}
	return o
}

// compareHistograms compares the share of observations above the bucket bound below which about
// nine of ten lay before. Buckets give that share exactly, but percentiles only between two bounds.
func compareHistograms(name string, before, after *histogramSum, captures bool) (l compare.Load, ok bool) {
	if before == nil || after == nil || !slices.Equal(before.bounds, after.bounds) {
		return l, false
	}
	n := len(before.bounds) - 1
	if before.counts[n] == 0 || after.counts[n] == 0 {
		return l, false
	}
	k, _ := slices.BinarySearchFunc(before.counts[:n], 0.9*before.counts[n], cmp.Compare[float64])
	k = min(k, n-1)
	above := func(h *histogramSum) *compare.Amount {
		o := &compare.Amount{Name: fmt.Sprintf("%s above %.4g s, %%", name, h.bounds[k]), Pieces: make([]significance.Piece, len(h.pieces))}
		for i, counts := range h.pieces {
			if counts != nil {
				o.Pieces[i] = significance.Piece{Sum: 100 * (counts[n] - counts[k]), Of: counts[n]}
			}
		}
		return o
	}
	l = compare.Amounts(above(before), above(after), captures)
	return l, l.Before > 0 || l.After > 0
}

// A percentileRow has the counts of one histogram family on both sides.
type percentileRow struct {
	name  string
	sides [2]*histogramSum
}

// Percentiles returns a table of the bucket bounds between which latency percentiles of both sides lie.
func Percentiles(before, after *Loads) *table.Table {
	var rows []percentileRow
	b, a := before.histograms, after.histograms
	for _, name := range slices.Sorted(maps.Keys(b)) {
		if a[name] != nil {
			rows = append(rows, percentileRow{name, [2]*histogramSum{b[name], a[name]}})
		}
	}
	fields := []table.Field[percentileRow]{table.TextColumn("of", "name of the histogram", func(r *percentileRow) string { return r.name })}
	for side, when := range [...]string{"before", "after"} {
		fields = append(fields, table.CountColumn("n "+when, "number of observations", func(r *percentileRow) int64 { return int64(r.sides[side].counts[len(r.sides[side].counts)-1] + 0.5) }))
		for _, p := range []float64{50, 99} {
			fields = append(fields,
				table.NsColumn(fmt.Sprintf("p%.0f above %s", p, when), "lower bound of the percentile: it is above this bucket bound", func(r *percentileRow) int64 { least, _ := r.sides[side].between(p); return series.Nanoseconds(least) }),
				table.NsColumn(fmt.Sprintf("p%.0f most %s", p, when), "upper bound of the percentile; empty if it is above the last bucket bound", func(r *percentileRow) int64 { _, most := r.sides[side].between(p); return series.Nanoseconds(most) }))
		}
	}
	return table.New("sgtrace.report.diff.percentiles/v1", "Percentiles between bounds of buckets", rows, fields)
}

func (h *histogramSum) between(p float64) (least, most float64) {
	least, most = series.Between(h.bounds, h.counts, p)
	return least, most
}

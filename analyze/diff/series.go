package diff

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/internal/significance"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// longestHold is how long a level holds of which nothing more is heard: servers that are idle log
// nothing, and metrics are scraped more often.
const longestHold = trace.Time(60e9)

// instants are counted, as a rate.
var instants = []series.InstantKind{series.Retraction, series.OutOfMemory, series.PeerLost, series.TransferFailed, series.Timeout, series.Unhealthy, series.Exception, series.Crash}

// measuredLoads has the measurements in logs and metrics of one side.
type measuredLoads struct {
	loads      map[string]*diffLoad
	order      map[string]int // in which they are told
	histograms map[string]*histogramSum
}

// A histogramSum is what a family of buckets counted on one side, by bound.
type histogramSum struct {
	bounds []float64
	counts []float64
	pieces [][]float64 // counts by piece
}

// collectSeries adds what logs and metrics say: levels by rank as long as they hold, and rates of all ranks
// together, in pieces of equal length.
func (d *Collected) collectSeries(s *series.Set, window *Capture) {
	from, to, ok := s.Bounds()
	if !ok {
		return
	}
	from, to = max(from, window.From), min(to, cmp.Or(window.To, to))
	if from >= to {
		return
	}
	d.side.widen(from, to)
	pieces := d.pieces(cutTime(from, to, maxPieces))
	c := &seriesPieces{Collected: d, set: s, from: from, to: to, pieces: pieces, length: float64(to-from) / 1e9 / float64(pieces.own()), roles: rolesOf(s), timed: map[string]bool{}}
	for i := range s.List {
		if id := s.List[i].Metric; id < series.KnownMetrics && id != series.Throttling && id != series.Xid {
			c.add(i, id)
		}
	}
	c.addRanks()
	c.addInstants()
	for _, h := range s.Histograms() {
		if s.InSeconds(h.Metric) {
			c.addHistogram(&h)
		}
	}
}

// rolesOf returns the roles of servers that have one.
func rolesOf(s *series.Set) map[string]bool {
	roles := map[string]bool{}
	for i := range s.Servers {
		if role := s.Servers[i].Role; role != "" {
			roles[role] = true
		}
	}
	return roles
}

// seriesPieces adds what the set of a capture says to pieces of its time.
type seriesPieces struct {
	*Collected
	set      *series.Set
	from, to trace.Time
	pieces   *diffPieces
	length   float64 // of a piece, s
	roles    map[string]bool
	timed    map[string]bool // rates whose pieces have their time
}

func (c *seriesPieces) inside(t trace.Time) bool { return t >= c.from && t < c.to }

// named returns the load of a name, which is told in the order of rank.
func (c *seriesPieces) named(name string, rank int) *diffLoad {
	m := &c.measured
	if m.loads == nil {
		m.loads, m.order, m.histograms = map[string]*diffLoad{}, map[string]int{}, map[string]*histogramSum{}
	}
	return order.Memo(m.loads, name, func() *diffLoad {
		m.order[name] = rank
		return &diffLoad{name, make([]significance.Piece, c.pieces.n())}
	})
}

// rate returns the load of something that is counted: its pieces have the time of the capture once.
func (c *seriesPieces) rate(name string, rank int, seconds float64) *diffLoad {
	l := c.named(name, rank)
	if !c.timed[name] {
		c.timed[name] = true
		for k := range c.pieces.own() {
			l.pieces[c.pieces.first+k].Of += c.length / seconds
		}
	}
	return l
}

// add adds a series.
func (c *seriesPieces) add(i int, id series.MetricID) {
	x, m := &c.set.List[i], c.set.Metric(id)
	name := c.set.Labeled(m.Name, x.Label)
	if role := c.set.Servers[c.set.Places[x.Place].Server].Role; len(c.roles) > 1 && role != "" {
		name += " of " + role + " servers"
	}
	var last series.Sample
	hold := func(until trace.Time) {
		until = min(until, last.Time+longestHold)
		if last.Time != 0 && until > last.Time && c.inside(last.Time) {
			p := &c.named(withUnit(name, m.Unit), int(id)).pieces[c.pieces.at(last.Time)]
			seconds := float64(until-last.Time) / 1e9
			p.Sum, p.Of = p.Sum+last.Value*seconds, p.Of+seconds
		}
	}
	for v := range c.set.Each(i) {
		switch m.Kind {
		case series.Gauge:
			hold(v.Time)
		case series.Mean: // over the time since the sample before it
			if last.Time != 0 && v.Time > last.Time && v.Time-last.Time <= longestHold && c.inside(v.Time) {
				p := &c.named(withUnit(name, m.Unit), int(id)).pieces[c.pieces.at(v.Time)]
				seconds := float64(v.Time-last.Time) / 1e9
				p.Sum, p.Of = p.Sum+v.Value*seconds, p.Of+seconds
			}
		case series.Amount:
			if c.inside(v.Time) {
				c.rate(withUnit(name, cmp.Or(m.Unit, "number")+"/s"), int(id), 1).pieces[c.pieces.at(v.Time)].Sum += v.Value
			}
		}
		last = v
	}
	if m.Kind == series.Gauge {
		hold(c.to)
	}
}

func withUnit(name, unit string) string {
	if unit == "" {
		return name
	}
	return name + ", " + unit
}

// addInstants counts what happened, by its kind.
func (c *seriesPieces) addInstants() {
	for i := range c.set.Instants {
		x := &c.set.Instants[i]
		k := slices.Index(instants, x.Kind)
		if k < 0 || !c.inside(x.Time) {
			continue
		}
		c.rate(x.Kind.String()+" lines, number/min", int(series.KnownMetrics)+k, 60).pieces[c.pieces.at(x.Time)].Sum += float64(max(1, x.Count))
	}
}

// addHistogram adds what a family of buckets counted.
func (c *seriesPieces) addHistogram(h *series.Histogram) {
	name := c.set.Labeled(c.set.HistogramName(h.Metric), h.Label)
	c.named("", 0) // makes the maps
	sum := order.Memo(c.measured.histograms, name, func() *histogramSum {
		return &histogramSum{bounds: h.Bounds, counts: make([]float64, len(h.Bounds)), pieces: make([][]float64, c.pieces.n())}
	})
	if !slices.Equal(sum.bounds, h.Bounds) {
		return
	}
	c.set.Grown(h, func(from, to trace.Time, counts []float64) {
		if from != 0 && !c.inside(from) || to > c.to {
			return
		}
		at := c.pieces.at(to)
		if sum.pieces[at] == nil {
			sum.pieces[at] = make([]float64, len(counts))
		}
		for k, n := range counts {
			sum.counts[k] += n
			sum.pieces[at][k] += n
		}
	})
}

// compareMeasured compares what logs and metrics of both sides say.
func compareMeasured(before, after *Collected) (out []Load) {
	b, a := &before.measured, &after.measured
	var names []string
	for name := range b.loads {
		if a.loads[name] != nil && name != "" {
			names = append(names, name)
		}
	}
	for name, l := range b.loads { // what happened on one side only
		if name != "" && a.loads[name] == nil && b.order[name] >= int(series.KnownMetrics) && after.measures() {
			a.loads[name] = l.none(after.measuredPieces())
			names = append(names, name)
		}
	}
	for name, l := range a.loads {
		if name != "" && b.loads[name] == nil && a.order[name] >= int(series.KnownMetrics) && before.measures() {
			b.loads[name], b.order[name] = l.none(before.measuredPieces()), a.order[name]
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(x, y string) int { return cmp.Or(cmp.Compare(b.order[x], b.order[y]), cmp.Compare(x, y)) })
	for _, name := range names {
		if l := compareLoad(b.loads[name], a.loads[name], before.captures > 0); l.Before > 0 || l.After > 0 {
			l.follows = slices.Contains(followers, series.MetricID(b.order[name]))
			out = append(out, l)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(b.histograms)) {
		if l, ok := compareHistograms(name, b.histograms[name], a.histograms[name], before.captures > 0); ok {
			out = append(out, l)
		}
	}
	return out
}

// measures reports whether logs or metrics of a side say anything.
func (d *Collected) measures() bool { return len(d.measured.loads) > 0 }

func (d *Collected) measuredPieces() int {
	for _, l := range d.measured.loads {
		return len(l.pieces)
	}
	return 0
}

// none returns the same load where nothing of it happened.
func (l *diffLoad) none(pieces int) *diffLoad {
	o := &diffLoad{l.name, make([]significance.Piece, pieces)}
	for i := range o.pieces {
		o.pieces[i].Of = 1
	}
	return o
}

// compareHistograms compares how many observations were above the bound of a bucket that most of
// those before were below: buckets tell that exactly, and percentiles only between two bounds.
func compareHistograms(name string, before, after *histogramSum, captures bool) (l Load, ok bool) {
	if before == nil || after == nil || !slices.Equal(before.bounds, after.bounds) {
		return l, false
	}
	n := len(before.bounds) - 1
	if before.counts[n] == 0 || after.counts[n] == 0 {
		return l, false
	}
	k, _ := slices.BinarySearchFunc(before.counts[:n], 0.9*before.counts[n], cmp.Compare[float64])
	k = min(k, n-1)
	above := func(h *histogramSum) *diffLoad {
		o := &diffLoad{fmt.Sprintf("%s above %.4g s, %%", name, h.bounds[k]), make([]significance.Piece, len(h.pieces))}
		for i, counts := range h.pieces {
			if counts != nil {
				o.pieces[i] = significance.Piece{Sum: 100 * (counts[n] - counts[k]), Of: counts[n]}
			}
		}
		return o
	}
	l = compareLoad(above(before), above(after), captures)
	return l, l.Before > 0 || l.After > 0
}

// A percentileRow is between which bounds of buckets percentiles of a family are on both sides.
type percentileRow struct {
	name  string
	sides [2]*histogramSum
}

// Percentiles has what buckets of metrics tell of latencies: between which bounds they are.
func (d *Diff) Percentiles() *table.Table {
	var rows []percentileRow
	b, a := d.locate.sides[0].measured.histograms, d.locate.sides[1].measured.histograms
	for _, name := range slices.Sorted(maps.Keys(b)) {
		if a[name] != nil {
			rows = append(rows, percentileRow{name, [2]*histogramSum{b[name], a[name]}})
		}
	}
	fields := []table.Field[percentileRow]{table.TextColumn("of", "what was counted in buckets", func(r *percentileRow) string { return r.name })}
	for side, when := range [...]string{"before", "after"} {
		fields = append(fields, table.CountColumn("n "+when, "observations", func(r *percentileRow) int64 { return int64(r.sides[side].counts[len(r.sides[side].counts)-1] + 0.5) }))
		for _, p := range []float64{50, 99} {
			fields = append(fields,
				table.NsColumn(fmt.Sprintf("p%.0f above %s", p, when), "the percentile is above this bound of a bucket", func(r *percentileRow) int64 { least, _ := r.sides[side].between(p); return series.Nanoseconds(least) }),
				table.NsColumn(fmt.Sprintf("p%.0f most %s", p, when), "and at most this one; nothing is above the last bound", func(r *percentileRow) int64 { _, most := r.sides[side].between(p); return series.Nanoseconds(most) }))
		}
	}
	return table.New("sgtrace.report.diff.percentiles/v1", "Percentiles between bounds of buckets", rows, fields)
}

func (h *histogramSum) between(p float64) (least, most float64) {
	least, most = series.Between(h.bounds, h.counts, p)
	return least, most
}

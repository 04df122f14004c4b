package telemetry

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/sgtrace/sgtrace/analyze/load"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
	"github.com/sgtrace/sgtrace/trace/naming"
)

// Metrics is metrics over time.
type Metrics struct {
	Set   *series.Set
	Grid  *load.Grid
	opt   Options
	list  []int // indexes into Set.List, sorted by place, then by metric
	names *naming.Names
}

// MeasureMetrics selects the series to show, and the grid of their time.
func MeasureMetrics(set *series.Set, opt Options) *Metrics {
	m := &Metrics{Set: set, opt: opt, names: set.Names()}
	ranks := map[int32]bool{} // places whose metrics are in the timeline of [Logged]
	for i := range set.List {
		if x := &set.List[i]; slices.Contains(series.Ranked, x.Metric) && set.N(i) > 0 {
			ranks[x.Place] = true
		}
	}
	var from, to trace.Time
	var gaps []float64
	for i := range set.List {
		x := &set.List[i]
		kind := set.Metric(x.Metric).Kind
		// Amounts of ranks are in the totals of their batches.
		if ranks[x.Place] && (isTimed(x.Metric) || x.Metric < series.KnownMetrics && kind == series.Amount) {
			continue
		}
		buckets := kind == series.Bucket
		seen, last := 0, trace.Time(0)
		for p := range set.Each(i) {
			if !opt.Inside(p.Time) {
				continue
			}
			if from == 0 || p.Time < from {
				from = p.Time
			}
			if to = max(to, p.Time); last != 0 && p.Time > last {
				gaps = append(gaps, float64(p.Time-last))
			}
			seen, last = seen+1, p.Time
		}
		if seen > 0 && !buckets {
			m.list = append(m.list, i)
		}
	}
	var recorded []request.Interval
	if from > 0 {
		recorded = append(recorded, request.Interval{From: from, To: to + 1})
	}
	bucket := opt.Bucket
	if bucket == 0 {
		bucket = time.Duration(load.ChooseBucket(int64(to - from)))
		for float64(bucket) < usual(gaps) { // else most buckets would be empty
			bucket *= 2
		}
	}
	m.Grid = load.NewGrid(recorded, bucket)
	slices.SortStableFunc(m.list, func(a, b int) int {
		x, y := &set.List[a], &set.List[b]
		return cmp.Or(strings.Compare(m.where(x.Place), m.where(y.Place)), cmp.Compare(x.Place, y.Place), cmp.Compare(x.Metric, y.Metric))
	})
	return m
}

// usual returns the median; 0 of nothing.
func usual(list []float64) float64 {
	if len(list) == 0 {
		return 0
	}
	slices.Sort(list)
	return list[len(list)/2]
}

// Empty reports whether there are no metrics besides those of [Logged].
func (m *Metrics) Empty() bool { return len(m.list) == 0 && len(m.histograms()) == 0 }

// where returns the name of Set.Places[place].
func (m *Metrics) where(place int32) string { return m.Set.NameOf(place, m.names) }

// name returns the name of a series, with labels.
func (m *Metrics) name(i int) string {
	x := &m.Set.List[i]
	return m.Set.Labeled(m.Set.Metric(x.Metric).Name, x.Label)
}

// unit returns the unit of a series over time. Counters become rates.
func (m *Metrics) unit(i int) string {
	of := m.Set.Metric(m.Set.List[i].Metric)
	if of.Kind == series.Counter {
		return of.Unit + "/s"
	}
	return of.Unit
}

// A metricPoint sums up the samples in a bucket.
type metricPoint struct {
	n                int
	sum, least, most float64
}

func (p metricPoint) mean() float64 { return p.sum / float64(p.n) }

// isCode reports whether the values of a metric are codes, which have no mean.
func isCode(m series.MetricID) bool { return m == series.Throttling || m == series.Xid }

// points returns a series by bucket. Of a counter, it is the growth per second between samples.
func (m *Metrics) points(i int) []metricPoint {
	out := make([]metricPoint, m.Grid.N())
	counts := m.Set.Metric(m.Set.List[i].Metric).Kind == series.Counter
	var last series.Sample
	for p := range m.Set.Each(i) {
		if !m.opt.Inside(p.Time) {
			continue
		}
		value := p.Value
		if counts {
			before := last
			if last = p; before.Time == 0 || p.Time <= before.Time {
				continue
			}
			value = series.Growth(before.Value, value) / (float64(p.Time-before.Time) / 1e9)
		}
		b := m.Grid.Of(p.Time)
		if b < 0 || b >= len(out) {
			continue
		}
		x := &out[b]
		if x.n == 0 {
			x.least, x.most = value, value
		}
		x.n++
		x.sum, x.least, x.most = x.sum+value, min(x.least, value), max(x.most, value)
	}
	return out
}

// A metricRow is a series in a bucket.
type metricRow struct {
	series, bucket int
	metricPoint
}

// Report has a row for each interval and each series with samples in it.
func (m *Metrics) Report() *table.Table {
	var rows []metricRow
	for _, i := range m.list {
		for b, p := range m.points(i) {
			if p.n > 0 {
				rows = append(rows, metricRow{i, b, p})
			}
		}
	}
	slices.SortStableFunc(rows, func(a, b metricRow) int { return cmp.Compare(a.bucket, b.bucket) })
	fields := []table.Field[metricRow]{
		table.TimeColumn("time", "start of the interval", func(r *metricRow) trace.Time { return m.Grid.Start(r.bucket) }),
		table.TextColumn("where", "GPU, rank, server, or host", func(r *metricRow) string { return m.where(m.Set.List[r.series].Place) }),
		table.TextColumn("metric", "name of the metric, with distinguishing labels in parentheses", func(r *metricRow) string { return m.name(r.series) }),
		table.NumberColumn("mean", "mean of the samples; for counters, of their rate per second; empty for codes", func(r *metricRow) float64 {
			if isCode(m.Set.List[r.series].Metric) {
				return math.NaN()
			}
			return r.mean()
		}),
		table.NumberColumn("least", "lowest sample", func(r *metricRow) float64 { return r.least }),
		table.NumberColumn("most", "highest sample", func(r *metricRow) float64 { return r.most }),
		table.TextColumn("of", "unit of the values; empty for counts", func(r *metricRow) string { return m.unit(r.series) }),
		table.CountColumn("n", "number of samples", func(r *metricRow) int64 { return int64(r.n) }),
	}
	return table.New("sgtrace.report.metrics.timeline/v1", "What metrics say over time", rows, fields).Stay("time", "where", "metric", "most").Leave("n", "least")
}

// fewOthers is the largest number of producer-specific metrics drawn for a place. Only those that change are drawn.
const fewOthers = 6

// Write draws metrics over time as text, and writes the percentiles of histograms.
func (m *Metrics) Write(w io.Writer, style table.Style) error {
	d, left := m.Drawing()
	if len(d.Blocks) > 0 {
		if err := d.Write(w, style); err != nil {
			return err
		}
	}
	if left > 0 {
		if _, err := fmt.Fprintf(w, "%s more: --table metrics.timeline\n", words.Counted(left, "metric")); err != nil {
			return err
		}
	}
	if t := m.Percentiles(); t.Len() > 0 {
		return t.Write(w, table.FormatText, style)
	}
	return nil
}

// Drawing has a block for each place with metrics. left is the number of metrics left out.
func (m *Metrics) Drawing() (d *load.Drawing, left int) {
	d = &load.Drawing{Buckets: m.Grid.N(), Time: func(b int) string { return words.At(m.Grid.Start(b), "15:04:05") }}
	for from := 0; from < len(m.list); {
		to, place := from, m.Set.List[m.list[from]].Place
		var list []load.Curve
		others := 0
		for ; to < len(m.list) && m.Set.List[m.list[to]].Place == place; to++ {
			i := m.list[to]
			c, changes := m.curve(i)
			if m.Set.List[i].Metric >= series.KnownMetrics {
				if !changes {
					continue
				}
				if others++; others > fewOthers {
					left++
					continue
				}
			}
			list = append(list, c)
		}
		if len(list) > 0 {
			d.Add(m.where(place), list)
		}
		from = to
	}
	return d, left
}

// curve returns a series by bucket, and whether it changes.
func (m *Metrics) curve(i int) (c load.Curve, changes bool) {
	c = load.Curve{Name: m.name(i), Unit: m.unit(i), Size: 1, Values: make([]float64, m.Grid.N())}
	first := math.NaN()
	for b, p := range m.points(i) {
		c.Values[b] = math.NaN()
		if p.n == 0 {
			continue
		}
		c.Values[b] = p.mean()
		if isCode(m.Set.List[i].Metric) {
			c.Values[b] = p.most
		}
		if math.IsNaN(first) {
			first = c.Values[b]
		}
		changes = changes || c.Values[b] != first
	}
	holdBetween(c.Values)
	return c, changes
}

// holdBetween holds each value until the next one, if values come less often than once per bucket: a scrape stands
// for the time until the next. Gaps longer than usual stay unknown.
func holdBetween(values []float64) {
	var known []int
	var apart []float64
	for b, v := range values {
		if math.IsNaN(v) {
			continue
		}
		if n := len(known); n > 0 {
			apart = append(apart, float64(b-known[n-1]))
		}
		known = append(known, b)
	}
	const few, longer = 3, 2
	if len(apart) < few {
		return // too few gaps to know what is usual
	}
	most := longer * usual(apart)
	for k := 1; k < len(known); k++ {
		if from, to := known[k-1], known[k]; float64(to-from) <= most {
			for b := from + 1; b < to; b++ {
				values[b] = values[from]
			}
		}
	}
}

package telemetry

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// A bucketCounts is what a histogram counted over a period.
type bucketCounts struct {
	Name     string
	Where    string     // "all" sums up all places with the same bounds
	From, To trace.Time // From 0 is since the server started
	Bounds   []float64  // upper bounds of the buckets, in s
	counts   []float64
}

// histograms returns the histograms of durations.
func (m *Metrics) histograms() []series.Histogram {
	return slices.DeleteFunc(m.Set.Histograms(), func(h series.Histogram) bool { return !m.Set.InSeconds(h.Metric) })
}

// counted sums up histograms: if every is set, by interval and place, else all with the same bounds.
func (m *Metrics) counted(every bool) (list []*bucketCounts) {
	type key struct {
		what   string
		since  bool // since the server started
		bucket int
	}
	at := map[key]*bucketCounts{}
	for _, h := range m.histograms() {
		name, where := m.Set.Labeled(m.Set.HistogramName(h.Metric), h.Label), "all"
		if every {
			where = m.where(h.Place)
		}
		what := fmt.Sprint(name, "\x00", where, h.Bounds)
		m.Set.Grown(&h, func(from, to trace.Time, counts []float64) {
			if !m.opt.Inside(to) || from != 0 && !m.opt.Inside(from) {
				return
			}
			k := key{what, from == 0, 0}
			if every {
				k.bucket = m.Grid.Of(to)
			}
			c := at[k]
			if c == nil {
				c = &bucketCounts{Name: name, Where: where, From: from, Bounds: h.Bounds, counts: make([]float64, len(counts))}
				at[k] = c
				list = append(list, c)
			}
			c.From, c.To = min(c.From, from), max(c.To, to)
			for k := range counts {
				c.counts[k] += counts[k]
			}
		})
	}
	return slices.DeleteFunc(list, func(c *bucketCounts) bool { return c.N() < 1 })
}

// N returns the number of observations.
func (c *bucketCounts) N() int64 { return int64(c.counts[len(c.counts)-1] + 0.5) }

// between returns the bounds of a percentile in s. most is +Inf above the last bucket.
func (c *bucketCounts) between(p float64) (least, most float64) {
	least, most = series.Between(c.Bounds, c.counts, p)
	return least, most
}

// Say says in words what a percentile is: "between 1.0 and 2.5 s", "at most 0.1 s", "above 30 s".
func (c *bucketCounts) Say(p float64) string {
	least, most := c.between(p)
	number := func(v float64) string { return strings.TrimSuffix(fmt.Sprintf("%.6g", v), ".") }
	switch {
	case math.IsInf(most, 1):
		return fmt.Sprintf("above %s s", number(least))
	case least == 0:
		return fmt.Sprintf("at most %s s", number(most))
	}
	return fmt.Sprintf("between %s and %s s", number(least), number(most))
}

// fewForP99 is the fewest observations for a p99 that is not just the maximum.
const fewForP99 = 100

// PercentileWords says in one line what histograms of latencies show; "" without any.
func (m *Metrics) PercentileWords() string {
	var parts []string
	for _, name := range []series.MetricID{series.TTFT, series.ITL, series.E2E, series.QueueTime} {
		for _, c := range m.counted(false) {
			if c.Name != m.Set.HistogramName(name) {
				continue
			}
			p := 99.0
			if c.N() < fewForP99 {
				p = 50
			}
			text := fmt.Sprintf("%s p%.0f %s", c.Name, p, c.Say(p))
			if c.From == 0 {
				text += " since the server started"
			}
			parts = append(parts, text)
			break
		}
	}
	return strings.Join(parts, ", ")
}

// Percentiles has a row for each interval, metric, and place. Percentiles are between the bounds of buckets.
func (m *Metrics) Percentiles() *table.Table {
	list := m.counted(true)
	slices.SortStableFunc(list, func(a, b *bucketCounts) int { return int(max(-1, min(1, a.To-b.To))) })
	fields := []table.Field[*bucketCounts]{
		table.TimeField("from", "previous scrape; empty if counts are since the server started", func(c **bucketCounts) (trace.Time, bool) { return (*c).From, (*c).From != 0 }),
		table.TimeColumn("time", "last scrape of the interval", func(c **bucketCounts) trace.Time { return (*c).To }),
		table.TextColumn("of", "name of the histogram", func(c **bucketCounts) string { return (*c).Name }),
		table.TextColumn("where", "rank or server", func(c **bucketCounts) string { return (*c).Where }),
		table.CountColumn("n", "number of observations", func(c **bucketCounts) int64 { return (*c).N() }),
	}
	for _, p := range []float64{50, 90, 99} {
		name := fmt.Sprintf("p%.0f", p)
		fields = append(fields,
			table.NsColumn(name+"_above", "lower bound of the percentile: it is above this bucket bound", func(c **bucketCounts) int64 { least, _ := (*c).between(p); return series.Nanoseconds(least) }),
			table.NsColumn(name+"_most", "upper bound of the percentile; empty if it is above the last bucket bound", func(c **bucketCounts) int64 { _, most := (*c).between(p); return series.Nanoseconds(most) }))
	}
	return table.New("sgtrace.report.metrics.percentiles/v1", "Percentiles between bounds of buckets", list, fields).Stay("time", "of", "where", "p99_above", "p99_most").Leave("from", "p90_above", "p90_most")
}

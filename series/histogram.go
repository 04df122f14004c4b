package series

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/trace"
)

// A Histogram is the buckets of one family at one place: how many observations were at most each bound.
// Counts grow with time.
type Histogram struct {
	Metric MetricID
	Place  int32
	Label  trace.Sym
	Bounds []float64 // upper bounds of its buckets, sorted; the last one is +Inf
	list   []int     // index into Set.List of each bucket
}

// Histograms returns the histograms of all places, by metric, then by place. Families without a +Inf bucket are left out.
func (s *Set) Histograms() (all []Histogram) {
	type key struct {
		metric MetricID
		place  int32
		label  trace.Sym
	}
	at := map[key]int{}
	for i := range s.List {
		x := &s.List[i]
		if s.Metric(x.Metric).Kind != Bucket || s.N(i) == 0 {
			continue
		}
		k := key{x.Metric, x.Place, x.Label}
		n := order.At(at, &all, k, func() Histogram { return Histogram{Metric: x.Metric, Place: x.Place, Label: x.Label} })
		all[n].list = append(all[n].list, i)
	}
	all = slices.DeleteFunc(all, func(h Histogram) bool {
		slices.SortFunc(h.list, func(a, b int) int { return cmp.Compare(s.List[a].Most, s.List[b].Most) })
		return !math.IsInf(s.List[h.list[len(h.list)-1]].Most, 1)
	})
	for i := range all {
		for _, k := range all[i].list {
			all[i].Bounds = append(all[i].Bounds, s.List[k].Most)
		}
	}
	slices.SortStableFunc(all, func(a, b Histogram) int {
		return cmp.Or(cmp.Compare(a.Metric, b.Metric), cmp.Compare(a.Place, b.Place))
	})
	return all
}

// HistogramName returns the name of a family of buckets.
func (s *Set) HistogramName(m MetricID) string {
	return strings.TrimSuffix(s.Metric(m).Name, "_bucket")
}

// InSeconds reports whether the observations of a histogram are durations in seconds.
func (s *Set) InSeconds(m MetricID) bool {
	return m < KnownMetrics || strings.HasSuffix(s.HistogramName(m), "_seconds")
}

// Grown calls f for each pair of consecutive scrapes, with the number of observations between them by
// cumulative bucket. With only one scrape, the counts are since the server started, and from is 0.
func (s *Set) Grown(h *Histogram, f func(from, to trace.Time, counts []float64)) {
	columns := order.Each(h.list, func(i int) []Sample { return slices.Collect(s.Each(i)) })
	last := columns[len(columns)-1]
	at := make([]int, len(columns))
	before, now := make([]float64, len(columns)), make([]float64, len(columns))
	grown := make([]float64, len(columns))
	for n, scrape := range last {
		for k, c := range columns {
			for at[k] < len(c) && c[at[k]].Time <= scrape.Time {
				now[k] = c[at[k]].Value
				at[k]++
			}
		}
		again := n > 0 && now[len(now)-1] < before[len(before)-1] // the process was restarted
		for k := range now {
			grown[k] = now[k]
			if !again {
				grown[k] -= before[k]
			}
			if k > 0 { // several processes in one, or truncated scrapes
				grown[k] = max(grown[k], grown[k-1])
			}
		}
		switch {
		case n > 0:
			f(last[n-1].Time, scrape.Time, grown)
		case len(last) == 1:
			f(0, scrape.Time, now)
		}
		copy(before, now)
	}
}

// Between returns the bounds of percentile p of the observations in cumulative buckets: it is greater
// than least, but not than most. If it is above the last finite bound, most is +Inf.
func Between(bounds, counts []float64, p float64) (least, most float64) {
	n := counts[len(counts)-1]
	if n <= 0 {
		return math.NaN(), math.NaN()
	}
	rank := math.Ceil(p / 100 * n)
	for k, c := range counts {
		if c >= rank {
			return least, bounds[k]
		}
		least = bounds[k]
	}
	return least, math.Inf(1)
}

// Nanoseconds converts a bound from seconds to ns; -1 is unbounded.
func Nanoseconds(seconds float64) int64 {
	if math.IsInf(seconds, 0) || math.IsNaN(seconds) || seconds > 1e9 {
		return -1
	}
	return int64(math.Round(seconds * 1e9))
}

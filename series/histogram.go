package series

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/trace"
)

// A Histogram are the buckets of one family at one place: of how many observations were at most so
// much. What it counts grows with time.
type Histogram struct {
	Metric MetricID
	Place  int32
	Label  trace.Sym
	Bounds []float64 // of its buckets, in order; the last one is +Inf
	list   []int     // index into Set.List of each
}

// Histograms returns those of all places, by metric, then by place. One without a bucket for all is none.
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

// InSeconds reports whether a family of buckets is of durations.
func (s *Set) InSeconds(m MetricID) bool {
	return m < KnownMetrics || strings.HasSuffix(s.HistogramName(m), "_seconds")
}

// Grown calls f for each two scrapes that follow each other, with how many observations came between
// them, by bucket: at most so much, as the buckets have it. With one scrape only, it is all since
// the server started, and from is 0.
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
		again := n > 0 && now[len(now)-1] < before[len(before)-1] // a process that began anew
		for k := range now {
			grown[k] = now[k]
			if !again {
				grown[k] -= before[k]
			}
			if k > 0 { // of several processes in one, or scrapes that were cut
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

// Between returns the bounds of a percentile p of n observations, of counts by bucket: it is above
// least and at most most. All that is known of one above the last bound is that; most is +Inf then.
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

// Nanoseconds returns a bound of a histogram of seconds, in ns; -1 is one without an end.
func Nanoseconds(seconds float64) int64 {
	if math.IsInf(seconds, 0) || math.IsNaN(seconds) || seconds > 1e9 {
		return -1
	}
	return int64(math.Round(seconds * 1e9))
}

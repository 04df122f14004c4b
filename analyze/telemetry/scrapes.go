package telemetry

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// secondsOf are the suffixes of the counters with the total seconds of a histogram's observations.
var secondsOf = map[series.MetricID]string{
	series.TTFT: "time_to_first_token_seconds_sum", series.ITL: "inter_token_latency_seconds_sum", series.TPOT: "time_per_output_token_seconds_sum",
	series.E2E: "e2e_request_latency_seconds_sum", series.QueueTime: "queue_time_seconds_sum",
}

// counts holds the histograms and counters of a server.
type counts struct {
	histograms []series.Histogram
	counters   []int // indexes into Set.List
}

// countsOf returns the counts of each server.
func countsOf(set *series.Set) []counts {
	of := make([]counts, len(set.Servers))
	for _, h := range set.Histograms() {
		c := &of[set.Places[h.Place].Server]
		c.histograms = append(c.histograms, h)
	}
	for i := range set.List {
		if x := &set.List[i]; set.Metric(x.Metric).Kind == series.Counter {
			c := &of[set.Places[x.Place].Server]
			c.counters = append(c.counters, i)
		}
	}
	return of
}

// A Scraped is what was counted between two scrapes: N observations, which took Took seconds in all.
type Scraped struct {
	From, To trace.Time
	N, Took  float64
}

func byEnd(a, b Scraped) int { return cmp.Compare(a.To, b.To) }

// CountOf returns the number of observations in several intervals.
func CountOf(list []Scraped) float64 {
	return order.SumRows(list, func(x *Scraped) float64 { return x.N })
}

// MeanOf returns the mean over several intervals, in s; NaN without an observation.
func MeanOf(list []Scraped) float64 {
	n, took := 0.0, 0.0
	for i := range list {
		n, took = n+list[i].N, took+list[i].Took
	}
	return took / n
}

// A scrapes is what a meter's histograms of a metric counted, in order of time, and the place of one of them. About
// says that the counter of total seconds is missing, so that each observation counts as the middle of its bucket.
type scrapes struct {
	List  []Scraped
	Place int32
	About bool
}

// latencies are the metrics whose histograms findings use.
var latencies = []series.MetricID{series.TTFT, series.ITL, series.TPOT, series.E2E, series.QueueTime}

// scrapesOf returns what the histograms of each meter counted, by metric.
func (l *Logged) scrapesOf() map[Meter]map[series.MetricID]scrapes {
	of := map[Meter]map[series.MetricID]scrapes{}
	for server, meters := range l.meters() {
		for _, m := range append(slices.Clone(meters), WholeOf(int32(server))) {
			if of[m] != nil {
				continue
			}
			of[m] = map[series.MetricID]scrapes{}
			for _, metric := range latencies {
				if x := l.scrapesOfOne(m, metric); len(x.List) > 0 {
					of[m][metric] = x
				}
			}
		}
	}
	return of
}

// Scrapes returns what the histograms of a meter counted. It is shared and must not be modified.
func (l *Logged) Scrapes(m Meter, metric series.MetricID) scrapes {
	return l.scraped()[m][metric]
}

func (l *Logged) scrapesOfOne(m Meter, metric series.MetricID) (x scrapes) {
	var list []Scraped
	for _, h := range l.counts()[m.Server].histograms {
		if h.Metric == metric && m.holds(h.Place) {
			one, about := l.observed(m, &h, secondsOf[metric])
			list, x.Place, x.About = append(list, one...), h.Place, x.About || about
		}
	}
	x.List = together(list)
	return x
}

// observed returns what a histogram counted. seconds is the suffix of the counter with the total seconds; about
// reports that there is no such counter.
func (l *Logged) observed(m Meter, h *series.Histogram, seconds string) (list []Scraped, about bool) {
	sum := l.counter(m, func(x *series.Series) bool {
		return x.Place == h.Place && x.Label == h.Label && strings.HasSuffix(l.Set.Metric(x.Metric).Name, seconds)
	})
	k := 0
	l.Set.Grown(h, func(from, to trace.Time, counts []float64) {
		if from == 0 || !l.Opt.Inside(from) || !l.Opt.Inside(to) || counts[len(counts)-1] <= 0 {
			return
		}
		one := Scraped{From: from, To: to, N: counts[len(counts)-1]}
		for ; k < len(sum) && sum[k].To < to; k++ {
		}
		if k < len(sum) && sum[k].To == to {
			one.Took = sum[k].N
		} else {
			one.Took = middles(h.Bounds, counts)
		}
		list = append(list, one)
	})
	return list, sum == nil
}

// together merges what several histograms of one server counted, such as one for each model, in order of time.
func together(list []Scraped) (out []Scraped) {
	slices.SortStableFunc(list, byEnd)
	for _, one := range list {
		if n := len(out); n > 0 && out[n-1].To == one.To {
			out[n-1].N, out[n-1].Took = out[n-1].N+one.N, out[n-1].Took+one.Took
			continue
		}
		out = append(out, one)
	}
	return out
}

// A Part is a part of the work for requests, such as a stage, with how often and how long it ran. About is as in
// [scrapes].
type Part struct {
	Name  string
	List  []Scraped
	About bool
}

// partsOf are the histograms of parts of requests, without the prefix of the engine.
var partsOf = []string{"per_stage_req_latency_seconds", "kv_transfer_latency_ms", "kv_transfer_alloc_ms", "kv_transfer_bootstrap_ms", "grammar_compilation_time_seconds",
	"prefill_delayer_wait_seconds", "eviction_duration_seconds", "load_back_duration_seconds", "request_prefill_time_seconds", "request_decode_time_seconds", "nixl_xfer_time_seconds", "kv_transfer_latency_seconds"}

// Parts returns the parts of requests that the histograms of a meter measure, by stage if they have that label.
func (l *Logged) Parts(m Meter) (list []Part) {
	for _, h := range l.counts()[m.Server].histograms {
		name := l.Set.HistogramName(h.Metric)
		if !slices.Contains(partsOf, bare(name)) || !m.holds(h.Place) {
			continue
		}
		one, about := l.observed(m, &h, name+"_sum")
		if strings.HasSuffix(name, "_ms") {
			for i := range one {
				one[i].Took /= 1e3
			}
		}
		if stage, ok := labelOf(l.Set.Syms.Name(h.Label), "stage"); ok {
			name = stage
		}
		k := slices.IndexFunc(list, func(p Part) bool { return p.Name == name })
		if k < 0 {
			k, list = len(list), append(list, Part{Name: name})
		}
		list[k].List, list[k].About = append(list[k].List, one...), list[k].About || about
	}
	for i := range list {
		list[i].List = together(list[i].List)
	}
	return list
}

// labelOf returns the value of a label in a list of labels.
func labelOf(list, name string) (value string, ok bool) {
	for _, x := range strings.Split(list, ",") {
		if value, ok = strings.CutPrefix(x, name+"="); ok {
			return value, ok
		}
	}
	return "", false
}

// middles returns the total of observations if each took the middle of its bucket, in s; above the last bound, that
// bound.
func middles(bounds, counts []float64) (took float64) {
	least, before := 0.0, 0.0
	for k, most := range bounds {
		at := (least + most) / 2
		if math.IsInf(most, 1) {
			at = least
		}
		took += (counts[k] - before) * at
		least, before = most, counts[k]
	}
	return took
}

// counter returns the growth of some counters of a meter between scrapes; nil if there are none.
func (l *Logged) counter(m Meter, is func(*series.Series) bool) (list []Scraped) {
	for _, i := range l.counts()[m.Server].counters {
		if !m.holds(l.Set.List[i].Place) || !is(&l.Set.List[i]) {
			continue
		}
		var last series.Sample
		for s := range l.Set.Each(i) {
			if last.Time != 0 && s.Time > last.Time {
				list = append(list, Scraped{From: last.Time, To: s.Time, N: series.Growth(last.Value, s.Value)})
			}
			last = s
		}
	}
	slices.SortStableFunc(list, byEnd)
	return list
}

// bare returns the name of a metric without the prefix of its engine, "sglang:" or "trtllm_".
func bare(name string) string { return name[strings.IndexAny(name, ":_")+1:] }

// Intervals returns the growth, between scrapes, of the counters of a meter with this name, given without the prefix
// of the engine.
func (l *Logged) Intervals(m Meter, name string) []Scraped {
	return l.counter(m, func(x *series.Series) bool { return bare(l.Set.Metric(x.Metric).Name) == name })
}

// Counted returns the growth of the counters of a meter with this name, by bucket.
func (l *Logged) Counted(m Meter, name string) (out []float64) {
	return l.ByBucket(l.Intervals(m, name))
}

// CountedAt is Counted for one place, and only for counters with a label such as "category=idle"; "" is all.
func (l *Logged) CountedAt(place int32, name, label string) (out []float64) {
	return l.ByBucket(l.counter(Meter{l.Set.Places[place].Server, place}, func(x *series.Series) bool {
		return bare(l.Set.Metric(x.Metric).Name) == name && (label == "" || l.Set.HasLabel(x.Label, label))
	}))
}

// ByBucket sums up intervals by the bucket of the earlier scrape; nil if none is on the grid.
func (l *Logged) ByBucket(list []Scraped) (out []float64) {
	for _, x := range list {
		if b := l.Grid.Of(x.From); b >= 0 && b < l.Grid.N() {
			if out == nil {
				out = make([]float64, l.Grid.N())
			}
			out[b] += x.N
		}
	}
	return out
}

// Within returns the intervals that begin in [from, to).
func Within(list []Scraped, from, to trace.Time) []Scraped {
	a := slices.IndexFunc(list, func(x Scraped) bool { return x.From >= from })
	if a < 0 {
		return nil
	}
	b := a
	for b < len(list) && list[b].From < to {
		b++
	}
	return list[a:b]
}

// Rates returns the growth per second of the counters of a meter with this name, by bucket; NaN in buckets without
// data, nil if there are no counters.
func (l *Logged) Rates(m Meter, name string) (out []float64) {
	for _, x := range l.Intervals(m, name) {
		if out == nil {
			out = slices.Repeat([]float64{math.NaN()}, l.Grid.N())
		}
		for b := max(0, l.Grid.Of(x.From)); b < len(out) && l.Grid.Start(b) < x.To; b++ {
			out[b] = x.N / (float64(x.To-x.From) / 1e9)
		}
	}
	return out
}

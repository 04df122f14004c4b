package telemetry

import (
	"cmp"
	"iter"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/load"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
	"github.com/sgtrace/sgtrace/trace/naming"
)

// Logged is what servers logged, and what scrapes say about them.
type Logged struct {
	Set  *series.Set
	Grid *load.Grid
	// From and To bound the lines of batches; 0 without lines.
	From, To trace.Time
	Ranks    []Rank
	Events   []Event

	Names   *naming.Names
	Opt     Options
	byPlace [][]int // series of each place, as indexes into Set.List
	// counts returns the histograms and counters of each server, which several findings use.
	counts func() []counts
	// meters returns the meters of each server.
	meters func() [][]Meter
	// scraped returns what the histograms of each meter counted.
	scraped func() map[Meter]map[series.MetricID]scrapes
	// stays returns the number of requests on all ranks, summed over buckets.
	stays func() float64
	// Within is the precision of time stamps, in ns.
	Within int64
}

// A Rank is a place that logs batches. It stands for all ranks that share its DP rank.
type Rank struct {
	Where  place.Location
	Server int32 // index into Set.Servers
	// Lines is the number of batches that it logged, and From and To bound their times.
	Lines    int64
	From, To trace.Time
	Place    int32                       // index into Set.Places
	Points   map[series.MetricID][]Point // by bucket of Grid
	// Stretches is what it did between its lines, and Decodes their number before any were merged.
	Stretches []Stretch
	Decodes   int
	// TakenIn returns the requests that it takes in, and the tokens of their prompts, by bucket, which several
	// findings use. They must not be modified.
	TakenIn func() (seqs, tokens []float64)
	// Holds returns bounds on the size of its KV cache, in thousands of tokens; 0 and infinity are unknown.
	Holds func() (least, most float64)
	// Took returns the sum over Stretches of the time per token, in s.
	Took func() float64
	// Scraped says that only metrics mention the rank: a log under another name may be from the same server.
	Scraped bool
	// Graphs is the number of batches that ran as a graph, and Plain the number of others.
	Graphs, Plain int64
}

// A Point sums up the samples in a bucket.
type Point struct {
	N         int
	Sum, Most float64
}

// Mean returns the mean of the samples; NaN without samples.
func (p Point) Mean() float64 {
	if p.N == 0 {
		return math.NaN()
	}
	return p.Sum / float64(p.N)
}

// Options select what is measured.
type Options struct {
	Bucket   time.Duration // 0 chooses a length
	From, To trace.Time    // 0 is no bound
}

// minBucket is the shortest bucket that findings use, because time stamps have whole seconds, and a decode server
// logs every few seconds.
const minBucket = 2 * time.Second

// Measure sums up all inputs.
func Measure(set *series.Set, opt Options) *Logged {
	l := &Logged{Set: set, Opt: opt, counts: sync.OnceValue(func() []counts { return countsOf(set) })}
	l.meters, l.scraped, l.stays = sync.OnceValue(l.metersOf), sync.OnceValue(l.scrapesOf), sync.OnceValue(l.allRequests)
	l.bounds(opt)
	l.grid(opt)
	l.Names = set.Names()
	l.byPlace = make([][]int, len(set.Places))
	for i := range set.List {
		p := set.List[i].Place
		l.byPlace[p] = append(l.byPlace[p], i)
	}
	l.measureRanks(opt)
	l.group(opt)
	return l
}

// SeriesOf returns the series of a place, as indexes into Set.List.
func (l *Logged) SeriesOf(place int32) []int { return l.byPlace[place] }

// Inside reports whether a time is in the selected window.
func (o *Options) Inside(t trace.Time) bool {
	return (o.From == 0 || t >= o.From) && (o.To == 0 || t <= o.To)
}

func (l *Logged) bounds(opt Options) {
	for i := range l.Set.List {
		if !slices.Contains(series.Ranked, l.Set.List[i].Metric) {
			continue
		}
		if from, to, within := l.Set.Extent(i); from != 0 && opt.Inside(from) && opt.Inside(to) {
			if l.From == 0 || from < l.From {
				l.From = from
			}
			l.To, l.Within = max(l.To, to), max(l.Within, within)
			continue
		}
		for x := range l.Set.Each(i) {
			if !opt.Inside(x.Time) {
				continue
			}
			if l.From == 0 || x.Time < l.From {
				l.From = x.Time
			}
			l.To, l.Within = max(l.To, x.Time), max(l.Within, x.Within())
		}
	}
}

func (l *Logged) grid(opt Options) {
	bucket := opt.Bucket
	if bucket == 0 {
		const most = 240
		bucket = minBucket
		for int64(bucket) < int64(l.To-l.From)/most {
			bucket *= 2
		}
		bucket = max(bucket, l.period())
	}
	var recorded []request.Interval
	if l.From > 0 {
		recorded = append(recorded, request.Interval{From: l.From, To: l.To + 1})
	}
	l.Grid = load.NewGrid(recorded, bucket)
}

// Start returns when a bucket begins, within From and To.
func (l *Logged) Start(b int) trace.Time { return min(max(l.Grid.Start(b), l.From), l.To) }

// period returns the time between lines or scrapes that come at regular intervals, such as those of vLLM and
// Prometheus, and stand for the time between them. It is 0 if those of some place are irregular.
func (l *Logged) period() time.Duration {
	const few, most = 4, 1000
	shortest := time.Duration(0)
	for i := range l.Set.List {
		if !slices.Contains(series.Ranked, l.Set.List[i].Metric) || l.Set.N(i) <= few {
			continue
		}
		var gaps []float64
		last := trace.Time(0)
		for x := range l.Set.Each(i) {
			if !l.Opt.Inside(x.Time) {
				continue
			}
			if last != 0 && x.Time > last {
				gaps = append(gaps, float64(x.Time-last))
			}
			if last = x.Time; len(gaps) == most {
				break
			}
		}
		usual, even := Middle(gaps), 0
		for _, g := range gaps {
			if math.Abs(g-usual) <= usual/4 {
				even++
			}
		}
		if len(gaps) < few || 10*even < 9*len(gaps) {
			return 0
		}
		if d := time.Duration(usual).Round(time.Second); shortest == 0 || d < shortest {
			shortest = d
		}
	}
	return shortest
}

// Role returns the role of a server: unified if unknown.
func Role(s *series.Server) request.Role {
	if s.Role == "" {
		return request.Unified
	}
	if r, ok := request.ParseRole(s.Role); ok {
		return r
	}
	return request.Other
}

// Host returns the name of a server.
func Host(s *series.Server) string { return s.Called() }

// Where returns the location of Set.Places[i].
func (l *Logged) Where(i int32) place.Location {
	p := &l.Set.Places[i]
	s := &l.Set.Servers[p.Server]
	return place.At(Role(s), Host(s), p.Rank, l.Names)
}

// measureRanks sums up the samples of each rank by bucket.
func (l *Logged) measureRanks(opt Options) {
	of := map[int32]int{}
	for i := range l.Set.List {
		if s := &l.Set.List[i]; slices.Contains(series.Ranked, s.Metric) && l.Set.N(i) > 0 && s.Label == 0 {
			if _, ok := of[s.Place]; !ok {
				of[s.Place] = len(l.Ranks)
				r := Rank{Where: l.Where(s.Place), Server: l.Set.Places[s.Place].Server, Points: map[series.MetricID][]Point{}, Place: s.Place, Scraped: true}
				if r.Stretches, r.Decodes = l.stretches(s.Place); r.Decodes == 0 {
					r.Stretches = l.scrapedStretches(s.Place)
				}
				l.Ranks = append(l.Ranks, r)
			}
		}
	}
	for i := range l.Set.List {
		s := &l.Set.List[i]
		if k, ok := of[s.Place]; ok && s.Label == 0 && l.Set.Metric(s.Metric).Kind != series.Bucket {
			l.sum(&l.Ranks[k], i, opt)
		}
	}
	for i := range l.Ranks {
		l.Ranks[i].countLines()
	}
	l.Ranks = slices.DeleteFunc(l.Ranks, func(r Rank) bool { return r.Lines == 0 })
	l.Ranks = slices.DeleteFunc(slices.Clone(l.Ranks), l.repeats)
	slices.SortStableFunc(l.Ranks, func(a, b Rank) int {
		return cmp.Or(cmp.Compare(a.Where.Role, b.Where.Role), strings.Compare(a.Where.Host, b.Where.Host), a.Where.Rank.Compare(b.Where.Rank))
	})
	for i := range l.Ranks {
		r := &l.Ranks[i]
		r.TakenIn = sync.OnceValues(func() (seqs, tokens []float64) { return l.takenIn(r) })
		r.Holds = sync.OnceValues(func() (least, most float64) { return l.poolSize(r) })
		r.Took = sync.OnceValue(func() float64 { return order.SumRows(r.Stretches, func(x *Stretch) float64 { return x.Token }) })
		if !r.Scraped || r.Has(series.Generation) {
			continue
		}
		if m, own := l.MeterOf(r); own {
			r.Stretches = l.countedStretches(m)
		}
	}
}

// repeats reports whether a scraped rank repeats the metrics of another TP or PP rank of its DP rank
// (--enable-metrics-for-all-schedulers). One for each DP rank is enough.
func (l *Logged) repeats(r Rank) bool {
	return r.Scraped && slices.ContainsFunc(l.Ranks, func(o Rank) bool {
		return o.Scraped && o.Server == r.Server && o.Where.Rank.DP == r.Where.Rank.DP && o.Where.Rank.Compare(r.Where.Rank) < 0
	})
}

// sum adds the samples of a series to a rank.
func (l *Logged) sum(r *Rank, i int, opt Options) {
	metric := l.Set.List[i].Metric
	points := order.Memo(r.Points, metric, func() []Point { return make([]Point, l.Grid.N()) })
	for x := range l.Set.Each(i) {
		if !opt.Inside(x.Time) {
			continue
		}
		r.Scraped = r.Scraped && x.Line() == 0
		if metric == series.Graphed {
			if x.Value == 1 {
				r.Graphs++
			} else {
				r.Plain++
			}
		}
		if r.From == 0 || x.Time < r.From {
			r.From = x.Time
		}
		r.To = max(r.To, x.Time)
		if b := l.Grid.Of(x.Time); b >= 0 && b < len(points) {
			p := &points[b]
			p.N++
			p.Sum += x.Value
			if p.N == 1 || x.Value > p.Most {
				p.Most = x.Value
			}
		}
	}
}

// countLines counts the lines of batches, or else the scrapes, by a metric that each has.
func (r *Rank) countLines() {
	for _, m := range [...]series.MetricID{series.Running, series.NewTokens, series.Queued, series.KVUsage} {
		if _, n := r.total(m); n > 0 {
			r.Lines = int64(n)
			return
		}
	}
}

// Has reports whether a rank logs a metric.
func (r *Rank) Has(m series.MetricID) bool { return r.Points[m] != nil }

// total returns the sum of all samples of a metric, and their number.
func (r *Rank) total(m series.MetricID) (sum float64, n int) {
	for _, p := range r.Points[m] {
		sum, n = sum+p.Sum, n+p.N
	}
	return sum, n
}

// Mean returns the mean of all samples of a metric; NaN without samples.
func (r *Rank) Mean(m series.MetricID) float64 {
	sum, n := r.total(m)
	if n == 0 {
		return math.NaN()
	}
	return sum / float64(n)
}

// Most returns the largest sample of a metric; NaN without samples.
func (r *Rank) Most(m series.MetricID) float64 {
	most := math.NaN()
	for _, p := range r.Points[m] {
		if p.N > 0 && !(most >= p.Most) {
			most = p.Most
		}
	}
	return most
}

// Total returns the sum of the samples of a metric; NaN without samples.
func (r *Rank) Total(m series.MetricID) float64 {
	sum, n := r.total(m)
	if n == 0 {
		return math.NaN()
	}
	return sum
}

// Curve returns a metric by bucket: its mean, or its sum if it is an amount. Buckets without samples are NaN, or 0
// for an amount.
func (l *Logged) Curve(r *Rank, m series.MetricID) []float64 {
	out := make([]float64, l.Grid.N())
	amount := l.Set.Metric(m).Kind == series.Amount
	points := r.Points[m]
	for b := range out {
		switch {
		case points == nil && !amount:
			out[b] = math.NaN()
		case points == nil:
		case amount:
			out[b] = points[b].Sum
		default:
			out[b] = points[b].Mean()
		}
	}
	return out
}

// Seconds returns the length of the time in which batches were logged.
func (l *Logged) Seconds() float64 { return float64(l.To-l.From) / 1e9 }

// MostQueued returns the largest number of requests that waited.
func (r *Rank) MostQueued() float64 { return r.Most(series.Queued) }

// Pool names the fullest pool of the KV cache. Models with states or sliding windows have separate pools for these.
func (r *Rank) Pool() string {
	switch most := r.Most(series.KVUsage); {
	case r.Most(series.MambaUsage) >= most:
		return "pool of states (Mamba)"
	case r.Most(series.SwaUsage) >= most:
		return "KV cache for sliding windows"
	}
	return "KV cache"
}

// poolSize returns bounds on the size of a rank's KV cache, in thousands of tokens, from the most tokens in it and the usage in whole percent
// at that moment. Lines of prefills have only the usage, so its highest value may be of another moment.
func (l *Logged) poolSize(r *Rank) (least, most float64) {
	const half = 0.5 // of a percent
	var kv series.Sample
	usage := math.NaN()
	for x := range l.samplesOf(r, series.KVTokens) {
		if x.Value > kv.Value {
			kv = x
		}
	}
	for x := range l.samplesOf(r, series.KVUsage) {
		if x.Time == kv.Time && x.Line() == kv.Line() {
			usage = x.Value
		}
	}
	if !(usage > half) || !(kv.Value > 0) {
		return 0, math.Inf(1)
	}
	return kv.Value / (usage + half) / 10 * 0.95, kv.Value / (usage - half) / 10 * 1.05
}

// samplesOf yields the samples of a rank's metric.
func (l *Logged) samplesOf(r *Rank, m series.MetricID) iter.Seq[series.Sample] {
	return func(yield func(series.Sample) bool) {
		for _, i := range l.byPlace[r.Place] {
			if s := &l.Set.List[i]; s.Metric != m || s.Label != 0 {
				continue
			}
			for x := range l.Set.Each(i) {
				if l.Opt.Inside(x.Time) && !yield(x) {
					return
				}
			}
		}
	}
}

// Zero returns v, or 0 if it is unknown.
func Zero(v float64) float64 {
	if math.IsNaN(v) {
		return 0
	}
	return v
}

// Middle returns the median of the values that are not NaN.
func Middle(list []float64) float64 {
	s := slices.DeleteFunc(slices.Clone(list), math.IsNaN)
	if len(s) == 0 {
		return math.NaN()
	}
	return order.SortedMedian(s)
}

// JudgedLogs counts the logs that were searched. Records of requests don't count.
func (l *Logged) JudgedLogs(what string) finding.Check {
	j := finding.Check{What: what, Of: "log", N: l.Set.Logs(), Needed: 1}
	if j.N == 0 {
		j.Reason = "no input is the log of a server"
	}
	return j
}

// Full is the usage, in %, from which a KV cache has no room for another request of usual size: SGLang reserves a
// part for future tokens of running requests.
const Full = 90

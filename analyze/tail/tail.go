package tail

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/sgtrace/sgtrace/analyze/cause"
	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/metric"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/transfer"
	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/internal/parallel"
	"github.com/sgtrace/sgtrace/request"
)

// Metrics are the metrics whose tail is explained, in the order of reports.
var Metrics = metric.At(metric.Headline)

// ParseMetric returns the metric of Metrics with the given name.
func ParseMetric(text string) (*metric.Metric, error) {
	if m := metric.Named(text); slices.Contains(Metrics, m) {
		return m, nil
	}
	return nil, fmt.Errorf("no tail of %q; there are %s", text, strings.Join(metric.Names(Metrics), ", "))
}

// ParsePercent parses the percentile at which a tail begins: "p99", "p90", or just the number.
func ParsePercent(text string) (int, error) {
	n, err := strconv.Atoi(strings.TrimPrefix(strings.ToLower(text), "p"))
	if err != nil || n < minPercent || n > 99 {
		return 0, fmt.Errorf("no tail at %q: want p%d to p99", text, minPercent)
	}
	return n, nil
}

// Schema is the schema of the table that compares slow and usual requests.
const Schema = "sgtrace.report.tail/v1"

// minPercent is the lowest percentile at which a tail may begin: beyond those it is compared with, p40 to p60.
const minPercent = 61

// Options say what to compare. The zero value compares the p99 of all metrics.
type Options struct {
	Percent int              // percentile at which the tail begins, 61 to 99; 0 is 99
	Metrics []*metric.Metric // nil is Metrics
	Slowest int              // number of requests listed per metric; 0 is 10
	All     bool             // every cause has a row; else minor causes share one
}

// A Tail explains why the slow requests of a set are slow: how they differ, cause by cause, from those around the
// median, and which of them something delayed.
type Tail struct {
	Options        Options
	Comparisons    []*Comparison       // one per metric
	Delays         *Delays             // nil if there are too few requests
	Disaggregation *Disaggregation     // nil without prefill/decode disaggregation
	Transfers      *transfer.Transfers // nil if there are too few KV transfers
	Stalls         *Stalls             // nil if no gaps between tokens were compared
	Common         *Traits
	// Sizes is how long prefill and decode usually take by number of tokens.
	Sizes cause.Sizes
	// ClocksMoved says that requests prove the clocks of hosts to differ, so that they were aligned.
	ClocksMoved bool
	// Implausible is the number of finished requests left out because their times cannot be right.
	Implausible int
	// Incomplete is the number of finished requests left out because they have missing spans.
	Incomplete int

	Peers *place.Groups

	set *request.Set
	// List holds the finished requests, and Usual their usual times. Unanswered holds the requests without an answer.
	List, Unanswered []cause.Attribution
	Usual            cause.Usual
	// oneHome says, for each cause, that all requests have it on the same rank.
	oneHome [cause.Count]bool
}

// New compares slow requests with those around the median.
func New(peers *place.Groups, o Options) *Tail {
	o.Percent = cmp.Or(o.Percent, 99)
	o.Percent = min(max(o.Percent, minPercent), 99)
	if o.Metrics == nil {
		o.Metrics = Metrics
	}
	o.Slowest = cmp.Or(o.Slowest, 10)
	s, a := peers.Ranks.Set, cause.NewAttributor(peers)
	t := &Tail{Options: o, ClocksMoved: s.Clocks.Moves(), set: s, List: a.All()}
	for i := range s.AllRequests() {
		switch r := &s.Requests[i]; {
		case r.Status != request.Finished:
		case !r.Complete():
			t.Incomplete++
		case !cause.Attributable(s, r):
			t.Implausible++
		}
	}
	t.Sizes, t.Peers = cause.SplitSizes(s, t.List, peers.Len()), peers
	t.Usual = cause.UsualOf(t.List) // after SplitSizes, which changes them
	t.oneHome = oneHomes(t.List)
	t.Comparisons = make([]*Comparison, len(o.Metrics))
	steps := []func(){
		func() { t.Delays = t.delays() },
		func() { t.Disaggregation = t.disaggregation() },
		func() { t.Common = findTraits(s, t.List, peers) },
		func() { t.Transfers = transfer.Find(s, t.List) },
		func() { t.Unanswered = a.Unanswered(&t.Sizes) },
	}
	for i, m := range o.Metrics {
		steps = append(steps, func() {
			if m != metric.ITL {
				t.Comparisons[i] = t.compareRequests(a, m)
				return
			}
			gaps, longest := t.compareGaps(a)
			if t.Comparisons[i] = gaps; gaps.N >= finding.FewCompared {
				t.Stalls = t.stalls(a, gaps.Median, longest)
			}
		})
	}
	parallel.All(steps...)
	return t
}

// A Comparison compares the slow values of a metric with those around its median.
type Comparison struct {
	Metric        *metric.Metric
	Percent       int
	N             int   // number of values: requests, or gaps between tokens
	Value, Median int64 // ns: the percentile, and the p50; nearest rank
	Slow, Around  Side  // Slow.N is 0 if there are too few values to compare
	// Added is the sum, in ns, over the causes that take longer in the slow values: the difference between the means,
	// or more if other causes take less.
	Added int64
	// Rows are the causes that take time on either side, the largest increase first. Their means add up to those of
	// the sides exactly, in ns.
	Rows []Difference
	// Slowest lists the slowest requests, slowest first; nil for gaps.
	Slowest []SlowRequest
	// Batches is the mean number of requests in decode batches, of the slow requests and of those around the median.
	// It is 0 if unknown, or if decoding was not slower per token.
	Batches [2]float64
}

// A Side is one of the two sets of values that are compared.
type Side struct {
	N        int
	From, To int64 // smallest and largest, ns
	Mean     int64 // rounded to the nearest ns
}

// A Difference is what one cause contributes to the difference between the sides.
type Difference struct {
	Cause        cause.Cause
	Slow, Around int64   // ns: mean over each side
	More         int64   // Slow - Around
	Low, High    int64   // 95 % confidence interval of More, ns
	Share        float64 // More/Added, 0 to 1; 0 if the cause takes less time in the slow values
	Main         int     // number of slow requests in which it is the main cause; request.Unknown for gaps
	Where        Place
	StandsOut    bool // it is a finding

	beyond map[int]int64 // of causes that stand out: ns beyond the usual, by slow request, an index into Set.Requests
}

// A Place is the rank with the largest part of something, and its share.
type Place struct {
	Proc  int // index into Set.Procs; None is unknown
	Name  string
	Share float64
	Only  bool // it could be on no other rank
}

// fewSlow is the smallest size of a side. Values are compared only if there are at least FewCompared.
const (
	fewSlow = 5
)

// timeOf returns the time of a that m measures, by cause.
func timeOf(a *cause.Attribution, m *metric.Metric) *cause.Causes {
	if m == metric.TTFT {
		return &a.TTFT
	}
	return &a.E2E
}

// valueOf returns metric m of request a, or request.Unknown.
func (t *Tail) valueOf(a *cause.Attribution, m *metric.Metric) int64 {
	return m.Of(&t.set.Requests[a.Request].Metrics)
}

// compareRequests compares a metric with one value per request.
func (t *Tail) compareRequests(a *cause.Attributor, m *metric.Metric) *Comparison {
	c := &Comparison{Metric: m, Percent: t.Options.Percent}
	type owned struct {
		value int64
		owner int32
	}
	order := memory.Make[owned](len(t.List))[:0]
	for i := range cause.Each(t.List) {
		if value := t.valueOf(&t.List[i], m); value >= 0 {
			order = append(order, owned{value, int32(i)})
		}
	}
	slices.SortFunc(order, func(x, y owned) int { return cmp.Or(cmp.Compare(x.value, y.value), cmp.Compare(x.owner, y.owner)) })
	list, sorted := memory.Make[int32](len(order)), memory.Make[int64](len(order))
	for i, x := range order {
		list[i], sorted[i] = x.owner, x.value
	}
	slow, from, to, ok := c.choose(sorted)
	if !ok {
		return c
	}
	side := func(list []int32) *tailGroup {
		g := new(tailGroup)
		if len(list) > fewResample { // else the order decides which units resampling draws
			list = slices.Sorted(slices.Values(list)) // in the order of the table, which may be in a file
		}
		picked := memory.Picked(len(list), len(t.List), attributed)
		for _, owner := range list {
			memory.Touch(picked)
			g.add(tailUnit{owner: owner, n: 1, sum: *timeOf(&t.List[owner], m)})
		}
		return g
	}
	g, around := side(list[slow:]), side(list[from:to])
	t.compare(c, g, around)
	c.countMain(g)
	c.judge()
	t.noteBeyond(c, g)
	if c.tells(cause.Decode) {
		c.Batches = [2]float64{t.meanBatch(a, g), t.meanBatch(a, around)}
	}
	for i := range min(t.Options.Slowest, len(list)) {
		c.Slowest = append(c.Slowest, t.slowRequest(c, &t.List[list[len(list)-1-i]]))
	}
	return c
}

// choose sets what c says about its sorted values, and chooses the sides: slow is the index from which values are
// slow, at the percentile, or lower if fewer than five would be slow; [from, to) are the values from p40 to p60. ok
// is false if there are too few values.
func (c *Comparison) choose(sorted []int64) (slow, from, to int, ok bool) {
	if c.N = len(sorted); c.N == 0 {
		return 0, 0, 0, false
	}
	c.Value, c.Median = request.NearestRank(sorted, c.Percent), request.NearestRank(sorted, 50)
	if c.N < finding.FewCompared {
		return 0, 0, 0, false
	}
	rank := func(percent int) int { return request.PercentileIndex(c.N, percent) }
	slow, from, to = min(rank(c.Percent), c.N-fewSlow), rank(40), rank(60)+1
	c.Slow = Side{N: c.N - slow, From: sorted[slow], To: sorted[c.N-1]}
	c.Around = Side{N: to - from, From: sorted[from], To: sorted[to-1]}
	return slow, from, to, true
}

// compareGaps compares the gaps between tokens. It takes all of them to find out which are slow, but only those on a
// side are then divided by cause. So memory holds one number per gap, and two sums per request. longest is the
// longest gap of each request, in ns.
func (t *Tail) compareGaps(a *cause.Attributor) (c *Comparison, longest []int64) {
	c, longest = &Comparison{Metric: metric.ITL, Percent: t.Options.Percent}, memory.Make[int64](len(t.List))
	var mu sync.Mutex
	var sorted []int64
	a.Parallel(len(t.List), func(w *cause.Walk, i int) {
		lengths := make([]int64, 0, 64)
		w.GapLengthsOf(t.List[i].Request, func(ns int64) {
			lengths, longest[i] = append(lengths, ns), max(longest[i], ns)
		})
		mu.Lock()
		defer mu.Unlock()
		sorted = memory.Append(sorted, lengths...)
	})
	distribution.Summarize(sorted) // sorts them
	if _, _, _, ok := c.choose(sorted); !ok {
		return c, longest
	}
	slow, around := memory.Make[tailUnit](len(t.List)), memory.Make[tailUnit](len(t.List))
	isSlow := func(ns int64) bool { return ns >= c.Slow.From }
	isAround := func(ns int64) bool { return ns >= c.Around.From && ns <= c.Around.To }
	isCompared := func(ns int64) bool { return isSlow(ns) || isAround(ns) }
	a.Parallel(len(t.List), func(w *cause.Walk, i int) {
		slow[i].owner, around[i].owner = int32(i), int32(i)
		w.GapsOf(t.List[i].Request, isCompared, func(g *cause.GapSplit) {
			switch ns := int64(g.To - g.From); {
			case isSlow(ns):
				slow[i].addGap(g)
			case isAround(ns):
				around[i].addGap(g)
			}
		})
	})
	var sides [2]tailGroup
	for i := range cause.Each(t.List) {
		sides[0].add(slow[i])
		sides[1].add(around[i])
	}
	if sides[1].n == 0 { // nearly all gaps are equally long
		c.Slow, c.Around = Side{}, Side{}
		return c, longest
	}
	c.Slow.N, c.Around.N = int(sides[0].n), int(sides[1].n) // equal gaps are all on one side
	t.compare(c, &sides[0], &sides[1])
	c.judge()
	t.noteBeyond(c, &sides[0])
	return c, longest
}

// placeOf returns the location of proc.
func (t *Tail) placeOf(proc int32) place.Location {
	return place.NewLocation(t.set, int(proc))
}

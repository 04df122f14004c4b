package tail

import (
	"cmp"
	"math"
	"slices"
	"unsafe"

	"github.com/sgtrace/sgtrace/analyze/cause"
	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/internal/parallel"
	"github.com/sgtrace/sgtrace/internal/significance"
	"github.com/sgtrace/sgtrace/request"
)

// A traitMetric is a duration by which requests are judged slow, whatever their size.
type traitMetric struct {
	Name string // "ttft"
	Of   string // in a sentence: "to the first token"
	// least is how much longer a trait must make the median, as a fraction of the other requests' median.
	least float64
	// took returns the duration that users see, and beyond the part of it that size does not explain, in ns; NaN is
	// unknown. weight returns how often a request has the duration.
	took, beyond func(*request.Metrics, *cause.Attribution) float64
	weight       func(*request.Metrics) int64
	// divided returns the duration divided by cause; nil if causes do not divide this metric.
	divided func(*cause.Attribution) *cause.Causes
	// causes that the duration may consist of.
	causes []cause.Cause
}

// metrics are the time to the first token, from the start of the outermost span, and the time per further token. The
// whole time of a request is not compared, because it depends on the length of the answer.
var metrics = []*traitMetric{
	{
		Name: "ttft", Of: "to the first token", least: 0.5,
		took: func(_ *request.Metrics, a *cause.Attribution) float64 { return positive(a.First.Total()) },
		beyond: func(_ *request.Metrics, a *cause.Attribution) float64 {
			return positive(a.First.Total()) - float64(a.First[cause.PromptSize])
		},
		weight:  func(*request.Metrics) int64 { return 1 },
		divided: func(a *cause.Attribution) *cause.Causes { return &a.First },
		causes: []cause.Cause{cause.Router, cause.Dispatch, cause.Encode, cause.Intake, cause.DecodeBootstrap, cause.PrefillBootstrap, cause.Queue,
			cause.ChunkWait, cause.Prefill, cause.Transfer, cause.PrefillSide, cause.DecodeQueue, cause.FirstStep, cause.Other, cause.Unaccounted},
	},
	{
		Name: "tpot", Of: "for every further token", least: 0.25,
		took:   func(m *request.Metrics, _ *cause.Attribution) float64 { return positive(m.TPOT) },
		beyond: func(m *request.Metrics, _ *cause.Attribution) float64 { return positive(m.TPOT) },
		weight: (*request.Metrics).DecodeTokens,
		causes: []cause.Cause{cause.Decode, cause.Interference, cause.SlowRank, cause.Retraction},
	},
}

// positive returns NaN for a time that is unknown or cannot be right.
func positive(ns int64) float64 {
	if ns <= 0 {
		return math.NaN()
	}
	return float64(ns)
}

// A TraitComparison compares the requests that have a trait with the others, by one metric.
type TraitComparison struct {
	*Trait
	Metric *traitMetric
	N, All int // requests that have the trait, and all requests; only those whose metric is known
	// With and Others are the medians of requests with and without the trait, in ns.
	With, Others int64
	// Slowest is the share of the slowest twentieth that has the trait.
	Slowest float64
	// P is the probability that requests with the trait are this slow by chance, corrected for the number of
	// comparisons. NaN if there is not enough data.
	P         float64
	StandsOut bool
	// Main is the cause with the largest share of the difference between the means, and Part is that share. They are
	// 0 if that is unknown, or if the trait does not stand out.
	Main cause.Cause
	Part float64
	// Also lists other traits that nearly the same requests have.
	Also []*Trait
	// Population names the kind of requests compared, such as "llama-8b": requests that ask for different work are
	// compared separately. It is "" if all ask for the same work.
	Population string

	population int32   // number of Population
	sample     *sample // the sample that was compared
	usual      int64   // ns: median of the other requests, without what size explains
	more       float64 // ns between the medians, without what size explains
	cost       float64 // ns that requests with the trait take longer than the others in all; only if it stands out
}

// Traits are comparisons of requests by the attributes that they have in common.
type Traits struct {
	N    int // finished requests
	List []TraitComparison

	set   *request.Set
	list  []cause.Attribution // of the finished requests
	asked []Trait             // traits of what was asked for, and by whom
}

// surely is the largest p-value, after correction, of a comparison that stands out.
const surely = 0.01

// strata is the largest number of periods that a capture is divided into, and inStratum the smallest number of
// requests in one.
const (
	strata    = 20
	inStratum = 8
)

// findTraits compares requests by all of their traits, but only with requests that ask for the same work. In list,
// the time that size explains must be a separate cause already; see [cause.SplitSizes]. Comparisons that stand out
// come first, the costliest first.
func findTraits(s *request.Set, list []cause.Attribution, groups *place.Groups) *Traits {
	t := &Traits{N: len(list), set: s, list: list}
	if len(list) < finding.FewCompared {
		return t
	}
	populations := max(1, groups.Populations())
	samples := make([]*sample, len(metrics)*populations)
	found := make([][]TraitComparison, len(samples))
	var traits, rules []Trait
	parallel.All(func() { traits, rules = traitsOf(s, list) }, func() {
		parallel.Each(len(samples), func(k int) { samples[k] = newSample(s, list, metrics[k/populations], int32(k%populations)) })
	})
	for _, x := range slices.Concat(traits, rules) {
		if x.Of == Asked {
			t.asked = append(t.asked, x)
		}
	}
	parallel.Each(len(samples), func(k int) { // samples are independent of each other
		found[k] = samples[k].compareAll(traits)
		for i := range found[k] {
			found[k][i].Population = groups.PopulationName(k % populations)
		}
	})
	t.List = slices.Concat(found...)
	t.correct()
	for _, sample := range samples {
		t.keepStrongest(sample)
	}
	slices.SortStableFunc(t.List, func(x, y TraitComparison) int {
		switch {
		case x.StandsOut != y.StandsOut && x.StandsOut:
			return -1
		case x.StandsOut != y.StandsOut:
			return 1
		case x.StandsOut:
			return cmp.Compare(y.cost, x.cost)
		}
		return cmp.Compare(chance(x.P), chance(y.P))
	})
	return t
}

// chance returns p for sorting: unknown values come last.
func chance(p float64) float64 {
	if math.IsNaN(p) {
		return 2
	}
	return p
}

// correct adjusts the p-values for the number of comparisons (Holm), and decides which ones stand out.
func (t *Traits) correct() {
	p := order.EachRow(t.List, func(x *TraitComparison) float64 { return x.P })
	for i, p := range significance.Holm(p) {
		c := &t.List[i]
		if c.P, c.StandsOut = p, p <= surely && c.matters(); c.StandsOut {
			c.cost = c.longer(func(int, int64) {})
			c.Main, c.Part = c.mainCause()
		}
	}
}

// matters reports whether requests with the trait are slower by enough to be worth reporting. Size needs four times
// as much: long prompts share chunks with others and make others wait, which is more than their size explains and yet
// not a problem.
func (c *TraitComparison) matters() bool {
	least := c.Metric.least
	if c.Of == Size {
		least *= 4
	}
	return c.more >= least*float64(c.Others)
}

// keepStrongest keeps the costliest comparison of a sample that stands out, removes the requests with its trait, and
// repeats that with the comparisons that still stand out without them.
func (t *Traits) keepStrongest(s *sample) {
	var standing []*TraitComparison
	for i := range t.List {
		if c := &t.List[i]; c.StandsOut && c.Metric == s.metric && c.population == s.population {
			standing = append(standing, c)
		}
	}
	slices.SortStableFunc(standing, func(x, y *TraitComparison) int { return cmp.Compare(y.cost, x.cost) })
	for len(standing) > 0 {
		strongest := standing[0]
		s = s.without(strongest.in)
		var rest []*TraitComparison
		for _, c := range standing[1:] {
			again := s.compare(c.Trait)
			switch {
			case c.sameAs(strongest):
				strongest.Also = append(strongest.Also, c.Trait)
				c.StandsOut = false
			case again.N < fewest || !(again.P <= surely) || !again.matters():
				c.StandsOut = false
			default:
				rest = append(rest, c)
			}
		}
		standing = rest
	}
}

// sameAs reports whether nearly the same requests have both traits.
func (t *Trait) sameAs(o *TraitComparison) bool {
	const nearly = 0.9
	both, either := 0, 0
	for i, in := range t.in {
		if in && o.in[i] {
			both++
		}
		if in || o.in[i] {
			either++
		}
	}
	return float64(both) >= nearly*float64(either)
}

// A sample is the requests of one population whose metric is known.
type sample struct {
	set    *request.Set
	list   []cause.Attribution
	metric *traitMetric
	// population is the number of the requests' population.
	population int32
	of         []int     // indexes into list, sorted by start
	took       []float64 // ns, by request of the sample
	beyond     []float64
	weight     []float64 // how often each request has the metric
	limit      float64   // ns from which a request is among the slowest twentieth
	strata     *significance.Strata

	in []bool     // scratch space: which requests of the sample have a trait,
	ns [2][]int64 // and their times, with and without it
}

func newSample(s *request.Set, list []cause.Attribution, m *traitMetric, population int32) *sample {
	var keys []order.Key
	for i := range cause.Each(list) {
		r := &s.Requests[list[i].Request]
		if list[i].Population == population && !math.IsNaN(m.took(&r.Metrics, &list[i])) {
			const sign = 1 << 63 // times before 1970 sort first
			keys = memory.Append(keys, order.Key{Time: uint64(r.Start) ^ sign, Index: uint32(i)})
		}
	}
	keys, _ = order.ByTime(keys, memory.Make[order.Key](len(keys)))
	of := memory.Make[int](len(keys))
	for k := range keys {
		of[k] = int(keys[k].Index)
	}
	return measured(s, list, m, population, of)
}

// measured makes a sample of some requests, given by indexes into list.
func measured(s *request.Set, list []cause.Attribution, m *traitMetric, population int32, of []int) *sample {
	n := len(of)
	out := &sample{set: s, list: list, metric: m, population: population, of: of,
		took: memory.Make[float64](n), beyond: memory.Make[float64](n), weight: memory.Make[float64](n)}
	for k := range memory.Each(n, request.RequestSize) {
		a := &list[of[k]]
		metrics := &s.Requests[a.Request].Metrics
		out.took[k], out.beyond[k], out.weight[k] = m.took(metrics, a), m.beyond(metrics, a), float64(max(0, m.weight(metrics)))
	}
	if n > 0 {
		took := memory.Make[float64](n)
		copy(took, out.took)
		out.limit = order.Nth(took, min(request.PercentileIndex(n, 95), max(0, n-fewest)))
	}
	out.strata = significance.NewStrata(out.beyond, max(1, min(strata, len(of)/inStratum)))
	return out
}

// without returns the sample without the requests for which in is true.
func (s *sample) without(in []bool) *sample {
	of := slices.DeleteFunc(slices.Clone(s.of), func(i int) bool { return in[i] })
	return measured(s.set, s.list, s.metric, s.population, of)
}

// compareAll compares requests by every trait that enough of them have, and enough of them lack.
func (s *sample) compareAll(traits []Trait) []TraitComparison {
	if len(s.of) < finding.FewCompared {
		return nil
	}
	var out []TraitComparison
	for i := range traits {
		if c := s.compare(&traits[i]); c.N >= fewest && c.All-c.N >= fewest {
			out = append(out, c)
		}
	}
	return out
}

// compare compares the requests that have a trait with the others.
func (s *sample) compare(t *Trait) TraitComparison {
	c := TraitComparison{Trait: t, Metric: s.metric, population: s.population, sample: s, All: len(s.of), P: math.NaN()}
	n := len(s.of)
	if s.in == nil {
		s.in, s.ns = memory.Make[bool](n), [2][]int64{memory.Make[int64](n), memory.Make[int64](n)}
	}
	in, slowest, slow := s.in, 0, 0
	for k, i := range s.of {
		side := 0
		if in[k] = t.in[i]; in[k] {
			side = 1
			c.N++
		}
		if s.took[k] >= s.limit {
			slowest++
			slow += side
		}
	}
	if c.N < fewest || c.N == c.All {
		return c
	}
	with, others := s.divide(s.took, 0, n)
	c.With, c.Others = distribution.LowerMedian(with), distribution.LowerMedian(others)
	_, others = s.divide(s.beyond, 0, n)
	c.usual = distribution.LowerMedian(others)
	c.more = s.apart()
	c.Slowest = distribution.Ratio(float64(slow), float64(slowest))
	if c.P = s.strata.Higher(in); t.Of == Where {
		c.P = s.strata.HigherInPieces(in)
	}
	return c
}

// divide splits values[from:to], in ns, into those of requests in s.in and the others.
func (s *sample) divide(values []float64, from, to int) (with, others []int64) {
	with, others = s.ns[0][:0], s.ns[1][:0]
	for k := from; k < to; k++ {
		if s.in[k] {
			with = append(with, int64(values[k]))
		} else {
			others = append(others, int64(values[k]))
		}
	}
	return with, others
}

// apart returns the difference, in ns beyond size, between the medians of the requests in s.in and of the others. It
// compares requests that came at about the same time, because the time per token and the queues depend on the load at
// that time, and returns the weighted median over these periods.
func (s *sample) apart() float64 {
	type difference struct{ ns, weight float64 }
	var list []difference
	all := 0.0
	bounds := s.strata.Bounds()
	for i := range bounds[1:] {
		with, others := s.divide(s.beyond, bounds[i], bounds[i+1])
		if weight := float64(min(len(with), len(others))); weight > 0 {
			list, all = append(list, difference{float64(distribution.LowerMedian(with) - distribution.LowerMedian(others)), weight}), all+weight
		}
	}
	slices.SortFunc(list, func(x, y difference) int { return cmp.Compare(x.ns, y.ns) })
	for _, d := range list {
		if all -= 2 * d.weight; all <= 0 { // the weighted median
			return d.ns
		}
	}
	return 0
}

// mainCause returns the cause that contributes most to the difference between the means, and its share of the
// difference; 0 is unknown.
func (c *TraitComparison) mainCause() (main cause.Cause, part float64) {
	s := c.sample
	if s.metric.divided == nil {
		return 0, 0
	}
	var more [cause.Count]float64
	whole := 0.0
	for k := range memory.Each(len(s.of), attributed) {
		i, weight := s.of[k], -1/float64(c.All-c.N)
		if c.Trait.in[i] {
			weight = 1 / float64(c.N)
		}
		for c, ns := range s.metric.divided(&s.list[i]) {
			more[c] += weight * float64(ns)
			whole += weight * float64(ns)
		}
	}
	for c := range cause.Count {
		if more[c] > more[main] {
			main = c
		}
	}
	if whole <= 0 {
		return 0, 0
	}
	return main, more[main] / whole
}

// requests returns the requests that have the trait, as indexes into Set.Requests, sorted by start.
func (c *TraitComparison) requests() (of []int) {
	for _, i := range c.sample.of {
		if c.Trait.in[i] {
			of = append(of, c.sample.list[i].Request)
		}
	}
	return of
}

// longer calls f for each request with the trait, an index into Set.Requests, with the ns that it takes beyond the
// median of the others, and returns the sum. All amounts are scaled so that the sum is the difference between the
// means of requests that came at about the same time, because some requests are slow anyway, with or without the
// trait.
func (c *TraitComparison) longer(f func(request int, ns int64)) (sum float64) {
	s := c.sample
	more := func(k int) int64 {
		return int64(max(0, s.beyond[k]-float64(c.usual)) * s.weight[k])
	}
	apart := 0.0
	bounds := s.strata.Bounds()
	for i := range bounds[1:] {
		var n, beyond [2]float64
		for k := bounds[i]; k < bounds[i+1]; k++ {
			weight, side := s.weight[k], 0
			if c.Trait.in[s.of[k]] {
				side = 1
				sum += float64(more(k))
			}
			n[side], beyond[side] = n[side]+weight, beyond[side]+s.beyond[k]*weight
		}
		if n[0] > 0 {
			apart += beyond[1] - n[1]*beyond[0]/n[0]
		}
	}
	part := min(1, max(0, distribution.Ratio(apart, sum)))
	for k := range memory.Each(len(s.of), attributed) {
		if i := s.of[k]; c.Trait.in[i] {
			f(s.list[i].Request, int64(part*float64(more(k))))
		}
	}
	return part * sum
}

// attributed is the number of bytes that a walk over a sample reads per request of the list.
const attributed = int(unsafe.Sizeof(cause.Attribution{}))

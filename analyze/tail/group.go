package tail

import (
	"cmp"
	"iter"
	"math/rand/v2"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/cause"
	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/metric"
	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/request"
)

// A tailUnit is the values of one request on a side: one value, or its gaps between tokens. Resampling draws whole
// requests, because the gaps of a request are far from independent.
type tailUnit struct {
	owner int32 // index into Tail.List
	n     int64
	sum   cause.Causes
}

func (u *tailUnit) addGap(g *cause.GapSplit) {
	u.n++
	u.sum[cause.Decode] += g.Decode
	u.sum[cause.Interference] += g.Interference
	u.sum[cause.SlowRank] += g.SlowRank
	u.sum[cause.Retraction] += g.Retraction
}

// A tailGroup is the values of one side.
type tailGroup struct {
	units []tailUnit
	sum   cause.Causes
	n     int64
}

func (g *tailGroup) add(u tailUnit) {
	if u.n == 0 {
		return
	}
	g.units = memory.Append(g.units, u)
	g.n += u.n
	for c, ns := range u.sum {
		g.sum[c] += ns
	}
}

// means returns the mean of the group by cause, and in all, in whole ns. The parts add up to the whole: the ns lost
// by rounding down go to the causes that lost most.
func (g *tailGroup) means() (means cause.Causes, total int64) {
	order := make([]cause.Cause, cause.Count)
	var lost cause.Causes
	for c := range cause.Count {
		order[c] = c
		means[c] = distribution.FloorDiv(g.sum[c], g.n)
		lost[c] = g.sum[c] - means[c]*g.n
	}
	total = distribution.FloorDiv(g.sum.Total()+g.n/2, g.n)
	slices.SortStableFunc(order, func(x, y cause.Cause) int { return cmp.Compare(lost[y], lost[x]) })
	for _, c := range order[:total-means.Total()] {
		means[c]++
	}
	return means, total
}

// compare fills in the rows of c.
func (t *Tail) compare(c *Comparison, slow, around *tailGroup) {
	var means [2]cause.Causes
	means[0], c.Slow.Mean = slow.means()
	means[1], c.Around.Mean = around.means()
	low, high := intervals(slow, around)
	for k := range cause.Count {
		if slow.sum[k] == 0 && around.sum[k] == 0 {
			continue
		}
		d := Difference{Cause: k, Slow: means[0][k], Around: means[1][k], Low: low[k], High: high[k], Main: request.Unknown}
		d.More = d.Slow - d.Around
		c.Added += max(0, d.More)
		d.Where = t.where(k, slow)
		c.Rows = append(c.Rows, d)
	}
	for i := range c.Rows {
		c.Rows[i].Share = shareOf(c.Rows[i].More, c.Added)
	}
	slices.SortStableFunc(c.Rows, func(x, y Difference) int { return cmp.Compare(y.More, x.More) })
}

// shareOf returns more as a share of added, 0 to 1. A cause that took less time than usual has no share, so that it
// does not push the shares of others over 1.
func shareOf(more, added int64) float64 {
	if more <= 0 {
		return 0
	}
	return float64(more) / float64(added)
}

// eachUnit yields the units. There may be many of them: see [memory.Each].
func (g *tailGroup) eachUnit(yield func(u *tailUnit) bool) {
	for i := range memory.Each(len(g.units), attributed) {
		if !yield(&g.units[i]) {
			return
		}
	}
}

// eachOwner yields each unit with the request that it belongs to.
func (t *Tail) eachOwner(g *tailGroup) iter.Seq2[*tailUnit, *cause.Attribution] {
	picked := memory.Picked(len(g.units), len(t.List), attributed)
	return func(yield func(*tailUnit, *cause.Attribution) bool) {
		for u := range g.eachUnit {
			memory.Touch(picked)
			if !yield(u, &t.List[u.owner]) {
				return
			}
		}
	}
}

// countMain counts, for each cause, the slow requests in which it is the main cause.
func (c *Comparison) countMain(slow *tailGroup) {
	for i := range c.Rows {
		c.Rows[i].Main = 0
	}
	for u := range slow.eachUnit {
		main, _ := c.mainCause(&u.sum)
		main.Main++
	}
}

// mainCause returns the row that exceeds the mean around the median most in a request with the given times, and by
// how many ns.
func (c *Comparison) mainCause(times *cause.Causes) (main *Difference, more int64) {
	for i := range c.Rows {
		row := &c.Rows[i]
		if m := times[row.Cause] - row.Around; main == nil || m > more {
			main, more = row, m
		}
	}
	return main, more
}

// resamples is the number of bootstrap samples. A side with more than fewResample requests is not resampled: its mean
// varies too little to matter next to the slow side's.
const (
	resamples   = 500
	fewResample = 2000
)

// intervals returns the 95 % confidence intervals of the differences of the means, in ns, by the percentile
// bootstrap: both sides are resampled with replacement. The same input always gives the same numbers.
//
// B. Efron, Bootstrap methods: another look at the jackknife (1979).
func intervals(slow, around *tailGroup) (low, high cause.Causes) {
	rng := rand.New(rand.NewPCG(1, 1))
	draws := make([][cause.Count]float64, resamples)
	for i, g := range [...]*tailGroup{slow, around} {
		sign := float64(1 - 2*i)
		for d := range draws {
			sum, n := g.sum, g.n
			if len(g.units) <= fewResample {
				sum, n = g.resample(rng)
			}
			for c, ns := range sum {
				draws[d][c] += sign * float64(ns) / float64(n)
			}
		}
	}
	column := make([]float64, resamples)
	for c := range cause.Count {
		for d := range draws {
			column[d] = draws[d][c]
		}
		slices.Sort(column)
		low[c], high[c] = int64(column[resamples*25/1000]), int64(column[resamples*975/1000])
	}
	return low, high
}

// resample draws as many units as the group has, with replacement.
func (g *tailGroup) resample(rng *rand.Rand) (sum cause.Causes, n int64) {
	for range g.units {
		u := &g.units[rng.IntN(len(g.units))]
		n += u.n
		for c, ns := range u.sum {
			sum[c] += ns
		}
	}
	return sum, n
}

// meanBatch returns the mean number of requests in the decode batches of a group, from schedule events of the lead
// ranks; 0 if there are none.
func (t *Tail) meanBatch(a *cause.Attributor, g *tailGroup) float64 {
	batches, running := 0, int64(0)
	owners := make([]int32, 0, len(g.units))
	for u := range g.eachUnit {
		owners = append(owners, u.owner)
	}
	slices.Sort(owners) // in the order of their rows, as large tables may be in a file
	for _, owner := range owners {
		memory.Touch(memory.FarApart)
		lead, ok := a.SteppingRank(t.List[owner].Request)
		if !ok {
			continue
		}
		for span := range t.set.ThreadRows(lead) {
			for _, e := range t.set.InstantsOf(span) {
				if size, ok := cause.BatchOf(&e, request.DecodeMode); ok {
					batches, running = batches+1, running+size
				}
			}
		}
	}
	return float64(running) / float64(max(1, batches))
}

// noteBeyond records, for each cause that stands out, by how many ns each slow request exceeds the usual.
func (t *Tail) noteBeyond(c *Comparison, slow *tailGroup) {
	for i := range c.Rows {
		d := &c.Rows[i]
		if !d.StandsOut {
			continue
		}
		d.beyond = map[int]int64{}
		for u, owner := range t.eachOwner(slow) {
			d.beyond[owner.Request] = max(0, u.sum[d.Cause]-u.n*d.Around)
		}
	}
}

// where returns the rank with the largest part of a cause in a group.
func (t *Tail) where(c cause.Cause, g *tailGroup) Place {
	byProc := map[int32]int64{}
	whole := int64(0)
	for u, owner := range t.eachOwner(g) {
		if proc := owner.ProcOf(c); proc != request.None && u.sum[c] > 0 {
			byProc[proc] += u.sum[c]
			whole += u.sum[c]
		}
	}
	best := int32(request.None)
	for proc, ns := range byProc {
		if best == request.None || ns > byProc[best] || ns == byProc[best] && proc < best {
			best = proc
		}
	}
	if best == request.None {
		return Place{Proc: request.None}
	}
	return Place{int(best), t.set.RankName(int(best)), float64(byProc[best]) / float64(whole), t.oneHome[c]}
}

// oneHomes returns the causes that all requests have on the same rank. Never a slow rank, which by definition is one
// of several.
func oneHomes(list []cause.Attribution) (one [cause.Count]bool) {
	for c := range cause.Count {
		one[c] = c != cause.SlowRank
	}
	for i := range cause.Each(list) {
		for c := range cause.Count {
			one[c] = one[c] && list[i].ProcOf(c) == list[0].ProcOf(c)
		}
	}
	return one
}

// A Point is the value of a metric for one request, and why it is larger than usual.
type Point struct {
	Request int   // index into Set.Requests
	Value   int64 // of the metric, ns
	// Cause is the largest cause of extra time over requests around the median, as in SlowRequest. It has no meaning
	// for a request that is not slower than these.
	Cause cause.Cause
}

// Points returns a point for each request that has the metric of c, in the order of Set.Requests. It returns nil for
// gaps, which are not requests, and if there are too few values to compare.
func (t *Tail) Points(c *Comparison) []Point {
	if c.Metric == metric.ITL || c.Slow.N == 0 {
		return nil
	}
	var points []Point
	for i := range cause.Each(t.List) {
		a := &t.List[i]
		if value := t.valueOf(a, c.Metric); value >= 0 {
			main, _ := c.mainCause(timeOf(a, c.Metric))
			points = append(points, Point{a.Request, value, main.Cause})
		}
	}
	return points
}

package serverlimit

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/cause"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/changepoint"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// Crowd is the subkind of findings about [Crowds].
const Crowd = "crowd"

// Crowds are the times at which many more requests arrive than otherwise, so that they wait for each other: within a moment, or again and
// again at equal intervals.
type Crowds struct {
	set  *request.Set
	list []crowd
	// every is the time from one crowd to the next, s; 0 if that varies. otherwise is the number of requests that arrive per second at other times.
	every, otherwise float64
	p                float64 // probability that the intervals are chance; 0 if each crowd is beyond doubt
}

// A crowd is requests that arrive from one time to another; over is when all of them are answered.
type crowd struct {
	from, to, over trace.Time
	came, behind   []int // indexes into Set.Requests; behind came before over
}

// comers are requests in order of time.
type comers []arriving

type arriving struct {
	at      trace.Time
	request int
}

// between returns the requests that arrive in [from, to).
func (a comers) between(from, to trace.Time) comers {
	first := func(at trace.Time) int {
		k, _ := slices.BinarySearchFunc(a, at, func(x arriving, at trace.Time) int { return cmp.Compare(x.at, at) })
		return k
	}
	return a[first(from):first(max(from, to))]
}

// requests returns their indexes into Set.Requests.
func (a comers) requests() []int { return order.Each(a, func(x arriving) int { return x.request }) }

// A crowd has at least fewestCrowd requests in a moment, and manyTimes as many as nearly all other moments have. There is nothing to
// compare it with in a set of fewer than fewArrivals, or before calm has passed.
const (
	fewestCrowd = 20
	manyTimes   = 4
	nearlyEvery = 95 // percent
	fewArrivals = 100
	moment      = trace.Time(1e9)
	calm        = 10 * moment
)

// FindCrowds finds the crowds of a set.
func FindCrowds(s *request.Set) *Crowds {
	c := &Crowds{set: s}
	var all comers
	for i := range s.AllRequests() {
		all = append(all, arriving{s.Requests[i].Start, i})
	}
	slices.SortStableFunc(all, func(x, y arriving) int { return cmp.Compare(x.at, y.at) })
	if len(all) < fewArrivals || all[len(all)-1].at-all[0].at < 2*calm {
		return c
	}
	if c.findBrief(all); len(c.list) == 0 {
		c.findRegular(all)
	}
	c.compare(all)
	return c
}

// mostUsual returns the number of requests that arrive at most in nearly every moment. Between two dumps, years of moments may have none.
func (a comers) mostUsual() int {
	of := func(x *arriving) trace.Time { return (x.at - a[0].at) / moment }
	var counts []int // of moments with arrivals
	for together := range order.Runs(a, func(x, y *arriving) bool { return of(x) == of(y) }) {
		counts = append(counts, len(together))
	}
	moments := int(of(&a[len(a)-1])) + 1
	if at := request.PercentileIndex(moments, nearlyEvery) - (moments - len(counts)); at >= 0 {
		return order.Nth(counts, at)
	}
	return 0
}

// findBrief finds the moments in which far more requests arrive than in others.
func (c *Crowds) findBrief(all comers) {
	least := max(fewestCrowd, manyTimes*all.mostUsual())
	from, to := 0, 0 // of the crowd
	for i, k := 0, 0; i < len(all); i++ {
		for k < len(all) && all[k].at < all[i].at+moment {
			k++
		}
		switch {
		case k-i < least:
		case i < to:
			to = k
		default:
			c.add(all, from, to)
			from, to = i, k
		}
	}
	c.add(all, from, to)
}

// add adds the crowd in all[from:to], without those that came by themselves before and after it: the part that is least likely at the rate of
// all arrivals.
func (c *Crowds) add(all comers, from, to int) {
	if to-from < fewestCrowd {
		return
	}
	rate := float64(len(all)) / float64(all[len(all)-1].at-all[0].at)
	unlikely := func(from, to int) float64 {
		n, expected := float64(to-from), rate*float64(max(all[to-1].at-all[from].at, moment/1000))
		return n*(math.Log(n/expected)-1) + expected
	}
	best := func(from, to int, of func(k int) float64) int {
		top := from
		for k := from; k <= to; k++ {
			if of(k) > of(top) {
				top = k
			}
		}
		return top
	}
	first := best(from, to-fewestCrowd, func(k int) float64 { return unlikely(k, to) })
	last := best(first+fewestCrowd, to, func(k int) float64 { return unlikely(first, k) })
	if all[first].at-all[0].at >= calm {
		c.list = append(c.list, crowd{from: all[first].at, to: all[last-1].at, came: all[first:last].requests()})
	}
}

// findRegular finds times at which more requests arrive at equal intervals.
func (c *Crowds) findRegular(all comers) {
	const likely = 0.05 // it takes waits, too, to make it a finding
	const mostPieces = 4096
	begin, end := all[0].at, all[len(all)-1].at
	piece := max(moment, (end-begin)/mostPieces)
	counts := make([]int, (end-begin)/piece+1)
	for _, x := range all {
		counts[(x.at-begin)/piece]++
	}
	list, seconds := make([]changepoint.Observation, len(counts)), float64(piece)/1e9
	for i, n := range counts {
		list[i] = changepoint.Observation{From: float64(i) * seconds, To: float64(i+1) * seconds, Value: -2 * math.Sqrt(float64(n)+3./8), Weight: 1} // of variance 1, whatever the rate
	}
	p := changepoint.FindPulses(list)
	if p.P > likely {
		return
	}
	c.every, c.p = p.Every, p.P
	for _, k := range p.Seen {
		from := begin + trace.Time(p.Begin(k)*1e9)
		to := from + trace.Time(p.Length*1e9)
		c.list = append(c.list, crowd{from: from, to: to, came: all.between(from, to).requests()})
	}
}

// compare finds how long crowds keep servers busy, and how many requests arrive at other times. It drops those after which no fewer
// requests arrive than before: these are the first of more.
func (c *Crowds) compare(all comers) {
	const stays = 1.5
	begin, end, beside := all[0].at, all[len(all)-1].at, 3*calm
	c.list = slices.DeleteFunc(c.list, func(x crowd) bool {
		before, after := all.between(max(begin, x.from-beside), x.from), all.between(x.to+1, min(end, x.to+beside))
		return float64(len(after))/float64(max(1, min(end, x.to+beside)-x.to)) > stays*float64(len(before)+1)/float64(x.from-max(begin, x.from-beside))
	})
	others, length := float64(len(all)), float64(end-begin)
	for i := range c.list {
		x := &c.list[i]
		for _, r := range x.came {
			if of := &c.set.Requests[r]; of.Status == request.Finished {
				x.over = max(x.over, of.End)
			}
		}
		x.over = max(x.over, x.to)
		x.behind = all.between(x.to+1, x.over).requests()
		others, length = others-float64(len(x.came)), length-float64(x.to-x.from)
	}
	c.otherwise = others / (length / 1e9)
	if c.every == 0 {
		every, chance := changepoint.Periodic(order.EachRow(c.list, func(x *crowd) float64 { return float64(x.from) / 1e9 }))
		if chance <= surely {
			c.every = every
		}
	}
}

// Findings returns a finding about the crowds of a set, if they make requests wait for long.
func (c *Crowds) Findings(b *cause.Costs) []finding.Finding {
	if len(c.list) == 0 {
		return nil
	}
	var requests []int
	came, behind := 0, 0
	for i := range c.list {
		x := &c.list[i]
		requests, came, behind = append(append(requests, x.came...), x.behind...), came+len(x.came), behind+len(x.behind)
	}
	slices.Sort(requests)
	requests = slices.Compact(requests)
	until := c.list[len(c.list)-1].over
	for _, r := range c.list[len(c.list)-1].behind {
		until = max(until, c.set.Requests[r].End)
	}
	f := finding.Finding{Subkind: Crowd, At: place.Location{Scope: place.Everywhere}, Since: c.list[0].from, Until: until, Confidence: finding.Certain, Text: c.text(came), CostBasis: finding.RequestTime,
		Claim: c.claim(b, requests), Affected: finding.AffectedOf(c.set, requests),
		Metric:   finding.Metric{Name: "arrivals per second", Unit: table.Number, Before: c.otherwise, After: c.rate(came)},
		Evidence: []finding.Evidence{finding.Sentence("%d other requests arrived before all of these were answered", behind)}}
	if c.p > 0 {
		f.P, f.Confidence = finding.Chance(c.p), finding.Likely
	}
	return order.Only(b.Price([]finding.Finding{f}), func(f finding.Finding) bool { return f.Cost >= minCost })
}

// claim returns the time that requests waited behind crowds, and by how much longer servers took for a token until they were answered.
func (c *Crowds) claim(b *cause.Costs, requests []int) finding.Claim {
	const few = 16
	claim := b.Beyond(requests, cause.QueueCauses...)
	for i := range c.list[:min(few, len(c.list))] {
		x := &c.list[i]
		claim = claim.And(b.Risen(cause.Span{From: x.from, Until: x.over, At: place.Location{Scope: place.Everywhere}}, b.BySize, cause.Decode))
	}
	return claim
}

// rate returns the number of requests per second in crowds.
func (c *Crowds) rate(came int) float64 {
	return float64(came) / max(1, float64(order.SumRows(c.list, func(x *crowd) int64 { return int64(x.to - x.from) }))/1e9)
}

// text says when how many requests came.
func (c *Crowds) text(came int) string {
	first, last := &c.list[0], &c.list[len(c.list)-1]
	longest, took := trace.Time(0), trace.Time(0)
	for i := range c.list {
		longest, took = max(longest, c.list[i].to-c.list[i].from), max(took, c.list[i].over-c.list[i].from)
	}
	otherwise := fmt.Sprintf("%s /s do", words.ThreeDigits(c.otherwise))
	within := "within " + words.Nearly(int64(longest))
	if longest < moment/1000 {
		within = "at once"
	}
	if len(c.list) == 1 {
		return fmt.Sprintf("%d requests arrived %s at %s; at other times, %s; they were all answered %s later", came, within, words.At(first.from, words.TenthLayout), otherwise, words.Nearly(int64(took)))
	}
	every := ""
	if c.every != 0 {
		every = ", every " + words.Nearly(int64(c.every*1e9))
	}
	return fmt.Sprintf("%d times%s, about %d requests arrived %s, first at %s and last at %s; at other times, %s; it took up to %s to answer them all", len(c.list), every, came/len(c.list), within,
		words.TimeOfDay(first.from), words.TimeOfDay(last.from), otherwise, words.Nearly(int64(took)))
}

package measured

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/diff/pace"
	"github.com/sgtrace/sgtrace/analyze/replay"
	"github.com/sgtrace/sgtrace/analyze/telemetry"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// Loads in logs and metrics are sorted so that what is asked of servers comes before what follows
// from it: more requests are running because more arrive, or because their steps take longer.
const (
	askedFirst = -10 // ranks of measured loads in that order
	sparedNext = -5
)

// followers are metrics that follow from what is asked of servers, from the number of servers, and
// from how long their steps take: they explain a change only if none of these is known to differ.
var followers = []series.MetricID{series.Running, series.KVUsage, series.KVTokens, series.SwaUsage, series.MambaUsage, series.Generation, series.PrefillRate,
	series.NewSeqs, series.NewTokens, series.CachedTokens, series.PendingTokens}

// addRanks adds what is asked of the ranks that log batches or are scraped, and how long their
// steps take. It returns the number of such servers of each role.
func (c *adder) addRanks() (servers string) {
	l := telemetry.Measure(c.set, telemetry.Options{From: c.from, To: c.to})
	piece := func(b int) int { return c.pieces.At(min(max(l.Start(b), c.from), c.to-1)) }
	for i := range l.Ranks {
		r := &l.Ranks[i]
		if r.Where.Role != request.Decode { // decode servers only get what prefill servers send
			for k, d := range l.Demands(r) {
				c.addDemand(&d, askedFirst+k, piece)
			}
		}
		c.addCached(l, r, piece)
		if r.Scraped {
			c.addGaps(l, r)
		} else {
			c.addStretches(r)
		}
	}
	return countServers(l)
}

// addDemand adds what is asked of a rank: requests per second add up over ranks, anything else is averaged.
func (c *adder) addDemand(d *telemetry.Demand, rank int, piece func(b int) int) {
	if d.Name == telemetry.RequestRate {
		to := c.rate(d.Name, rank, 1)
		for b, n := range d.N {
			to.Pieces[piece(b)].Sum += max(0, n)
		}
		return
	}
	to := c.named(d.Name, rank)
	for b, n := range d.N {
		if d.Of[b] > 0 && n >= 0 {
			p := &to.Pieces[piece(b)]
			p.Sum, p.Of = p.Sum+n, p.Of+d.Of[b]
		}
	}
}

// addCached adds the percentage of prompt tokens that were cached, for a rank that reports
// cached and new tokens, but not their ratio.
func (c *adder) addCached(l *telemetry.Logged, r *telemetry.Rank, piece func(b int) int) {
	if r.Has(series.HitRate) || !r.Has(series.CachedTokens) || !r.Has(series.NewTokens) {
		return
	}
	to, fresh := c.named(withUnit(series.Metrics[series.HitRate].Name, series.Metrics[series.HitRate].Unit), sparedNext), l.Curve(r, series.NewTokens)
	for b, n := range l.Curve(r, series.CachedTokens) {
		p := &to.Pieces[piece(b)]
		p.Sum, p.Of = p.Sum+100*n, p.Of+n+fresh[b]
	}
}

// addStretches adds how long decode steps take between two log lines, with the prompts that are computed meanwhile.
func (c *adder) addStretches(r *telemetry.Rank) {
	for i := range r.Stretches {
		x := &r.Stretches[i]
		c.addStep(r, pace.Logged, x.At, x.Token*x.Accepted, x.Accepted, replay.Features{Requests: int64(math.Round(x.Running)), Context: int64(1000 * x.KV), New: int64(1000 * x.Prompts)})
	}
}

// addGaps adds how long tokens took from scrape to scrape, from the histogram of its own requests. The number of requests being
// decoded is the sum of their gaps over the time (Little's law): a gauge, read at one moment, does not fit a mean over that time.
func (c *adder) addGaps(l *telemetry.Logged, r *telemetry.Rank) {
	m, own := l.MeterOf(r)
	gaps := l.Scrapes(m, series.ITL)
	if gaps.About || !own {
		return
	}
	prompts := map[trace.Time]float64{} // by scrape: prompt tokens computed since the scrape before
	for _, x := range l.Intervals(m, "prompt_tokens_total") {
		prompts[x.To] += x.N
	}
	for _, x := range l.Intervals(m, "cached_tokens_total") {
		prompts[x.To] -= x.N
	}
	for _, x := range gaps.List {
		seconds, token := float64(x.To-x.From)/1e9, x.Took/x.N
		c.addStep(r, pace.Scraped, x.To, token, 1, replay.Features{Requests: int64(math.Round(x.Took / seconds)), New: int64(max(0, prompts[x.To]) * token / seconds)})
	}
}

// addStep adds a step of a rank: when it ended, how many s it took, and how many tokens it gave to each request.
func (c *adder) addStep(r *telemetry.Rank, by pace.Said, end trace.Time, took, tokens float64, f replay.Features) {
	c.paces.AddSaid(by, &r.Where, took, tokens, f, c.pieces.At(min(max(end, c.from), c.to-1)), c.pieces.N())
}

// countServers returns how many servers of each role log batches, or are scraped.
func countServers(l *telemetry.Logged) string {
	servers := map[request.Role]map[int32]bool{}
	for i := range l.Ranks {
		order.Memo(servers, l.Ranks[i].Where.Role, func() map[int32]bool { return map[int32]bool{} })[l.Ranks[i].Server] = true
	}
	var list []string
	for _, role := range slices.Sorted(maps.Keys(servers)) {
		text := fmt.Sprint(len(servers[role]))
		if len(servers) > 1 {
			text += " " + role.String()
		}
		list = append(list, text)
	}
	return strings.Join(list, ", ")
}

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

// What logs and metrics tell of what is asked of servers comes before what follows from that: more requests are running because more come,
// or because their steps take longer.
const (
	askedFirst = -10 // in the order of measured loads
	sparedNext = -5
)

// followers are the metrics that follow from what is asked of servers, how many there are, and what their steps take: they say
// why only where none of these is known.
var followers = []series.MetricID{series.Running, series.KVUsage, series.KVTokens, series.SwaUsage, series.MambaUsage, series.Generation, series.PrefillRate,
	series.NewSeqs, series.NewTokens, series.CachedTokens, series.PendingTokens}

// addRanks adds what is asked of the ranks that log batches or are scraped, and what their steps take.
// It returns how many servers of each role these are.
func (c *adder) addRanks() (servers string) {
	l := telemetry.Measure(c.set, telemetry.Options{From: c.from, To: c.to})
	piece := func(b int) int { return c.pieces.At(min(max(l.Start(b), c.from), c.to-1)) }
	for i := range l.Ranks {
		r := &l.Ranks[i]
		if r.Where.Role != request.Decode { // which only gets what prefill servers send
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

// addDemand adds what is asked of a rank: requests per second are those of all ranks, anything else is a mean.
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

// addCached adds the part of prompts that the cache had, of a rank whose lines tell of both.
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

// addStretches adds what decode steps take between two lines, with the prompts that are computed between them.
func (c *adder) addStretches(r *telemetry.Rank) {
	for i := range r.Stretches {
		x := &r.Stretches[i]
		c.addStep(r, pace.Logged, x.At, x.Token*x.Accepted, x.Accepted, replay.Features{Requests: int64(math.Round(x.Running)), Context: int64(1000 * x.KV), New: int64(1000 * x.Prompts)})
	}
}

// addGaps adds how long tokens took from scrape to scrape, by a histogram of a server of one rank. As many requests decode, on average, as
// their gaps are longer together than the time (Little's law): what levels say of one moment fits no mean.
func (c *adder) addGaps(l *telemetry.Logged, r *telemetry.Rank) {
	gaps := l.Scrapes(r.Server, series.ITL)
	if gaps.About || !l.IsAlone(r) {
		return
	}
	prompts := map[trace.Time]float64{} // tokens that were computed until a scrape, since the one before it
	for _, x := range l.Intervals(r.Server, "prompt_tokens_total") {
		prompts[x.To] += x.N
	}
	for _, x := range l.Intervals(r.Server, "cached_tokens_total") {
		prompts[x.To] -= x.N
	}
	for _, x := range gaps.List {
		seconds, token := float64(x.To-x.From)/1e9, x.Took/x.N
		c.addStep(r, pace.Scraped, x.To, token, 1, replay.Features{Requests: int64(math.Round(x.Took / seconds)), New: int64(max(0, prompts[x.To]) * token / seconds)})
	}
}

// addStep adds a step of a rank that ended at some time, took so many s, and gave so many tokens to each request.
func (c *adder) addStep(r *telemetry.Rank, by pace.Said, end trace.Time, took, tokens float64, f replay.Features) {
	c.paces.AddSaid(by, &r.Where, took, tokens, f, c.pieces.At(min(max(end, c.from), c.to-1)), c.pieces.N())
}

// countServers tells how many servers of each role log batches, or are scraped.
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

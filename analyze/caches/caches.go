package caches

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/cause"
	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/load"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/changepoint"
	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/internal/parallel"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// Caches are those of the servers of a set, and when they were emptied.
type Caches struct {
	set        *request.Set
	from, last trace.Time // when the bulk of the requests begins, and when the last request came
	found      []emptied
}

// A prompt is what of a prompt was cached when its request came to a server.
type prompt struct {
	request int
	at      trace.Time
	share   float64 // of its tokens
	tokens  float64
}

// Emptied are caches of some servers of a role that are emptied at one time, again and again.
type emptied struct {
	at            place.Location
	ranks, all    int // that have such caches, of as many
	pulses        changepoint.Pulses
	before, after float64 // the share of the tokens that is cached, otherwise and behind that
	requests      []int   // that were under way then, or came
}

// Find looks for caches that are emptied: of all servers of a role together, and if that says nothing, of each.
func Find(ranks *place.RankSet) *Caches {
	c := &Caches{set: ranks.Set}
	by := make([][]prompt, len(ranks.Places))
	bulk := load.BulkOf(c.set)
	c.from = bulk.From
	for i := range c.set.AllRequests() {
		r := &c.set.Requests[i]
		m := &r.Metrics
		c.last = max(c.last, r.Start)
		if !bulk.Holds(r) || m.CachedTokens < 0 || m.PromptTokens <= 0 {
			continue
		}
		for _, p := range c.set.PartsOf(r) {
			if part := &c.set.Parts[p]; part.Serves() && part.Role != request.Decode {
				if rank := ranks.Route(part); rank != request.None {
					cached := float64(min(m.CachedTokens, m.PromptTokens))
					by[rank] = memory.Append(by[rank], prompt{i, part.Start, cached / float64(m.PromptTokens), float64(m.PromptTokens)})
				}
				break
			}
		}
	}
	for _, role := range request.ServingRoles {
		var of []int
		for rank := range by {
			if len(by[rank]) > 0 && ranks.Places[rank].Role == role {
				of = append(of, rank)
			}
		}
		c.addRole(ranks, by, of)
	}
	return c
}

// addRole adds what is found on the servers of a role.
func (c *Caches) addRole(ranks *place.RankSet, by [][]prompt, of []int) {
	all := slices.Concat(order.Each(of, func(rank int) []prompt { return by[rank] })...)
	e := c.search(all, 1)
	if e == nil {
		each := make([]*emptied, len(of))
		parallel.Each(len(of), func(i int) { each[i] = c.search(by[of[i]], len(of)) })
		for i, e := range each {
			if e != nil && len(of) > 1 {
				e.at, e.ranks, e.all = ranks.Places[of[i]], 1, len(of)
				c.found = append(c.found, *e)
			}
		}
		return
	}
	e.at, e.all = place.Location{Scope: place.WholeRole, Role: ranks.Places[of[0]].Role}, len(of)
	have := -1
	for _, rank := range of {
		if is := c.over(by[rank], &e.pulses); is.falls() {
			e.ranks, have = e.ranks+1, rank
		}
	}
	if e.ranks == 1 {
		e.at = ranks.Places[have]
	}
	if e.ranks > 0 {
		c.found = append(c.found, *e)
	}
}

// search returns when some caches are emptied, in one of several searches; nil if they are not, as far as anybody can tell.
func (c *Caches) search(list []prompt, searches int) *emptied {
	const surely = 0.001
	slices.SortStableFunc(list, func(a, b prompt) int { return cmp.Compare(a.at, b.at) })
	seen := memory.Make[changepoint.Observation](len(list))
	for i := range list {
		at := c.seconds(list[i].at)
		seen[i] = changepoint.Observation{From: at, To: at, Value: list[i].share, Weight: list[i].tokens}
	}
	pulses := changepoint.FindPulses(seen)
	memory.Free(seen)
	if pulses.P *= float64(searches); pulses.P > surely {
		return nil
	}
	is := c.over(list, &pulses)
	if !is.falls() {
		return nil
	}
	return &emptied{pulses: pulses, before: is.share(1), after: is.share(0), requests: is.requests}
}

// A sides sums up prompts that come behind the times at which a cache may have been emptied, and the others.
type sides struct {
	cached, tokens [2]float64
	shares         [2][]float64
	length         [2]float64
	requests       []int // that are under way then
}

// over divides prompts by pulses.
func (c *Caches) over(list []prompt, p *changepoint.Pulses) (s sides) {
	for i := range list {
		x, side := &list[i], 1
		if at := c.seconds(x.at); p.Over(at, at) > 0 {
			side = 0
		}
		if p.Over(c.seconds(x.at), c.seconds(c.set.Requests[x.request].End)) > 0 {
			s.requests = append(s.requests, x.request)
		}
		s.cached[side], s.tokens[side] = s.cached[side]+x.share*x.tokens, s.tokens[side]+x.tokens
		s.shares[side] = append(s.shares[side], x.share)
	}
	if len(list) > 0 {
		s.length[0] = p.Length * float64(p.Count)
		s.length[1] = max(0, c.seconds(list[len(list)-1].at)-c.seconds(list[0].at)-s.length[0])
	}
	return s
}

// share returns which part of the tokens of prompts is cached on a side.
func (s *sides) share(side int) float64 {
	return distribution.Ratio(s.cached[side], s.tokens[side])
}

// falls reports whether a cache has less behind these times, and not only for others who ask then: of those who have most of
// their prompts cached otherwise, hardly any has. A cache that was emptied has them again when each has asked once.
func (s *sides) falls() bool {
	const least, most, kept = 0.1, 0.75, 0.6
	if len(s.shares[0]) == 0 || len(s.shares[1]) == 0 || s.share(1)-s.share(0) < least {
		return false
	}
	sorted := slices.Sorted(slices.Values(s.shares[1]))
	limit := sorted[int((1-most)*float64(len(sorted)))]
	rate := func(side int) float64 {
		n := order.Count(s.shares[side], func(v float64) bool { return v >= limit })
		return distribution.Ratio(float64(n), s.length[side])
	}
	return limit > 0 && rate(0) <= kept*rate(1)
}

func (c *Caches) seconds(t trace.Time) float64 { return float64(t-c.from) / 1e9 }

func (c *Caches) time(s float64) trace.Time { return c.from + trace.Time(s*1e9) }

// Findings tells which caches are emptied, and what computing their prompts again costs: these, and those that wait behind them.
func (c *Caches) Findings(b *cause.Costs) []finding.Finding {
	var out []finding.Finding
	for i := range c.found {
		e := &c.found[i]
		since := c.time(e.pulses.Begin(0))
		f := finding.Finding{
			Kind: finding.Change, Subkind: finding.CachedTokens, At: e.at, Since: since, Within: trace.Time(e.pulses.Length * 1e9 / 2), P: finding.Chance(e.pulses.P), MoreWork: true,
			Text: e.sentence(c), Metric: finding.Metric{Name: finding.CachedTokens, Unit: table.Share, Before: e.before, After: e.after},
			Affected: finding.AffectedOf(c.set, order.Distinct(slices.Clone(e.requests))),
			Evidence: []finding.Evidence{finding.Sentence("%s if caches were emptied at any times", words.Chance(e.pulses.P))},
		}
		if c.time(e.pulses.Begin(e.pulses.Count)) < c.last {
			f.Until = c.time(e.pulses.Begin(e.pulses.Count-1) + e.pulses.Length)
		}
		for k := range e.pulses.Count {
			span := cause.Span{From: c.time(e.pulses.Begin(k)), Until: c.time(e.pulses.Begin(k) + e.pulses.Length), At: e.at}
			f.Claim = f.Claim.And(b.Uncached(span, e.before))
		}
		f.Claim = f.Claim.And(b.Beyond(e.requests, cause.OverloadCauses...)) // whoever waits behind these prompts
		out = append(out, f)
	}
	return b.Price(out)
}

// sentence says how often caches are emptied, and where.
func (e *emptied) sentence(c *Caches) string {
	const toSecond = "15:04:05"
	p := &e.pulses
	first, last := c.time(p.Begin(p.Seen[0])), c.time(p.Begin(p.Seen[len(p.Seen)-1]))
	return fmt.Sprintf("%s falls from %s to %s %% for about %s every %s, %s between %s and %s: those who have most of their prompts in the cache compute them again then (is it flushed?)",
		e.subject(), words.InPercent(e.before), words.InPercent(e.after), words.Nearly(int64(p.Length*1e9)), words.Nearly(int64(p.Every*1e9)),
		words.Counted(len(p.Seen), "time"), words.At(first, toSecond), words.At(last, toSecond))
}

// subject says whose caches they are.
func (e *emptied) subject() string {
	switch {
	case e.at.Scope == place.OneRank:
		return e.at.DP() + "'s " + finding.CachedTokens
	case e.ranks < e.all:
		return fmt.Sprintf("%s on %d of %d %s servers", finding.CachedTokens, e.ranks, e.all, e.at.Role)
	case e.all == 2:
		return fmt.Sprintf("%s on both %s servers", finding.CachedTokens, e.at.Role)
	}
	return fmt.Sprintf("%s on all %d %s servers", finding.CachedTokens, e.all, e.at.Role)
}

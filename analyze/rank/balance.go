package rank

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/sgtrace/sgtrace/analyze/cause"
	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/straggler"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// A loadBalance is how requests are divided among the lead ranks that could have served them.
type loadBalance struct {
	Ranks []*Load // lead ranks of a group of peers, in order of display
	Like  string  // what the group has in common, in a sentence: see [Ranks.ofGroup]
	Most  *Load   // the rank with the largest share
	// Even is the share that Most would have if routing were even among the ranks present at a time. A rank is
	// present from the first request that it gets to the last.
	Even float64
	// P bounds the probability that any rank gets such a share if routing is even.
	P float64
	// Cost is how much longer requests take because of it, as a fraction of the E2E of all: those on Most wait longer
	// than those elsewhere, and their decode steps are slower.
	Cost float64
	// Uneven says that the division is worth reporting: it is not chance, it is large, and it costs time.
	Uneven bool
}

// minOverload is how many times its even share of the requests a rank must have to be worth reporting, and minTokens
// the same for tokens: a router that balances tokens sends fewer requests where they are long. That costs little
// where there is room for all; minCost is the least cost, as a fraction of the E2E.
const (
	minOverload = 1.25
	minTokens   = 1.1
	minCost     = 0.01
)

// Routing is judged in blocks of consecutive requests.
const (
	routesInBlock = 8
	minBlocks     = 8
)

// balances judges the division of every group of peers with several lead ranks.
func (r *Ranks) balances() []loadBalance {
	var all []loadBalance
	for _, leads := range r.peerLeads() {
		if len(leads) > 1 {
			d := r.newBalance(leads, r.unrouted[leads[0].Location.Role])
			d.Like = r.ofGroup(leads[0])
			all = append(all, d)
		}
	}
	return all
}

// newBalance judges a division. unrouted is the number of requests on an unknown rank, which may all have gone to the
// other ranks.
func (r *Ranks) newBalance(leads []*Load, unrouted int) loadBalance {
	requests := unrouted + order.Sum(leads, func(l *Load) int { return int(l.Requests) })
	d := loadBalance{Ranks: leads, Most: slices.MaxFunc(leads, func(a, b *Load) int { return cmp.Compare(a.Requests, b.Requests) })}
	all := d.routes()
	for i := range all {
		d.Even += all[i].even / float64(len(all))
	}
	d.P = d.probability(all)
	d.Cost = d.cost(float64(r.e2e))
	d.Uneven = d.P <= straggler.ErrorLevel && d.Cost >= minCost &&
		float64(d.Most.Requests)/float64(requests) >= minOverload*d.Even && (math.IsNaN(d.Most.TokenShare) || d.Most.TokenShare >= minTokens*d.Even)
	return d
}

// probability tests with Student's t whether the share of the busiest rank is even, in blocks of consecutive
// requests, because requests of a session may well go to one rank.
func (d *loadBalance) probability(all []balancedRoute) float64 {
	blocks := min(straggler.MaxBlocksJudged, len(all)/routesInBlock)
	if blocks < minBlocks {
		return 1
	}
	shares := make([]float64, blocks)
	for b := range shares {
		of := all[b*len(all)/blocks : (b+1)*len(all)/blocks]
		for i := range of {
			if shares[b] -= of[i].even / float64(len(of)); of[i].own {
				shares[b] += 1 / float64(len(of))
			}
		}
	}
	n := float64(len(d.Ranks))
	mean, deviation := stat.MeanStdDev(shares, nil)
	t := distribution.Ratio(mean, stat.StdErr(deviation, float64(blocks)))
	if math.IsNaN(t) {
		return 1 // the share is even, and does not vary
	}
	return min(1, n*distuv.StudentsT{Sigma: 1, Nu: float64(blocks - 1)}.Survival(t))
}

// A balancedRoute is a request that went to a rank: whether it went to the busiest one, and the probability of that
// if routing were even.
type balancedRoute struct {
	at   trace.Time
	own  bool
	even float64
}

// routes returns the routes of all requests, sorted by time.
func (d *loadBalance) routes() []balancedRoute {
	const byChance = 0.001
	var first, last []int // sorted: the first request of each rank, and the one after its last
	all := memory.Make[balancedRoute](0)
	for _, l := range d.Ranks {
		for _, at := range l.arrivals {
			all = memory.Append(all, balancedRoute{at: at, own: l == d.Most})
		}
	}
	slices.SortStableFunc(all, func(x, y balancedRoute) int { return int(min(1, max(-1, x.at-y.at))) })
	for _, l := range d.Ranks {
		if len(l.arrivals) == 0 {
			continue
		}
		place := func(t trace.Time) int {
			k, _ := slices.BinarySearchFunc(all, t, func(x balancedRoute, t trace.Time) int { return cmp.Compare(x.at, t) })
			return k
		}
		from, to := place(slices.Min(l.arrivals)), place(slices.Max(l.arrivals)+1)
		others := 1 - float64(len(l.arrivals))/float64(to-from)
		// A rank that is missing from so few requests may be missing by chance.
		if math.Pow(others, float64(from)) > byChance {
			from = 0
		}
		if math.Pow(others, float64(len(all)-to)) > byChance {
			to = len(all)
		}
		first, last = append(first, from), append(last, to)
	}
	slices.Sort(first)
	slices.Sort(last)
	begun, gone := 0, 0
	for i := range all {
		for begun < len(first) && first[begun] <= i {
			begun++
		}
		for gone < len(last) && last[gone] <= i {
			gone++
		}
		all[i].even = 1 / float64(max(1, begun-gone))
	}
	return all
}

// cost returns how much longer requests take on the busiest rank, averaged over all requests, as a fraction of e2e,
// the mean E2E in ns.
func (d *loadBalance) cost(e2e float64) float64 {
	longer := 0.0
	if own, others := d.usual(func(l *Load) int64 { return l.Queue }); others >= 0 {
		longer += max(0, own-others)
	}
	if own, others := d.usual(func(l *Load) int64 { return l.Step }); others >= 0 && d.Most.Output > 0 {
		longer += max(0, own-others) * float64(d.Most.Output) / float64(d.Most.Requests)
	}
	if e2e <= 0 {
		return 0
	}
	return longer * d.Most.Share / e2e
}

// usual returns a duration on the busiest rank, and the mean of the others; request.Unknown if either is missing.
func (d *loadBalance) usual(of func(*Load) int64) (own, others float64) {
	n := 0.0
	for _, l := range d.Ranks {
		if ns := of(l); l != d.Most && ns != request.Unknown {
			others += float64(ns)
			n++
		}
	}
	if n == 0 || of(d.Most) == request.Unknown {
		return request.Unknown, request.Unknown
	}
	return float64(of(d.Most)), others / n
}

// text says in a sentence which rank has the most requests, and what that does.
func (d *loadBalance) text() string {
	text := fmt.Sprintf("%s gets %s %% of the requests that %d ranks%s share", d.name(), words.InPercent(d.Most.Share), len(d.Ranks), d.Like)
	if !math.IsNaN(d.Most.TokenShare) {
		text += fmt.Sprintf(" and %s %% of the tokens", words.InPercent(d.Most.TokenShare))
	}
	if own, others := d.usual(func(l *Load) int64 { return l.Queue }); others >= 0 && own > others {
		text += fmt.Sprintf("; its requests wait %s on average, requests on the other ranks wait %s", words.Nearly(int64(own)), words.Nearly(int64(others)))
	}
	return text
}

// name names the busiest rank in a sentence, by its DP rank, because it stands for all ranks that do the same work.
func (d *loadBalance) name() string {
	p := d.Most.Location
	if p.Rank.DP < 0 {
		return p.String()
	}
	return p.DP()
}

// evidence says that it is not chance, and what else differs on the busiest rank.
func (d *loadBalance) evidence() []finding.Evidence {
	row := rowOf(&d.Most.Location)
	list := []finding.Evidence{finding.Sentence("%s if requests were routed evenly", words.Chance(d.P)).In("ranks.share", row, "share", d.Most.Share)}
	if own, others := d.usual(func(l *Load) int64 { return l.Step }); others >= 0 && own > others {
		list = append(list, finding.Sentence("its decode steps take %s (p50), those of the other ranks %s", words.Nearly(int64(own)), words.Nearly(int64(others))).
			In("ranks", row, "step_ns", float64(d.Most.Step)))
	}
	running := order.Sum(d.Ranks, func(l *Load) float64 { return l.Running })
	return append(list, finding.Sentence("it runs %s requests at a time on average; the %d ranks together run %s",
		words.ThreeDigits(d.Most.Running), len(d.Ranks), words.ThreeDigits(running)).In("ranks", row, "running", d.Most.Running))
}

// finding returns the finding of an uneven division.
func (d *loadBalance) finding(b *cause.Costs) finding.Finding {
	return finding.Finding{
		At: d.Most.Location, Text: d.text(), Evidence: d.evidence(), Claim: d.claim(b), P: finding.Chance(d.P),
		Metric: finding.Metric{Name: "share of requests", Unit: table.Share, Before: d.Even, After: d.Most.Share},
	}
}

// claim charges the time that requests on the busiest rank wait and decode longer than on the others.
func (d *loadBalance) claim(b *cause.Costs) finding.Claim {
	longer := func(of func(*Load) int64) float64 {
		own, others := d.usual(of)
		return max(0, 1-distribution.Ratio(others, own))
	}
	on := cause.Span{At: d.Most.Location}
	return b.Slowed(on, longer(func(l *Load) int64 { return l.Queue }), cause.Queue, cause.DecodeBootstrap, cause.DecodeQueue).
		And(b.Slowed(on, longer(func(l *Load) int64 { return l.Step }), cause.Decode, cause.Interference))
}

// IdleSubkind is the subkind of findings about DP ranks without requests.
const IdleSubkind = "idle DP rank"

// idleRanks returns DP ranks that get no requests, or none from some point on, while the other DP ranks of their
// server get so many that chance would have sent some there. Ranks are numbered without gaps, so a missing number
// between others is a rank that never had a request. It skips roles with requests on an unknown rank, which may have
// gone there.
func (r *Ranks) idleRanks() (out []finding.Finding) {
	arrivals := map[place.Location]map[int16][]trace.Time{} // by server and DP rank
	var servers []place.Location
	for _, l := range r.Loads {
		at := l.Location
		if !l.Lead || at.Rank.DP < 0 || r.unrouted[at.Role] > 0 {
			continue
		}
		at.Rank = trace.NoRank
		if arrivals[at] == nil {
			arrivals[at] = map[int16][]trace.Time{}
			servers = append(servers, at)
		}
		dp := l.Location.Rank.DP
		arrivals[at][dp] = append(arrivals[at][dp], l.arrivals...)
	}
	for _, at := range servers {
		out = append(out, idleOf(at, arrivals[at])...)
	}
	return out
}

// idleOf is idleRanks for one server. arrivals is when requests came to each of its DP ranks.
func idleOf(at place.Location, arrivals map[int16][]trace.Time) (out []finding.Finding) {
	var all []trace.Time
	least, most := int16(math.MaxInt16), int16(0)
	for rank, list := range arrivals {
		all = append(all, list...)
		least, most = min(least, rank), max(most, rank)
	}
	slices.Sort(all)
	ranks := int(most-least) + 1
	for rank := least; rank <= most; rank++ {
		since := trace.Time(0)
		if list := arrivals[rank]; len(list) > 0 {
			since = slices.Max(list)
		}
		after, _ := slices.BinarySearch(all, since+1)
		n := len(all) - after
		if p := math.Pow(1-1/float64(ranks), float64(n)); ranks < 3 || n < routesInBlock*minBlocks || p > straggler.ErrorLevel {
			continue
		}
		f := finding.Finding{Subkind: IdleSubkind, At: at, Since: since, Confidence: finding.Certain, Metric: finding.Metric{Name: "share of requests", Unit: table.Share, Before: 1 / float64(ranks)}}
		f.At.Rank.DP = rank
		f.Text = fmt.Sprintf("%s gets no requests", f.At.DP())
		if since != 0 {
			f.Text += " since " + words.TimeOfDay(since)
		}
		f.Text += fmt.Sprintf(", while the other %d DP ranks of its server get %s", ranks-1, words.Thousands(int64(n)))
		out = append(out, f)
	}
	return out
}

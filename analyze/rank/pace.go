package rank

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/load"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/straggler"
	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/internal/parallel"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// A SlowServer is a lead rank that takes longer for its work than the others of its role. Nobody waits for it, so
// lateness does not show it, but the requests on it are slow.
type SlowServer struct {
	*Load
	Kind StepKind
	Peer int    // number of ranks that it is compared with
	Like string // what these have in common, in a sentence: see [Ranks.ofGroup]
	// Own is how long a step takes on it, and Others how long it usually takes on the others, ns: a decode step with
	// Size requests, or a prefill of Size tokens.
	Own, Others int64
	Size        int64 // 0 if the time of a step does not depend on its size
	// Least is from how many tokens on prefills take longer; 0 if all do.
	Least int64
	// Since is when it became slow, with its 95 % bounds; zero if it always was.
	Since, Earliest, Latest trace.Time
	// Cost is how much longer requests take because of it, as a fraction of the E2E of all, and OwnCost as a fraction
	// of the E2E of the requests on it.
	Cost, OwnCost float64

	judged straggler.Straggler
	// held is how much longer the answers decoded on it waited for its prefills, in ns, by request; nil if decode
	// steps record that, or if they did not wait.
	held map[int]int64
	// own is how much longer its prefills of Least tokens or more took, in ns, by request; nil if all prefills are slow.
	own map[int]int64
}

// minSlower is the least slowdown worth reporting, as a fraction of a step.
const (
	minSlower = 0.1
	// minPaced is the fewest steps that a server is judged by.
	minPaced = 20
	// maxLoad is how many times its even share a slow server may have. Steps with more requests take longer, and that
	// is another finding.
	maxLoad = 1.1
)

// comparePaces compares how long peers take for their work.
func (r *Ranks) comparePaces(of *place.RankSet, steps [timed][][]paced, e2e e2eSum) {
	groups := r.peerLeads()
	slow := make([][]SlowServer, len(groups)*timed)
	for _, leads := range groups {
		for kind := range timed {
			r.paced = max(r.paced, comparable(of, leads, steps[kind]))
		}
	}
	parallel.Each(len(slow), func(i int) {
		p := paceOf(StepKind(i%timed), of, groups[i/timed], steps, 0)
		if slow[i] = p.slow(e2e); len(slow[i]) == 0 && p.kind == PrefillStep {
			slow[i] = p.slowIfLarge(of, groups[i/timed], steps, e2e)
		}
		memory.Free(p.steps)
	})
	for _, s := range slices.Concat(slow...) {
		s.Like = r.ofGroup(s.Load)
		rank := of.At[s.Location]
		switch {
		case s.Least > 0:
			s.chargeLarge(steps[PrefillStep][rank], steps[DecodeStep][rank])
		case s.Kind == PrefillStep:
			s.held = heldUp(steps[DecodeStep][rank], s.Since, s.judged.Until, s.slower())
		}
		r.Slow = append(r.Slow, s)
	}
	r.heldBy(of, steps[DecodeStep])
	for _, ofRanks := range steps {
		for _, list := range ofRanks {
			memory.Free(list)
		}
	}
}

// An e2eSum is the total time of finished requests, of all and of those on each lead rank, in ns.
type e2eSum struct {
	all float64
	on  map[place.Location]float64
}

func finishedE2E(of *place.RankSet, all load.Bulk) e2eSum {
	sum := e2eSum{on: map[place.Location]float64{}}
	for i := range of.Set.AllRequests() {
		if r := &of.Set.Requests[i]; r.Status == request.Finished {
			sum.all += float64(max(0, r.Metrics.E2E))
		}
	}
	for p := range of.Set.ServingParts {
		r := &of.Set.Requests[p.Request]
		if _, rank := of.Lead(p); rank != request.None && r.Status == request.Finished && all.Holds(r) {
			sum.on[of.Places[rank]] += float64(max(0, r.Metrics.E2E))
		}
	}
	return sum
}

// A pace holds the steps of one kind on the servers of one group of peers.
type pace struct {
	kind  StepKind
	ranks []*Load
	steps []paced // of all ranks, sorted by time, scaled to one size
	size  int64   // that size; 0 if sizes are unknown or all equal
	cost  []int64 // total time of the steps of each rank, ns
}

// paceOf collects the steps of at least a given size of the lead ranks that have enough of them.
func paceOf(kind StepKind, of *place.RankSet, leads []*Load, steps [timed][][]paced, least int64) *pace {
	p := &pace{kind: kind}
	for _, l := range leads {
		list := steps[kind][of.At[l.Location]]
		if least > 0 {
			list = order.Only(list, func(x paced) bool { return x.size >= least })
		}
		if len(list) < minPaced {
			continue
		}
		sum := int64(0)
		for _, x := range list {
			x.rank = int32(len(p.ranks))
			p.steps = memory.Append(p.steps, x)
			sum += x.cost
		}
		p.ranks, p.cost = append(p.ranks, l), append(p.cost, sum)
	}
	slices.SortStableFunc(p.steps, func(x, y paced) int { return int(min(1, max(-1, x.at-y.at))) })
	p.equalSizes()
	return p
}

// slowIfLarge returns the servers that are slow only in large steps: of a half, a quarter, and so on, of all steps. Most prompts are
// short, so that what is slow about the cost of attention, or about memory for long ones, does not show in the median.
// The size from which on they are slow is the smallest that shows it.
func (p *pace) slowIfLarge(of *place.RankSet, leads []*Load, steps [timed][][]paced, e2e e2eSum) []SlowServer {
	const finer = 8 // sizes to try between those for a part of the steps and for half of that part
	sizes := order.EachRow(p.steps, func(x *paced) int64 { return x.size })
	slices.Sort(sizes)
	n := len(sizes)
	from := func(count int) []SlowServer {
		least := sizes[n-count]
		large := paceOf(p.kind, of, leads, steps, least)
		defer memory.Free(large.steps)
		found := large.slow(e2e)
		for i := range found {
			found[i].Least = least
		}
		return found
	}
	for _, part := range [...]int{2, 4, 8, 16} {
		if n < part*minPaced {
			break
		}
		found := from(n / part)
		if len(found) == 0 {
			continue
		}
		for k := finer - 1; k > 0; k-- {
			if more := from(n/part + k*n/part/finer); len(more) > 0 {
				return more
			}
		}
		return found
	}
	return nil
}

// chargeLarge sets what large prefills cost: the requests themselves, and those whose decoding waited for them.
func (s *SlowServer) chargeLarge(prefills, answers []paced) {
	s.own, s.held = map[int]int64{}, map[int]int64{}
	var slow []request.Interval
	for i := range prefills {
		if x := &prefills[i]; x.size >= s.Least && x.at >= s.Since && (s.judged.Until == 0 || x.at < s.judged.Until) {
			s.own[int(x.of)] += int64(s.slower() * float64(x.ns))
			slow = append(slow, request.Interval{From: x.at, To: x.end()})
		}
	}
	covered := request.NewCoverage(slow)
	for i := range answers {
		if x := &answers[i]; x.whole && x.held > 0 {
			s.held[int(x.of)] += int64(s.slower() * float64(covered.Overlap(x.at, x.at+trace.Time(x.cost+x.held))))
		}
	}
}

// equalSizes scales the time of every step to the median size, by how long sizes usually take, because requests stay
// longer on a slow server, so that it has more of them in a step. Prefills without a fit are not compared.
func (p *pace) equalSizes() {
	fit := p.sizeFit()
	if fit.N == 0 {
		if p.kind == PrefillStep {
			p.steps = nil
		}
		return
	}
	sizes := memory.Make[int64](len(p.steps))
	for i := range p.steps {
		sizes[i] = p.steps[i].size
	}
	p.size = distribution.LowerMedian(sizes)
	memory.Free(sizes)
	usual := float64(fit.Expected(p.size))
	for i := range p.steps {
		if x := &p.steps[i]; x.size > 0 {
			x.ns = int64(float64(x.ns) * usual / float64(max(1, fit.Expected(x.size))))
		}
	}
}

// maxFitted is about how many steps sizeFit looks at.
const maxFitted = 1 << 15

// sizeFit fits the time of steps to their size. A slow server has larger steps, because more requests wait or stay
// there. So it first fits the steps of the busiest server, then scales the steps of each other server to the speed of
// the busiest one, and fits all of them.
func (p *pace) sizeFit() distribution.SizeFit {
	var some []paced
	counts := make([]int, len(p.ranks))
	for i := 0; i < len(p.steps); i += 1 + len(p.steps)/maxFitted {
		if x := p.steps[i]; x.size > 0 {
			some = append(some, x)
			counts[x.rank]++
		}
	}
	busiest := 0
	for rank, n := range counts {
		if n > counts[busiest] {
			busiest = rank
		}
	}
	var sizes []distribution.Sized
	for _, x := range some {
		if int(x.rank) == busiest {
			sizes = append(sizes, distribution.Sized{Tokens: x.size, Ns: x.ns})
		}
	}
	first := distribution.FitSize(sizes)
	ratios := make([][]float64, len(p.ranks))
	for _, x := range some {
		if usual := first.Expected(x.size); usual > 0 {
			ratios[x.rank] = append(ratios[x.rank], float64(x.ns)/float64(usual))
		}
	}
	slower := make([]float64, len(p.ranks)) // factor relative to the busiest server
	for rank, list := range ratios {
		if slower[rank] = 1; len(list) > 0 {
			slower[rank] = distribution.LowerMedian(list)
		}
	}
	sizes = sizes[:0]
	for _, x := range some {
		sizes = append(sizes, distribution.Sized{Tokens: x.size, Ns: int64(min(float64(x.ns)/slower[x.rank], request.LongestRequest))})
	}
	return distribution.FitSize(sizes)
}

// slow returns the slow servers.
func (p *pace) slow(e2e e2eSum) []SlowServer {
	g := p.gather()
	if g == nil || e2e.all == 0 {
		return nil
	}
	var out []SlowServer
	for _, found := range g.Stragglers() {
		if found.Since != 0 && p.steps[0].whole {
			continue // package change dates slow answers better, because it knows when they end
		}
		s := SlowServer{Load: p.ranks[found.Rank], Kind: p.kind, Peer: len(p.ranks) - 1, Size: p.size,
			Since: found.Since, Earliest: found.Earliest, Latest: found.Latest, judged: found}
		if !s.evenLoad(len(p.ranks)) {
			continue
		}
		// The server must be slow in its fastest steps, too: they have few requests, so load makes no difference. And
		// because servers that prefill and decode in one batch decode during prefills, answers must take longer
		// including prefills, too.
		percentiles := append(p.percentiles(&found, func(x *paced) int64 { return x.ns }, 50, 10),
			p.percentiles(&found, (*paced).gross, 50)...)
		if slices.ContainsFunc(percentiles, func(of compared) bool { return float64(of.own-of.others) < g.Share*float64(of.others) }) {
			continue
		}
		s.Own, s.Others = percentiles[0].own, percentiles[0].others
		extra := float64(p.cost[found.Rank]) * found.Part * float64(s.Own-s.Others) / float64(s.Own)
		s.Cost, s.OwnCost = extra/e2e.all, distribution.Ratio(extra, e2e.on[s.Location])
		out = append(out, s)
	}
	return out
}

// heldUp returns how much longer answers waited, in ns by request, because the prefills of their server took longer
// by the fraction part.
func heldUp(answers []paced, since, until trace.Time, part float64) map[int]int64 {
	held := map[int]int64{}
	for i := range answers {
		if x := &answers[i]; x.whole && x.held > 0 && x.at >= since && (until == 0 || x.at < until) {
			held[int(x.of)] += int64(part * float64(x.held))
		}
	}
	return held
}

// heldBy sets the held answers of ranks that are late to begin prefills.
func (r *Ranks) heldBy(of *place.RankSet, answers [][]paced) {
	for _, g := range r.starts {
		if g.Kind != prefillStart {
			continue
		}
		g.held = make([]map[int]int64, len(g.Stragglers))
		for i := range g.Stragglers {
			s := &g.Stragglers[i]
			team := s.Location.Team()
			lead := slices.IndexFunc(of.Places, func(at place.Location) bool { return at.Team() == team && of.Leads[of.At[at]] })
			if lead >= 0 {
				g.held[i] = heldUp(answers[lead], s.Since, s.Until, s.LostShare)
			}
		}
	}
}

// comparable returns the second largest number of steps on a rank, or -1 if there are no two ranks to compare.
func comparable(of *place.RankSet, leads []*Load, steps [][]paced) int {
	var counts []int
	for _, l := range leads {
		if n := len(steps[of.At[l.Location]]); n > 0 {
			counts = append(counts, n)
		}
	}
	if len(counts) < 2 {
		return -1
	}
	slices.Sort(counts)
	return counts[len(counts)-2]
}

// gather makes sync points of the steps. At each, servers compare the medians of several steps, or single steps if
// there are so many servers that the usual time is clear. It returns nil for too few steps or servers.
func (p *pace) gather() *straggler.SyncSamples {
	const inSyncPoint, many, maxSyncPoints = 4, 8, 4 * straggler.MaxBlocksJudged
	if len(p.ranks) < 2 || len(p.steps) == 0 {
		return nil
	}
	counts := make([]int, len(p.ranks))
	for _, x := range p.steps {
		counts[x.rank]++
	}
	n := distribution.LowerMedian(counts)
	if len(p.ranks) < many {
		n /= inSyncPoint
	}
	n = min(maxSyncPoints, max(straggler.FewestSyncPoints, n))
	g := straggler.NewSyncSamples(make([]string, len(p.ranks)), 0)
	g.Share, g.Apart = minSlower, true
	g.Blur = int64(p.steps[len(p.steps)-1].at-p.steps[0].at) / int64(n)
	arrivals, took := make([]int64, len(p.ranks)), make([][]int64, len(p.ranks))
	for m := range n {
		steps := p.steps[m*len(p.steps)/n : (m+1)*len(p.steps)/n]
		for r := range took {
			took[r] = took[r][:0]
		}
		for _, x := range steps {
			took[x.rank] = append(took[x.rank], x.ns)
		}
		var there []int64
		for r := range took {
			arrivals[r] = straggler.NoArrival
			if len(took[r]) > 0 {
				arrivals[r] = distribution.LowerMedian(took[r])
				there = append(there, arrivals[r])
			}
		}
		g.Meet(steps[0].at, arrivals, distribution.LowerMedian(there))
	}
	return g
}

// compared is a percentile of a slow server's steps, and the median of the same percentile over the others, in ns.
type compared struct{ own, others int64 }

// percentiles compares percentiles of the steps of a slow server with those of the others, while it is slow.
func (p *pace) percentiles(s *straggler.Straggler, take func(*paced) int64, percents ...int) []compared {
	lists := make([][]int64, len(p.ranks))
	for i := range p.steps {
		if x := &p.steps[i]; x.at >= s.Since && (s.Until == 0 || x.at < s.Until) {
			lists[x.rank] = append(lists[x.rank], take(x))
		}
	}
	out := make([]compared, len(percents))
	for i, percent := range percents {
		var rest []int64
		for r, list := range lists {
			switch {
			case len(list) == 0:
			case r == s.Rank:
				out[i].own = distribution.Percentile(list, percent)
			default:
				rest = append(rest, distribution.Percentile(list, percent))
			}
		}
		if out[i].others = out[i].own; len(rest) > 0 {
			out[i].others = distribution.LowerMedian(rest)
		}
	}
	return out
}

// evenLoad reports whether a server has about its even share, or less, of the requests or of the tokens; a few long
// requests may have many of the tokens. Some servers get more of a small number of requests by chance.
func (s *SlowServer) evenLoad(ranks int) bool {
	const chance = 0.01
	if !(min(s.Share, s.TokenShare)*float64(ranks) > maxLoad) {
		return true
	}
	all := distuv.Binomial{N: math.Round(float64(s.Requests) / s.Share), P: 1 / float64(ranks)}
	return all.Survival(float64(s.Requests-1)) > chance
}

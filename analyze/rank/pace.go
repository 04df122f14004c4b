package rank

import (
	"slices"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/load"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/straggler"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// A SlowServer is a lead rank that takes longer for its work than the others of its
// role do for theirs. Nobody waits for it, so that no lateness tells of it, but the
// requests on it are slow.
type SlowServer struct {
	*Load
	Kind StepKind
	Peer int // ranks that it is compared with
	// Own is how long a step takes it, and Others what is usual of the others: of
	// decode steps medians, of prefills those for a prompt of Prompt tokens; ns.
	Own, Others, Prompt int64
	// Since is when it became slow, with its bounds of 95 %; zero if it always was.
	Since, Earliest, Latest trace.Time
	// Cost is by how much longer requests take for it, as part of the E2E of all.
	Cost float64

	judged straggler.Straggler
}

// leastSlower is the part of a step by which a server has to be slower before that is
// worth telling. Of two servers nobody knows which is the usual one, so that it is
// more.
const (
	leastSlower      = 0.1
	leastSlowerOfTwo = 0.25
	// mostLoad is how many times its even share a slow server may have: steps of more
	// requests take longer, and that is another finding.
	mostLoad = 1.1
)

// A paced is a step of a request on a lead rank.
type paced struct {
	at     trace.Time
	ns     int64
	tokens int64 // of a prefill: that were computed
	rank   int   // among those that are compared
}

// measurePaces compares how long the servers of every role take for their work.
func (r *Ranks) measurePaces(of *place.RankSet, all load.Bulk) {
	steps := collectPaces(of, all)
	total := float64(totalE2E(of.Set))
	for _, role := range request.ServingRoles {
		leads := r.leads(role)
		for kind := range rankSteps {
			p := paceOf(StepKind(kind), of, leads, steps)
			r.paced = max(r.paced, p.fewest())
			r.Slow = append(r.Slow, p.slow(total)...)
		}
	}
}

// totalE2E sums up the finished requests, in ns.
func totalE2E(s *request.Set) int64 {
	sum := int64(0)
	for i := range s.Requests {
		if r := &s.Requests[i]; r.Status == request.Finished {
			sum += max(0, r.Metrics.E2E)
		}
	}
	return sum
}

// collectPaces returns the steps of the lead threads, by kind and place.
func collectPaces(of *place.RankSet, all load.Bulk) [len(rankSteps)][][]paced {
	var steps [len(rankSteps)][][]paced
	for kind := range steps {
		steps[kind] = make([][]paced, len(of.Places))
	}
	s := of.Set
	of.EachPart(func(p *request.Part) {
		req := &s.Requests[p.Request]
		thread, rank := of.Lead(p)
		if thread == request.None || rank == request.None || !all.Holds(req) {
			return
		}
		prefill := paced{tokens: req.Metrics.PrefillTokens()}
		until := trace.Time(0)
		s.EachSelectedStage(s.Threads[thread].Stages, true, func(i int, _ bool) {
			span := s.Row(i)
			if span.End <= span.Start || !request.Plausible(span.Start, span.End) {
				return
			}
			switch span.Means {
			case request.Stepping:
				steps[DecodeStep][rank] = append(steps[DecodeStep][rank], paced{at: span.Start, ns: int64(span.End - span.Start)})
			case request.Prefilling, request.PrefillingChunk:
				if span.Start < until {
					return // a chunk that is within
				}
				if until = span.End; prefill.ns == 0 {
					prefill.at = span.Start
				}
				prefill.ns += int64(span.End - span.Start)
			}
		})
		if prefill.ns > 0 && prefill.tokens > 0 && req.Metrics.Retractions <= 0 {
			steps[PrefillStep][rank] = append(steps[PrefillStep][rank], prefill)
		}
	})
	return steps
}

// A pace is what the servers of one role do in steps of one kind.
type pace struct {
	kind   StepKind
	ranks  []*Load
	steps  []paced // of all ranks, by time; prefills as if of one size
	prompt int64   // that size
	cost   []int64 // of every rank: how long all its steps took, ns
}

// paceOf collects the steps of the lead ranks that have any.
func paceOf(kind StepKind, of *place.RankSet, leads []*Load, steps [len(rankSteps)][][]paced) *pace {
	p := &pace{kind: kind}
	for _, l := range leads {
		list := steps[kind][of.At[l.Where]]
		if len(list) == 0 {
			continue
		}
		sum := int64(0)
		for _, x := range list {
			x.rank = len(p.ranks)
			p.steps = append(p.steps, x)
			sum += x.ns
		}
		p.ranks, p.cost = append(p.ranks, l), append(p.cost, sum)
	}
	slices.SortStableFunc(p.steps, func(x, y paced) int { return int(min(1, max(-1, x.at-y.at))) })
	if kind == PrefillStep {
		p.equalPrompts()
	}
	return p
}

// equalPrompts makes of every prefill how long it would have taken for a prompt of
// median size, going by what sizes usually take. Without a fit nothing is compared.
func (p *pace) equalPrompts() {
	var sizes []distribution.Sized
	var tokens []int64
	for _, x := range p.steps {
		sizes, tokens = append(sizes, distribution.Sized{Tokens: x.tokens, Ns: x.ns}), append(tokens, x.tokens)
	}
	fit := distribution.FitSize(sizes)
	if fit.N == 0 {
		p.steps = nil
		return
	}
	p.prompt = distribution.LowerMedian(tokens)
	usual := float64(fit.Expected(p.prompt))
	for i := range p.steps {
		x := &p.steps[i]
		x.ns = int64(float64(x.ns) * usual / float64(max(1, fit.Expected(x.tokens))))
	}
}

// slow returns the servers that are slow.
func (p *pace) slow(total float64) []SlowServer {
	g := p.gather()
	if g == nil || total == 0 {
		return nil
	}
	var out []SlowServer
	for _, found := range g.Stragglers() {
		s := SlowServer{Load: p.ranks[found.Rank], Kind: p.kind, Peer: len(p.ranks) - 1, Prompt: p.prompt,
			Since: found.Since, Earliest: found.Earliest, Latest: found.Latest, judged: found}
		own, others := p.percentiles(&found, 50)
		fast, usual := p.percentiles(&found, 10)
		s.Own, s.Others = own, others
		// The fastest steps are those of few requests: there load makes no difference.
		if !s.evenLoad(len(p.ranks)) || float64(own-others) < g.Share*float64(others) || float64(fast-usual) < g.Share*float64(usual) {
			continue
		}
		s.Cost = float64(p.cost[found.Rank]) * found.Part * float64(own-others) / float64(own) / total
		out = append(out, s)
	}
	return out
}

// fewest is how many steps the rank with the fewest of them has; -1 if there are no ranks
// to compare.
func (p *pace) fewest() int {
	if len(p.ranks) < 2 || len(p.steps) == 0 {
		return -1
	}
	counts := make([]int, len(p.ranks))
	for _, x := range p.steps {
		counts[x.rank]++
	}
	return slices.Min(counts)
}

// gather makes sync points of the steps: the servers compare their medians wherever there
// are several steps of each. It returns nil for too few.
func (p *pace) gather() *straggler.Gathering {
	const inSyncPoint, mostSyncPoints = 4, 4 * straggler.MostBlocksJudged
	fewest := p.fewest()
	if fewest < straggler.FewestSyncPoints {
		return nil
	}
	n := min(mostSyncPoints, max(straggler.FewestSyncPoints, fewest/inSyncPoint))
	g := straggler.NewGathering(make([]string, len(p.ranks)), 0)
	g.Share = leastSlower
	if len(p.ranks) == 2 {
		g.Share = leastSlowerOfTwo
	}
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

// percentiles returns a percentile of the steps of a slow server in the time in which
// it is slow, and the median of those of the others.
func (p *pace) percentiles(s *straggler.Straggler, percent int) (own, others int64) {
	lists := make([][]int64, len(p.ranks))
	for _, x := range p.steps {
		if x.at >= s.Since && (s.Until == 0 || x.at < s.Until) {
			lists[x.rank] = append(lists[x.rank], x.ns)
		}
	}
	var rest []int64
	for r, list := range lists {
		slices.Sort(list)
		switch {
		case len(list) == 0:
		case r == s.Rank:
			own = request.NearestRank(list, percent)
		default:
			rest = append(rest, request.NearestRank(list, percent))
		}
	}
	if len(rest) == 0 {
		return own, own
	}
	return own, distribution.LowerMedian(rest)
}

// evenLoad reports whether a server has no more than its share, give or take, of the
// requests or of the tokens: a few long ones make much of the tokens.
func (s *SlowServer) evenLoad(ranks int) bool {
	return !(min(s.Share, s.TokenShare)*float64(ranks) > mostLoad)
}

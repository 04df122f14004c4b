package transfer

import (
	"cmp"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/cause"
	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// Transfers says how long requests waited for their KV cache after it was computed.
type Transfers struct {
	set     *request.Set
	N       int
	Median  int64                          // ns
	Usual   map[int32]distribution.SizeFit // by group of prefill servers: by the number of prompt tokens, while transfers were not slower in general
	Limit   int64                          // ns beyond what is usual from which a transfer is slow
	Slow    []Slow                         // sorted by the two ranks, then by start
	Least   int64                          // ns: the fastest slow transfer
	Longest int64                          // ns: the slowest transfer
	From    Sender                         // the prefill rank with most of the time of slow transfers
	Pairs   []Pair
	// Since is when transfers became slow, with its 95 % bounds; zero if slow transfers occur now and then. Until is
	// when that ended; zero if it did not.
	Since, Earliest, Latest, Until trace.Time
	Slower                         *Slower // nil unless all transfers became slower at Since
}

// Slower says by how much all transfers became slower.
type Slower struct {
	Times         float64 // how many times as long they take as their sizes explain: median
	Before, After int64   // ns that one takes: median
	beyond        map[int]int64
}

// A Sender is a prefill rank.
type Sender struct {
	Proc  int32   // index into Set.Procs
	Share float64 // of the time of slow transfers
	Only  bool    // all transfers are from it
}

// ranks are the two ends of a transfer, indexes into Set.Procs.
type ranks struct{ from, to int32 }

// A Pair sums up the transfers between two lead ranks, indexes into Set.Procs.
type Pair struct {
	From, To int32
	distribution.Summary
	Slow int
}

// A Slow transfer, between two lead ranks, indexes into Set.Procs, took far longer than its size explains.
type Slow struct {
	Request  int // index into Set.Requests
	From, To int32
	Took     int64 // ns
	Beyond   int64 // ns more than is usual for the prompt, and for those that are sent before it
}

// A moved is the KV transfer of a request.
type moved struct {
	request       int
	from, to      int32      // lead ranks, indexes into Set.Procs
	group         int32      // of prefill servers that do the same
	at            trace.Time // start of the request
	first         int64      // ns until its first token
	begins, ends  trace.Time // of sending, by the clock of the prefill server; both 0 if unknown
	tokens        int64
	took, expects int64 // ns: what it took according to both ends, as either may be busy when it is through; and what sizes explain
}

// ratio is how many times as long it took as sizes explain.
func (m *moved) ratio() float64 { return float64(max(1, m.took)) / float64(max(1, m.expects)) }

// Find finds the KV transfers that took far longer than sizes explain: longer by ten times the median deviation, and by the median
// time to the first token. It returns nil if there are too few to tell.
func Find(s *request.Set, list []cause.Attribution) *Transfers {
	all := collect(s, list)
	if len(all) < finding.FewCompared {
		return nil
	}
	x := &Transfers{set: s, N: len(all), Median: median(all, func(m *moved) int64 { return m.took })}
	x.fit(all, all)
	slowed := slowStretch(all)
	usual := all
	if slowed.to > slowed.from {
		usual = slices.Concat(all[:slowed.from], all[slowed.to:])
		x.fit(usual, all)
	}
	x.setLimit(usual)
	x.group(all)
	if !x.findSlower(all, slowed) {
		x.date(all)
	}
	return x
}

// collect returns the transfers whose requests were prefilled on one server and decoded on another, by the starts of the requests.
func collect(s *request.Set, list []cause.Attribution) (all []moved) {
	for i := range cause.Each(list) {
		a := &list[i]
		if !Disaggregated(s, a) {
			continue
		}
		r := &s.Requests[a.Request]
		m := moved{request: a.Request, from: a.Prefill, to: a.Answer, group: a.PrefillGroup, at: r.Start, first: a.First.Total(), tokens: max(0, r.Metrics.PromptTokens), took: a.First[cause.Transfer]}
		for _, p := range s.PartsOf(r) {
			if s.Parts[p].Role != request.Prefill {
				continue
			}
			if row := s.LastStage(s.Lead(&s.Parts[p]), request.Sending); row != nil && row.End > row.Start {
				m.begins, m.ends, m.took = row.Start, row.End, min(m.took, row.Dur())
			}
		}
		all = memory.Append(all, m)
	}
	slices.SortStableFunc(all, func(a, b moved) int { return cmp.Compare(a.at, b.at) })
	return all
}

// Disaggregated reports whether a was prefilled on one server and decoded on another, and the time to its first token
// is known.
func Disaggregated(s *request.Set, a *cause.Attribution) bool {
	prefill, decode := false, false
	for _, p := range s.PartsOf(&s.Requests[a.Request]) {
		prefill = prefill || s.Parts[p].Role == request.Prefill
		decode = decode || s.Parts[p].Role == request.Decode
	}
	return prefill && decode && a.First.Total() > 0
}

func median(list []moved, of func(*moved) int64) int64 {
	return distribution.LowerMedian(order.EachRow(list, of))
}

// fit sets what transfers usually take, and from that what sizes explain for all of them: a prefill server sends one after the
// other, so each waits for those that began before it and should not be through yet, and no longer than these really took.
func (x *Transfers) fit(usual, all []moved) {
	sized := func(m *moved) distribution.Sized { return distribution.Sized{Tokens: m.tokens, Ns: m.took} }
	groups := map[int32][]distribution.Sized{}
	for i := range all {
		groups[all[i].group] = nil
	}
	for i := range usual {
		groups[usual[i].group] = append(groups[usual[i].group], sized(&usual[i]))
	}
	together := distribution.FitSize(order.EachRow(usual, sized)) // for groups with too few
	x.Usual = map[int32]distribution.SizeFit{}
	for group, list := range groups {
		if x.Usual[group] = distribution.FitSize(list); x.Usual[group].N == 0 {
			x.Usual[group] = together
		}
	}
	type link struct{ free, ended trace.Time }
	links := map[int32]link{}
	const atOnce = trace.Time(1e6) // those of a batch begin at the same time, in any order
	for _, i := range order.Sorted(len(all), func(i, k int32) int {
		return cmp.Or(cmp.Compare(all[i].begins/atOnce, all[k].begins/atOnce), cmp.Compare(all[i].ends, all[k].ends))
	}) {
		m := &all[i]
		of := x.Usual[m.group]
		m.expects = of.Expected(m.tokens)
		if m.ends == 0 {
			continue
		}
		l := links[m.from]
		m.expects += int64(max(0, l.free-m.begins))
		l.ended = max(l.ended, m.ends)
		l.free = min(m.begins+trace.Time(m.expects), l.ended)
		links[m.from] = l
	}
}

// setLimit sets from when on a transfer is slow, by transfers of which few are.
func (x *Transfers) setLimit(usual []moved) {
	const deviations = 10
	beyond := order.EachRow(usual, func(m *moved) int64 { return m.took - m.expects })
	middle := distribution.LowerMedian(slices.Clone(beyond))
	for i, ns := range beyond {
		beyond[i] = max(ns-middle, middle-ns)
	}
	x.Limit = max(deviations*distribution.LowerMedian(beyond), median(usual, func(m *moved) int64 { return m.first }))
}

func (x *Transfers) isSlow(m *moved) bool { return m.took-m.expects >= x.Limit }

// group groups the transfers by the two ranks, and collects the slow ones.
func (x *Transfers) group(all []moved) {
	pairs, took, by := map[ranks]*Pair{}, map[ranks][]int64{}, map[int32]int64{}
	for i := range all {
		m := &all[i]
		key := ranks{m.from, m.to}
		p := order.Memo(pairs, key, func() *Pair { return &Pair{From: key.from, To: key.to} })
		took[key] = append(took[key], m.took)
		if !x.isSlow(m) {
			continue
		}
		if p.Slow++; len(x.Slow) == 0 || m.took < x.Least {
			x.Least = m.took
		}
		x.Longest = max(x.Longest, m.took)
		x.Slow = append(x.Slow, Slow{m.request, key.from, key.to, m.took, m.took - m.expects})
		by[key.from] += m.took
	}
	slices.SortStableFunc(x.Slow, func(p, q Slow) int { return slices.Compare([]int32{p.From, p.To}, []int32{q.From, q.To}) })
	senders := map[int32]bool{}
	for key, p := range pairs {
		senders[key.from] = true
		p.Summary = distribution.Summarize(took[key])
		x.Pairs = append(x.Pairs, *p)
	}
	slices.SortFunc(x.Pairs, func(p, q Pair) int { return slices.Compare([]int32{p.From, p.To}, []int32{q.From, q.To}) })
	x.From.Proc, x.From.Only = request.None, len(senders) == 1
	if most := order.Largest(by); len(most) > 0 {
		x.From.Proc, x.From.Share = most[0], distribution.Fraction(by[most[0]], order.SumRows(x.Slow, func(s *Slow) int64 { return s.Took }))
	}
}

// requests returns the requests with slow transfers, sorted by start.
func (x *Transfers) requests() []int {
	list := order.EachRow(x.Slow, func(s *Slow) int { return s.Request })
	slices.Sort(list)
	return list
}

// to sums up the transfers to a rank, and those to other ranks. there is empty unless several ranks send to it and
// each has slow transfers: those of a single sender don't point at the receiver.
func (x *Transfers) to(rank int32) (there, elsewhere Pair) {
	senders := 0
	for i := range x.Pairs {
		p, sum := &x.Pairs[i], &elsewhere
		if p.To == rank {
			sum = &there
			senders++
			if p.Slow == 0 {
				return Pair{}, elsewhere
			}
		}
		sum.N, sum.Slow = sum.N+p.N, sum.Slow+p.Slow
	}
	if senders < 2 {
		return Pair{}, elsewhere
	}
	return there, elsewhere
}

// share returns the share of transfers that are slow.
func (p *Pair) share() float64 { return distribution.Ratio(float64(p.Slow), float64(p.N)) }

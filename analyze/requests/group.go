package requests

import (
	"cmp"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// GroupStages groups the stages of all requests, the spans of gateways, and those of services without rules. It needs
// 20 B per span temporarily.
func GroupStages(s *request.Set, by []Dimension) *Stages {
	g := newGrouper(s, by)
	for r := range s.AllRequests() {
		g.addRequest(r)
	}
	s.EachRowBeside(func(i, proc int) { g.add(Spot{Span: i, Proc: proc, Request: request.None}) })
	return g.finish()
}

// A grouper collects durations by group.
type grouper struct {
	set     *request.Set
	axes    []*Axis
	whole   []int // axes that are whole dimensions
	ids     numbering
	codes   [][]int32 // by axis: the code of every group
	covered []int64   // ns, of every group
	scopes  numbering // of the codes on the whole axes
	e2e     []int64   // ns, by scope
	open    []visit   // spans of the current request
	out     Stages

	// All durations, and the group of each.
	durations []int64
	groups    []int32
}

// A numbering gives every sequence of codes a number, in the order in which it first sees them. It takes one step per
// code: the number so far and the code are a key, which gets a new number. No strings are involved.
type numbering struct {
	next []map[uint64]int32 // one per position in a sequence
}

func newNumbering(codes int) numbering {
	n := numbering{make([]map[uint64]int32, codes)}
	for i := range n.next {
		n.next[i] = map[uint64]int32{}
	}
	return n
}

// step returns the number of a sequence up to its i-th code, given the number of the codes before it.
func (n numbering) step(i int, before, code int32) int32 {
	key := uint64(before)<<32 | uint64(code)
	return order.Memo(n.next[i], key, func() int32 { return int32(len(n.next[i])) })
}

// A visit is the time of a span in a group.
type visit struct {
	group    int32
	from, to trace.Time
}

func newGrouper(s *request.Set, by []Dimension) *grouper {
	g := &grouper{
		set: s, out: Stages{By: by}, codes: make([][]int32, len(by)),
		durations: make([]int64, 0, s.Len()), groups: make([]int32, 0, s.Len()),
	}
	for i, d := range by {
		g.axes = append(g.axes, d.axis(s))
		if d.whole {
			g.whole = append(g.whole, i)
		}
	}
	g.ids, g.scopes = newNumbering(len(by)), newNumbering(len(g.whole))
	return g
}

// group returns the group of a spot, and adds it if it is new.
func (g *grouper) group(p Spot) int32 {
	id := int32(0)
	for i, a := range g.axes {
		id = g.ids.step(i, id, a.Code(p))
	}
	if int(id) == len(g.covered) {
		for i, a := range g.axes {
			g.codes[i] = append(g.codes[i], a.Code(p))
		}
		g.covered = append(g.covered, request.Unknown)
	}
	return id
}

// scope returns the number of the requests with the given codes on the whole axes.
func (g *grouper) scope(code func(axis int) int32) int32 {
	id := int32(0)
	for i, axis := range g.whole {
		id = g.scopes.step(i, id, code(axis))
	}
	for int(id) >= len(g.e2e) {
		g.e2e = append(g.e2e, 0)
	}
	return id
}

// add adds the span at p, unless its times cannot be right.
func (g *grouper) add(p Spot) {
	s := g.set.Row(p.Span)
	if g.set.Implausible(p.Span) {
		g.out.Implausible++
		return
	}
	if g.set.Again(p.Span) {
		g.out.Again++
		return
	}
	id := g.group(p)
	g.durations, g.groups = append(g.durations, s.Dur()), append(g.groups, id)
	if p.Request != request.None {
		g.open = append(g.open, visit{id, s.Start, s.End})
	}
}

// addRequest adds the stages of request r, and its gateway's spans.
func (g *grouper) addRequest(r int) {
	s := g.set
	req := &s.Requests[r]
	s.EachRowOf(r, func(i, proc int) { g.add(Spot{Span: i, Proc: proc, Request: r}) })
	scope := g.scope(func(axis int) int32 {
		return g.axes[axis].Code(Spot{Span: request.None, Proc: request.None, Request: r})
	})
	g.e2e[scope] = distribution.AddTimes(g.e2e[scope], int64(max(0, req.End-req.Start)))
	g.cover(req)
}

// cover adds to every group the time of the request that its spans cover.
func (g *grouper) cover(r *request.Request) {
	slices.SortFunc(g.open, func(x, y visit) int {
		return cmp.Or(cmp.Compare(x.group, y.group), cmp.Compare(x.from, y.from))
	})
	var until trace.Time // end of the time already counted for the group
	for i, v := range g.open {
		if i == 0 || g.open[i-1].group != v.group {
			until = r.Start
			g.covered[v.group] = max(0, g.covered[v.group])
		}
		from, to := max(v.from, until), min(v.to, r.End)
		if from < to {
			g.covered[v.group] = distribution.AddTimes(g.covered[v.group], int64(to-from))
			until = to
		}
	}
	g.open = g.open[:0]
}

// finish sorts the groups and summarizes them.
func (g *grouper) finish() *Stages {
	inOrder := g.order()
	durations := g.byGroup()
	texts := order.Each(g.axes, func(a *Axis) []string { return a.Text() })
	g.out.Groups = make([]Group, len(inOrder))
	keys := make([]string, 0, len(inOrder)*len(g.axes))
	var s distribution.Summarizer
	for i, id := range inOrder {
		for k := range g.axes {
			keys = append(keys, texts[k][g.codes[k][id]])
		}
		scope := g.scope(func(axis int) int32 { return g.codes[axis][id] })
		g.out.Groups[i] = Group{Key: keys[len(keys)-len(g.axes):], Summary: s.Summarize(durations[id]), Covered: g.covered[id], E2E: g.e2e[scope]}
	}
	return &g.out
}

// order returns the groups in the order of display.
func (g *grouper) order() []int32 {
	ranks := order.Each(g.axes, (*Axis).ranks)
	return order.Sorted(len(g.covered), func(x, y int32) int {
		for i, rank := range ranks {
			if c := cmp.Compare(rank[g.codes[i][x]], rank[g.codes[i][y]]); c != 0 {
				return c
			}
		}
		return 0
	})
}

// byGroup groups the durations.
func (g *grouper) byGroup() [][]int64 {
	counts := make([]int, len(g.covered))
	for _, id := range g.groups {
		counts[id]++
	}
	all := make([]int64, len(g.durations))
	out := make([][]int64, len(counts))
	next := 0
	for id, n := range counts {
		out[id] = all[next : next : next+n]
		next += n
	}
	for i, id := range g.groups {
		out[id] = append(out[id], g.durations[i])
	}
	return out
}

// Tokens describes how evenly one rank produced the tokens of a request.
type Tokens struct {
	Gaps distribution.Summary // between consecutive tokens
	// Outliers are the longest gaps, longest first: at most three, each at least twice the median.
	Outliers []Gap
}

// A Gap is the time between two consecutive tokens.
type Gap struct {
	Start trace.Time // the time of the earlier token
	Dur   int64      // ns
	Batch int64      // size of the last batch in the gap; request.Unknown
}

// measureTokens measures the gaps between tokens of thread t; nil if it has fewer than two tokens.
func measureTokens(s *request.Set, t int) *Tokens {
	times, batches := tokenTimes(s, t)
	if len(times) < 2 {
		return nil
	}
	gaps := make([]Gap, len(times)-1)
	durations := make([]int64, len(gaps))
	for i := range gaps {
		gaps[i] = Gap{Start: times[i], Dur: int64(times[i+1] - times[i]), Batch: batchBefore(batches, times[i+1])}
		durations[i] = gaps[i].Dur
	}
	out := &Tokens{Gaps: distribution.Summarize(durations)}
	slices.SortStableFunc(gaps, func(x, y Gap) int { return cmp.Compare(y.Dur, x.Dur) })
	for _, g := range gaps[:min(3, len(gaps))] {
		if g.Dur >= 2*out.Gaps.P50 {
			out.Outliers = append(out.Outliers, g)
		}
	}
	return out
}

// A batch is a schedule event: a batch that the request was put into.
type batch struct {
	time trace.Time
	size int64
}

// tokenTimes returns when thread t produced tokens, from the same stages as request.Set.TokenTimes for the lead rank,
// and the batches that it was in. Both are sorted by time.
func tokenTimes(s *request.Set, t int) (tokens []trace.Time, batches []batch) {
	role := s.Parts[s.Threads[t].Part].Role
	answers := role != request.Prefill && role != request.Sender
	for i := range s.ThreadRows(t) {
		if row := s.Row(i); answers && row.Means.GivesToken() {
			tokens = append(tokens, row.End)
		}
		for _, e := range s.InstantsOf(i) {
			if e.Batch != request.Unknown {
				batches = append(batches, batch{e.Time, int64(e.Batch)})
			}
		}
	}
	slices.Sort(tokens)
	slices.SortStableFunc(batches, func(x, y batch) int { return cmp.Compare(x.time, y.time) })
	return tokens, batches
}

// batchBefore returns the size of the last batch scheduled before t.
func batchBefore(batches []batch, t trace.Time) int64 {
	i, _ := slices.BinarySearchFunc(batches, t, func(b batch, t trace.Time) int { return cmp.Compare(b.time, t) })
	if i == 0 {
		return request.Unknown
	}
	return batches[i-1].size
}

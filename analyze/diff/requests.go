package diff

import (
	"cmp"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/diff/compare"
	"github.com/sgtrace/sgtrace/analyze/metric"
	"github.com/sgtrace/sgtrace/analyze/requests"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/internal/significance"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// A diffSpans collects durations of spans.
type diffSpans struct {
	*Collected
	set         *request.Set
	stage, rank *requests.Axis
	pieces      int
	groups      map[uint64]*diffGroup // by codes of stage (high 32 bits) and rank
	last        map[int32]int         // by code of a rank: the request that it was last counted for
	whole       map[int32]bool        // by code of a stage: a gateway's span that is a request
	values      []int64               // scratch: values of a metric in a request
}

// collectRequests reads the metrics and stages of all requests in a window. Everything that a
// request did belongs to the piece in which it starts.
func (d *Collected) collectRequests(s *request.Set, window *Capture) {
	from, to := window.From, window.To
	first, next := requestsIn(s, from, to)
	pieces := d.captures.Pieces(compare.CutOverlapping(s, s.Requests[first:next]))
	d.side.Requests, d.side.Finished = max(0, d.side.Requests)+int64(next-first), max(0, d.side.Finished)
	d.side.RequestPieces = pieces.N()
	c := &diffSpans{Collected: d, set: s, pieces: pieces.N(), groups: map[uint64]*diffGroup{}, last: map[int32]int{}, whole: map[int32]bool{},
		stage: requests.StageAxis(s), rank: requests.ProcAxis(s, diffRank)}
	metrics := make([]diffGroup, len(metric.Requests))
	for i := first; i < next; i++ {
		r := &s.Requests[i]
		piece := pieces.At(r.Start)
		d.side.widen(r.Start, r.End)
		d.requests.add("", piece, pieces.N(), 1)
		c.addRequest(i, piece)
		if r.Status == request.Finished {
			d.side.Finished++
			d.finished.add("", piece, pieces.N(), 1)
			c.addMetrics(metrics, r, piece)
		}
	}
	c.addOthers(pieces, from, to)
	for i := range metrics {
		m := metric.Requests[i]
		if m == metric.Unaccounted && s.Clocks.Moves() {
			continue // the remaining clock error would look like a change
		}
		if m != metric.ITL && m != metric.TPOT { // steps don't queue
			metrics[i].neighbors = significance.Queued
		}
		if metrics[i].pieces != nil {
			d.put(diffKey{Kind: Request, Name: m.Name}, &metrics[i])
		}
	}
	for proc, p := range s.Places() {
		if p.Role != "" {
			d.serving[diffRank(s, proc)] = true
		}
	}
	stages, ranks := c.stage.Text(), c.rank.Text()
	for code := range c.whole {
		d.outermost[stages[code]] = true
	}
	for codes, g := range c.groups {
		d.put(diffKey{Stage, stages[codes>>32], ranks[uint32(codes)]}, g)
	}
	d.measureLoads(s.Requests[first:next], pieces, window.SLO)
	if !window.Some {
		d.paces.AddServers(s, from, to, d.captures, pieces)
		d.paces.AddTokens(s, from, to, pieces)
	}
}

// requestsIn returns the index bounds of the requests that begin in [from, to); 0 is open. Set.Requests are ordered by start.
func requestsIn(s *request.Set, from, to trace.Time) (first, next int) {
	at := func(t trace.Time) int {
		i, _ := slices.BinarySearchFunc(s.Requests, t, func(r request.Request, t trace.Time) int { return cmp.Compare(r.Start, t) })
		return i
	}
	first, next = 0, len(s.Requests)
	if from != 0 {
		first = at(from)
	}
	if to != 0 {
		next = max(first, at(to))
	}
	return first, next
}

// diffRank names a rank without its host, which will be another one tomorrow. It takes ranks
// of several servers with the same role together.
func diffRank(s *request.Set, proc int) string {
	at := s.Place(proc)
	at.Host, at.Server = "", 0
	if p := &s.Procs[proc]; !p.Schedules {
		return s.Names.Process(at, p.Label)
	}
	return s.Names.Rank(at)
}

func (c *diffSpans) addMetrics(metrics []diffGroup, r *request.Request, piece int) {
	for k, m := range metric.Requests {
		c.values = m.Values(c.values[:0], c.set, r)
		for _, v := range c.values {
			metrics[k].add(piece, c.pieces, v, c.in)
		}
	}
}

// addRequest adds the stages of request r, and its gateway spans.
func (c *diffSpans) addRequest(r, piece int) {
	s := c.set
	for _, part := range s.PartsOf(&s.Requests[r]) {
		for _, t := range s.ThreadsOf(&s.Parts[part]) {
			c.addStages(s.StagesOf(t), requests.Spot{Proc: s.Threads[t].Proc, Request: r}, piece)
		}
	}
	for i := range s.GatewayRows(&s.Requests[r]) {
		if s.RequestOf(i) == r { // several requests may share it
			at := requests.Spot{Span: i, Proc: s.ProcOf(i), Request: r}
			if i == s.Requests[r].Gateway {
				c.whole[c.stage.Code(at)] = true
			}
			c.add(at, piece)
		}
	}
}

// addStages adds the given stages, and all below them.
func (c *diffSpans) addStages(stages []uint32, p requests.Spot, piece int) {
	for _, i := range stages {
		if c.set.Kind(int(i)) == request.Stage { // selected
			p.Span = int(i)
			c.add(p, piece)
		}
		if below := c.set.Tree.Children(int(i)); len(below) > 0 {
			c.addStages(below, p, piece)
		}
	}
}

// add adds the span at p, unless its times are implausible or it repeats another span, and counts its request for its rank.
func (c *diffSpans) add(p requests.Spot, piece int) {
	row := c.set.Row(p.Span)
	if c.set.Implausible(p.Span) || c.set.Again(p.Span) {
		return
	}
	rank := c.rank.Code(p)
	key := uint64(c.stage.Code(p))<<32 | uint64(uint32(rank))
	g := order.Memo(c.groups, key, func() *diffGroup { return &diffGroup{} })
	if row.Means.Phase() != request.DecodePhase { // steps don't queue
		g.neighbors = significance.Queued
	}
	g.add(piece, c.pieces, row.Dur(), c.in)
	if p.Request == request.None {
		return
	}
	if last, known := c.last[rank]; !known || last != p.Request {
		c.last[rank] = p.Request
		if name := c.rank.Text()[rank]; name != "" {
			c.requests.add(name, piece, c.pieces, 1)
		}
	}
}

// addOthers adds the spans that belong to no request. If there are no requests at all, it adds seconds, for totals per second.
func (c *diffSpans) addOthers(pieces *compare.Pieces, from, to trace.Time) {
	s := c.set
	if len(s.Requests) == 0 {
		first, last, _ := s.Bounds()
		if first = max(first, from); to != 0 {
			last = min(last, to)
		}
		c.side.widen(first, last)
		for i := range pieces.Own() {
			c.requests.add("", pieces.First+i, c.pieces, float64(last-first)/1e9/float64(pieces.Own()))
		}
	}
	for i := range s.All() {
		if at := s.Row(i).Start; at < from || to != 0 && at >= to {
			continue
		}
		if k := s.Kind(i); k == request.Generic || k == request.Gateway && s.RequestOf(i) == request.None {
			c.add(requests.Spot{Span: i, Proc: s.ProcOf(i), Request: request.None}, pieces.At(s.Row(i).Start))
		}
	}
}

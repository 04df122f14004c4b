package load

import (
	"cmp"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// A timelineBuilder makes one pass over the requests. Besides the buckets, it holds 16 B for every
// stage that it looks at, and for every outermost one.
type timelineBuilder struct {
	*Timeline
	set    *request.Set
	ranks  *place.RankSet
	bulk   Bulk
	all    *meter
	roles  [request.Other + 1]*meter
	meters []*meter // by rank
	brief  bool     // durations matter for decode steps of ranks only
}

// A meter measures one place.
type meter struct {
	location   place.Location
	lead       bool // of a rank: see place.RankSet.Leads
	parts      int  // of requests that it worked on
	prompts    bool // the lengths of prompts are known
	points     []Point
	loads      [noState]*Area
	busy       *Area
	computing  []request.Interval
	stages     [][]timed // by Timeline.Stages
	ttft, tpot []timed
}

// A timed is how long something took, and the bucket in which it began.
type timed struct {
	bucket int
	ns     int64
}

// A state is the state of a request during a stage.
type state uint8

const (
	stateQueued state = iota
	stateTransferring
	StateRunning
	noState
)

// StateOf returns what a request does in a stage of a server. On a unified server, one that waits for
// its first decode batch is running: it has its place in the batch.
func StateOf(stage *request.Row, role request.Role) state {
	if stage.Means == request.DecodeQueueing && role == request.Unified {
		return StateRunning
	}
	switch stage.Phase {
	case request.QueuePhase, request.BootstrapPhase:
		return stateQueued
	case request.TransferPhase:
		return stateTransferring
	case request.PrefillPhase, request.DecodePhase:
		return StateRunning
	}
	return noState
}

func newTimelineBuilder(r *place.RankSet, t *Timeline, e Bulk) *timelineBuilder {
	b := &timelineBuilder{Timeline: t, set: r.Set, ranks: r, bulk: e}
	b.all = b.newMeter(place.Location{Scope: place.Everywhere})
	for role := range b.roles {
		b.roles[role] = b.newMeter(place.Location{Scope: place.WholeRole, Role: request.Role(role)})
	}
	for i, place := range r.Places {
		m := b.newMeter(place)
		m.lead = r.Leads[i]
		b.meters = append(b.meters, m)
	}
	return b
}

func (b *timelineBuilder) newMeter(p place.Location) *meter {
	m := &meter{location: p, points: make([]Point, b.N()), stages: make([][]timed, len(b.Stages))}
	m.busy = NewArea(&b.Grid)
	for i := range m.loads {
		m.loads[i] = NewArea(&b.Grid)
	}
	return m
}

// within clips an interval to the timeline.
func (b *timelineBuilder) within(from, to trace.Time) request.Interval {
	return request.Interval{From: max(from, b.From), To: min(to, b.To)}
}

func (b *timelineBuilder) build() {
	for i := range b.set.AllRequests() {
		r := &b.set.Requests[i]
		if !b.bulk.Holds(r) {
			continue
		}
		b.all.parts++
		b.all.loads[StateRunning].Add(r.Start, r.End)
		at := b.At(r.Start)
		b.all.points[at].Arrivals++
		if r.Metrics.TTFT >= 0 && !b.brief {
			b.all.ttft = memory.Append(b.all.ttft, timed{at, r.Metrics.TTFT})
		}
		if r.Metrics.TPOT >= 0 && !b.brief {
			b.all.tpot = memory.Append(b.all.tpot, timed{at, r.Metrics.TPOT})
		}
		for _, p := range b.set.PartsOf(r) {
			b.addPart(&b.set.Parts[p])
		}
	}
	b.finish()
}

// addPart adds what the threads of a part did.
func (b *timelineBuilder) addPart(p *request.Part) {
	leadThread, leadRank := b.ranks.Lead(p)
	for _, t := range b.set.ThreadsOf(p) {
		th := &b.set.Threads[t]
		rank := b.ranks.Of[th.Proc]
		if rank == request.None || !p.Serves() {
			b.addStages(p, t, b.roles[b.set.Procs[th.Proc].Role], false)
			continue
		}
		b.arrive(b.meters[rank], p, t == leadThread)
		b.addStages(p, t, b.meters[rank], true)
	}
	if len(b.set.ThreadsOf(p)) == 0 && leadRank != request.None && p.Serves() {
		m := b.meters[leadRank]
		b.arrive(m, p, true)
		whole := b.within(p.Start, p.End)
		m.loads[StateRunning].Add(whole.From, whole.To)
		m.computing = memory.Append(m.computing, whole)
		b.addBareTokens(p, m)
	}
}

// arrive counts a part that begins on a rank. Only the lead rank also counts for the role.
func (b *timelineBuilder) arrive(m *meter, p *request.Part, lead bool) {
	m.parts++
	at := b.At(p.Start)
	m.points[at].Arrivals++
	if lead {
		b.roles[m.location.Role].parts++
		b.roles[m.location.Role].points[at].Arrivals++
	}
}

// addStages adds the stages of a thread to a place. On a rank, they also count as load and tokens.
func (b *timelineBuilder) addStages(p *request.Part, t int, m *meter, onRank bool) {
	var out outcome
	b.set.EachSelectedStage(b.set.StagesOf(t), true, func(i int, outermost bool) {
		span := b.set.Row(i)
		if b.set.Implausible(i) {
			return
		}
		if k := request.WatchedIndex(span); k >= 0 && (!b.brief || onRank && span.Means == request.Stepping) {
			m.stages[k] = memory.Append(m.stages[k], timed{b.At(span.Start), span.Dur()})
		}
		if !onRank {
			return
		}
		out.add(span)
		state := StateOf(span, p.Role)
		if !outermost || state == noState {
			return
		}
		iv := b.within(span.Start, span.End)
		m.loads[state].Add(iv.From, iv.To)
		if state == StateRunning {
			m.computing = memory.Append(m.computing, iv)
		}
	})
	if onRank {
		b.addTokens(p, m, &out)
	}
}

// MaxHeldShare is the largest share of its time that a request may wait for the prefills of others for the
// rest to show how long a token takes.
const MaxHeldShare = 0.9

// A Prefill is when a server computed the prompt of a request, or those of a batch.
type Prefill struct {
	Request  int // the last one of the batch that began
	Requests int
	From, To trace.Time // From is before To
	Tokens   float64    // computed tokens
	Pairs    float64    // of a computed token and one that it attends to: a cached one, or one before it
	Off      trace.Time // by how much From and To may be off, both alike: the trace has their difference only
}

// perNs returns how many tokens, and pairs of them, were computed per nanosecond.
func (p *Prefill) perNs() (tokens, pairs float64) {
	took := float64(p.To - p.From)
	return p.Tokens / took, p.Pairs / took
}

// Pieces are the prefill of one request: in one piece, or in chunks with other work between them.
type Pieces []Prefill

// Add adds the stage of a prefill, or of a chunk, in the order of starts. A stage that begins before
// the end of the last one is part of that.
func (p *Pieces) Add(from, to trace.Time) {
	if n := len(*p); to > from && (n == 0 || from >= (*p)[n-1].To) {
		*p = append(*p, Prefill{Requests: 1, From: from, To: to})
	}
}

// Of sets the request of the pieces. Each piece computes a share of its tokens that equals the piece's share of the time.
func (p Pieces) Of(of int, m *request.Metrics) {
	took, tokens := p.took(), float64(max(0, m.PrefillTokens()))
	pairs := tokens * (max(tokens, float64(m.PromptTokens)) - tokens/2)
	for i := range p {
		part := float64(p[i].To-p[i].From) / float64(took)
		p[i].Request, p[i].Tokens, p[i].Pairs = of, part*tokens, part*pairs
	}
}

// took returns how long all pieces take, added up.
func (p Pieces) took() (ns trace.Time) {
	return order.SumRows(p, func(x *Prefill) trace.Time { return x.To - x.From })
}

// Batches merges the prefills of single requests on one server into batches, and orders both by time.
// The requests of a batch end together. A prompt that does not fit into a batch continues in the next
// one, with others: its tokens are divided by time.
func Batches(prefills []Prefill) (out []Prefill) {
	slices.SortStableFunc(prefills, func(a, b Prefill) int { return cmp.Compare(a.From, b.From) })
	ends := memory.Make[uint32](len(prefills))
	for i := range ends {
		ends[i] = uint32(i)
	}
	slices.SortFunc(ends, func(a, b uint32) int { return cmp.Or(cmp.Compare(prefills[a].To, prefills[b].To), cmp.Compare(a, b)) })
	var batch Prefill // under way
	var now trace.Time
	started, running, perNs, pairs := 0, 0, 0.0, 0.0
	pass := func(until trace.Time) {
		batch.Tokens += perNs * float64(until-now)
		batch.Pairs += pairs * float64(until-now)
		now = until
	}
	add := func(p *Prefill, sign float64) {
		x, y := p.perNs()
		perNs, pairs = perNs+sign*x, pairs+sign*y
	}
	for i, ended := range ends {
		p := &prefills[ended]
		for ; started < len(prefills) && prefills[started].From < p.To; started++ {
			s := &prefills[started]
			if pass(max(now, s.From)); batch.Requests == 0 {
				batch.From = now
			}
			batch.Request, batch.Requests = s.Request, batch.Requests+1
			running++
			add(s, 1)
		}
		pass(p.To)
		add(p, -1)
		if running--; running == 0 {
			perNs, pairs = 0, 0 // drop rounding errors
		}
		if i+1 < len(ends) && prefills[ends[i+1]].To-p.To <= max(request.SameBatch, p.Off) {
			continue
		}
		batch.To = p.To
		out = memory.Append(out, batch)
		batch = Prefill{Request: batch.Request, Requests: running, From: p.To}
	}
	memory.Free(ends)
	return out
}

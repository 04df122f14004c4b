package replay

import (
	"cmp"
	"iter"
	"math"
	"slices"
	"unsafe"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// None is an index that refers to nothing.
const None = -1

// A Run is a recorded run, reconstructed from its spans.
type Run struct {
	Engines  []Engine
	Requests []Request // sorted by arrival
	// Coupled says that a prefill begins only after its decode server has memory for it.
	Coupled bool
	Missing Missing

	polled bool  // decode servers grant memory only at boundaries
	shakes int64 // ns: usual duration of the handshake for memory

	set    *request.Set
	ranks  *place.RankSet
	places []int32 // index in Requests of each request of the set; None
	jobs   []job
	marks  []mark               // sorted by engine, then by end
	pools  map[string]timing    // timings of engines together, by kind and engines
	ends   []trace.Time         // scratch space
	sizes  distribution.SizeFit // of KV transfers
	shows  []pool               // evidence for the limits of each engine
	asked  [][]asking           // requests that wanted room on each engine
	From   trace.Time           // the first arrival
}

// Missing counts what prevents requests from being replayed.
type Missing struct {
	NoRank, NoSteps, Incomplete int // requests whose scheduler, tokens, or spans are unknown
	Pipelines                   bool
	Bare                        bool // servers have a span for each request, but none for its stages
	Level                       bool // there are no decode steps at all, which need trace level 3
}

// A Request is a request that finished, or that used a server before it was abandoned.
type Request struct {
	Index    int // in Set.Requests
	Arrival  trace.Time
	jobs     [2]int32 // unified or prefill, then decode; None
	Measured bool     // it finished, so its latencies count
	whole    bool     // it has a critical path: see Run.Whole
	first    trace.Time
	last     trace.Time
}

// A job is the part of a request that one server computed. Times are as recorded; durations are in ns.
type job struct {
	request, part, engine, peer int32
	thread                      int32
	role                        request.Role
	prompt, fresh               int32   // tokens of the prompt, and those of them that are computed
	tokens                      int32   // number of times that tokens come out
	yield                       float64 // tokens per decode step

	reach  trace.Time // when it reaches the scheduler
	enter  trace.Time // when it can be put into a batch
	queued trace.Time // when the scheduler records that
	booked trace.Time // when a decode half gets memory
	ended  trace.Time // when its prefill is over
	first  trace.Time
	last   trace.Time
	left   trace.Time // when it leaves its scheduler if it never got a token
	from   int32      // index of the first step that it has a mark in, among those of the engine; None without marks

	// gaveUp says that it left because its client did. The length of its prompt is unknown. If it had no memory yet,
	// prompt is chosen to explain its wait for memory; see findBlocking.
	gaveUp bool

	// The replay keeps these durations, in ns.
	way      int64 // from the arrival of the request to reach
	booking  int64 // from when its scheduler takes it in until it can get memory
	release  int64 // from when memory is booked until the prefill may begin
	sent     int64 // from the end of prefill until the KV cache is on the decode server
	stays    int64 // until it leaves if it never got a token: from booked, or from the arrival of the request if it gave up
	prebuilt int64 // from the boundary at which it joins to its first token
	early    bool  // if batches are formed ahead: its first token comes when it is seen, not when it joins
}

// A mark is the end of a step for a job.
type mark struct {
	from trace.Time // in a prefill, when its batch was formed
	end  trace.Time
	job  int32
	kind markKind
	late
}

const (
	jobSize  = int(unsafe.Sizeof(job{}))
	markSize = int(unsafe.Sizeof(mark{}))
)

// allRequests and allJobs yield all indexes: see [memory.Each].
func (r *Run) allRequests() iter.Seq[int] {
	return memory.Each(len(r.Requests), int(unsafe.Sizeof(Request{}))+len(Request{}.jobs)*jobSize)
}

func (r *Run) allJobs() iter.Seq[int] { return memory.Each(len(r.jobs), jobSize) }

// marksOf returns the marks of a step.
func (r *Run) marksOf(st *Step) []mark {
	marks := r.marks[st.marks[0]:st.marks[1]]
	memory.Touch(len(marks) * markSize)
	return marks
}

// A late is when the ranks of an engine ended a step, in ns after its lead rank.
type late struct {
	last, second int32 // the last rank, and the one before it
	worst        int16 // the last rank: an index into RankSet.Places
}

type markKind uint8

const (
	chunkEnd markKind = iota
	prefillEnd
	joinEnd
	thrownOut // out of the batch, because the KV cache is full
	decodeEnd
)

// computed reports whether a mark belongs to a step: joining and being thrown out take no time.
func (k markKind) computed() bool { return k != joinEnd && k != thrownOut }

// Read reconstructs a run from the requests of a set. [Run.FitSteps] prepares it for a replay.
func Read(s *request.Set) *Run {
	peers := place.Of(s)
	r := &Run{set: s, ranks: peers.Ranks, pools: map[string]timing{}}
	r.addEngines(peers)
	r.Missing.Bare = !slices.ContainsFunc(s.Procs, func(p request.Proc) bool { return p.Schedules })
	for i := range s.AllRequests() {
		r.addRequest(i)
	}
	r.sortRequests()
	r.gather()
	r.Missing.Level = r.Missing.NoSteps > 0 && !slices.ContainsFunc(r.marks, func(m mark) bool { return m.kind == decodeEnd })
	r.settle()
	return r
}

// addEngines adds an engine for each rank.
func (r *Run) addEngines(peers *place.Groups) {
	for i, at := range r.ranks.Places {
		r.Engines = append(r.Engines, Engine{Location: at, Group: peers.Group(int32(i)), Leads: r.ranks.Leads[i]})
		if at.Rank.PP > 0 {
			r.Missing.Pipelines = true
		}
	}
}

// addRequest adds a request with its jobs, if it can be replayed.
func (r *Run) addRequest(i int) {
	s := r.set
	q := &s.Requests[i]
	out := Request{Index: i, Arrival: q.Start, jobs: [2]int32{None, None}}
	out.Measured = q.Status == request.Finished && q.Metrics.E2E >= 0 && q.Metrics.E2E <= request.LongestRequest && request.Plausible(q.Start, q.End)
	answer := s.Answering(q)
	for _, p := range s.PartsOf(q) {
		part := &s.Parts[p]
		if !part.Serves() || part.Role == request.Encoder {
			continue
		}
		j, ok := r.newJob(q, p)
		if !ok {
			if p == answer || part.Role == request.Prefill {
				out.Measured = false
			}
			continue
		}
		j.request = int32(len(r.Requests))
		slot := 0
		if part.Role == request.Decode {
			slot = 1
		}
		if out.jobs[slot] != None { // an earlier attempt, on a server that died
			out.Measured = false
			continue
		}
		out.jobs[slot] = int32(len(r.jobs))
		r.jobs = memory.Append(r.jobs, j)
	}
	if out.jobs[0] == None && out.jobs[1] == None {
		return
	}
	if a, b := out.jobs[0], out.jobs[1]; a != None && b != None {
		r.jobs[a].peer, r.jobs[b].peer = b, a
		r.jobs[b].prompt = max(r.jobs[b].prompt, r.jobs[a].prompt)
		r.jobs[a].prompt = r.jobs[b].prompt
	}
	at := out.jobs[1]
	if at == None {
		at = out.jobs[0]
	} else if out.jobs[0] == None {
		out.Measured = false // the arrival of its KV cache is unknown
	}
	out.whole = out.Measured && q.HasAllSteps()
	out.Measured = out.Measured && r.jobs[at].tokens > 0
	out.first, out.last = r.jobs[at].first, r.jobs[at].last
	if !q.HasAllSteps() && out.Measured {
		r.Missing.Incomplete++
		out.Measured = false
	}
	r.Requests = memory.Append(r.Requests, out)
}

// newJob reads a part of a request. ok is false if it cannot be replayed.
func (r *Run) newJob(q *request.Request, p int) (j job, ok bool) {
	s := r.set
	part := &s.Parts[p]
	thread, rank := r.ranks.Lead(part)
	switch {
	case thread == request.None:
		r.Missing.Bare = r.Missing.Bare || rank != request.None
		r.Missing.NoRank++
		return j, false
	case rank == request.None:
		r.Missing.NoRank++
		return j, false
	}
	j = job{part: int32(p), engine: int32(rank), peer: None, thread: int32(thread), role: part.Role, from: None, yield: 1}
	j.prompt = int32(max(0, part.PromptTokens))
	j.fresh = max(1, j.prompt-int32(max(0, part.CachedTokens)))
	j.reach = r.reached(part, thread)
	if r.readStages(&j); j.tokens == 0 {
		r.Missing.NoSteps++
		j.left = s.Threads[thread].End
		j.gaveUp = q.Status == request.Aborted && !s.TurnedAway(q) && j.role != request.Prefill
		if !j.gaveUp && (j.role != request.Decode || j.booked == 0) {
			return j, false
		}
	}
	if n := part.CompletionTokens; n > int64(j.tokens) && j.tokens > 1 {
		j.yield = float64(n-1) / float64(j.tokens-1)
	}
	return j, true
}

// reached returns when a part reached its scheduler: when the last thread before it ended.
func (r *Run) reached(p *request.Part, lead int) trace.Time {
	s := r.set
	begin := s.Threads[lead].Start
	at := trace.Time(0)
	for _, t := range s.ThreadsOf(p) {
		if th := &s.Threads[t]; !s.Procs[th.Proc].Schedules && th.End <= begin+request.ClockSlack && th.End > at {
			at = th.End
		}
	}
	if at == 0 {
		return begin
	}
	return min(at, begin)
}

// readStages fills in the stages of a job on the lead rank, and adds its marks.
func (r *Run) readStages(j *job) {
	s := r.set
	at := int32(len(r.jobs))
	add := func(row *request.Row, k markKind) {
		r.marks = memory.Append(r.marks, mark{from: row.Start, end: row.End, job: at, kind: k})
	}
	before := len(r.marks)
	var thrown []trace.Time
	instants := func(row int) {
		for _, e := range s.InstantsOf(row) {
			if e.Kind == request.Retracted {
				thrown = append(thrown, e.Time)
			}
		}
	}
	s.EachStage(s.StagesOf(int(j.thread)), func(i int) {
		row := &s.Rows[i]
		instants(i)
		if !request.Plausible(row.Start, row.End) {
			return
		}
		switch row.Means {
		case request.Queueing:
			j.queued = row.Start
		case request.DecodeQueueing:
			if j.role == request.Decode {
				j.queued = row.Start
			}
		case request.ReceiveConnecting:
			j.booked = cmp.Or(j.booked, row.End)
		case request.PrefillingChunk:
			add(row, chunkEnd)
		case request.Prefilling:
			add(row, prefillEnd)
			j.ended = cmp.Or(j.ended, row.End)
		case request.Prebuilt:
			add(row, joinEnd)
		case request.Stepping:
			add(row, decodeEnd)
		}
	})
	if th := s.Threads[j.thread]; th.Row != request.None {
		instants(th.Row)
	}
	if j.queued == 0 {
		j.queued = max(j.reach, s.Threads[j.thread].Start)
	}
	r.compare(j, r.marks[before:])
	for _, t := range thrown {
		r.marks = memory.Append(r.marks, mark{from: t, end: t, job: at, kind: thrownOut})
	}
	r.countTokens(j, before)
}

// countTokens sorts the marks of a job, which start at index before, and counts its tokens from them.
func (r *Run) countTokens(j *job, before int) {
	own := r.marks[before:]
	slices.SortFunc(own, func(x, y mark) int { return cmp.Or(cmp.Compare(x.end, y.end), cmp.Compare(y.kind, x.kind)) })
	r.marks = r.marks[:before+len(tidy(own))]
	for _, m := range r.marks[before:] {
		if m.kind != chunkEnd && m.kind != thrownOut {
			if j.tokens++; j.first == 0 {
				j.first = m.end
			}
			j.last = m.end
		}
	}
	if j.tokens == 0 {
		r.marks = r.marks[:before]
	}
}

// compare finds when the other ranks of an engine ended the steps of a job. It skips ranks on other hosts, whose
// clocks are not precise enough, and ranks with missing steps.
func (r *Run) compare(j *job, own []mark) {
	s := r.set
	lead := &s.Procs[s.Threads[j.thread].Proc]
	for i := range own {
		own[i].worst = int16(j.engine)
		own[i].second = math.MinInt32
	}
	for _, t := range s.ThreadsOf(&s.Parts[j.part]) {
		at := r.ranks.Of[s.Threads[t].Proc]
		p := &s.Procs[s.Threads[t].Proc]
		if t == int(j.thread) || at == request.None || p.Host != lead.Host || p.Label != lead.Label || p.Rank.DP != lead.Rank.DP || p.Rank.PP != lead.Rank.PP {
			continue
		}
		r.ends = r.ends[:0]
		s.EachStage(s.StagesOf(t), func(i int) {
			if row := &s.Rows[i]; request.Plausible(row.Start, row.End) && (row.Means.GivesToken() || row.Means == request.PrefillingChunk) {
				r.ends = append(r.ends, row.End)
			}
		})
		if len(r.ends) != len(own) {
			continue
		}
		for i := range own {
			own[i].arrive(int32(min(max(r.ends[i]-own[i].end, math.MinInt32+1), math.MaxInt32)), int16(at))
		}
	}
}

// Computed returns a step with how long it took from when its batch was formed. Until then, a prefill may wait in its step: for
// room on a decode server, or for the loop to look.
func (r *Run) Computed(st *Step) Timed {
	t := st.Timed()
	if st.Kind != Prefill {
		return t
	}
	formed := st.Done
	for _, m := range r.marksOf(st) {
		if m.kind.computed() {
			formed = min(formed, m.from)
		}
	}
	t.Took = max(1, int64(st.Done-max(st.Start, formed)))
	return t
}

// Last returns the rank of an engine that ended a step last, and how long the second-to-last rank waited for it, in
// ns. ok is false if only one rank recorded the step.
func (r *Run) Last(st *Step) (at *place.Location, waited int64, ok bool) {
	if st.second == math.MinInt32 {
		return nil, 0, false
	}
	return &r.ranks.Places[st.worst], int64(st.last) - int64(st.second), true
}

// arrive adds the end of a step on one rank, in ns after the lead rank.
func (l *late) arrive(after int32, rank int16) {
	switch {
	case after > l.last:
		l.last, l.second, l.worst = after, l.last, rank
	case after > l.second:
		l.second = after
	}
}

// tidy merges the mark for the last chunk of a prompt with that for the end of its prefill, and drops repeated joins
// of a decode half. After a retraction SGLang records only chunks: the one before a decode step, before the next
// retraction, or before the end is then the last one.
func tidy(own []mark) []mark {
	out := own[:0]
	joined := false
	for _, m := range own {
		if n := len(out); n > 0 && m.kind == chunkEnd && out[n-1].kind == prefillEnd && m.end-out[n-1].end < request.SameBatch {
			continue
		}
		if n := len(out); n > 0 && m.kind == prefillEnd && out[n-1].kind == chunkEnd && m.end-out[n-1].end < request.SameBatch {
			out[n-1] = m
			continue
		}
		if n := len(out); n > 0 && out[n-1].kind == chunkEnd && (m.kind == decodeEnd || m.kind == thrownOut) {
			out[n-1].kind = prefillEnd
		}
		if m.kind == joinEnd {
			if joined {
				continue
			}
			joined = true
		}
		out = append(out, m)
	}
	if n := len(out); n > 0 && out[n-1].kind == chunkEnd && slices.ContainsFunc(out, func(m mark) bool { return m.kind == prefillEnd }) {
		out[n-1].kind = prefillEnd
	}
	return out
}

// sortRequests sorts requests by arrival.
func (r *Run) sortRequests() {
	slices.SortStableFunc(r.Requests, func(x, y Request) int { return cmp.Compare(x.Arrival, y.Arrival) })
	r.places = slices.Repeat([]int32{None}, len(r.set.Requests))
	for i := range r.allRequests() {
		q := &r.Requests[i]
		r.places[q.Index] = int32(i)
		for _, j := range q.jobs {
			if j != None {
				r.jobs[j].request = int32(i)
			}
		}
		r.From = cmp.Or(r.From, q.Arrival)
	}
}

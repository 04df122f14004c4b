package golden

import (
	"math/rand/v2"
	"slices"
)

// stageKind is a row of stageTable.
type stageKind uint8

const (
	tokenize stageKind = iota
	apiServerDispatch
	dpcDispatch
	requestProcess
	prefillPrepare
	prefillBootstrap
	prefillWaiting
	prefillForward
	chunkedPrefill
	prefillTransfer
	decodePrepare
	decodeBootstrap
	decodeTransferred
	decodeWaiting
	decodeForward
	fakeOutput
	decodeLoop
	runBatchCPU
)

// stageTable has the stages of SGLang (observability/req_time_stats.py): the name
// of the slice, the trace level from which on it is written, and the attribute with
// its number, if any.
var stageTable = [...]struct {
	name   string
	level  int
	number string
}{
	tokenize:          {"tokenize", 1, ""},
	apiServerDispatch: {"api_server_dispatch", 2, ""},
	dpcDispatch:       {"dpc_dispatch", 2, ""},
	requestProcess:    {"request_process", 2, ""},
	prefillPrepare:    {"prefill_prepare", 1, ""},
	prefillBootstrap:  {"prefill_bootstrap", 1, ""},
	prefillWaiting:    {"prefill_waiting", 1, ""},
	prefillForward:    {"prefill_forward", 1, ""},
	chunkedPrefill:    {"chunked_prefill", 3, ""},
	prefillTransfer:   {"prefill_transfer_kv_cache", 1, ""},
	decodePrepare:     {"decode_prepare", 1, ""},
	decodeBootstrap:   {"decode_bootstrap", 1, ""},
	decodeTransferred: {"decode_transferred", 1, ""},
	decodeWaiting:     {"decode_waiting", 1, ""},
	decodeForward:     {"decode_forward", 1, ""},
	fakeOutput:        {"fake_output", 3, ""},
	decodeLoop:        {"decode_loop", 3, "decode_ct"},
	runBatchCPU:       {"run_batch_cpu", 4, "pp_mb_id"},
}

// Levels from which on events are written.
const (
	retractLevel  = 1
	scheduleLevel = 3
)

// thread is what one process did for a half.
type thread struct {
	process    int
	start, end int64
	stages     []stage // by start of the outer ones; a stage precedes what is nested in it
	events     []event // in order of time
}

// stage is a piece of time that belongs to a half on one process.
type stage struct {
	kind       stageKind
	start, end int64
	parent     int  // index of the stage it is nested in, -1 for none
	open       bool // ended only because its thread did
	number     int  // decode_loop: the count of tokens; run_batch_cpu: the microbatch
}

// name returns the name of the slice.
func (s *stage) name() string { return stageTable[s.kind].name }

// numbered returns the name of the attribute with the stage's number, empty if the
// stage has none.
func (s *stage) numbered() string { return stageTable[s.kind].number }

// event happened at a moment inside a thread: a batch was scheduled, or the half
// retracted if step is -1.
type event struct {
	at   int64
	step int
}

// threads derives what every process did for a half: tokenizer, DP controller,
// then the ranks. Stages and events above the run's trace level are left out.
func (r *Run) threads(h *half) []thread {
	in := &r.instances[h.instance]
	t := trail{run: r, half: h, thread: thread{process: in.tokenizer, start: h.received, end: h.dispatched}}
	t.add(tokenize, h.received, h.tokenized)
	t.add(apiServerDispatch, h.dispatching, h.dispatched)
	all := []thread{t.thread}
	if in.controller >= 0 {
		t.thread = thread{process: in.controller, start: h.controlled, end: h.forwarded}
		t.add(dpcDispatch, h.controlled, h.forwarded)
		all = append(all, t.thread)
	}
	for rank := range h.ranks {
		all = append(all, r.schedulerThread(h, rank))
	}
	return all
}

// schedulerThread derives what one rank did for a half.
func (r *Run) schedulerThread(h *half, rank int) thread {
	in := &r.instances[h.instance]
	v := &h.ranks[rank]
	t := trail{run: r, half: h, rank: rank, role: in.role, thread: thread{
		process: in.schedulers[h.dp*in.replica()+rank],
		start:   v.begin,
		end:     v.finished,
		stages:  make([]stage, 0, len(h.turns)+8),
		events:  make([]event, 0, len(h.turns)),
	}}
	t.enter(v)
	for _, turn := range h.turns {
		switch turn.kind {
		case turnChunk, turnPrefill:
			t.prefill(int(turn.at), turn.kind == turnPrefill)
		case turnPrebuilt:
			t.prebuilt(int(turn.at))
		case turnDecode:
			t.decode(int(turn.at))
		case turnRetract:
			t.retract(&h.retractions[turn.at])
		}
	}
	t.add(prefillTransfer, v.transferStart, v.transferEnd)
	for _, i := range t.nest {
		t.stages[i].end = v.finished
	}
	return t.thread
}

// trail follows one half on one rank the way SGLang's SchedulerReqTimeStats does,
// so that its odd cases come out as they do there: what a retraction resets, and
// what it leaves open.
type trail struct {
	thread
	run  *Run
	half *half
	rank int
	role role
	nest []int // open stages

	forward    int64 // the last time the half came up for prefill or prebuilt; 0 after a retraction, as the next four
	chunk      int64 // end of the last chunk
	prefilled  int64
	scheduled  int64 // start of the last decode step
	token      int64 // end of the last decode step
	prebuiltAt int64
	forwarded  bool // came up before
	filled     bool // was prefilled before
	tokens     int
}

// add adds a stage, if it happened and the level asks for it.
func (t *trail) add(k stageKind, start, end int64) *stage {
	if start == 0 || end == 0 || stageTable[k].level > t.run.config.Level {
		return new(stage)
	}
	parent := -1
	if n := len(t.nest); n > 0 {
		parent = t.nest[n-1]
	}
	t.stages = append(t.stages, stage{kind: k, start: start, end: end, parent: parent})
	return &t.stages[len(t.stages)-1]
}

// open adds a stage in which the following ones nest.
func (t *trail) open(k stageKind, start int64) {
	s := t.add(k, start, start)
	if s.start != 0 {
		s.open = true
		t.nest = append(t.nest, len(t.stages)-1)
	}
}

// close ends the innermost open stage.
func (t *trail) close(end int64) {
	if n := len(t.nest); n > 0 {
		s := &t.stages[t.nest[n-1]]
		s.end, s.open = end, false
		t.nest = t.nest[:n-1]
	}
}

// enter adds what happens to a half before it is waiting.
func (t *trail) enter(v *visit) {
	switch t.role {
	case roleUnified:
		t.add(requestProcess, v.received, v.queued)
	case rolePrefill:
		t.add(prefillPrepare, v.received, v.queued)
		t.add(prefillBootstrap, v.queued, v.waiting)
	case roleDecode:
		t.add(decodePrepare, v.received, v.queued)
		t.add(decodeBootstrap, v.queued, v.bootstrapped)
		t.add(decodeTransferred, v.bootstrapped, v.waiting)
	}
}

// comeUp notes that the half was picked for prefill or prebuilt. Only the first
// time ends its waiting and opens what the rest nests in.
func (t *trail) comeUp(at int64, waiting, forward stageKind) {
	if !t.forwarded {
		t.forwarded = true
		t.add(waiting, t.half.ranks[t.rank].waiting, at)
		t.open(forward, at)
	}
	if t.forward == 0 {
		t.forward = at
	}
}

func (t *trail) prefill(at int, last bool) {
	k := &t.run.steps[at].ranks[t.rank]
	t.comeUp(k.formed, prefillWaiting, prefillForward)
	t.schedule(at)
	chunked := t.chunk != 0
	if chunked || !last {
		start := t.chunk
		if start == 0 {
			start = t.forward
		}
		t.add(chunkedPrefill, start, k.done)
		t.chunk = k.done
	}
	if !last {
		return
	}
	switch {
	case !t.filled:
		t.filled = true
		t.close(k.done)
	case !chunked: // after a retraction, usually inside decode_forward
		t.add(prefillForward, t.forward, k.done)
	}
	t.prefilled = k.done
}

func (t *trail) prebuilt(at int) {
	k := &t.run.steps[at].ranks[t.rank]
	t.comeUp(k.formed, decodeWaiting, decodeForward)
	t.add(fakeOutput, t.forward, k.done)
	t.prebuiltAt = k.done
}

func (t *trail) decode(at int) {
	k := &t.run.steps[at].ranks[t.rank]
	if t.role == roleUnified && t.scheduled == 0 {
		t.add(decodeWaiting, t.prefilled, k.scheduled)
		t.open(decodeForward, k.scheduled) // nests in itself after a retraction
		t.token = k.scheduled
	}
	t.scheduled = k.scheduled
	t.schedule(at)
	start := t.token
	if start == 0 {
		start = t.prebuiltAt
	}
	t.add(decodeLoop, start, k.done).number = t.tokens
	t.token = k.done
	t.tokens++
}

// schedule adds the event that a step is scheduled, and the CPU work to launch
// it, which only the loop for pipelines traces.
func (t *trail) schedule(at int) {
	st := &t.run.steps[at]
	k := &st.ranks[t.rank]
	if t.run.config.Level >= scheduleLevel {
		t.events = append(t.events, event{k.scheduled, at})
	}
	if t.run.instances[st.instance].size.PP > 1 {
		rng := t.run.rankRand(at, t.rank)
		start := k.scheduled + 60*us + rng.Int64N(140*us)
		end := min(start+900*us+rng.Int64N(1600*us), k.computed)
		t.add(runBatchCPU, start, end).number = st.microbatch
	}
}

// retract resets what SGLang's set_retract_time does. A decode half is retracted
// twice: when it is thrown out, and again when its KV is back. In between, its
// bootstrap seems to last since the first one began.
func (t *trail) retract(r *retraction) {
	t.forward, t.chunk, t.prefilled, t.scheduled, t.token = 0, 0, 0, 0, 0
	t.retracted(r.at)
	if r.resumed == nil {
		return
	}
	t.add(decodeBootstrap, t.half.ranks[t.rank].queued, r.resumed[t.rank])
	t.retracted(r.requeued)
}

func (t *trail) retracted(at []int64) {
	if at != nil && t.run.config.Level >= retractLevel {
		t.events = append(t.events, event{at[t.rank], -1})
	}
}

// rankRand returns the random numbers that belong to a step on one rank.
func (r *Run) rankRand(step, rank int) *rand.Rand {
	return rand.New(rand.NewPCG(r.config.Seed, streamBatch|uint64(step)<<24|uint64(rank)<<8))
}

// inOrderOfEnd returns the indices of the stages as they ended: nested ones
// before the stage they are nested in.
func (t *thread) inOrderOfEnd() []int {
	order := make([]int, len(t.stages))
	for i := range order {
		order[i] = len(order) - 1 - i // the stable sort keeps inner before outer
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return int(min(max(t.stages[a].end-t.stages[b].end, -1), 1))
	})
	return order
}

package simulator

import (
	"cmp"
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

// stageTable has the stages of SGLang (observability/req_time_stats.py): the name of the slice, the trace level from which
// on it is written, and the attribute with its number, if any.
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

// Thread is the part of one process in a half.
type Thread struct {
	Process    int
	Start, End int64   // End is 0 if it hangs, and so is that of its open stages
	Stages     []Stage // by start of the outer ones; a stage precedes what is nested in it
	Events     []Event // in order of time
}

// Stage is a period that belongs to a half on one process.
type Stage struct {
	kind       stageKind
	Start, End int64
	Parent     int  // index of the stage it is nested in, -1 for none
	Open       bool // ended only because its thread did
	Number     int  // decode_loop: the count of tokens; run_batch_cpu: the microbatch
}

// Name returns the name of the slice.
func (s *Stage) Name() string { return stageTable[s.kind].name }

// NumberKey returns the name of the attribute with the stage's number, empty if the
// stage has none.
func (s *Stage) NumberKey() string { return stageTable[s.kind].number }

// Event is a moment inside a thread: a batch was scheduled, or the half was retracted if step is -1.
type Event struct {
	At   int64
	Step int
}

// Threads derives what every process did for a half: tokenizer, DP controller, then the ranks. It omits stages and events
// above the run's trace level.
func (r *Run) Threads(h *Half) []Thread {
	in := &r.Instances[h.Instance]
	t := trail{run: r, half: h, Thread: Thread{Process: in.Tokenizer, Start: h.Received, End: h.Dispatched}}
	t.add(tokenize, h.Received, h.tokenized)
	t.add(apiServerDispatch, h.dispatching, h.Dispatched)
	all := []Thread{t.Thread}
	if in.controller >= 0 {
		t.Thread = Thread{Process: in.controller, Start: h.controlled, End: h.forwarded}
		t.add(dpcDispatch, h.controlled, h.forwarded)
		all = append(all, t.Thread)
	}
	for rank := range h.ranks {
		all = append(all, r.schedulerThread(h, rank))
	}
	return all
}

// schedulerThread derives what one rank did for a half.
func (r *Run) schedulerThread(h *Half, rank int) Thread {
	in := &r.Instances[h.Instance]
	v := &h.ranks[rank]
	t := trail{run: r, half: h, rank: rank, role: in.Role, Thread: Thread{
		Process: in.Schedulers[h.dp*in.replica()+rank],
		Start:   v.begin,
		End:     v.finished,
		Stages:  make([]Stage, 0, len(h.turns)+8),
		Events:  make([]Event, 0, len(h.turns)),
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
		t.Stages[i].End = v.finished
	}
	return t.Thread
}

// trail follows one half on one rank in the same way as SGLang's SchedulerReqTimeStats, so that its odd cases come out the
// same: which fields a retraction resets, and which stages it leaves open.
type trail struct {
	Thread
	run  *Run
	half *Half
	rank int
	role Role
	nest []int // open stages

	forward    int64 // the last time the half was picked for prefill or prebuilt; a retraction resets this and the next four to 0
	chunk      int64 // end of the last chunk
	prefilled  int64
	scheduled  int64 // start of the last decode step
	token      int64 // end of the last decode step
	prebuiltAt int64
	forwarded  bool // was picked before
	filled     bool // was prefilled before
	tokens     int
}

// add adds a stage, if it happened and the level includes it.
func (t *trail) add(k stageKind, start, end int64) *Stage {
	if start == 0 || end == 0 || stageTable[k].level > t.run.Config.Level {
		return new(Stage)
	}
	parent := -1
	if n := len(t.nest); n > 0 {
		parent = t.nest[n-1]
	}
	t.Stages = append(t.Stages, Stage{kind: k, Start: start, End: end, Parent: parent})
	return &t.Stages[len(t.Stages)-1]
}

// open adds a stage in which the following ones nest.
func (t *trail) open(k stageKind, start int64) {
	s := t.add(k, start, start)
	if s.Start != 0 {
		s.Open = true
		t.nest = append(t.nest, len(t.Stages)-1)
	}
}

// close ends the innermost open stage.
func (t *trail) close(end int64) {
	if n := len(t.nest); n > 0 {
		s := &t.Stages[t.nest[n-1]]
		s.End, s.Open = end, false
		t.nest = t.nest[:n-1]
	}
}

// enter adds what happens to a half before it waits.
func (t *trail) enter(v *visit) {
	switch t.role {
	case RoleUnified:
		t.add(requestProcess, v.received, v.queued)
	case RolePrefill:
		t.add(prefillPrepare, v.received, v.queued)
		t.add(prefillBootstrap, v.queued, v.waiting)
	case RoleDecode:
		t.add(decodePrepare, v.received, v.queued)
		t.add(decodeBootstrap, v.queued, v.bootstrapped)
		t.add(decodeTransferred, v.bootstrapped, v.waiting)
	}
}

// comeUp records that the half was picked for prefill or prebuilt. Only the first time ends its waiting and opens the stage
// in which the rest nests.
func (t *trail) comeUp(at int64, waiting, forward stageKind) {
	if !t.forwarded {
		t.forwarded = true
		t.add(waiting, t.half.ranks[t.rank].waiting, at)
		t.open(forward, at)
	}
	t.forward = cmp.Or(t.forward, at)
}

func (t *trail) prefill(at int, last bool) {
	k := &t.run.Steps[at].Ranks[t.rank]
	t.comeUp(k.Formed, prefillWaiting, prefillForward)
	t.schedule(at)
	chunked := t.chunk != 0
	if chunked || !last {
		start := cmp.Or(t.chunk, t.forward)
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
	k := &t.run.Steps[at].Ranks[t.rank]
	t.comeUp(k.Formed, decodeWaiting, decodeForward)
	t.add(fakeOutput, t.forward, k.done)
	t.prebuiltAt = k.done
}

func (t *trail) decode(at int) {
	k := &t.run.Steps[at].Ranks[t.rank]
	if t.role == RoleUnified && t.scheduled == 0 {
		t.add(decodeWaiting, t.prefilled, k.Scheduled)
		t.open(decodeForward, k.Scheduled) // nests in itself after a retraction
		t.token = k.Scheduled
	}
	t.scheduled = k.Scheduled
	t.schedule(at)
	start := cmp.Or(t.token, t.prebuiltAt)
	t.add(decodeLoop, start, k.done).Number = t.tokens
	t.token = k.done
	t.tokens++
}

// schedule adds the event that a step is scheduled, and the CPU work to launch it, which only the loop for pipelines
// traces.
func (t *trail) schedule(at int) {
	st := &t.run.Steps[at]
	k := &st.Ranks[t.rank]
	if t.run.Config.Level >= scheduleLevel {
		t.Events = append(t.Events, Event{k.Scheduled, at})
	}
	if t.run.Instances[st.Instance].Size.PP > 1 {
		rng := t.run.RankRand(at, t.rank)
		start := k.Scheduled + 60*us + rng.Int64N(140*us)
		end := min(start+900*us+rng.Int64N(1600*us), k.Computed)
		t.add(runBatchCPU, start, end).Number = st.microbatch
	}
}

// retract resets the same fields as SGLang's set_retract_time. A decode half is retracted twice: when it is thrown out, and
// again when its KV is back. In between, its bootstrap seems to last since the first one began.
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
	if at != nil && t.run.Config.Level >= retractLevel {
		t.Events = append(t.Events, Event{at[t.rank], -1})
	}
}

// RankRand returns the random numbers that belong to a step on one rank.
func (r *Run) RankRand(step, rank int) *rand.Rand {
	return rand.New(rand.NewPCG(r.Config.Seed, streamBatch|uint64(step)<<24|uint64(rank)<<8))
}

// InOrderOfEnd returns the indices of the stages as they ended: nested ones
// before the stage they are nested in.
func (t *Thread) InOrderOfEnd() []int {
	order := make([]int, len(t.Stages))
	for i := range order {
		order[i] = len(order) - 1 - i // the stable sort keeps inner before outer
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return int(min(max(t.Stages[a].End-t.Stages[b].End, -1), 1))
	})
	return order
}

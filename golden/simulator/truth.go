package simulator

import (
	"cmp"
	"fmt"
	"slices"
)

// TruthSchema names the format of truth.json. Fields are only ever added.
const TruthSchema = "sgtrace.truth/v1"

// Truth lists what a reader of the files of a [Run] ought to find. Times are true Unix nanoseconds and durations
// nanoseconds. In files, hosts have the clocks in HostTruth, and SGLang rounds slices to a grid of 256 ns. Fields of events
// that never happened are omitted.
type Truth struct {
	Schema  string `json:"schema"`
	Seed    uint64 `json:"seed"`
	Mode    string `json:"mode"`
	Level   int    `json:"level"`
	Model   string `json:"model"`
	StartNs int64  `json:"start_ns"` // the first arrival
	EndNs   int64  `json:"end_ns"`   // the last request has ended

	// ReferenceHost is the host whose clock shows true time.
	ReferenceHost string         `json:"reference_host"`
	Hosts         []HostTruth    `json:"hosts"`
	Processes     []ProcessTruth `json:"processes"`

	Straggler *StragglerTruth `json:"straggler,omitempty"`
	Imbalance *ImbalanceTruth `json:"imbalance,omitempty"`
	Hang      *HangTruth      `json:"hang,omitempty"`
	Counts    CountTruth      `json:"counts"`

	// Stages has a row for every stage, StagesByRank for every stage and process.
	Stages       []StageTruth   `json:"stages"`
	StagesByRank []StageTruth   `json:"stages_by_rank"`
	TTFT         *Summary       `json:"ttft,omitempty"` // of requests whose user saw a token
	E2E          *Summary       `json:"e2e,omitempty"`  // of finished requests
	ITL          *Summary       `json:"itl,omitempty"`  // of all gaps between tokens
	Slow         []SlowTruth    `json:"slow"`
	Requests     []RequestTruth `json:"requests"` // all but those that hang
}

// HostTruth is a host and its clock.
type HostTruth struct {
	Name   string `json:"name"`
	HostID string `json:"host_id"`
	// SkewNs is its clock minus that of the reference host at Truth.StartNs. From then on it gains DriftPPM µs per second of
	// true time.
	SkewNs   int64   `json:"skew_ns"`
	DriftPPM float64 `json:"drift_ppm,omitempty"`
}

// ProcessTruth is a process.
type ProcessTruth struct {
	Host  string `json:"host"`
	Role  string `json:"role"`
	Label string `json:"label"`
	Rank  string `json:"rank,omitempty"` // TP0-PP0-DP1
	PID   int    `json:"pid,omitempty"`
}

// Summary describes durations in nanoseconds. Percentiles are nearest rank; the
// mean is rounded to whole nanoseconds.
type Summary struct {
	N    int   `json:"n"`
	Mean int64 `json:"mean_ns"`
	P50  int64 `json:"p50_ns"`
	P90  int64 `json:"p90_ns"`
	P99  int64 `json:"p99_ns"`
	Max  int64 `json:"max_ns"`
}

// StageTruth summarizes a stage over all requests.
type StageTruth struct {
	Stage string `json:"stage"`
	// Host, Label and Rank are set in StagesByRank.
	Host  string `json:"host,omitempty"`
	Label string `json:"label,omitempty"`
	Rank  string `json:"rank,omitempty"`
	Summary
}

// RequestTruth is one user request.
type RequestTruth struct {
	// RequestID is the gateway's id.
	RequestID string `json:"request_id,omitempty"`
	// RID, FullID, and Role are those of the half whose tokens the user sees.
	RID           string `json:"rid"`
	FullID        string `json:"full_id"`
	Role          string `json:"role"`
	BootstrapRoom string `json:"bootstrap_room,omitempty"`
	Outcome       string `json:"outcome"`
	ArrivalNs     int64  `json:"arrival_ns"` // at the gateway, else at the first tokenizer
	EndNs         int64  `json:"end_ns"`
	E2ENs         int64  `json:"e2e_ns"`
	// TTFTNs is from arrival to the first token in the answering tokenizer.
	TTFTNs int64 `json:"ttft_ns,omitempty"`
	// QueueNs is the time in waiting queues, of both halves, on their first rank. It is omitted if the request was never taken
	// from one.
	QueueNs          int64       `json:"queue_ns,omitempty"`
	PromptTokens     int         `json:"prompt_tokens"`
	CompletionTokens int         `json:"completion_tokens"` // according to the answering root, else those produced
	ITL              *Summary    `json:"itl,omitempty"`     // gaps between tokens on the first rank
	FinishReason     string      `json:"finish_reason,omitempty"`
	Retractions      int         `json:"retractions,omitempty"`
	Halves           []HalfTruth `json:"halves"`
}

// HalfTruth is one SGLang root span.
type HalfTruth struct {
	RID          string      `json:"rid"`
	FullID       string      `json:"full_id"`
	Role         string      `json:"role"`
	Host         string      `json:"host"`
	DPRank       *int        `json:"dp_rank,omitempty"`
	StartNs      int64       `json:"start_ns"`
	EndNs        int64       `json:"end_ns"`
	TTFTNs       int64       `json:"ttft_ns,omitempty"` // according to the root's attribute
	QueueNs      int64       `json:"queue_ns,omitempty"`
	FinishReason string      `json:"finish_reason,omitempty"`
	Error        string      `json:"error,omitempty"` // kind of error of the scheduler threads
	Retractions  int         `json:"retractions,omitempty"`
	Stages       []StageTime `json:"stages"`
}

// StageTime is how long a stage of one request took on one process.
type StageTime struct {
	Stage string `json:"stage"`
	Rank  string `json:"rank,omitempty"` // of a scheduler
	N     int    `json:"n"`
	SumNs int64  `json:"sum_ns"`
}

// Truth computes the truth from what happened.
func (r *Run) Truth() *Truth {
	t := &Truth{
		Schema: TruthSchema, Seed: r.Config.Seed, Mode: r.Config.Mode.String(),
		Level: r.Config.Level, Model: r.Config.Model, StartNs: r.Requests[0].Arrival,
		ReferenceHost: r.Hosts[0].Name, Slow: []SlowTruth{},
	}
	for _, h := range r.Hosts {
		t.Hosts = append(t.Hosts, HostTruth{h.Name, h.ID, h.Clock.skew, h.Clock.drift})
	}
	for _, p := range r.Processes {
		t.Processes = append(t.Processes, ProcessTruth{r.Hosts[p.Host].Name, string(p.Role), p.Label, p.Rank.String(), p.PID})
	}
	t.Straggler = r.stragglerTruth()
	t.Imbalance = r.imbalanceTruth()
	t.Hang = r.hangTruth()

	s := newSurvey(r)
	for _, q := range r.Requests {
		if q.End == 0 {
			continue
		}
		t.Requests = append(t.Requests, s.request(q))
		t.EndNs = max(t.EndNs, q.End)
	}
	t.Stages, t.StagesByRank = s.stages()
	t.Counts = s.counts()
	t.TTFT, t.E2E, t.ITL = summarize(s.ttft), summarize(s.e2e), summarize(s.itl)
	t.Slow = append(t.Slow, r.slowTruth()...)
	return t
}

// survey visits every request once and gathers what the summaries need.
type survey struct {
	run            *Run
	durations      [][][]int64 // by process, then stageKind
	tally          tally
	ttft, e2e, itl []int64
}

func newSurvey(r *Run) *survey {
	s := &survey{run: r, durations: make([][][]int64, len(r.Processes))}
	for i := range s.durations {
		s.durations[i] = make([][]int64, len(stageTable))
	}
	return s
}

// request returns the truth about one request.
func (s *survey) request(q *Request) RequestTruth {
	h := q.answering()
	t := RequestTruth{
		RequestID: q.ID, RID: h.RID, FullID: h.ID, Role: string(s.run.Instances[h.Instance].Role),
		Outcome: string(q.Outcome), ArrivalNs: q.Arrival, EndNs: q.End, E2ENs: q.End - q.Arrival,
		PromptTokens: q.Prompt, CompletionTokens: h.Tokens, FinishReason: h.Finish, Retractions: len(h.retractions),
	}
	if q.Room != 0 {
		t.BootstrapRoom = fmt.Sprintf("0x%x", q.Room)
	}
	for _, h := range q.Halves {
		half := s.half(h)
		t.QueueNs += half.QueueNs
		t.Halves = append(t.Halves, half)
	}
	if q.Outcome == Finished {
		s.e2e = append(s.e2e, t.E2ENs)
	}
	if h.Tokens > 0 && q.Outcome != TransferFailed {
		t.TTFTNs = h.FirstToken - q.Arrival
		s.ttft = append(s.ttft, t.TTFTNs)
		gaps := s.run.gaps(h)
		s.itl = append(s.itl, gaps...)
		t.ITL = summarize(gaps)
	}
	s.tally.request(s.run, q)
	return t
}

// half returns the truth about one half.
func (s *survey) half(h *Half) HalfTruth {
	in := &s.run.Instances[h.Instance]
	t := HalfTruth{
		RID: h.RID, FullID: h.ID, Role: string(in.Role), Host: s.run.Hosts[in.Host].Name,
		StartNs: h.Received, EndNs: h.End, FinishReason: h.Finish,
		Error: h.Ending.String(), Retractions: len(h.retractions),
	}
	if in.Size.DP > 1 {
		t.DPRank = &h.dp
	}
	if h.Finish != "" {
		t.TTFTNs = h.FirstToken - h.Received
	}
	if first := s.run.firstTurn(h); first != nil {
		t.QueueNs = first.Ranks[0].Formed - h.ranks[0].waiting
	}
	for _, thread := range s.run.Threads(h) {
		t.Stages = append(t.Stages, s.thread(&thread)...)
	}
	return t
}

// thread returns the stages of a thread, in the order of stageTable.
func (s *survey) thread(t *Thread) []StageTime {
	p := &s.run.Processes[t.Process]
	var sums [len(stageTable)]StageTime
	for i := range t.Stages {
		st := &t.Stages[i]
		d := st.End - st.Start
		sums[st.kind].N++
		sums[st.kind].SumNs += d
		if st.kind == decodeBootstrap && st.Parent >= 0 {
			continue // after a retraction it seems to last since the first one began
		}
		s.durations[t.Process][st.kind] = append(s.durations[t.Process][st.kind], d)
	}
	var out []StageTime
	for k, sum := range sums {
		if sum.N > 0 {
			sum.Stage, sum.Rank = stageTable[k].name, p.Rank.String()
			out = append(out, sum)
		}
	}
	s.tally.thread(t)
	return out
}

// stages summarizes the stages, over all processes and for each.
func (s *survey) stages() (all, byRank []StageTruth) {
	for k, row := range stageTable {
		var together []int64
		for i, p := range s.run.Processes {
			d := s.durations[i][k]
			together = append(together, d...)
			if sum := summarize(d); sum != nil {
				byRank = append(byRank, StageTruth{row.name, s.run.Hosts[p.Host].Name, p.Label, p.Rank.String(), *sum})
			}
		}
		if sum := summarize(together); sum != nil {
			all = append(all, StageTruth{Stage: row.name, Summary: *sum})
		}
	}
	return all, byRank
}

// firstTurn returns the step that ended the waiting of a half, or nil.
func (r *Run) firstTurn(h *Half) *Step {
	if len(h.turns) == 0 {
		return nil
	}
	return &r.Steps[h.turns[0].at]
}

// gaps returns the times between the tokens of a half on its first rank.
func (r *Run) gaps(h *Half) []int64 {
	var gaps []int64
	previous := int64(0)
	for i, t := range h.turns {
		switch {
		case t.kind == turnChunk || t.kind == turnRetract:
			continue
		case t.kind == turnPrebuilt && i > 0:
			continue // after a retraction; its token is known
		}
		at := r.Steps[t.at].Ranks[0].done
		if previous != 0 {
			gaps = append(gaps, at-previous)
		}
		previous = at
	}
	return gaps
}

// summarize returns nil for no durations. It keeps their order.
func summarize(durations []int64) *Summary {
	n := len(durations)
	if n == 0 {
		return nil
	}
	sorted := slices.Sorted(slices.Values(durations))
	sum := int64(0)
	for _, d := range sorted {
		sum += d
	}
	return &Summary{
		N: n, Mean: (sum + int64(n)/2) / int64(n),
		P50: nearestRank(sorted, 50), P90: nearestRank(sorted, 90), P99: nearestRank(sorted, 99), Max: sorted[n-1],
	}
}

// nearestRank returns the smallest value that p percent of the values do not exceed.
func nearestRank[T cmp.Ordered](sorted []T, p int) T {
	return sorted[(len(sorted)*p+99)/100-1]
}

// ImbalanceTruth is the balancer that prefers one DP rank from the onset on.
type ImbalanceTruth struct {
	Role    string `json:"role"`
	Host    string `json:"host"`
	OnsetNs int64  `json:"onset_ns"`
	DPRank  int    `json:"dp_rank"`
	// Before and After are the numbers of requests that arrived then, by DP rank, and Share the share that went to DPRank.
	Before      []int   `json:"before"`
	After       []int   `json:"after"`
	ShareBefore float64 `json:"share_before"`
	ShareAfter  float64 `json:"share_after"`
}

func (r *Run) imbalanceTruth() *ImbalanceTruth {
	if !r.balanced() {
		return nil
	}
	in := r.Serving()
	t := &ImbalanceTruth{
		Role: string(in.Role), Host: r.Hosts[in.Host].Name,
		OnsetNs: r.Onset, DPRank: r.Config.Incident.DPRank,
		Before: make([]int, in.Size.DP), After: make([]int, in.Size.DP),
	}
	before, after := 0, 0
	for _, q := range r.Requests {
		if q.Arrival < r.Onset {
			t.Before[q.answering().dp]++
			before++
		} else {
			t.After[q.answering().dp]++
			after++
		}
	}
	t.ShareBefore = float64(t.Before[t.DPRank]) / float64(max(before, 1))
	t.ShareAfter = float64(t.After[t.DPRank]) / float64(max(after, 1))
	return t
}

// HangTruth is a DP rank that hangs.
type HangTruth struct {
	Role   string `json:"role"`
	Host   string `json:"host"`
	DPRank int    `json:"dp_rank"`
	// LastNs is the end of its last step, and Running the number of requests in its batches then.
	LastNs  int64 `json:"last_ns"`
	Running int   `json:"running"`
}

func (r *Run) hangTruth() *HangTruth {
	if !r.Config.Hang.AtOnset {
		return nil
	}
	in := r.Serving()
	t := &HangTruth{Role: string(in.Role), Host: r.Hosts[in.Host].Name, DPRank: r.Config.Hang.DP}
	for i := range r.Steps {
		if st := &r.Steps[i]; st.Instance == len(r.Instances)-1 && st.DP == t.DPRank {
			t.LastNs = max(t.LastNs, Latest(st.Ranks, Done))
		}
	}
	for _, q := range r.Requests {
		if h := q.answering(); h.End == 0 && h.dp == t.DPRank && len(h.turns) > 0 {
			t.Running++
		}
	}
	return t
}

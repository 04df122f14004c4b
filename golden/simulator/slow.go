package simulator

import "slices"

// SlowTruth is a finished request that took much longer than it should have, and
// the main reason.
type SlowTruth struct {
	Request int    `json:"request"` // index into Truth.Requests
	RID     string `json:"rid"`
	Cause   string `json:"cause"`
	// CauseNs is how much longer than usual the cause took, ExcessNs the same for all causes together.
	CauseNs  int64 `json:"cause_ns"`
	ExcessNs int64 `json:"excess_ns"`
}

// cause is a reason why a request is slow; ties go to the first one.
type cause uint8

const (
	causeRetraction cause = iota
	causeTransfer
	causeMemory
	causeQueue
	causePrompt
	causeStraggler
	causeDecode
	causes
)

var causeNames = [causes]string{
	causeRetraction: "retraction",  // from the retraction to the next token
	causeTransfer:   "kv_transfer", // from the prefill's end to the decode's queue
	causeMemory:     "kv_memory",   // until the decode instance had room
	causeQueue:      "queue",       // until a scheduler looked, and in the waiting queue
	causePrompt:     "long_prompt", // prefill, chunk by chunk
	causeStraggler:  "straggler",   // steps waited for the straggler
	causeDecode:     "slow_decode", // tokens came slowly for other reasons
}

// slowTruth finds the slow requests. For each finished one it divides the time among the causes, and compares with the
// median over all: a request is slow if one cause alone exceeds its median by half of the median latency.
func (r *Run) slowTruth() []SlowTruth {
	var took [][causes]int64
	var of []int
	var e2e, pace []int64
	for i, q := range r.Requests {
		if q.Outcome == Finished {
			of = append(of, i)
			e2e = append(e2e, q.End-q.Arrival)
			pace = append(pace, r.gaps(q.answering())...)
		}
	}
	if len(of) == 0 {
		return nil
	}
	usual := int64(0)
	if s := summarize(pace); s != nil {
		usual = s.P50
	}
	for _, i := range of {
		took = append(took, r.causes(r.Requests[i], usual))
	}
	var medians [causes]int64
	for c := range causes {
		column := make([]int64, len(took))
		for i := range took {
			column[i] = took[i][c]
		}
		medians[c] = summarize(column).P50
	}
	limit := summarize(e2e).P50 / 2

	var slow []SlowTruth
	for n, i := range of {
		excess := took[n]
		total := int64(0)
		for c := range excess {
			excess[c] = max(0, excess[c]-medians[c])
			total += excess[c]
		}
		worst := slices.Index(excess[:], slices.Max(excess[:]))
		if excess[worst] >= limit {
			slow = append(slow, SlowTruth{i, r.Requests[i].answering().RID, causeNames[worst], excess[worst], total})
		}
	}
	return slow
}

// causes divides the time of a finished request, as seen by its first rank. Decoding only counts as far as tokens came
// slower than usual.
func (r *Run) causes(q *Request, usual int64) (took [causes]int64) {
	for _, h := range q.Halves {
		v := &h.ranks[0]
		sent := max(h.Dispatched, h.forwarded)
		took[causeQueue] += v.received - sent + r.firstTurn(h).Ranks[0].Formed - v.waiting
		switch r.Instances[h.Instance].Role {
		case RolePrefill:
			took[causeMemory] = v.waiting - v.queued
			took[causeTransfer] = q.answering().ranks[0].waiting - r.prefilled(h)
		}
		if h == q.answering() {
			r.decodeCauses(h, usual, &took)
		}
		if end := r.prefilled(h); end != 0 {
			took[causePrompt] += end - r.firstTurn(h).Ranks[0].Formed
		}
	}
	return took
}

// prefilled returns when the first rank had prefilled a half, 0 for a decode half.
func (r *Run) prefilled(h *Half) int64 {
	for _, t := range h.turns {
		if t.kind == turnPrefill {
			return r.Steps[t.at].Ranks[0].done
		}
	}
	return 0
}

// decodeCauses walks over the tokens of a half and divides the gaps between them.
func (r *Run) decodeCauses(h *Half, usual int64, took *[causes]int64) {
	previous, retracted, straggled := int64(0), int64(0), int64(0)
	slow := int64(0)
	for i, t := range h.turns {
		switch {
		case t.kind == turnRetract:
			retracted = h.retractions[t.at].at[0]
			continue
		case t.kind == turnChunk, t.kind == turnPrebuilt && i > 0:
			continue
		}
		st := &r.Steps[t.at]
		at := st.Ranks[0].done
		if retracted != 0 {
			took[causeRetraction] += at - retracted
		} else if previous != 0 {
			slow += at - previous - usual
			if st.slow && r.meets(st) {
				_, late := r.lateness(st)
				straggled += max(0, late)
			}
		}
		previous, retracted = at, 0
	}
	took[causeStraggler] = min(straggled, max(0, slow))
	took[causeDecode] = max(0, slow-took[causeStraggler])
}

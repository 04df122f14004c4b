package simulator

import "slices"

// StragglerTruth is the planted straggler, and what it did in the decode steps of
// its TP group. With one TP rank, or on an early stage of a pipeline, nobody ends
// earlier because of it: see LastSteps.
type StragglerTruth struct {
	Host   string  `json:"host"`
	Role   string  `json:"role"`
	Rank   string  `json:"rank"`
	PID    int     `json:"pid"`
	Factor float64 `json:"factor"`
	// OnsetNs is when it became slow; it is left out if it always was.
	OnsetNs int64 `json:"onset_ns,omitempty"`
	// Steps are the decode steps of its group, LastSteps those in which it ended
	// after all its peers.
	Steps     int `json:"steps"`
	LastSteps int `json:"last_steps"`
	// MeanLatenessNs is the mean over Steps of its end minus the median (nearest
	// rank) of the ends of its TP peers; zero without peers.
	MeanLatenessNs int64 `json:"mean_lateness_ns"`
}

// ImbalanceTruth is the balancer that prefers one DP rank from the onset on.
type ImbalanceTruth struct {
	Role    string `json:"role"`
	Host    string `json:"host"`
	OnsetNs int64  `json:"onset_ns"`
	DPRank  int    `json:"dp_rank"`
	// Before and After are the requests that arrived then, by DP rank, and Share
	// the part that went to DPRank.
	Before      []int   `json:"before"`
	After       []int   `json:"after"`
	ShareBefore float64 `json:"share_before"`
	ShareAfter  float64 `json:"share_after"`
}

func (r *Run) stragglerTruth() *StragglerTruth {
	at := r.Straggler()
	if at < 0 {
		return nil
	}
	p := &r.Processes[at]
	t := &StragglerTruth{
		Host: r.Hosts[p.Host].Name, Role: string(p.Role), Rank: p.Rank.String(), PID: p.PID,
		Factor: r.Config.Straggler.Factor, OnsetNs: r.slowFrom(),
	}
	sum := int64(0)
	for i := range r.Steps {
		if st := &r.Steps[i]; st.Mode == ModeDecode && r.slowed(st) {
			late, last := r.lateness(st)
			t.Steps++
			sum += late
			if last > 0 {
				t.LastSteps++
			}
		}
	}
	if t.Steps > 0 {
		t.MeanLatenessNs = sum / int64(t.Steps)
	}
	return t
}

// slowFrom returns the time from which on the straggler is slow; 0 is always.
func (r *Run) slowFrom() int64 {
	if !r.Config.Straggler.AtOnset {
		return 0
	}
	return r.Onset
}

// slowed reports whether the straggler takes part in a step, and is slow by then.
func (r *Run) slowed(st *Step) bool {
	return r.Config.Straggler.Factor > 1 && st.Instance == len(r.Instances)-1 && st.DP == r.Config.Straggler.DP &&
		st.Ranks[0].Formed >= r.slowFrom()
}

// lateness returns by how much the straggler ended a step after the median of its
// TP peers, and after the last of them.
func (r *Run) lateness(st *Step) (median, last int64) {
	s, size := r.Config.Straggler, r.Serving().Size
	if size.TP == 1 {
		return 0, 0
	}
	var peers []int64
	for tp := range size.TP {
		if tp != s.TP {
			peers = append(peers, st.Ranks[s.PP*size.TP+tp].done)
		}
	}
	slices.Sort(peers)
	own := st.Ranks[s.PP*size.TP+s.TP].done
	return own - nearestRank(peers, 50), own - peers[len(peers)-1]
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
	// LastNs is the end of its last step, and Running how many requests were in its
	// batches then.
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

package golden

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
	at := r.straggler()
	if at < 0 {
		return nil
	}
	p := &r.processes[at]
	t := &StragglerTruth{
		Host: r.hosts[p.host].name, Role: string(p.role), Rank: p.rank.String(), PID: p.pid,
		Factor: r.config.Straggler.Factor, OnsetNs: r.slowFrom(),
	}
	sum := int64(0)
	for i := range r.steps {
		if st := &r.steps[i]; st.mode == modeDecode && r.slowed(st) {
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
	if !r.config.Straggler.AtOnset {
		return 0
	}
	return r.onset
}

// slowed reports whether the straggler takes part in a step, and is slow by then.
func (r *Run) slowed(st *step) bool {
	return r.config.Straggler.Factor > 1 && st.instance == len(r.instances)-1 && st.dp == r.config.Straggler.DP &&
		st.ranks[0].formed >= r.slowFrom()
}

// lateness returns by how much the straggler ended a step after the median of its
// TP peers, and after the last of them.
func (r *Run) lateness(st *step) (median, last int64) {
	s, size := r.config.Straggler, r.serving().size
	if size.TP == 1 {
		return 0, 0
	}
	var peers []int64
	for tp := range size.TP {
		if tp != s.TP {
			peers = append(peers, st.ranks[s.PP*size.TP+tp].done)
		}
	}
	slices.Sort(peers)
	own := st.ranks[s.PP*size.TP+s.TP].done
	return own - nearestRank(peers, 50), own - peers[len(peers)-1]
}

func (r *Run) imbalanceTruth() *ImbalanceTruth {
	if !r.balanced() {
		return nil
	}
	in := r.serving()
	t := &ImbalanceTruth{
		Role: string(in.role), Host: r.hosts[in.host].name,
		OnsetNs: r.onset, DPRank: r.config.Incident.DPRank,
		Before: make([]int, in.size.DP), After: make([]int, in.size.DP),
	}
	before, after := 0, 0
	for _, q := range r.requests {
		if q.arrival < r.onset {
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

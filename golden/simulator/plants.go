package simulator

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

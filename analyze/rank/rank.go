package rank

import (
	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/load"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/request"
)

// Ranks are the scheduler ranks of a deployment side by side: how load is divided
// among them, who keeps the others of a tensor parallel group waiting, how the stages
// of pipelines are used, and who takes longer for its work than its peers. docs/METRICS.md defines the numbers.
type Ranks struct {
	Length int64 // of the requests: from the first start to the last end, ns
	Loads  []Load
	Groups []*StepGroup
	Pipes  []*Pipeline
	Slow   []SlowServer

	peers          *place.Groups
	e2e            int64 // mean of the finished requests, ns; request.Unknown
	skipped        skippedSteps
	unrouted       [request.Other + 1]int // parts of each role that went to nobody knows which rank
	unequalBatches int                    // parts of requests of which the stages of a pipeline have more or fewer
	unlaunched     bool                   // there are pipelines, but no run_batch_cpu
	paced          int                    // steps that two ranks whose paces were compared have, most; -1 is none
	notes          []string
}

// Measure measures the ranks that work for the requests of s.
func Measure(s *request.Set) *Ranks {
	if len(s.Requests) == 0 {
		return &Ranks{paced: -1, peers: new(place.Groups)}
	}
	of, all := place.NewRankSet(s), load.BulkOf(s)
	out := &Ranks{Length: int64(all.To - all.From), paced: -1, peers: place.Of(of)}
	out.e2e = meanE2E(s)
	out.measureLoads(of, all)
	out.measureSteps(of, all)
	out.measurePipelines(of, all)
	out.measurePaces(of, all)
	return out
}

func meanE2E(s *request.Set) int64 {
	var e2e []int64
	for i := range s.AllRequests() {
		if r := &s.Requests[i]; r.Status == request.Finished && r.Metrics.E2E >= 0 {
			e2e = append(e2e, r.Metrics.E2E)
		}
	}
	if len(e2e) == 0 {
		return request.Unknown
	}
	return distribution.Summarize(e2e).Mean
}

package requests

import (
	"fmt"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/request"
)

// OverloadFindings tells if requests spend much of their time waiting to be scheduled.
// Where all of them wait, the slow ones do not differ by it from the usual ones, and
// nothing changes if that was so from the beginning.
func OverloadFindings(s *request.Set) []finding.Finding {
	const much = 0.4 // of the time of requests
	var queue, e2e []int64
	waited, all := 0.0, 0.0
	for i := range s.Requests {
		r := &s.Requests[i]
		if m := &r.Metrics; r.Status == request.Finished && m.E2E > 0 && m.E2E <= request.LongestRequest && m.Queue >= 0 {
			queue, e2e = append(queue, m.Queue), append(e2e, m.E2E)
			waited, all = waited+float64(min(m.Queue, m.E2E)), all+float64(m.E2E)
		}
	}
	if len(e2e) < finding.FewCompared || waited < much*all {
		return nil
	}
	return []finding.Finding{{
		Kind: finding.Load, Show: []string{"--timeline"}, Weight: waited / all,
		Text: fmt.Sprintf("requests spend %s %% of their time waiting to be scheduled: p50 %s, of an E2E of %s; more arrives than the servers take on",
			words.InPercent(waited/all), words.Nearly(distribution.Summarize(queue).P50), words.Nearly(distribution.Summarize(e2e).P50)),
	}}
}

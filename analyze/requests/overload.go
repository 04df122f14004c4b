package requests

import (
	"fmt"
	"math"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/request"
)

// OverloadFindings tells if requests spend much of their time waiting to be scheduled, and
// whether there are enough of them to tell.
// Where all of them wait, the slow ones do not differ by it from the usual ones, and
// nothing changes if that was so from the beginning.
func OverloadFindings(s *request.Set) ([]finding.Finding, finding.Judged) {
	const much = 0.4 // of the time of requests
	var queue, e2e []int64
	waited, all := 0.0, 0.0
	for i := range s.Requests {
		r := &s.Requests[i]
		if m := &r.Metrics; r.Status == request.Finished && r.Complete() && m.E2E > 0 && m.E2E <= request.LongestRequest && m.Queue >= 0 {
			queue, e2e = append(queue, m.Queue), append(e2e, m.E2E)
			waited, all = waited+float64(min(m.Queue, m.E2E)), all+float64(m.E2E)
		}
	}
	judged := finding.Judged{What: "time in queues", Of: "finished request", N: len(e2e), Needed: finding.FewCompared}
	if len(e2e) < finding.FewCompared || waited < much*all {
		return nil, judged
	}
	wait, whole := distribution.Summarize(queue).P50, distribution.Summarize(e2e).P50
	return []finding.Finding{{
		Topic: finding.Waits,
		Cost:  waited / all, Metric: finding.Metric{Name: "share of time in queues", Unit: table.Share, Before: math.NaN(), After: waited / all},
		Text: fmt.Sprintf("requests spend %s %% of their time waiting to be scheduled (p50 wait %s, p50 E2E %s): more requests arrive than the servers can handle",
			words.InPercent(waited/all), words.Nearly(wait), words.Nearly(whole)),
	}}, judged
}

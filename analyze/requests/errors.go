package requests

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/cause"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// Requests that failed, or were turned away, are a finding if there are at least
// fewFailed and one in failedOneIn. A single one may be the client's fault.
const (
	fewFailed   = 2
	failedOneIn = 1000
)

// turnedAway is how the reason of requests begins that a server did not take in for
// want of room. All others that were aborted, their clients gave up.
const turnedAway = "The request queue is full"

// FailureFindings tells of requests that got no answer, through no fault of their
// clients.
func FailureFindings(s *request.Set) ([]finding.Finding, finding.Judged) {
	failed := requestsThat(s, func(r *request.Request) bool {
		return r.Status == request.Failed || r.Status == request.Aborted && strings.HasPrefix(r.Reason, turnedAway)
	})
	judged := finding.Judged{What: "failures", Of: "request", N: len(s.Requests), Needed: fewFailed}
	if n := len(failed); n < fewFailed || n*failedOneIn < len(s.Requests) {
		return nil, judged
	}
	return []finding.Finding{failedFinding(s, failed)}, judged
}

// RetractionFindings tells of requests that were removed from their batch.
func RetractionFindings(s *request.Set, b *cause.Costs) ([]finding.Finding, finding.Judged) {
	retracted := requestsThat(s, func(r *request.Request) bool { return r.Metrics.Retractions > 0 })
	n, all := len(retracted), len(s.Requests)
	judged := finding.Judged{What: "retractions", Of: "request", N: all, Needed: finding.FewDelayed}
	if n < finding.FewDelayed || n*finding.DelayedOneIn < all {
		return nil, judged
	}
	return []finding.Finding{{
		Cost: b.BeyondUsual(0, cause.Retraction), Affected: finding.AffectedOf(s, retracted),
		Metric: finding.Metric{Name: "share of requests retracted", Unit: table.Share, Before: math.NaN(), After: float64(n) / float64(all)},
		Text: fmt.Sprintf("%d of %d requests were retracted (removed from their batch because the KV cache was full); %s",
			n, all, place.BetweenTimes(s, retracted)),
	}}, judged
}

// requestsThat returns the indexes of the requests for which is holds.
func requestsThat(s *request.Set, is func(*request.Request) bool) []int {
	var list []int
	for i := range s.Requests {
		if is(&s.Requests[i]) {
			list = append(list, i)
		}
	}
	return list
}

func failedFinding(s *request.Set, failed []int) finding.Finding {
	share := float64(len(failed)) / float64(len(s.Requests))
	f := finding.Finding{
		Since: failingSince(s, failed), Cost: share, Affected: finding.AffectedOf(s, failed),
		Metric: finding.Metric{Name: "share of requests without an answer", Unit: table.Share, Before: math.NaN(), After: share},
		Text:   fmt.Sprintf("%d of %d requests got no answer", len(failed), len(s.Requests)),
	}
	if f.Since != 0 {
		f.Metric.Before = 0
		f.Text += fmt.Sprintf("; the first of them started at %s, and none of the %s before it failed",
			words.Clock(f.Since).Format(words.TenthLayout), words.Counted(failed[0], "request"))
	} else {
		f.Text += "; " + place.BetweenTimes(s, failed)
	}
	f.Evidence = append(reasonsOf(s, failed), finding.Sentence("for example %s", place.SomeRequests(s, failed)))
	return f
}

// reasonsOf says why requests failed, the most common reason first.
func reasonsOf(s *request.Set, failed []int) []finding.Evidence {
	type reason struct {
		text string
		n    int
	}
	counts := map[string]int{}
	for _, i := range failed {
		counts[reasonGist(s.Requests[i].Reason)]++
	}
	var reasons []reason
	for text, n := range counts {
		reasons = append(reasons, reason{text, n})
	}
	slices.SortFunc(reasons, func(x, y reason) int { return cmp.Or(y.n-x.n, strings.Compare(x.text, y.text)) })
	var out []finding.Evidence
	for _, r := range reasons {
		out = append(out, finding.Sentence("%d: %s", r.n, r.text))
	}
	return out
}

// failingSince returns when the first of the failed requests started, if it is not by
// chance that none failed before; else 0. If every request were as likely to fail, all
// would lie behind the first n by a probability of at most ((all - n) / all)^failed.
func failingSince(s *request.Set, failed []int) trace.Time {
	const chance = 0.01
	all := float64(len(s.Requests))
	if math.Pow((all-float64(failed[0]))/all, float64(len(failed))) > chance {
		return 0
	}
	return s.Requests[failed[0]].Start
}

// reasonGist is what a reason says before it names the request: "Prefill transfer
// failed".
func reasonGist(reason string) string {
	const most = 100 // characters; what SGLang says first is what matters
	reason, _, _ = strings.Cut(reason, " for request")
	return table.CutMiddle(cmp.Or(reason, "no reason given"), most, table.Style{ASCII: true})
}

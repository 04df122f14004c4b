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

// ErrorFindings tells of requests that got no answer, through no fault of their
// clients, and of those that were thrown out of their batch.
func ErrorFindings(s *request.Set, b *cause.Costs) []finding.Finding {
	var failed, retracted []int
	for i := range s.Requests {
		r := &s.Requests[i]
		if r.Status == request.Failed || r.Status == request.Aborted && strings.HasPrefix(r.Reason, turnedAway) {
			failed = append(failed, i)
		}
		if r.Metrics.Retractions > 0 {
			retracted = append(retracted, i)
		}
	}
	var out []finding.Finding
	if n := len(failed); n >= fewFailed && n*failedOneIn >= len(s.Requests) {
		out = append(out, failedFinding(s, failed))
	}
	if n := len(retracted); n >= finding.FewDelayed && n*finding.DelayedOneIn >= len(s.Requests) {
		out = append(out, finding.Finding{
			Kind: finding.Memory, Weight: b.BeyondUsual(0, cause.Retraction), Show: []string{"--tail"},
			Text: fmt.Sprintf("%d of %d requests were retracted: thrown out of their batch for want of KV cache; %s",
				n, len(s.Requests), place.BetweenTimes(s, retracted)),
		})
	}
	return out
}

func failedFinding(s *request.Set, failed []int) finding.Finding {
	f := finding.Finding{
		Kind: finding.Errors, Since: failingSince(s, failed), Weight: float64(len(failed)) / float64(len(s.Requests)),
		Show: []string{"--by", "status,stage"},
		Text: fmt.Sprintf("%d of %d requests got no answer", len(failed), len(s.Requests)),
	}
	if f.Since != 0 {
		f.Text += fmt.Sprintf(", the first at %s; the %s before did", words.Clock(f.Since).Format(words.TenthLayout), words.Counted(failed[0], "request"))
	} else {
		f.Text += "; " + place.BetweenTimes(s, failed)
	}
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
	for _, r := range reasons {
		f.Evidence = append(f.Evidence, fmt.Sprintf("%d: %s", r.n, r.text))
	}
	f.Evidence = append(f.Evidence, "such as "+place.SomeRequests(s, failed))
	return f
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
	return table.CutMiddle(cmp.Or(reason, "no reason is told"), most, table.Style{ASCII: true})
}

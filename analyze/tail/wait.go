package tail

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/cause"
	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/request"
)

// A Wait is something that requests in general wait for, so that it does not tell the slow
// ones from the others.
type Wait struct {
	Cause    cause.Cause
	P50, P90 int64   // ns that a half, and a tenth, of all requests wait at least
	Share    float64 // of the time of all requests
}

// waitCauses are the causes in which a request does nothing but wait.
var waitCauses = []cause.Cause{
	cause.Intake, cause.DecodeBootstrap, cause.PrefillBootstrap, cause.Queue, cause.ChunkWait, cause.DecodeQueue,
}

// Requests in general wait for something if half of them wait for as long as a quarter of the
// median E2E, or if that is much of the time of all of them together.
const (
	waitPart  = 4
	waitShare = 0.4
)

// waits finds what requests in general wait for, the longest waits first. limit is the
// median E2E in ns.
func (t *Tail) waits(limit int64) []Wait {
	var out []Wait
	total := 0.0
	for i := range t.List {
		total += float64(t.List[i].E2E.Total())
	}
	for _, c := range waitCauses {
		list, sum := memory.Make[int64](len(t.List)), 0.0
		for i := range t.List {
			list[i] = t.List[i].E2E[c]
			sum += float64(list[i])
		}
		slices.Sort(list)
		w := Wait{c, request.NearestRank(list, 50), request.NearestRank(list, 90), distribution.Ratio(sum, total)}
		if w.P50 > 0 && w.P50 >= limit/waitPart || w.Share >= waitShare {
			out = append(out, w)
		}
	}
	slices.SortStableFunc(out, func(x, y Wait) int { return cmp.Compare(y.Share, x.Share) })
	return out
}

// String says how long requests in general wait.
func (w *Wait) String() string {
	return fmt.Sprintf("half of all requests spend %s or more %s (%s %% of the time of all requests)",
		words.Nearly(w.P50), w.Cause.Phrase(), words.InPercent(w.Share))
}

// wait returns how long requests in general wait for a cause; nil if they don't.
func (d *Delays) wait(c cause.Cause) *Wait {
	if d != nil {
		for i := range d.Waits {
			if d.Waits[i].Cause == c {
				return &d.Waits[i]
			}
		}
	}
	return nil
}

// WaitFindings tells what requests in general wait for, and whether there are enough of them
// to tell. Where all of them wait, the slow ones do not differ by it from the usual ones,
// and nothing changes if that was so from the beginning.
func (t *Tail) WaitFindings(b *cause.Costs) ([]finding.Finding, finding.Judged) {
	judged := finding.Judged{What: "waits of all requests", Of: "finished request", N: len(t.List), Needed: finding.FewCompared}
	if t.Delays == nil {
		return nil, judged
	}
	var out []finding.Finding
	for i := range t.Delays.Waits {
		w := &t.Delays.Waits[i]
		f := finding.Finding{
			Topic: finding.Waits, Text: fmt.Sprintf("%s; median E2E: %s", w, words.Nearly(t.Delays.Limit)), Cost: w.Share, Claim: b.AllOf(t.requests(), w.Cause), Show: showTable("delays"),
			Metric: finding.Metric{Name: "time " + w.Cause.Phrase(), Unit: table.Duration, Before: math.NaN(), After: float64(w.P50)},
		}
		f.Evidence = []finding.Evidence{finding.Sentence("one in ten requests spends %s or more %s", words.Nearly(w.P90), w.Cause.Phrase())}
		out = append(out, f)
	}
	return out, judged
}

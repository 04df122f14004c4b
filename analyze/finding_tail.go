package analyze

import (
	"fmt"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/request"
)

// causeKinds are the kinds of findings that causes of time are about. What is not
// here is told by itself.
var causeKinds = map[Cause]FindingKind{
	CauseSlowRank:         FindingStraggler,
	CauseTransfer:         FindingTransfer,
	CauseRetraction:       FindingMemory,
	CauseIntake:           FindingLoad,
	CauseDecodeBootstrap:  FindingLoad,
	CausePrefillBootstrap: FindingLoad,
	CauseQueue:            FindingLoad,
	CauseSharedBatch:      FindingLoad,
	CauseChunkWait:        FindingLoad,
	CauseDecodeQueue:      FindingLoad,
}

// findings tells what stands out of the slow requests: first what says most about
// its cause.
func (t *Tail) findings(b *bill) []Finding {
	var out []Finding
	if x := t.Transfers; x != nil && len(x.Slow) > 0 {
		out = append(out, t.finding(CauseTransfer, x.Where, b.beyondUsual(0, CauseTransfer), x.Verdict()+x.Where.nearlyAll()))
	}
	if d := t.Disaggregation; d != nil && d.Saturated != request.Other {
		text := strings.ToLower(d.Verdict()[:1]) + d.Verdict()[1:]
		out = append(out, t.finding(CauseQueue, Place{Proc: request.None}, b.beyondUsual(0, overloadCauses...), text))
	}
	if t.Delays != nil {
		for i := range t.Delays.Rows {
			if row := &t.Delays.Rows[i]; row.StandsOut {
				out = append(out, t.finding(row.Cause, row.Where, b.part(float64(row.Total)), t.delayText(row)))
			}
		}
	}
	for _, c := range t.Comparisons {
		for i := range c.Rows {
			if row := &c.Rows[i]; row.StandsOut && !c.isUsual(row) {
				out = append(out, t.finding(row.Cause, row.Where, b.part(float64(row.More)*float64(c.Slow.N)), c.causeText(row)))
			}
		}
	}
	return out
}

// isUsual tells that a server which does all of its work in turn always has such a tail:
// the longest gaps between tokens are those in which others were prefilled.
func (c *Comparison) isUsual(d *Difference) bool {
	return c.Metric == MetricITL && d.Cause == CauseInterference
}

// finding is one about a cause.
func (t *Tail) finding(cause Cause, at Place, weight float64, text string) Finding {
	f := Finding{Kind: FindingTail, Text: text, Show: []string{"--tail"}, Weight: min(1, weight), topic: cause.String()}
	if kind, ok := causeKinds[cause]; ok {
		f.Kind, f.topic = kind, ""
	}
	if at.Proc != request.None && (f.Kind == FindingStraggler || at.nearlyAll() != "") {
		f.At = t.placeOf(int32(at.Proc))
	}
	return f
}

// nearlyAll names the place of nearly all of something, if it could be elsewhere.
func (p Place) nearlyAll() string {
	const nearly = 0.8
	if p.Name == "" || p.Share < nearly || p.Only {
		return ""
	}
	return fmt.Sprintf("; %.0f %% of that on %s", 100*p.Share, p.Name)
}

// delayText tells whom a cause delays, when, and by how much.
func (t *Tail) delayText(d *Delay) string {
	n := len(d.Requests)
	return fmt.Sprintf("%s delays %d of %d requests, by %s on average, where the median E2E is %s; %s",
		phraseAt(d.Cause, d.Where), n, t.Delays.N, words.Nearly(d.Total/int64(n)), words.Nearly(t.Delays.Limit), betweenTimes(t.set, d.Requests))
}

// causeText tells how much of a tail a cause makes.
func (c *Comparison) causeText(d *Difference) string {
	slow := "requests"
	if c.Metric == MetricITL {
		slow = "gaps between tokens"
	}
	return fmt.Sprintf("%s makes %.0f %% of what slow %s take longer than usual ones: %s p%d is %s, the median %s",
		phraseAt(d.Cause, d.Where), 100*d.Share, slow, metricWords[c.Metric], c.Percent, words.Nearly(c.Value), words.Nearly(c.Median))
}

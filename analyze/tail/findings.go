package tail

import (
	"fmt"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/cause"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/request"
)

// causeKinds are the kinds of findings that causes of time are about. What is not
// here is told by itself.
var causeKinds = map[cause.Cause]finding.Kind{
	cause.SlowRank:         finding.Straggler,
	cause.Transfer:         finding.Transfer,
	cause.Retraction:       finding.Memory,
	cause.Intake:           finding.Load,
	cause.DecodeBootstrap:  finding.Load,
	cause.PrefillBootstrap: finding.Load,
	cause.Queue:            finding.Load,
	cause.SharedBatch:      finding.Load,
	cause.ChunkWait:        finding.Load,
	cause.DecodeQueue:      finding.Load,
}

// Findings tells what stands out of the slow requests: first what says most about
// its cause.
func (t *Tail) Findings(b *cause.Costs) []finding.Finding {
	var out []finding.Finding
	if x := t.Transfers; x != nil && len(x.Slow) > 0 {
		out = append(out, t.finding(cause.Transfer, x.Where, b.BeyondUsual(0, cause.Transfer), x.Verdict()+x.Where.nearlyAll()))
	}
	if d := t.Disaggregation; d != nil && d.Saturated != request.Other {
		text := strings.ToLower(d.Verdict()[:1]) + d.Verdict()[1:]
		out = append(out, t.finding(cause.Queue, Place{Proc: request.None}, b.BeyondUsual(0, cause.OverloadCauses...), text))
	}
	if t.Delays != nil {
		for i := range t.Delays.Rows {
			if row := &t.Delays.Rows[i]; row.StandsOut {
				out = append(out, t.finding(row.Cause, row.Where, b.Part(float64(row.Total)), t.delayText(row)))
			}
		}
	}
	for _, c := range t.Comparisons {
		for i := range c.Rows {
			if row := &c.Rows[i]; row.StandsOut && !c.isUsual(row) {
				out = append(out, t.finding(row.Cause, row.Where, b.Part(float64(row.More)*float64(c.Slow.N)), c.causeText(row)))
			}
		}
	}
	return out
}

// isUsual tells that a server which does all of its work in turn always has such a tail:
// the longest gaps between tokens are those in which others were prefilled.
func (c *Comparison) isUsual(d *Difference) bool {
	return c.Metric == MetricITL && d.Cause == cause.Interference
}

// finding is one about a cause.
func (t *Tail) finding(cause cause.Cause, at Place, weight float64, text string) finding.Finding {
	f := finding.Finding{Kind: finding.Tail, Text: text, Show: []string{"--tail"}, Weight: min(1, weight), Topic: cause.String()}
	if kind, ok := causeKinds[cause]; ok {
		f.Kind, f.Topic = kind, ""
	}
	if at.Proc != request.None && (f.Kind == finding.Straggler || at.nearlyAll() != "") {
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
		phraseAt(d.Cause, d.Where), n, t.Delays.N, words.Nearly(d.Total/int64(n)), words.Nearly(t.Delays.Limit), place.BetweenTimes(t.set, d.Requests))
}

// causeText tells how much of a tail a cause makes.
func (c *Comparison) causeText(d *Difference) string {
	slow := "requests"
	if c.Metric == MetricITL {
		slow = "gaps between tokens"
	}
	return fmt.Sprintf("%s makes %.0f %% of what slow %s take longer than usual ones: %s p%d is %s, the median %s",
		phraseAt(d.Cause, d.Where), 100*d.Share, slow, MetricWords[c.Metric], c.Percent, words.Nearly(c.Value), words.Nearly(c.Median))
}

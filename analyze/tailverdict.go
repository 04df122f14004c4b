package analyze

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/request"
)

// standsOut is how much a cause has to add before it is a finding, as a multiple
// of the mean around the median. Prompts, and with them the TTFT of a healthy
// deployment, differ more in size than whole requests do; and every unified
// server interrupts decoding for a prefill now and then.
var standsOut = map[Metric]float64{MetricE2E: 1.0 / 3, MetricTTFT: 3, MetricITL: 8}

// findingShare is the least share of the difference that is a finding, and
// findingMain of how many requests the cause has to be the main one.
const (
	findingShare = 1.0 / 3
	findingMain  = 2
)

// judge finds the causes that stand out: they make a third of the difference or
// more, add much compared with the median, and half of that with 95 % confidence,
// and are the main cause of several requests. A false alarm is worse than
// silence.
func (c *Comparison) judge() {
	least := standsOut[c.Metric] * float64(c.Around.Mean)
	for i := range c.Rows {
		row := &c.Rows[i]
		row.StandsOut = !row.Cause.bySize() && row.Share >= findingShare &&
			(row.Main == request.Unknown || row.Main >= findingMain) &&
			float64(row.More) >= least && float64(row.Low) >= least/2
	}
}

// phraseAt names a cause in a sentence, with the rank if nearly all of it is there
// and it could be elsewhere.
func phraseAt(c Cause, at Place) string {
	const nearly = 0.8
	text := c.phrase()
	if at.Name != "" && at.Share >= nearly && !at.Only && !c.bySize() {
		text += " (" + at.Name + ")"
	}
	return text
}

// toldShare is the least share of the difference that a verdict tells.
const toldShare = 0.1

// tells tells whether a cause makes enough of the difference to be looked into.
func (c *Comparison) tells(k Cause) bool {
	return slices.ContainsFunc(c.Rows, func(d Difference) bool { return d.Cause == k && d.Share >= toldShare })
}

// Verdict says in one sentence what makes the tail.
func (c *Comparison) Verdict() string {
	text := fmt.Sprintf("p%d of %s", c.Percent, metricWords[c.Metric])
	if c.N == 0 {
		return text + ": no request has it"
	}
	text += fmt.Sprintf(" (%s against %s at the median): ", nearly(c.Value), nearly(c.Median))
	switch {
	case c.N < fewCompared:
		return text + fmt.Sprintf("too few values to compare (%d)", c.N)
	case c.Slow.N == 0:
		return text + "nearly all are equal"
	}
	const enough, most = 0.8, 3 // until so much of the difference is told
	var causes []string
	told, found := 0.0, false
	for i := range c.Rows {
		row := &c.Rows[i]
		found = found || row.StandsOut
		if len(causes) < most && told < enough && row.Share >= toldShare {
			told += row.Share
			causes = append(causes, fmt.Sprintf("%.0f %% %s", 100*row.Share, phraseAt(row.Cause, row.Where)))
		}
	}
	switch {
	case len(causes) == 0:
		text += "nothing stands out"
	case !found:
		text += "nothing stands out; "
	}
	return text + strings.Join(causes, ", ")
}

// A SlowRequest is one of the slowest, with what makes it slow.
type SlowRequest struct {
	Request int // index into Set.Requests
	Cause   Cause
	Took    int64 // ns that went into the cause
	Usual   int64 // ns that do around the median
	// Share is Took - Usual, of what the request takes more than the mean around the
	// median.
	Share float64
	Where Place
}

// slowRequest finds what makes request a slow.
func (t *Tail) slowRequest(c *Comparison, a *Attribution) SlowRequest {
	times := timeOf(a, c.Metric)
	main, more := c.mainCause(times)
	out := SlowRequest{Request: a.Request, Cause: main.Cause, Took: times[main.Cause], Usual: main.Around}
	if whole := times.Total() - c.Around.Mean; whole > 0 {
		out.Share = float64(more) / float64(whole)
	}
	proc := homeOf(main.Cause, a)
	out.Where = Place{int(proc), t.rankName(proc), 1, t.oneHome[main.Cause]}
	return out
}

// A TailFinding is something that stands out of a set of requests.
type TailFinding struct {
	Kind     TailFindingKind
	Metric   Metric // of a tail; "" of other kinds
	Cause    Cause  // of a tail and of delays
	Where    Place
	Requests int    // how many it is the main cause of; request.Unknown of gaps
	Text     string // the verdict that tells it
}

// TailFindingKind is what a finding is about.
type TailFindingKind string

const (
	TailCause    TailFindingKind = "tail"     // a cause makes the tail of a metric
	TailDelay    TailFindingKind = "delay"    // a cause delays single requests
	TailTransfer TailFindingKind = "transfer" // KV transfers far slower than the others
	TailSide     TailFindingKind = "side"     // the prefill or the decode side saturates
)

// Findings returns what stands out; nothing is what a healthy deployment has.
func (t *Tail) Findings() []TailFinding {
	var out []TailFinding
	for _, c := range t.Comparisons {
		for i := range c.Rows {
			if row := &c.Rows[i]; row.StandsOut {
				out = append(out, TailFinding{TailCause, c.Metric, row.Cause, row.Where, row.Main, c.Verdict()})
			}
		}
	}
	if d := t.Delays; d != nil {
		for i := range d.Rows {
			if row := &d.Rows[i]; row.StandsOut {
				out = append(out, TailFinding{TailDelay, "", row.Cause, row.Where, len(row.Requests), d.Verdict()})
			}
		}
	}
	if x := t.Transfers; x != nil && len(x.Slow) > 0 {
		out = append(out, TailFinding{TailTransfer, "", CauseTransfer, x.Where, len(x.Slow), x.Verdict()})
	}
	if d := t.Disaggregation; d != nil && d.Saturated != request.Other {
		out = append(out, TailFinding{TailSide, "", CauseOther, Place{Proc: request.None}, d.N, d.Verdict()})
	}
	return out
}

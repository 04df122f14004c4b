package tail

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/cause"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/metric"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/request"
)

// standsOut is how much a cause must add to be a finding, as a multiple of the mean around the median. Prompts, and
// with them the TTFT of a healthy deployment, differ more in size than whole requests do; and every unified server
// interrupts decoding for a prefill now and then.
var standsOut = map[*metric.Metric]float64{metric.E2E: 1.0 / 3, metric.TTFT: 3, metric.ITL: 8}

// findingShare is the smallest share of the extra time for a finding, and findingMain the smallest number of requests
// in which the cause is the main one.
const (
	findingShare = 1.0 / 3
	findingMain  = 2
)

// judge decides which causes stand out: they make up at least a third of the extra time, add much compared with the
// median, and half of that with 95 % confidence, and are the main cause of several requests. A false alarm is worse
// than silence.
func (c *Comparison) judge() {
	least := standsOut[c.Metric] * float64(c.Around.Mean)
	for i := range c.Rows {
		row := &c.Rows[i]
		row.StandsOut = !row.Cause.BySize() && row.Share >= findingShare &&
			(row.Main == request.Unknown || row.Main >= findingMain) &&
			float64(row.More) >= least && float64(row.Low) >= least/2
	}
}

// phraseAt names a cause in a sentence, with the rank if nearly all of it is there and it could be elsewhere.
func phraseAt(c cause.Cause, at Place) string {
	const nearly = 0.8
	text := c.Phrase()
	if at.Name != "" && at.Share >= nearly && !at.Only && !c.BySize() {
		text += " (" + at.Name + ")"
	}
	return text
}

// severalTimes is how many times the mean around the median people call slow, whether or not there are enough such
// requests for a finding.
const severalTimes = 2

// toldShare is the smallest share of the extra time that a verdict mentions.
const toldShare = 0.1

// tells reports whether a cause makes up enough of the extra time to be worth a closer look.
func (c *Comparison) tells(k cause.Cause) bool {
	return slices.ContainsFunc(c.Rows, func(d Difference) bool { return d.Cause == k && d.Share >= toldShare })
}

// Verdict says in one sentence what makes up the tail.
func (c *Comparison) Verdict() string {
	text := fmt.Sprintf("p%d of %s", c.Percent, c.Metric.Title)
	if c.N == 0 {
		return text + ": no request has it"
	}
	text += fmt.Sprintf(" (%s against %s at the median): ", words.Nearly(c.Value), words.Nearly(c.Median))
	switch {
	case c.N < finding.FewCompared:
		return text + fmt.Sprintf("not enough data: %s, %d needed", words.Counted(c.N, "value"), finding.FewCompared)
	case c.Slow.N == 0:
		return text + "nearly all are equal"
	}
	const enough, most = 0.8, 3 // stop at this share of the extra time, or this number of causes
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
	case !found && (c.Rows[0].Cause.BySize() || c.Slow.Mean < severalTimes*c.Around.Mean):
		text += "nothing stands out; "
	}
	return text + strings.Join(causes, ", ") + c.commonWait()
}

// commonWait mentions a cause for which usual requests wait for much of their time, too.
func (c *Comparison) commonWait() string {
	for i := range c.Rows {
		row := &c.Rows[i]
		if slices.Contains(waitCauses, row.Cause) && row.Share >= toldShare && row.Around > 0 && row.Around >= c.Around.Mean/waitPart {
			return fmt.Sprintf("; requests around the median spend %s %s, too", words.Nearly(row.Around), row.Cause.Phrase())
		}
	}
	return ""
}

// A SlowRequest is one of the slowest requests, with its main cause.
type SlowRequest struct {
	Request int // index into Set.Requests
	Cause   cause.Cause
	Took    int64 // ns that went into the cause
	Usual   int64 // ns that go into it around the median
	// Share is Took-Usual as a share of the sum over all causes that took longer than usual; 0 if none did.
	Share float64
	Where Place
}

// slowRequest finds the main cause of request a.
func (t *Tail) slowRequest(c *Comparison, a *cause.Attribution) SlowRequest {
	times := timeOf(a, c.Metric)
	main, more := c.mainCause(times)
	out := SlowRequest{
		Request: a.Request, Cause: main.Cause, Took: times[main.Cause], Usual: main.Around, Share: shareOf(more, c.added(times)),
	}
	proc := a.ProcOf(main.Cause)
	out.Where = Place{int(proc), t.set.RankName(int(proc)), 1, t.oneHome[main.Cause]}
	return out
}

// added returns the sum of what exceeds the mean around the median, in ns, over the causes that took longer.
func (c *Comparison) added(times *cause.Causes) int64 {
	more := *times
	for i := range c.Rows {
		more[c.Rows[i].Cause] -= c.Rows[i].Around
	}
	sum := int64(0)
	for _, ns := range more {
		sum += max(0, ns)
	}
	return sum
}

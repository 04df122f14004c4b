package change

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/cause"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/parallel"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// Findings returns what changed, and which ranks were always late. Durations that shifted at
// about the time at which load or lateness did are evidence for that change.
func (c *Changes) Findings(b *cause.Costs) []finding.Finding {
	claims := make([]finding.Claim, len(c.List))
	parallel.Each(len(claims), func(i int) { claims[i] = c.claim(&c.List[i], b) })
	var out, falls []finding.Finding
	told, itself := map[int]int{}, map[int]bool{} // by change: index in out of its finding, and whether it is that finding's subject
	for i := range c.List {
		switch change := &c.List[i]; {
		case !c.leads(change):
		case change.Shifts[0].Metric == PaceChanged && !change.Shifts[0].costs():
			falls = append(falls, change.finding(b, claims[i]))
		case change.Shifts[0].Metric == ArrivalsChanged && !change.Shifts[0].rises():
			falls = append(falls, change.finding(b, claims[i])) // less load costs nothing
		default:
			told[i], itself[i] = len(out), true
			out = append(out, change.finding(b, claims[i]))
		}
	}
	for i := range c.Stallings {
		out = append(out, c.Stallings[i].finding(b))
	}
	for i := range c.List {
		change := &c.List[i]
		if c.leads(change) {
			continue
		}
		said := finding.Evidence{Text: change.Sentence()}
		undone := c.undone(change)
		if k, ok := told[undone]; ok {
			out[k].Evidence = append(out[k].Evidence, said)
			if itself[undone] && !c.List[undone].IsCause() { // a cause has an end of its own, whenever users see it
				out[k].Until = max(out[k].Until, change.Time)
			}
		} else if k := c.nearest(out, change); k >= 0 {
			told[i] = k
			out[k].Evidence = append(out[k].Evidence, said)
			if out[k].Subkind != Pace && out[k].Subkind != finding.Stalls || !change.Shifts[0].isSeen() { // a pace, or a stall, already claims what users see of it
				out[k].Claim = out[k].Claim.And(claims[i])
			}
		} else if k := c.nearest(falls, change); k >= 0 {
			falls[k].Evidence = append(falls[k].Evidence, said)
		} else {
			told[i], itself[i] = len(out), true
			out = append(out, change.finding(b, claims[i]))
		}
	}
	out = append(out, falls...)
	for i := range c.Late {
		f := &c.Late[i]
		claim, waiting := b.WaitsFor(&f.Location)
		out = append(out, finding.Finding{
			Kind: finding.Straggler, At: f.Location, Claim: claim, Affected: waiting, Metric: f.metric(),
			Text: fmt.Sprintf("%s always ends %s late, by %s (median); its peers wait for it", f.Name, f.Stage, words.Nearly(f.After.P50)),
		})
	}
	return b.Price(out)
}

// Check reports whether there are enough requests to look for changes.
func (c *Changes) Check() finding.Check {
	check := finding.Check{What: "changes in load and latency over time", Of: "request", N: c.Requests, Needed: Fewest}
	if c.Requests >= Fewest && c.Series == 0 {
		check.Reason = "there is no steady load between the ramp-up and the drain"
	}
	return check
}

// leads reports whether a change deserves a finding of its own: it may have caused others, and
// is not merely prompts or answers that return to their former length.
func (c *Changes) leads(change *Change) bool {
	return change.IsCause() && !(change.Shifts[0].Metric.isLength() && c.undone(change) >= 0)
}

// IsCause reports whether c may have caused other changes.
func (c *Change) IsCause() bool {
	m := c.Shifts[0].Metric
	return m.isLoad() || m.saves() || m.isLength() || m == LatenessChanged || m == PaceChanged
}

// IsQueue reports whether c is merely a queue that filled and drained on its own: nothing that feeds it changed, and the
// waits in it and the batches behind it last exactly as long as the queue does.
func (c *Change) IsQueue() bool {
	first := &c.Shifts[0]
	if c.IsCause() || first.Stage == "" {
		return false
	}
	switch first.Means.Phase() {
	case request.QueuePhase, request.BootstrapPhase, request.PrefillPhase, request.DecodePhase:
		return true
	case request.TransferPhase:
		return first.Means == request.Receiving // receiving includes the wait for the prefill
	}
	return first.isSeen() || first.Stage == "e2e"
}

// part: changes closer together than 1/part of the searched time may be one change.
const part = 20

// nearest returns the index of the cause closest in time to a change, within 1/part of the searched time; -1 if there is none.
func (c *Changes) nearest(causes []finding.Finding, of *Change) int {
	nearest, away, t := -1, (c.To-c.From)/part, of.Time
	for k := range causes {
		if relieves(&causes[k], &of.Shifts[0]) {
			continue
		}
		if d := max(causes[k].Since-t, t-causes[k].Since); d <= away {
			nearest, away = k, d
		}
	}
	return nearest
}

// alone returns the time until which c is the only explanation for slower requests: the start of the first clearly later cost in what
// requests ask for, in what they are spared, or in server speed. Queues don't count. It returns 0 if nothing else follows.
func (all *Changes) alone(c *Change) trace.Time {
	clearly := (all.To - all.From) / part
	for i := range all.List {
		o := &all.List[i]
		if f := &o.Shifts[0]; (f.Metric.saves() || f.Metric.isLength() || f.Metric == PaceChanged) && f.costs() && o.First > c.Last && o.Time-c.Time > clearly {
			return o.Time
		}
	}
	return 0
}

// undone returns the index of the earlier rise that a change merely undoes, -1 if it undoes none.
func (c *Changes) undone(of *Change) int {
	back := &of.Shifts[0]
	if !back.Back || back.rises() {
		return -1
	}
	return slices.IndexFunc(c.List, func(o Change) bool { return o.Time < of.Time && o.Shifts[0].rises() && o.has(back) })
}

// relieves reports whether a server gets more of the requests while another one of its role
// becomes slower: that one has less to do then, which makes nothing slower.
func relieves(share *finding.Finding, slower *Shift) bool {
	return share.Metric.Name == ShareOfRequests && share.Metric.After > share.Metric.Before && slower.rises() && slower.Location.Scope == place.OneRank && share.At.Scope == place.OneRank &&
		slower.Location.Role == share.At.Role && !slower.Location.Overlaps(&share.At)
}

// ShareOfRequests is the metric of findings about how requests are divided among servers.
const ShareOfRequests = "share of requests"

// SlowShare begins the names of metrics of how many durations of a stage are long.
const SlowShare = "share of slow "

// TokenizingSubkind is the subkind of findings about how long tokenizing takes.
const TokenizingSubkind = "tokenizing"

// finding returns a finding about the first shift of c.
func (c *Change) finding(b *cause.Costs, claim finding.Claim) finding.Finding {
	first := &c.Shifts[0]
	f := finding.Finding{
		Kind: first.findingKind(), At: first.Location, Since: c.Time, Within: max(c.Time-c.First, c.Last-c.Time), Text: c.Sentence(), P: finding.Chance(c.P), Metric: first.metric(), Claim: claim,
		Evidence: []finding.Evidence{finding.ByChance(c.P).
			In("changes", finding.Row("what", first.subject(), "part", "first"), "p", c.P)},
	}
	switch {
	case f.Kind == finding.Load && !first.Metric.isLoad(), f.Kind == finding.Transfer && first.Means == request.Receiving:
		f.Subkind = finding.Waits // waits for a transfer, or for what precedes it
	case f.Kind == finding.Straggler:
		_, f.Affected = b.WaitsFor(&f.At)
	case first.Metric.saves(), first.Metric.isLength(), first.Metric.isEnd():
		f.MoreWork = !first.Metric.isEnd()
		f.Subkind, f.Until = first.metric().Name, first.Until
		if first.Metric == YieldChanged {
			f.Brief, _, _ = strings.Cut(f.Text, "; ")
		}
	case first.Metric == PaceChanged:
		f.Subkind, f.Until, f.Full, f.Brief = Pace, first.Until, first.Full, first.paceSubject()+" "+first.paceChange()
		if first.settles() {
			f.Severity = finding.Info // whatever it costs
		}
		if first.slowFrom != 0 {
			f.Since, f.Until = first.slowFrom, c.Time
		}
		if first.together > 1 && first.Location.Scope == place.OneRank {
			f.Evidence = append(f.Evidence, finding.Evidence{Text: fmt.Sprintf("its %d DP ranks take each step together (DP attention): any of them may hold up the others, which requests do not show", first.together)})
		}
	case first.Means == request.Tokenizing:
		f.Subkind = TokenizingSubkind
	case f.Kind == finding.Transfer:
		f.Brief, _, _ = strings.Cut(f.Text, "; ")
	}
	return f
}

// metric returns the metric that shifted, before and after.
func (f *Shift) metric() finding.Metric {
	m := finding.Metric{Unit: table.Duration, Before: f.Before.value(f.Metric), After: f.After.value(f.Metric)}
	if m.Before == request.Unknown {
		m.Before = math.NaN() // ranks that are always late have no level before
	}
	switch f.Metric {
	case ShareChanged:
		m.Name, m.Unit = ShareOfRequests, table.Share
	case ArrivalsChanged:
		m.Name, m.Unit = Arrivals, table.Number
	case RunningChanged:
		m.Name, m.Unit = "running requests", table.Number
	case CachedChanged:
		m.Name, m.Unit = finding.CachedTokens, table.Share
	case YieldChanged:
		m.Name, m.Unit = finding.StepYield, table.Number
	case OutputChanged:
		m.Name, m.Unit = OutputLength, table.Number
	case PromptChanged:
		m.Name, m.Unit = PromptLength, table.Number
	case AbortsChanged, RefusedChanged, RetractedChanged:
		m.Name, m.Unit = f.subject(), table.Share
	case PaceChanged:
		m.Name = f.Stage
	case LatenessChanged:
		m.Name = "lateness in " + f.Stage
	case TailChanged:
		m.Name, m.Unit = SlowShare+f.Stage, table.Share
	default:
		m.Name = f.Stage + " p50"
	}
	return m
}

// findingKind returns the kind of a finding whose first shift is f.
func (f *Shift) findingKind() finding.Kind {
	switch phase := f.Means.Phase(); {
	case f.Metric.isLoad():
		return finding.Load
	case f.Metric == LatenessChanged:
		return finding.Straggler
	case f.Location.Scope == place.Everywhere:
		return finding.Change
	case phase == request.TransferPhase:
		return finding.Transfer
	case (phase == request.QueuePhase || phase == request.BootstrapPhase) && f.rises() && !(f.Location.Role == request.Unified && f.Means == request.DecodeQueueing):
		// On a unified server, decode queueing is part of the running batch.
		return finding.Load
	}
	return finding.Change
}

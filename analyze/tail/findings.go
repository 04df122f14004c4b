package tail

import (
	"fmt"
	"math"

	"github.com/sgtrace/sgtrace/analyze/cause"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/metric"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/request"
)

// causeKinds maps causes to kinds of findings. The others are of the kind finding.Tail, with the cause as subkind.
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

// kindOf returns the kind of findings about a cause.
func kindOf(c cause.Cause) finding.Kind {
	if kind, ok := causeKinds[c]; ok {
		return kind
	}
	return finding.Tail
}

// TransferFindings returns whether KV transfers are slow, and whether there are enough of them to say so.
func (t *Tail) TransferFindings(b *cause.Costs) ([]finding.Finding, finding.Check) {
	check := t.judgedSides("KV transfers", "KV transfer")
	return t.Transfers.Findings(b), check
}

// showTable returns the arguments that show one table of the tail.
func showTable(name string) [][]string { return [][]string{{"--tail", "--table", name}} }

// SideFindings returns whether the prefill or the decode side is saturated, and whether there are enough requests to
// say so.
func (t *Tail) SideFindings(b *cause.Costs) ([]finding.Finding, finding.Check) {
	check := t.judgedSides("saturation of prefill and decode", "request")
	d := t.Disaggregation
	if d == nil || d.Saturated == request.Other {
		return nil, check
	}
	f := finding.Finding{
		Subkind: finding.Waits, At: place.Location{Scope: place.WholeRole, Role: d.Saturated}, Text: d.verdict("the"), Claim: b.Beyond(t.requests(), cause.OverloadCauses...),
		Show:   showTable("firsttoken"),
		Metric: finding.Metric{Name: "share of time to first token spent waiting", Unit: table.Share, Before: math.NaN(), After: max(d.DecodeWait, d.PrefillWait)},
	}
	return b.Price([]finding.Finding{f}), check
}

// requests returns the finished requests, as indexes into Set.Requests.
func (t *Tail) requests() []int {
	list := memory.Make[int](len(t.List))
	for i := range cause.Each(t.List) {
		list[i] = t.List[i].Request
	}
	return list
}

// judgedSides returns the check of a finder that needs requests prefilled on one server and decoded on another.
func (t *Tail) judgedSides(what, of string) finding.Check {
	check := finding.Check{What: what, Of: of, Needed: finding.FewCompared}
	if d := t.Disaggregation; d != nil {
		check.N = d.N
	} else {
		check.Reason = "no request was prefilled on one server and decoded on another"
	}
	return check
}

// CauseFindings returns which causes of one kind delay requests or make up the tail, and whether there are enough
// requests to say so. Causes that delay some requests on their own come first.
func (t *Tail) CauseFindings(kind finding.Kind, b *cause.Costs) ([]finding.Finding, finding.Check) {
	check := finding.Check{What: "causes of slow requests", Of: "finished request", N: len(t.List), Needed: finding.FewCompared}
	var out []finding.Finding
	if t.Delays != nil {
		for i := range t.Delays.Rows {
			if row := &t.Delays.Rows[i]; row.StandsOut && kindOf(row.Cause) == kind {
				out = append(out, t.delayFinding(row, b))
			}
		}
	}
	for _, c := range t.Comparisons {
		for i := range c.Rows {
			if row := &c.Rows[i]; row.StandsOut && !c.isUsual(row) && kindOf(row.Cause) == kind {
				out = append(out, t.comparisonFinding(c, row, b))
			}
		}
	}
	return b.Price(out), check
}

// isUsual reports whether d is part of any tail of its metric: on a unified server, the longest gaps between tokens
// are always those in which others were prefilled.
func (c *Comparison) isUsual(d *Difference) bool {
	return c.Metric == metric.ITL && d.Cause == cause.Interference
}

// finding makes a finding about a cause.
func (t *Tail) finding(cause cause.Cause, at Place, claim finding.Claim, text string) finding.Finding {
	f := finding.Finding{Text: text, Claim: claim}
	kind := kindOf(cause)
	switch kind {
	case finding.Tail:
		f.Subkind = cause.String()
	case finding.Load:
		f.Subkind = finding.Waits
	}
	if at.Proc != request.None && (kind == finding.Straggler || at.nearlyAll() != "") {
		f.At = t.placeOf(int32(at.Proc))
	}
	return f
}

// nearlyAll is the share from which nearly all of something is in one place.
const nearlyAll = 0.8

// nearlyAll names the place of nearly all of something, or returns "" if there is no such place or no other place for
// it.
func (p Place) nearlyAll() string {
	if p.Name == "" || p.Share < nearlyAll || p.Only {
		return ""
	}
	return fmt.Sprintf("; %.0f %% of that time is on %s", 100*p.Share, p.Name)
}

// delayFinding says which requests a cause delays, when, and by how much.
func (t *Tail) delayFinding(d *Delay, b *cause.Costs) finding.Finding {
	n := len(d.Requests)
	mean := d.Total / int64(n)
	text := fmt.Sprintf("%s delays %d of %d requests, by %s on average (median E2E: %s); %s",
		phraseAt(d.Cause, d.Where), n, t.Delays.N, words.Nearly(mean), words.Nearly(d.Limit), place.BetweenTimes(t.set, d.Requests))
	if w := t.Delays.wait(d.Cause); w != nil {
		text = fmt.Sprintf("%s; %s wait longer than the median, by %s on average; %s",
			w, words.Counted(n, "request"), words.Nearly(mean), place.BetweenTimes(t.set, d.Requests))
	}
	f := t.finding(d.Cause, d.Where, b.Beyond(d.Requests, d.Cause), text)
	f.Affected = finding.AffectedOf(t.set, d.Requests)
	f.Show = showTable("delays")
	f.Metric = finding.Metric{Name: "delay", Unit: table.Duration, Before: math.NaN(), After: float64(mean)}
	f.Evidence = []finding.Evidence{finding.Sentence("the longest of these delays is %s", words.Nearly(d.Max)).
		In("delays", finding.Row("cause", d.Cause.String()), "max_ns", float64(d.Max))}
	return f
}

// comparisonFinding says how much of the tail a cause accounts for.
func (t *Tail) comparisonFinding(c *Comparison, d *Difference, b *cause.Costs) finding.Finding {
	slow := "requests"
	if c.Metric == metric.ITL {
		slow = "gaps between tokens"
	}
	f := t.finding(d.Cause, d.Where, b.Amounts(d.beyond, d.Cause), fmt.Sprintf("%s accounts for %.0f %% of the extra time of slow %s: %s p%d is %s, p50 is %s",
		phraseAt(d.Cause, d.Where), 100*d.Share, slow, c.Metric.Title, c.Percent, words.Nearly(c.Value), words.Nearly(c.Median)))
	f.Confidence, f.Show = finding.Likely, showTable("tail."+c.Metric.Name)
	f.Metric = finding.Metric{Name: c.Metric.Name, Unit: table.Duration, Before: float64(c.Median), After: float64(c.Value)}
	f.Evidence = []finding.Evidence{finding.Sentence("it adds %s to slow %s on average (95 %% confidence interval: %s to %s)", words.Nearly(d.More), slow, words.Nearly(d.Low), words.Nearly(d.High)).
		In("tail."+c.Metric.Name, finding.Row("cause", d.Cause.String()), "more_ns", float64(d.More))}
	return f
}

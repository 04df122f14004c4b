package tail

import (
	"fmt"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/cause"
	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/metric"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// Reports returns the tables, each with its verdict as the title: what delays requests; for each metric, what makes
// slow requests slow, and which they are; and under prefill/decode disaggregation, the parts of the time to the first
// token, the load of the ranks of both sides, and the KV transfers with all slow ones.
func (t *Tail) Reports() []*table.Table {
	var out []*table.Table
	if t.Delays != nil {
		out = append(out, t.delaysReport())
	}
	for _, c := range t.Comparisons {
		out = append(out, t.comparisonReport(c))
		if len(c.Slowest) > 0 {
			out = append(out, t.slowestReport(c))
		}
		if c.Metric == metric.ITL && t.Stalls != nil && len(t.Stalls.List) > 0 {
			out = append(out, t.stallsReport())
		}
	}
	if d := t.Disaggregation; d != nil {
		out = append(out, t.firstTokenReport(d), t.sidesReport(d))
	}
	if x := t.Transfers; x != nil {
		out = append(out, x.Tables()...)
	}
	return out
}

// A tailRow is a row in the table of a comparison: a cause, several minor causes, or the sum of all.
type tailRow struct {
	Difference
	name  string
	whole bool // not a single cause: no interval, no place
}

// rows returns the rows of the table: causes, and their sum. Unless all are asked for, one row sums up the causes
// that add or save less than a hundredth of the added time and take less than a hundredth of the slow requests' time.
func (c *Comparison) rows(all bool) []tailRow {
	if c.Slow.N == 0 {
		return nil
	}
	const matters = 0.01
	var rows, minor []tailRow
	for _, d := range c.Rows {
		row := tailRow{Difference: d, name: d.Cause.String()}
		if all || float64(max(d.More, -d.More)) >= matters*float64(c.Added) || float64(max(d.Slow, d.Around)) >= matters*float64(c.Slow.Mean) {
			rows = append(rows, row)
		} else {
			minor = append(minor, row)
		}
	}
	if len(minor) > 1 {
		minor = []tailRow{together(minor)}
	}
	rows = append(rows, minor...)
	whole := Difference{Slow: c.Slow.Mean, Around: c.Around.Mean, More: c.Slow.Mean - c.Around.Mean, Share: 1, Main: c.Slow.N}
	if c.Metric == metric.ITL {
		whole.Main = request.Unknown
	}
	return append(rows, tailRow{whole, "all", true})
}

// together sums up rows.
func together(rows []tailRow) tailRow {
	sum := tailRow{name: fmt.Sprintf("%d others", len(rows)), whole: true}
	for _, r := range rows {
		sum.Slow, sum.Around, sum.More = sum.Slow+r.Slow, sum.Around+r.Around, sum.More+r.More
		sum.Share += r.Share
		if sum.Main += r.Main; r.Main == request.Unknown {
			sum.Main = request.Unknown
		}
	}
	return sum
}

func (t *Tail) comparisonReport(c *Comparison) *table.Table {
	type R = tailRow
	bound := func(name, doc string, detail bool, of func(*R) int64) table.Field[R] {
		return table.Field[R]{Column: table.Column{Name: name, Unit: table.Duration, Scale: "duration", Doc: doc, Detail: detail},
			Cell: func(x *R) table.Cell { return table.Cell{N: of(x), Unknown: x.whole} }}
	}
	r := table.New(Schema, c.Verdict(), c.rows(t.Options.All), []table.Field[R]{
		table.TextColumn("metric", "metric whose tail this is", func(*R) string { return c.Metric.Name }).InDetail(),
		table.TextColumn("cause", "cause of the time; docs/METRICS.md defines it", func(x *R) string { return x.name }),
		table.TookColumn("slow", "mean over the slow requests", func(x *R) int64 { return x.Slow }),
		table.TookColumn("usual", "mean over the requests from p40 to p60", func(x *R) int64 { return x.Around }),
		table.TookColumn("more", "slow minus usual", func(x *R) int64 { return x.More }),
		bound("at least", "lower bound of more's 95 % confidence interval", false, func(x *R) int64 { return x.Low }),
		bound("at most", "upper bound of more's 95 % confidence interval", true, func(x *R) int64 { return x.High }),
		{Column: table.Column{Name: "share", Unit: table.Share, Doc: "share of the time added by all causes; empty if this cause takes less time than usual"}, Cell: func(x *R) table.Cell { return shareCell(x.Share, x.More) }},
		table.CountColumn("main", "number of slow requests for which this is the largest added cause", func(x *R) int64 { return int64(x.Main) }).DetailIf(c.Metric == metric.ITL),
		table.TextColumn("where", "rank with the most of this cause among the slow requests", func(x *R) string { return x.Where.Name }),
		{Column: table.Column{Name: "there", Unit: table.Share, Doc: "that rank's share of the cause"},
			Cell: func(x *R) table.Cell { return table.Cell{Share: x.Where.Share, Unknown: x.Where.Name == ""} }},
		table.YesColumn("stands out", "yes if the cause is a finding", func(x *R) bool { return x.StandsOut }).InDetail(),
	})
	r.Stay("more", "share", "where").Leave("at least", "main")
	r.Part = c.Metric.Name
	t.noteComparison(r, c)
	return r
}

// shareCell returns a cause's share of the added time. It is unknown if the cause takes less time than usual, so that
// more is negative.
func shareCell(share float64, more int64) table.Cell {
	return table.Cell{Share: share, Unknown: share == 0 && more < 0}
}

// noteComparison adds notes on what was compared, and on what is doubtful.
func (t *Tail) noteComparison(r *table.Table, c *Comparison) {
	if c.Slow.N == 0 {
		r.Note("not compared: fewer than %d values, or nearly all of them equal", finding.FewCompared)
		return
	}
	what := "finished requests"
	if c.Metric == metric.ITL {
		what = "gaps between tokens"
	}
	r.Note("slow: the %d slowest of %d %s, from %s on; usual: %d around the median, %s to %s", c.Slow.N, c.N, what,
		words.Nearly(c.Slow.From), c.Around.N, words.Nearly(c.Around.From), words.Nearly(c.Around.To))
	if c.Slow.From < c.Value {
		r.Note("fewer than %d are at or above the p%d; the slowest %d are used", fewSlow, c.Percent, fewSlow)
	}
	if c.Metric == metric.ITL {
		return // gaps are on one rank, so clocks and halves don't matter
	}
	t.noteSizes(r, c)
	t.noteWarnings(r, c)
	if t.ClocksMoved {
		r.Note("requests prove that the clocks of hosts differ; the clocks are aligned as far as requests allow")
	}
	if t.Implausible > 0 {
		r.Note("%s left out because of impossible times", words.Counted(t.Implausible, "finished request"))
	}
	if t.Incomplete > 0 {
		r.Note("%s left out: spans of them are missing", words.Counted(t.Incomplete, "finished request"))
	}
}

// noteSizes adds a note on the usual time for the size of a request.
func (t *Tail) noteSizes(r *table.Table, c *Comparison) {
	var fits []string
	add := func(what string, list []distribution.SizeFit) {
		for group, f := range list {
			if f.N > 0 && (f.Base != 0 || f.PerToken != 0) { // its stages were traced
				fits = append(fits, fmt.Sprintf("%s %s%s", what, f.Text(), words.Aside(t.Peers.Name(int32(group)))))
			}
		}
	}
	add("prefill", t.Sizes.Prompt)
	if c.Metric == metric.E2E {
		add("decode", t.Sizes.Output)
	}
	if len(fits) > 0 {
		r.Note("usual for its size: %s", strings.Join(fits, ", "))
	}
	if c.Batches[0] > 0 && c.Batches[1] > 0 {
		r.Note("decode batches hold %.1f requests on average in the slow ones, %.1f in the usual ones", c.Batches[0], c.Batches[1])
	}
}

// noteWarnings counts the requests whose spans lack detail.
func (t *Tail) noteWarnings(r *table.Table, c *Comparison) {
	var noSteps, noQueue, unjoined int
	for i := range cause.Each(t.List) {
		req := &t.set.Requests[t.List[i].Request]
		if t.List[i].Gaps == 0 && req.Metrics.CompletionTokens > 1 {
			noSteps++
		}
		if req.Metrics.Queue == request.Unknown && req.Metrics.Prefill >= 0 {
			noQueue++
		}
		if req.Flags&request.Unjoined != 0 {
			unjoined++
		}
	}
	if noSteps > 0 && c.Metric == metric.E2E {
		r.Note("%d of %d requests have no decode steps (trace level below 3): delays in their decoding count as decode", noSteps, len(t.List))
	}
	if noQueue > 0 {
		r.Note("%d of %d requests have no queue stage (v1 layout): the queue counts as prefill", noQueue, len(t.List))
	}
	if unjoined > 0 {
		r.Note("%d of %d requests have only a prefill or only a decode part: the time of the other part counts as prefill side, or not at all", unjoined, len(t.List))
	}
}

func (t *Tail) slowestReport(c *Comparison) *table.Table {
	type R = SlowRequest
	req := func(x *R) *request.Request { return &t.set.Requests[x.Request] }
	ns := func(name, doc string, detail bool, of func(*R) int64) table.Field[R] {
		return table.TookColumn(name, doc, of).DetailIf(detail)
	}
	of := func(m *metric.Metric) table.Field[R] {
		return ns(m.Name, m.Doc, c.Metric != m, func(x *R) int64 { return m.Of(&req(x).Metrics) })
	}
	out := table.New("sgtrace.report.slowest/v1", "Slowest requests by "+c.Metric.Title, c.Slowest, []table.Field[R]{
		table.TextColumn("metric", "metric by which they are the slowest", func(*R) string { return c.Metric.Name }).InDetail(),
		table.TimeColumn("time", "start of the outermost span, Unix time", func(x *R) trace.Time { return req(x).Start }),
		table.TextColumn("rid", "the user's request ID if known, else the server's", func(x *R) string { return t.set.Text(req(x).RID) }),
		of(metric.TTFT), of(metric.E2E),
		table.TextColumn("cause", "cause with the largest excess over requests around the median", func(x *R) string { return x.Cause.String() }),
		ns("took", "time spent on the cause", false, func(x *R) int64 { return x.Took }),
		ns("usual", "mean time on the cause of requests around the median", true, func(x *R) int64 { return x.Usual }),
		{Column: table.Column{Name: "share", Unit: table.Share, Doc: "excess (took minus usual) as a share of the time that all causes add to the request"}, Cell: func(x *R) table.Cell { return shareCell(x.Share, x.Took-x.Usual) }},
		table.TextColumn("where", "host and rank of the cause", func(x *R) string { return x.Where.Name }),
		table.CountColumn("prompt", "tokens of the prompt", func(x *R) int64 { return req(x).Metrics.PromptTokens }),
		table.CountColumn("tokens", "tokens generated", func(x *R) int64 { return req(x).Metrics.CompletionTokens }),
	})
	out.Stay("ttft", "e2e", "cause").Leave("prompt", "tokens")
	out.Part = c.Metric.Name
	return out
}

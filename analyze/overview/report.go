package overview

import (
	"math"

	"github.com/sgtrace/sgtrace/analyze/finders"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/table"
)

// FinderReport says of every finder what it looked at.
func (l *List) FinderReport() *table.Table {
	type C = finders.FinderCheck
	return table.New("sgtrace.report.summary.finders/v1", "What was looked at", l.Result.Checks, []table.Field[C]{
		table.TextColumn("kind", "of findings", func(c *C) string { return string(c.Finder.Kind) }),
		table.TextColumn("finds", "what it looks for", func(c *C) string { return c.Finder.Doc }),
		table.TextColumn("state", "looked at, not enough data, or not applicable", func(c *C) string { return string(c.Check.State()) }),
		table.TextColumn("what", "what it looks at", func(c *C) string { return c.Check.What }),
		table.TextColumn("of", "what that is made of", func(c *C) string { return c.Check.Of }),
		table.CountColumn("n", "how many of these there are", func(c *C) int64 { return int64(c.Check.N) }),
		table.CountColumn("needed", "how many it takes", func(c *C) int64 { return int64(c.Check.Needed) }),
		table.ShareColumn("covered", "which part of the time that it is about could be looked at", func(c *C) float64 { return c.Check.Covered.Share() }),
		table.TextColumn("reason", "why it is not applicable", func(c *C) string { return c.Check.Reason }),
		table.CountColumn("found", "findings, before those that say the same were merged", func(c *C) int64 { return int64(c.N) }),
	})
}

// Report makes a table of the findings.
func (l *List) Report() *table.Table {
	type F = finding.Finding
	part := func(k int) func(*F) string {
		return func(f *F) string {
			role, host, rank := f.At.Parts()
			return [...]string{role, host, rank}[k]
		}
	}
	p := func(f *F) float64 {
		if !f.P.Known {
			return math.NaN()
		}
		return f.P.P
	}
	metric := func(of func(*F) float64) func(*F) float64 {
		return func(f *F) float64 {
			if f.Metric.Name == "" {
				return math.NaN()
			}
			return of(f)
		}
	}
	t := table.New("sgtrace.report.findings/v1", "Findings", l.Result.Findings, []table.Field[F]{
		table.TextColumn("id", "the same in every run on the same data", (*F).ID),
		table.TextColumn("kind", "what it is about; docs/METRICS.md lists the kinds", func(f *F) string { return string(f.Kind) }),
		table.TextColumn("severity", "critical, warning or info", func(f *F) string { return string(f.Severity) }),
		table.TextColumn("confidence", "certain or likely", func(f *F) string { return string(f.Confidence) }),
		table.TextColumn("scope", "all, a role, or a rank", func(f *F) string { return f.At.Scope.String() }),
		table.TextColumn("role", "of the server", part(0)),
		table.TextColumn("host", "machine", part(1)),
		table.TextColumn("rank", "parallel ranks", part(2)),
		{Column: table.Column{Name: "since", Unit: table.Instant, Doc: "when it began; unknown is from the beginning on"},
			Cell: func(f *F) table.Cell { return table.Cell{N: int64(f.Since), Unknown: f.Since == 0} }},
		table.ShareColumn("cost", "the part that it costs, 0 to 1, of what cost_of says", func(f *F) float64 { return f.Cost }),
		table.TextColumn("cost of", "request time, rank time, GPU time, requests or CUDA calls", func(f *F) string { return string(f.CostBasis) }),
		table.TextColumn("metric", "the number that it is about", func(f *F) string { return f.Metric.Name }),
		table.TextColumn("unit", "of before and after", func(f *F) string { return f.Metric.UnitName() }),
		table.NumberColumn("before", "what it was, or what is usual elsewhere", metric(func(f *F) float64 { return f.Metric.Before })),
		table.NumberColumn("after", "what it is", metric(func(f *F) float64 { return f.Metric.After })),
		table.NumberColumn("p", "probability of such a finding if nothing is wrong", p),
		table.TextColumn("text", "what, where, since when, by how much", func(f *F) string { return f.Text }),
		table.TextColumn("command", "what shows more", l.Command),
	})
	if text := l.MutedText(); text != "" {
		t.Note("muted: %s", text)
	}
	return t
}

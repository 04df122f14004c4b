package serverlimit

import (
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// row names the row of l in the table.
func (l *Limit) row() []finding.Key {
	role, host, rank := l.Location.Parts()
	return finding.Row("role", role, "host", host, "rank", rank, "limit", l.Kind.String())
}

// Report makes a table of the limits: a row per server and limit.
func (l *Limits) Report() *table.Table {
	running := func(x *Limit, of float64) table.Cell {
		return table.Cell{Share: of, Unknown: x.Kind == Transfers}
	}
	where := func(part int) func(x *Limit) string {
		return func(x *Limit) string {
			role, host, rank := x.Location.Parts()
			return [...]string{role, host, rank}[part]
		}
	}
	fields := table.Detail([]table.Field[Limit]{
		table.TextColumn("role", "of the server", where(0)),
		table.TextColumn("host", "machine", where(1)),
		table.TextColumn("rank", "of its lead rank", where(2)),
	})
	fields = append(fields, []table.Field[Limit]{
		table.TextColumn("server", "its ranks", func(x *Limit) string { return x.Location.DP() }),
		table.TextColumn("limit", "what the server has no more of", func(x *Limit) string { return x.Kind.String() }),
		table.TimeColumn("from", "when requests began to wait", func(x *Limit) trace.Time { return x.From }),
		table.TimeColumn("to", "when they no longer waited", func(x *Limit) trace.Time { return x.To }),
		table.NsColumn("length", "of the stretches of time in which they waited", func(x *Limit) int64 { return x.Length }),
		table.CountColumn("stretches", "how many these are", func(x *Limit) int64 { return int64(x.Spells) }),
		table.CountColumn("requests", "that waited", func(x *Limit) int64 { return int64(len(x.Requests)) }),
		table.NsColumn("waited", "by all of them together", func(x *Limit) int64 { return x.Waited }),
		table.ShareColumn("share", "waited, of the E2E of all requests that the server worked for", func(x *Limit) float64 { return x.Share }),
		table.CountColumn("most", "requests that waited at a time; KV transfers under way", func(x *Limit) int64 { return int64(x.Most) }),
		table.TimeColumn("at", "when that was first so", func(x *Limit) trace.Time { return x.At }),
		table.Field[Limit]{Column: table.Column{Name: "running", Unit: table.Number, Doc: "requests that ran while others waited, on average"},
			Cell: func(x *Limit) table.Cell { return running(x, x.Running) }},
		table.CountColumn("stuck at", "places that were taken, if always as many", func(x *Limit) int64 {
			if takenBy[x.Kind] == nil {
				return request.Unknown
			}
			return int64(x.StuckAt)
		}),
		table.Field[Limit]{Column: table.Column{Name: "prefilling", Unit: table.Share, Doc: "part of the waiting in which prompts were computed"},
			Cell: func(x *Limit) table.Cell { return running(x, x.Prefilling) }},
		table.Field[Limit]{Column: table.Column{Name: "slowdown", Unit: table.Number, Doc: "how many times as long as alone a KV transfer takes"},
			Cell: func(x *Limit) table.Cell { return table.Cell{Share: x.Slowdown, Unknown: x.Kind != Transfers} }},
		table.CountColumn("retractions", "meanwhile", func(x *Limit) int64 { return int64(x.Retracted) }),
	}...)
	title := "No limit keeps requests waiting for long"
	if len(l.List) > 0 {
		title = "Limits: " + l.List[0].sentence()
	}
	return table.New("sgtrace.report.limits/v1", title, l.List, fields).Stay("share").Leave("stretches", "length", "most", "at", "retractions")
}

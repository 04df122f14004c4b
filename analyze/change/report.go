package change

import (
	"fmt"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// A changeRow is a shift with its change.
type changeRow struct {
	number int // of the change, from 1 on; 0 is none
	part   string
	*Shift
	sentence string // of the change, with its first shift
}

// rows lists all shifts.
func (c *Changes) rows() []changeRow {
	var rows []changeRow
	for i := range c.List {
		for k := range c.List[i].Shifts {
			row := changeRow{number: i + 1, part: c.List[i].part(k), Shift: &c.List[i].Shifts[k]}
			if k == 0 {
				row.sentence = c.List[i].Sentence()
			}
			rows = append(rows, row)
		}
	}
	for i := range c.Edges {
		rows = append(rows, changeRow{part: c.Edges[i].edgeName(), Shift: &c.Edges[i]})
	}
	for i := range c.Late {
		rows = append(rows, changeRow{part: "always", Shift: &c.Late[i]})
	}
	return rows
}

// part returns the role of the k-th shift in the change.
func (c *Change) part(k int) string {
	switch {
	case k == 0:
		return "first"
	case c.Shifts[k].Metric.isLoad():
		return "with"
	}
	return "then"
}

// edgeName returns the edge of the searched time at which a shift lies.
func (f *Shift) edgeName() string {
	if f.rises() {
		return "ramp-up"
	}
	return "drain"
}

// Report returns a table of the changes, with a row for each shift.
func (c *Changes) Report() *table.Table {
	fields := []table.Field[changeRow]{
		{Column: table.Column{Name: "change", Unit: table.Count, Doc: "number of the change; rows of the same moment share it"},
			Cell: func(r *changeRow) table.Cell { return table.Cell{N: int64(r.number), Unknown: r.number == 0} }},
		table.TextColumn("part", "first: possible cause of the rest; with: load that changed, too; then: latency that changed as a result; ramp-up, drain, always: not a change",
			func(r *changeRow) string { return r.part }),
		table.TimeColumn("time", "when it changed, Unix time", func(r *changeRow) trace.Time { return r.Time }),
		{Column: table.Column{Name: "within", Unit: table.Duration, Doc: "95 % error bound of the time; empty if the time is that of the change's first row"},
			Cell: func(r *changeRow) table.Cell {
				return table.Cell{N: int64(max(r.Time-r.First, r.Last-r.Time)), Unknown: !r.Searched}
			}},
		table.TextColumn("what", "what changed", func(r *changeRow) string { return r.subject() }),
		table.TextColumn("before", "value before, in words", func(r *changeRow) string {
			before, after := r.values()
			if _, unit, ok := strings.Cut(after, " "); ok && !strings.Contains(before, " ") {
				before += " " + unit
			}
			return before
		}),
		table.TextColumn("after", "value after, in words", func(r *changeRow) string {
			_, after := r.values()
			return after
		}),
		table.NumberColumn("p", "probability of finding such a change in any series if nothing changed; if found is compared, the probability of such a difference",
			func(r *changeRow) float64 { return r.P }),
	}
	r := table.New("sgtrace.report.changes/v1", "Changes", c.rows(), append(fields, changeDetails()...))
	for _, note := range c.notes() {
		r.Note("%s", note)
	}
	return r
}

// changeDetails returns the columns for programs.
func changeDetails() []table.Field[changeRow] {
	fields := []table.Field[changeRow]{
		table.TimeColumn("first", "earliest possible time of the change", func(r *changeRow) trace.Time { return r.First }),
		table.TimeColumn("last", "latest possible time of the change", func(r *changeRow) trace.Time { return r.Last }),
		table.TextColumn("sentence", "on the first row of a change: the change in one sentence", func(r *changeRow) string { return r.sentence }),
		table.TextColumn("found", "searched: found on its own; compared: found by comparing before and after a change found elsewhere", func(r *changeRow) string {
			if r.Searched {
				return "searched"
			}
			return "compared"
		}),
		table.TextColumn("metric", "what is compared: share, arrivals, running, cached, yield, output, prompt, aborts, refused, retracted, pace, lateness, p50, or tail", func(r *changeRow) string { return r.Metric.String() }),
		table.TextColumn("stage", "for durations: the stage, ttft, or tpot", func(r *changeRow) string { return r.Stage }),
	}
	fields = append(fields, place.LocationColumns(func(r *changeRow) *place.Location { return &r.Location })...)
	for _, side := range []struct {
		name string
		of   func(*changeRow) *Level
	}{
		{"before", func(r *changeRow) *Level { return &r.Before }},
		{"after", func(r *changeRow) *Level { return &r.After }},
	} {
		fields = append(fields,
			table.CountColumn("n "+side.name, "number of observations "+side.name, func(r *changeRow) int64 { return int64(side.of(r).N) }),
			table.NumberColumn("rate "+side.name, "arrivals per second, running requests, or tokens per step, depending on metric", func(r *changeRow) float64 { return side.of(r).Rate }),
			table.NumberColumn("share "+side.name, "share of the role's requests, share of durations beyond the limit, or share of prompt tokens cached, depending on metric", func(r *changeRow) float64 { return side.of(r).Share }),
			table.NsColumn("p50 "+side.name, "median duration", func(r *changeRow) int64 { return side.of(r).P50 }),
			table.NsColumn("p99 "+side.name, "99th percentile of the durations", func(r *changeRow) int64 { return side.of(r).P99 }),
		)
	}
	fields = append(fields, table.NsColumn("limit", "limit beyond which durations count as the tail", func(r *changeRow) int64 {
		if r.Metric != TailChanged {
			return request.Unknown
		}
		return r.Limit
	}))
	return table.Detail(fields)
}

// notes say what was searched, and how.
func (c *Changes) notes() []string {
	if c.Series == 0 {
		return []string{fmt.Sprintf("nothing was searched: %s, and %d are the least", words.Counted(c.Requests, "request"), Fewest)}
	}
	list := order.EachRow(c.Stallings, (*Stalling).sentence)
	return append(list,
		fmt.Sprintf("%d series were searched from %s to %s %s: before that, the deployment fills up; after that, it drains or the dump ends",
			c.Series, words.At(c.From, words.ClockLayout), words.At(c.To, words.ClockLayout), words.ZoneAt(c.To)),
		fmt.Sprintf("p is the chance of seeing such a change anywhere in these series if nothing had changed; it is %.2g at most", alpha),
		fmt.Sprintf("smaller ones are left out: rates by less than a factor of %.2g, odds of shares %.2g, medians %.2g or %s (%s per token), tails %.2g",
			minRateFactor, minOddsFactor, minMedianFactor, words.Nearly(minStep), words.Nearly(minTokenStep), minTailFactor))
}

package page

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/finders"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/load"
	"github.com/sgtrace/sgtrace/analyze/overview"
	"github.com/sgtrace/sgtrace/analyze/page/chart"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/telemetry"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// LogsOverTime makes the section of logs and metrics of servers, GPUs, and hosts over time, with the times of
// findings marked.
func LogsOverTime(o *overview.Overview, src Source) Section {
	s := Section{ID: "time", Title: overTime}
	drawn := o.Logged.Drawing().Blocks
	for _, ranks := range byRole(o.Logged) {
		s.addSeries(loggedFigure(o, drawn, ranks, src))
	}
	s.addSeries(metricsFigure(o, src))
	if len(s.Figures) == 0 && !o.Metrics.Empty() {
		s.addTables(src, "--timeline", "Summary", o.Metrics.Report())
	}
	s.addTables(src, "--by-rank", "Summary", o.Logged.RankReport())
	s.addTables(src, "--timeline", "Summary", o.Logged.EventReport(), o.Metrics.Percentiles())
	return s
}

// addSeries adds a figure if it has panels.
func (s *Section) addSeries(f *Figure) {
	if len(f.Body.(*chart.Panels).Panels) > 0 {
		s.Figures = append(s.Figures, f)
	}
}

// byRole groups the indexes of the ranks that log batches by role.
func byRole(l *telemetry.Logged) [][]int {
	var roles order.Groups[string, []int]
	for i := range l.Ranks {
		role, _, _ := l.Ranks[i].Where.Parts()
		list := roles.Of(role)
		*list = append(*list, i)
	}
	return roles.List
}

// ofLogs are the kinds of findings that are visible in server logs.
var ofLogs = []finding.Kind{finding.Load, finding.Limit, finding.Memory, finding.Imbalance, finding.Lifecycle, finding.Change, finding.Slower, finding.Transfer, finding.Errors}

// loggedFigure makes the figure of the ranks of one role. drawn has the curves of every rank.
func loggedFigure(o *overview.Overview, drawn []load.Block, ranks []int, src Source) *Figure {
	l := o.Logged
	busy := func(i int) (running, tokens float64) {
		r := &l.Ranks[i]
		return telemetry.Zero(r.Mean(series.Running)), telemetry.Zero(r.Total(series.NewTokens))
	}
	named := ranksNamed(o.Findings)
	shown := slices.SortedStableFunc(slices.Values(ranks), func(x, y int) int {
		runningX, tokensX := busy(x)
		runningY, tokensY := busy(y)
		return cmp.Or(order.Bool(named(l.Ranks[y].Where.String()), named(l.Ranks[x].Where.String())), cmp.Compare(runningY, runningX), cmp.Compare(tokensY, tokensX))
	})
	shown = slices.Sorted(slices.Values(shown[:min(len(shown), chart.Hues)]))
	blocks := order.Each(shown, func(i int) load.Block { return drawn[i] })
	f := seriesFigure(o, l.Grid, blocks, src.Command("--timeline", "--table=logs.timeline"))
	f.Role, _, _ = l.Ranks[ranks[0]].Where.Parts()
	f.ID, f.Shows = "logs-"+f.Role, ofLogs
	f.Title = fmt.Sprintf("Logs of %s, %s", cmp.Or(f.Role, "servers"), words.Counted(len(ranks), "rank"))
	if len(shown) < len(ranks) {
		f.Notes = append(f.Notes, fmt.Sprintf("%d of %d ranks are drawn, those that findings are about and those with most running requests; the command prints all", len(shown), len(ranks)))
	}
	return f
}

// ranksNamed returns a function that reports whether a finding is about the rank with a name. Figures of few ranks draw these first.
func ranksNamed(findings []finding.Finding) func(rank string) bool {
	names := map[string]bool{}
	for i := range findings {
		if at := &findings[i].At; at.Scope == place.OneRank {
			names[at.String()] = true
		}
	}
	return func(rank string) bool { return names[rank] }
}

// maxPanels limits the panels of a figure of metrics, to keep it readable.
const maxPanels = 24

// metricsFigure makes the figure of all other metrics.
func metricsFigure(o *overview.Overview, src Source) *Figure {
	d, left := o.Metrics.Drawing()
	named := ranksNamed(o.Findings)
	slices.SortStableFunc(d.Blocks, func(x, y load.Block) int { return order.Bool(named(y.Title), named(x.Title)) })
	f := seriesFigure(o, o.Metrics.Grid, d.Blocks, src.Command("--timeline", "--table=metrics.timeline"))
	f.ID, f.Title, f.Shows = "metrics", "Other metrics", append([]finding.Kind{finding.GPU, finding.Host}, ofLogs...)
	body := f.Body.(*chart.Panels)
	if n := len(body.Panels) - maxPanels; n > 0 {
		body.Panels, left = body.Panels[:maxPanels], left+n
	}
	if left > 0 {
		f.Notes = append(f.Notes, fmt.Sprintf("%s more: the command prints all", words.Counted(left, "metric")))
	}
	return f
}

// seriesFigure has a panel for each metric with a curve for each place. It shows the longest span without a long
// pause.
func seriesFigure(o *overview.Overview, grid *load.Grid, blocks []load.Block, command string) *Figure {
	span := longest(grid.Spans)
	body := &chart.Panels{From: span.Start, To: span.Start + trace.Time(int64(span.N)*grid.Bucket), Times: middles(grid, span)}
	f := &Figure{Defined: "Summary", Command: command, Body: body, Caption: fmt.Sprintf("Each point is %s.", durationText(grid.Bucket))}
	if span.N < 2 {
		return f // one scrape makes no curve
	}
	var most int
	if body.Panels, most = seriesPanels(blocks, span); most > chart.Hues {
		f.Notes = append(f.Notes, fmt.Sprintf("%d of %d places are drawn, first those that findings are about; the command prints all", chart.Hues, most))
	}
	for i := range o.Findings {
		if at := &o.Findings[i]; at.Since > body.From && at.Since < body.To {
			body.Marks = append(body.Marks, chart.Mark{First: at.Since - at.Within, Time: at.Since, Last: at.Since + at.Within, Label: strconv.Itoa(i + 1), Text: at.Text})
		}
	}
	slices.SortStableFunc(body.Marks, func(x, y chart.Mark) int { return cmp.Compare(x.Time, y.Time) })
	if len(body.Marks) > 0 {
		f.Caption += " Bands are findings, by number, as wide as their beginning is uncertain."
	}
	if n := len(grid.Spans) - 1; n > 0 {
		f.Notes = append(f.Notes, fmt.Sprintf("the longest of %d parts of the time is drawn, which are far apart; the command prints all", n+1))
	}
	return f
}

// seriesPanels also returns how many curves a panel would have with those for which there is no room.
func seriesPanels(blocks []load.Block, span load.Span) (list []chart.Panel, most int) {
	all := map[string]int{} // by title
	titles := order.EachRow(blocks, func(b *load.Block) string { return b.Title })
	titles = chart.ShortNames(titles)
	var panels order.Groups[string, chart.Panel] // by title
	for i := range blocks {
		for _, c := range blocks[i].Curves {
			title, unit, size := axisOf(c.Name, c.Unit)
			p := panels.Of(title)
			all[title]++
			most = max(most, all[title])
			if p.Title, p.Unit = title, unit; len(p.Curves) == chart.Hues {
				continue
			}
			curve := chart.Curve{Name: titles[i], Color: i % chart.Hues}
			for _, v := range c.Values[span.First : span.First+span.N] {
				curve.Values = append(curve.Values, v/size)
			}
			p.Curves = append(p.Curves, curve)
		}
	}
	return slices.DeleteFunc(panels.List, func(p chart.Panel) bool { return len(appendPanel(nil, p)) == 0 }), most
}

// axisOf returns the title and unit of the panel for a metric, and the size by which to divide its values.
func axisOf(name, of string) (title string, unit table.Unit, size float64) {
	switch {
	case of == "%":
		return name, table.Share, 100
	case of == "ns":
		return name, table.Duration, 1
	case of == "s":
		return name, table.Duration, 1e-9
	case of == "bytes":
		return name + ", GB", table.Number, 1e9
	case of == "/s":
		return name + " per second", table.Number, 1
	case strings.HasSuffix(name, of): // "KV tokens"
		return name, table.Number, 1
	}
	return name + ", " + of, table.Number, 1
}

// Dumps makes a section for each kind of dump that processes write on failure or on request: hangs, device memory,
// and expert routing.
func Dumps(m *finders.Measured, src Source) (list []Section) {
	if m.Hang != nil {
		s := Section{ID: "hangs", Title: "Hangs"}
		s.addTables(src, "--hang", "Hangs", m.Hang.Report().Tables...)
		list = append(list, s)
	}
	if m.Memory != nil {
		s := Section{ID: "memory", Title: "Memory"}
		s.addTables(src, "--memory", "Memory", m.Memory.Report().Tables...)
		list = append(list, s)
	}
	if m.Routing != nil && len(m.Routing.Sources) > 0 {
		s := Section{ID: "experts", Title: "Experts"}
		s.addTables(src, "--experts", "Experts", m.Routing.Report().Tables...)
		list = append(list, s)
	}
	return list
}

package page

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/collective"
	"github.com/sgtrace/sgtrace/analyze/finders"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/page/chart"
	"github.com/sgtrace/sgtrace/analyze/rank"
	"github.com/sgtrace/sgtrace/analyze/straggler"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/internal/order"
)

// Collectives makes the section about which ranks arrive late at collectives, and which wait for them.
func Collectives(m *finders.Measured, src Source) Section {
	c := m.Collectives
	s := Section{ID: "collectives", Title: "Collectives"}
	verdict := c.Verdict(c.Stragglers(m.GPUs))
	if len(verdict) == 1 {
		s.Lead = verdict[0]
	} else {
		s.Points = verdict
	}
	names := order.EachRow(c.Ranks, func(r *collective.Rank) string { return r.Rank })
	if len(c.Waits) > 0 {
		waits := c.WaitMatrix()
		f := WaitMatrix(names, waits, src)
		if len(names) > crowded {
			f = crowdedWaits(names, hostsOf(m.Of.Profiles, names), waits, src)
		} else {
			f.Body.(*chart.Heatmap).Course = sumCourse(m.Waits)
		}
		s.Figures = append(s.Figures, f)
	}
	for _, r := range c.Reports() {
		s.Figures = append(s.Figures, TableOf(r, maxRows, "Collectives", src.Command("--by-rank", tableFlag(r))))
	}
	return s
}

// sumCourse returns the matrix of waits over time; nil if w is nil.
func sumCourse(w *collective.WaitHistory) *chart.SumCourse {
	if w == nil {
		return nil
	}
	course := &chart.SumCourse{From: w.From, To: w.To, Counts: w.Met, Of: "collective", Text: waitedFor}
	for _, x := range w.Waits {
		course.Sums = append(course.Sums, chart.SumIn{Part: x.Part, Row: x.Rank, Column: x.Last, Value: x.Ns})
	}
	return course
}

// waitedFor precedes the duration in the text of a cell.
const waitedFor = "waited for it "

// WaitMatrix makes the figure of how long ranks waited for each other: waits[r][s] is how long names[r] waited for
// names[s], in ns. The diagonal is empty. Without waits, the caller adds the cells.
func WaitMatrix(names []string, waits [][]int64, src Source) *Figure {
	heat := &chart.Heatmap{Rows: names, Columns: names, Sequential: true, Unit: table.Duration}
	for r := range waits {
		cells := make([]chart.HeatCell, len(names))
		for s := range names {
			cells[s] = chart.HeatCell{Value: math.NaN()}
			if r != s && waits[r][s] > 0 {
				cells[s] = chart.HeatCell{Value: float64(waits[r][s]), Text: waitedFor + durationText(waits[r][s])}
			}
		}
		heat.Cells = append(heat.Cells, cells)
	}
	return &Figure{
		ID: "waits", Shows: []finding.Kind{finding.Straggler}, Title: "Who waited for whom", Defined: "Collectives", Command: src.Command("--by-rank", "--table=collectives.waits"), Body: heat,
		Caption: "How long the rank in a row waited in collectives at which the rank in a column arrived last. A column that stands out is a rank that others wait for.",
	}
}

// Sizes of the figures of lateness.
const (
	latenessParts  = 100 // parts of the time
	latenessGroups = 8
	latenessRows   = 40
)

// latenessSteps are the color thresholds of lateness, as shares of the length of a step. Lateness below the first one
// doesn't matter.
var latenessSteps = []float64{straggler.Matters, 0.05, 0.1, 0.2, 0.5}

// Stragglers makes the section about ranks that others wait for, at the end of steps and in collectives. It has no
// figures if neither was measured.
func Stragglers(m *finders.Measured, src Source) Section {
	s := Section{ID: "stragglers", Title: "Stragglers"}
	var suspects []straggler.Suspects
	if m.RankLoads != nil {
		suspects = append(suspects, straggler.Suspects{Stragglers: m.RankLoads.Stragglers(), Acquittal: []string{m.RankLoads.Verdict()}})
		s.addLateness("lateness-steps", "Lateness at the end of steps", "Lateness at the end of steps", stepHistories(m.RankLoads), src)
	}
	if m.Collectives != nil {
		found := m.Collectives.Stragglers(m.GPUs)
		suspects = append(suspects, straggler.Suspects{Stragglers: found, Acquittal: m.Collectives.Verdict(found)})
		s.addLateness("lateness-collectives", "Lateness in collectives", "Collectives", m.Collectives.Histories(latenessParts), src)
	}
	r := straggler.Find(suspects...).Report()
	if r.Len() == 0 {
		s.Lead = r.Title
		return s
	}
	s.Figures = append(s.Figures, TableOf(r, maxRows, "Stragglers", src.Command("--by-rank", "--table=stragglers")))
	return s
}

// stepHistories returns the lateness of each group of ranks that take steps together, sorted by kind: decode first.
func stepHistories(r *rank.Ranks) []*straggler.History {
	groups := slices.Clone(r.Groups)
	slices.SortStableFunc(groups, func(a, b *rank.StepGroup) int { return int(a.Kind) - int(b.Kind) })
	return order.Each(groups, func(g *rank.StepGroup) *straggler.History { return g.History(latenessParts) })
}

// addLateness adds a figure of the lateness of ranks over time, if any of them met.
func (s *Section) addLateness(id, title, defined string, histories []*straggler.History, src Source) {
	histories = slices.DeleteFunc(histories, func(c *straggler.History) bool { return len(c.Late) == 0 || c.Late[0] == nil })
	if len(histories) == 0 {
		return
	}
	f := &Figure{
		ID: id, Title: title, Defined: defined, Command: src.Command("--by-rank", "--table=stragglers"),
		Shows: []finding.Kind{finding.Straggler, finding.Slower},
		Caption: "When a rank arrives, minus the median of the other ranks of its group, as a part of the time of a step. " +
			"Orange is late: the others wait. Blue is early: it waits.",
	}
	heat := &chart.TimeHeat{Steps: latenessSteps, Unit: table.Share, What: "lateness", From: histories[0].From, To: histories[0].To}
	rows, all := 0, len(histories)
	for i, c := range histories {
		if i >= latenessGroups || i > 0 && rows+len(c.Names) > latenessRows {
			f.Notes = append(f.Notes, fmt.Sprintf("%d of %d groups are drawn; the command prints all", i, all))
			break
		}
		rows += len(c.Names)
		heat.Groups = append(heat.Groups, latenessGroup(c))
		heat.From, heat.To = min(heat.From, c.From), max(heat.To, c.To)
	}
	f.Body = heat
	s.Figures = append(s.Figures, f)
}

// latenessGroup makes a row for each rank.
func latenessGroup(c *straggler.History) chart.HeatGroup {
	g := chart.HeatGroup{Name: fmt.Sprintf("%s: %s", cmp.Or(commonWords(c.Names), c.Group), c.What), From: c.From, To: c.To}
	for k, name := range c.Names {
		row := chart.HeatRow{Name: name}
		for _, p := range c.Late[k] {
			value, text := math.NaN(), ""
			if p.N > 0 {
				value, text = p.Part, latenessText(p)
			}
			row.Values, row.Texts = append(row.Values, value), append(row.Texts, text)
		}
		g.Rows = append(g.Rows, row)
	}
	return g
}

// commonWords returns the leading words that all names share.
func commonWords(names []string) string {
	common := strings.Fields(names[0])
	for _, name := range names[1:] {
		fields := strings.Fields(name)
		n := 0
		for n < min(len(common), len(fields)) && common[n] == fields[n] {
			n++
		}
		common = common[:n]
	}
	return strings.Join(common, " ")
}

// latenessText says how late a rank was in one part of the time.
func latenessText(p straggler.Piece) string {
	side, ns := "late", p.Mean
	if ns < 0 {
		side, ns = "early", max(0, -ns)
	}
	return fmt.Sprintf("%s %s, %s", durationText(ns), side, chart.InUnit(table.Share, math.Abs(p.Part)))
}

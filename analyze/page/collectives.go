package page

import (
	"math"

	"github.com/sgtrace/sgtrace/analyze/collective"
	"github.com/sgtrace/sgtrace/analyze/finders"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/page/chart"
	"github.com/sgtrace/sgtrace/analyze/table"
)

// Collectives makes the section about who comes late to collectives, and who waits.
func Collectives(m *finders.Measured, src Source) Section {
	c := m.Collectives
	s := Section{ID: "collectives", Title: "Collectives"}
	verdict := c.Verdict(c.Stragglers(m.GPUs))
	if len(verdict) == 1 {
		s.Lead = verdict[0]
	} else {
		s.Points = verdict
	}
	var names []string
	for i := range c.Ranks {
		names = append(names, c.Ranks[i].Rank)
	}
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
		s.Figures = append(s.Figures, TableOf(r, mostRows, "Collectives", src.Command("--by-rank", tableFlag(r))))
	}
	return s
}

// sumCourse is the matrix of waits over time; nil where it is not known.
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

// waitedFor is what a cell says, before a duration.
const waitedFor = "waited for it "

// WaitMatrix makes a figure of how long ranks waited for each other: waits[r][s] is how
// long names[r] waited for names[s], in ns. Nobody waits for itself. Without waits, its cells
// are yet to be added.
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

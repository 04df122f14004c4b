package page

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/page/chart"

	"github.com/sgtrace/sgtrace/analyze/rank"
	"github.com/sgtrace/sgtrace/analyze/requests"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// mostRows is how many rows of a table the page has.
const mostRows = 200

// Stages makes the section that compares the ranks of servers, stage by stage, with
// their load; ranks may be nil.
func Stages(set *request.Set, ranks *rank.Ranks, src Source) Section {
	s := Section{ID: "ranks", Title: "Ranks of servers"}
	if ranks != nil {
		s.Lead = ranks.Verdict()
	}
	by, err := requests.ParseDimensions("role,label,rank,stage")
	if err != nil {
		panic(err) // there are such dimensions
	}
	groups := requests.GroupStages(set, by).Groups
	for len(groups) > 0 {
		n := 1
		for n < len(groups) && slices.Equal(groups[n].Key[:2], groups[0].Key[:2]) {
			n++
		}
		if f := stageFigure(groups[:n], src); f != nil {
			s.Figures = append(s.Figures, f)
		}
		groups = groups[n:]
	}
	if ranks != nil {
		for _, r := range ranks.Reports() {
			f := TableOf(r, mostRows, "Ranks of servers", src.Command("--by-rank", tableFlag(r)))
			if f.Title == s.Lead { // one verdict twice would be taken for two
				f.Title = "The same in numbers"
			}
			s.Figures = append(s.Figures, f)
		}
	}
	byRank, err := requests.ParseDimensions("rank")
	if err != nil {
		panic(err) // there is such a dimension
	}
	r := requests.GroupStages(set, byRank).Report()
	s.Figures = append(s.Figures, TableOf(r, mostRows, "Stages", src.Command("--by-rank", tableFlag(r))))
	return s
}

// leastPart is the least part of the time of all stages that a stage has to have to be
// compared, and of that of all kernels a kernel: those of a few us differ by a factor of
// two, and it does not matter.
const leastPart = 0.005

// A stageRow is a stage on all ranks of one kind of server.
type stageRow struct {
	stage  string
	total  float64 // ns
	groups []*requests.Group
}

// stageFigure compares the ranks of one kind of server; nil if there is nothing to
// compare. Groups have the keys role, label, rank and stage.
func stageFigure(groups []requests.Group, src Source) *Figure {
	role, label := groups[0].Key[0], groups[0].Key[1]
	var ranks []string
	for i := range groups {
		if rank := groups[i].Key[2]; !slices.Contains(ranks, rank) {
			ranks = append(ranks, rank)
		}
	}
	rows, small := stageRows(groups)
	if len(rows) == 0 {
		return nil
	}
	heat := &chart.Heatmap{}
	for _, rank := range ranks {
		heat.Columns = append(heat.Columns, strings.Replace(rank, " "+label, "", 1))
	}
	for _, r := range rows {
		heat.Rows = append(heat.Rows, r.stage)
		heat.Cells = append(heat.Cells, stageCells(r.groups, ranks))
	}
	f := &Figure{
		ID: "stages-" + role, Shows: []finding.Kind{finding.Slower, finding.Pipeline}, Role: role,
		Title:   fmt.Sprintf("Stages by rank: %s, %s", role, label),
		Caption: "The mean of each stage on a rank, as a multiple of the median (nearest rank) of the means of all ranks. Stages that took the most time come first.",
		Defined: "Stages", Command: src.Command("--by-rank", "--table=stages"), Body: heat,
	}
	if small > 0 {
		f.Notes = append(f.Notes, fmt.Sprintf("stages of less than %g %% of the time are left out: %d", 100*leastPart, small))
	}
	return f
}

// stageRows returns the stages that several ranks have, those that took most time
// first, and how many took too little to be compared.
func stageRows(groups []requests.Group) (rows []stageRow, small int) {
	whole := 0.0
	for i := range groups {
		g := &groups[i]
		whole += float64(g.Total)
		at := slices.IndexFunc(rows, func(r stageRow) bool { return r.stage == g.Key[3] })
		if at < 0 {
			at = len(rows)
			rows = append(rows, stageRow{stage: g.Key[3]})
		}
		rows[at].total += float64(g.Total)
		rows[at].groups = append(rows[at].groups, g)
	}
	rows = slices.DeleteFunc(rows, func(r stageRow) bool { return len(r.groups) < 2 })
	several := len(rows)
	rows = slices.DeleteFunc(rows, func(r stageRow) bool { return r.total < leastPart*whole })
	slices.SortFunc(rows, func(a, b stageRow) int {
		return cmp.Or(cmp.Compare(b.total, a.total), cmp.Compare(a.stage, b.stage))
	})
	return rows, several - len(rows)
}

// stageCells compares the groups of one stage, a cell for each rank. Means are
// compared, as the median of a wait is often 0, and a factor of that means nothing.
func stageCells(groups []*requests.Group, ranks []string) []chart.HeatCell {
	var means []int64
	for _, g := range groups {
		means = append(means, g.Mean)
	}
	slices.Sort(means)
	middle := request.NearestRank(means, 50)
	cells := make([]chart.HeatCell, len(ranks))
	for i, rank := range ranks {
		cells[i] = chart.HeatCell{Value: math.NaN(), Text: "no such stage"}
		at := slices.IndexFunc(groups, func(g *requests.Group) bool { return g.Key[2] == rank })
		if at < 0 {
			continue
		}
		g := groups[at]
		cells[i].Text = fmt.Sprintf("mean %s, p50 %s, p99 %s\n%d spans", durationText(g.Mean), durationText(g.P50), durationText(g.P99), g.N)
		if middle > 0 {
			cells[i].Value = float64(g.Mean) / float64(middle)
		}
	}
	return cells
}

func durationText(ns int64) string { return trace.FormatDuration(ns) }

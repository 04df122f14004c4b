package page

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/page/chart"

	"github.com/sgtrace/sgtrace/analyze/rank"
	"github.com/sgtrace/sgtrace/analyze/requests"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// mostRows is how many rows of a table the page has.
const mostRows = 200

// Stages makes the section that compares the ranks of servers, stage by stage, from one time
// to another, with their load; ranks may be nil.
func Stages(set *request.Set, ranks *rank.Ranks, from, to trace.Time, src Source) Section {
	s := Section{ID: "ranks", Title: "Ranks of servers"}
	if ranks != nil {
		s.Lead = ranks.Verdict()
	}
	for role, engines := range enginesOf(set, from, to) {
		f, why := stageFigure(request.Role(role), engines, from, to, src)
		if f != nil {
			s.Figures = append(s.Figures, f)
		} else if why != "" {
			s.Notes = append(s.Notes, why)
		}
	}
	if len(s.Figures)+len(s.Notes) == 0 {
		s.Notes = []string{"No heat map of stages: the spans do not tell on which rank they were."}
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

// Sizes of the figures of stages, and the parts of the time of peers from which on a stage that
// takes longer, or less, has another color.
const (
	mostStages = 6
	mostRanks  = 64 // rows of all stages
)

var stageSteps = []float64{0.05, 0.1, 0.2, 0.35, 0.5}

// stageFigure compares the engines of a role over time. Where there is none it says why; it
// says nothing of roles without engines.
func stageFigure(role request.Role, engines []*engine, from, to trace.Time, src Source) (f *Figure, why string) {
	courses, small := stageCourses(engines)
	switch {
	case len(engines) == 0:
		return nil, ""
	case len(engines) == 1 && engines[0].ranks == 1:
		return nil, fmt.Sprintf("No heat map of stages of %s: it has no peers.", engines[0].name)
	case len(engines) == 1:
		return nil, fmt.Sprintf("No heat map of stages of %s: its %d ranks wait for each other in every step, so stages take equally long on all of them. Lateness tells them apart.",
			engines[0].name, engines[0].ranks)
	case len(courses) == 0:
		return nil, fmt.Sprintf("No heat map of stages of %s servers: no two of them have the same stages.", role)
	}
	f = &Figure{
		ID: "stages-" + role.String(), Shows: []finding.Kind{finding.Slower, finding.Pipeline}, Role: role.String(),
		Title: fmt.Sprintf("Stages over time, compared between peers: %s", role),
		Caption: "How much longer a stage takes than the median (nearest rank) of its peers, on average. Orange takes longer. Peers are servers, or DP ranks, of one role; " +
			"ranks that take each step together are one row. Differences within three standard errors have no color.",
		Defined: "Stages", Command: src.Command("--by-rank", "--table=stages"),
	}
	heat := &chart.TimeHeat{Steps: stageSteps, Unit: table.Share, What: "longer than peers", From: from, To: to}
	rows := 0
	for i, s := range courses {
		if i == mostStages || i > 0 && rows+len(s.engines) > mostRanks {
			f.Notes = append(f.Notes, roomNote(i, len(courses), "stages"))
			break
		}
		rows += len(s.engines)
		heat.Groups = append(heat.Groups, s.group(from, to))
	}
	if small > 0 {
		f.Notes = append(f.Notes, fmt.Sprintf("stages of less than %g %% of the time are left out: %d", 100*leastPart, small))
	}
	f.Body = heat
	return f, ""
}

// group makes a row of each engine.
func (s *stageCourse) group(from, to trace.Time) chart.HeatGroup {
	g := chart.HeatGroup{Name: s.name, From: from, To: to}
	var parts [][]tally
	for _, e := range s.engines {
		parts = append(parts, s.parts(e))
		g.Rows = append(g.Rows, chart.HeatRow{Name: e.name})
	}
	for p := range parts[0] {
		var here []*tally
		for i := range parts {
			if parts[i][p].n >= leastSpans {
				here = append(here, &parts[i][p])
			}
		}
		for i := range parts {
			value, text := comparePart(&parts[i][p], here)
			g.Rows[i].Values, g.Rows[i].Texts = append(g.Rows[i].Values, value), append(g.Rows[i].Texts, text)
		}
	}
	return g
}

// comparePart returns by which part of the usual time of its peers, which it is one of, an
// engine takes longer: 0 if that may be chance, and NaN if too little is known.
func comparePart(own *tally, peers []*tally) (longer float64, text string) {
	switch {
	case own.n == 0:
		return math.NaN(), ""
	case own.n < leastSpans || len(peers) < 2:
		return math.NaN(), fmt.Sprintf("too few to compare: %s", words.Counted(own.n, "span"))
	}
	sorted := slices.SortedFunc(slices.Values(peers), func(a, b *tally) int { return cmp.Compare(a.mean(), b.mean()) })
	usual := sorted[(len(sorted)-1)/2]
	text = fmt.Sprintf("%s on average (%s), its peers %s", durationText(int64(own.mean())), words.Counted(own.n, "span"), durationText(int64(usual.mean())))
	const chance = 3 // standard errors
	more := own.mean() - usual.mean()
	if usual.mean() <= 0 || math.Abs(more) <= chance*math.Sqrt(own.variance()+usual.variance()) {
		return 0, text
	}
	return more / usual.mean(), text
}

func durationText(ns int64) string { return trace.FormatDuration(ns) }

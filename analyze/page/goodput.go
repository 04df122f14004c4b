package page

import (
	"github.com/sgtrace/sgtrace/analyze/slo"
	"github.com/sgtrace/sgtrace/analyze/table"
)

// Goodput makes the section about the requests that meet an SLO.
func Goodput(g *slo.Goodput, src Source) Section {
	s := Section{Title: "Goodput", Lead: g.Words()}
	flag := "--slo=" + slo.Format(g.Objectives)
	for _, t := range []*table.Table{g.Report(), g.CauseReport(), g.RankReport()} {
		if t.Len() > 0 {
			s.Figures = append(s.Figures, TableOf(t, 0, "Goodput", src.Command(flag, tableFlag(t))))
		}
	}
	return s
}

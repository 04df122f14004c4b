package page

import (
	"fmt"
	"math"

	"github.com/sgtrace/sgtrace/analyze/load"
	"github.com/sgtrace/sgtrace/analyze/page/chart"
	"github.com/sgtrace/sgtrace/analyze/slo"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
)

// Goodput makes the section about how many requests meet objectives, and why the others
// do not. Over time, the section about that has it.
func Goodput(g *slo.Goodput, src Source) Section {
	s := Section{ID: "goodput", Title: "Goodput", Lead: g.Words()}
	flag := "--slo=" + slo.Format(g.Objectives)
	for _, r := range []*table.Table{g.Report(), g.CauseReport(), g.RankReport()} {
		if r.Len() > 0 {
			s.Figures = append(s.Figures, TableOf(r, mostRows, "Goodput", src.Command(flag, tableFlag(r))))
		}
	}
	return s
}

// goodputTile is the part of the requests that meet all objectives.
func goodputTile(g *slo.Goodput) Tile {
	t := Tile{Name: "Goodput", Value: "–", Detail: "no request can be judged", State: Neutral, Href: "#goodput"}
	if g.All.Judged() == 0 {
		return t
	}
	t.Follows = "goodput"
	t.Value = chart.InUnit(table.Share, wholePercent(g.All.Share()))
	t.Detail = fmt.Sprintf("%s /s meet %s", words.ThreeDigits(g.PerSecond()), slo.InWords(g.Objectives))
	if t.State = Good; g.All.Missed > 0 {
		t.State = Bad
	}
	return t
}

// goodputPanel is the part of the requests that arrived in each bucket and met all
// objectives; without any, the panel has no curve.
func goodputPanel(s *load.Series) chart.Panel {
	p := chart.Panel{Title: "goodput: part of arrivals that meet the SLO", Unit: table.Share}
	if s.Good == nil {
		return p
	}
	values := make([]float64, len(s.Good))
	for i, good := range s.Good {
		values[i] = math.NaN()
		if good.Judged > 0 {
			values[i] = float64(good.Met) / float64(good.Judged)
		}
	}
	p.Curves = []chart.Curve{{Name: "all", Values: values}}
	return p
}

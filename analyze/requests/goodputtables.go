package requests

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/request"
)

// A line is an objective, or all of them together.
type line struct {
	name  string
	limit int64
	*Count
}

// Report makes the table of the objectives. The last row is all of them together, the goodput.
func (g *Goodput) Report() *table.Table {
	var lines []line
	for i := range g.Objectives {
		lines = append(lines, line{g.Objectives[i].Metric, g.Objectives[i].Limit, &g.Each[i]})
	}
	lines = append(lines, line{"all", request.Unknown, &g.All})
	fields := []table.Field[line]{
		table.TextColumn("objective", "latency with a limit; all: every limit is met", func(l *line) string { return l.name }),
		table.NsColumn("limit", "limit", func(l *line) int64 { return l.limit }),
	}
	fields = append(fields, countFields(g, func(l *line) *Count { return l.Count })...)
	r := table.New("sgtrace.report.slo/v1", "Goodput", lines, fields)
	r.Stay("share met")
	if n := g.All.Undecided; n > 0 {
		r.Note("%s neither met nor missed: they have not ended, or the dump does not have the latency", words.Counted(int(n), "request"))
	}
	return r
}

// countFields returns the columns of a count.
func countFields[T any](g *Goodput, of func(*T) *Count) []table.Field[T] {
	return []table.Field[T]{
		table.CountColumn("met", "requests that meet the limit; for all, the good requests", func(r *T) int64 { return of(r).Met }),
		table.CountColumn("missed", "requests that miss the limit, failed, or were aborted", func(r *T) int64 { return of(r).Missed }),
		table.CountColumn("undecided", "requests that cannot be judged: not ended, or without this latency in the dump", func(r *T) int64 { return of(r).Undecided }).InDetail(),
		table.ShareColumn("share met", "met, as a share of met plus missed", func(r *T) float64 { return of(r).Share() }),
		table.NumberColumn("met rate", "requests that meet it per second", func(r *T) float64 { return g.perSecond(of(r)) }),
	}
}

// RankReport makes the table of the goodput by rank.
func (g *Goodput) RankReport() *table.Table {
	fields := place.LocationColumns(func(r *Rank) *place.Location { return &r.Location })
	fields = append(fields, countFields(g, func(r *Rank) *Count { return &r.Count })...)
	return table.New("sgtrace.report.slo.ranks/v1", "Goodput by rank: "+ObjectivesInWords(g.Objectives), g.Ranks, fields).Stay("share met")
}

// CauseReport makes the table of why requests missed the SLO.
func (g *Goodput) CauseReport() *table.Table {
	return table.New("sgtrace.report.slo.causes/v1", "Why requests missed the SLO", g.Causes, []table.Field[Cause]{
		table.TextColumn("objective", "objective missed by the largest factor; finish: the request got no answer", func(c *Cause) string { return c.Objective }),
		table.TextColumn("cause", "cause with the most time beyond the mean of requests that meet the SLO; or how the request ended", func(c *Cause) string { return c.Cause }),
		table.CountColumn("requests", "number of requests that missed the objective for this cause", func(c *Cause) int64 { return int64(len(c.Requests)) }),
		table.ShareColumn("share", "share of the requests that missed the SLO", func(c *Cause) float64 { return float64(len(c.Requests)) / float64(g.All.Missed) }),
		table.NsColumn("mean more", "mean time that they spent on the cause beyond that mean", func(c *Cause) int64 {
			if c.More == 0 {
				return request.Unknown
			}
			return c.More / int64(len(c.Requests))
		}),
		table.TextColumn("rid", "request ID of the first one", func(c *Cause) string { return g.set.Text(g.set.Requests[c.Requests[0]].RID) }),
	})
}

// Words sums up the goodput: "96.0 % of 300 requests, 13.2 /s, meet ttft <= 500 ms; 12 missed it: 9 waiting for KV
// cache on decode (ttft), 3 failed".
func (g *Goodput) Words() string {
	if g.All.Judged() == 0 {
		return "no request can be judged by " + ObjectivesInWords(g.Objectives)
	}
	text := fmt.Sprintf("%s %% of %s, %s /s, meet %s", words.InPercent(g.All.Share()), words.Counted(int(g.All.Judged()), "request"),
		words.ThreeDigits(g.PerSecond()), ObjectivesInWords(g.Objectives))
	if g.All.Missed == 0 {
		return text
	}
	text += fmt.Sprintf("; %s missed it", words.Thousands(g.All.Missed))
	const told = 3
	for i := range g.Causes[:min(told, len(g.Causes))] {
		c := &g.Causes[i]
		sep := ", "
		if i == 0 {
			sep = ": "
		}
		text += fmt.Sprintf("%s%d %s", sep, len(c.Requests), c.Phrase)
		if c.Objective != "finish" {
			text += " (" + c.Objective + ")"
		}
	}
	return text
}

// FewestJudged is the fewest judged requests that show whether a goodput is too small.
const FewestJudged = 30

// Below returns the probability that at most as many requests meet all objectives if each judged request does with
// the probability share, 0 to 1. It is NaN for fewer than [FewestJudged] requests.
func (g *Goodput) Below(share float64) float64 {
	judged := g.All.Judged()
	switch {
	case judged < FewestJudged:
		return math.NaN()
	case share >= 1: // a single miss is too many
		if g.All.Missed > 0 {
			return 0
		}
		return 1
	}
	return distuv.Binomial{N: float64(judged), P: share}.CDF(float64(g.All.Met))
}

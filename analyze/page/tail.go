package page

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/cause"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/metric"
	"github.com/sgtrace/sgtrace/analyze/page/chart"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/tail"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/request"
)

// Tail makes the section about why slow requests are slow.
func Tail(set *request.Set, t *tail.Tail, src Source) Section {
	b := tailBuilder{tail: t, set: set, src: src, colors: causeColors(t)}
	s := Section{ID: "slow", Title: "Slow requests"}
	verdicts := map[string]*metric.Metric{}
	for _, c := range t.Comparisons {
		if c.Slow.N > 0 {
			s.Figures = append(s.Figures, b.breakdown(c))
			verdicts[c.Verdict()] = c.Metric
		}
	}
	for _, c := range t.Comparisons {
		if f := b.scatter(c); f != nil && c.Metric == metric.E2E {
			s.Figures = append(s.Figures, f)
		}
	}
	for _, r := range t.Reports() {
		f := TableOf(r, maxRows, "Why slow requests are slow", b.command())
		if m, drawn := verdicts[r.Title]; drawn { // repeated, the verdict would look like two
			f.Title, f.Command = m.Title+" in numbers", b.command(m)
		}
		s.Figures = append(s.Figures, f)
	}
	return s
}

type tailBuilder struct {
	tail   *tail.Tail
	set    *request.Set
	src    Source
	colors map[cause.Cause]int
}

// command prints the tails of the given metrics; without any, of all.
func (b *tailBuilder) command(metrics ...*metric.Metric) string {
	flags := []string{fmt.Sprintf("--tail=p%d", b.tail.Options.Percent)}
	for _, m := range metrics {
		flags = append(flags, "--metric="+m.Name)
	}
	return b.src.Command(flags...)
}

// causeColors assigns colors to the causes with the most time in any comparison; the others are gray.
func causeColors(t *tail.Tail) map[cause.Cause]int {
	matters := map[cause.Cause]float64{}
	for _, c := range t.Comparisons {
		for i := range c.Rows {
			row := &c.Rows[i]
			part := float64(max(row.Slow, row.Around)) / float64(max(1, c.Slow.Mean))
			matters[row.Cause] = max(matters[row.Cause], part)
		}
	}
	causes := order.Largest(matters)
	colors := map[cause.Cause]int{}
	for i, cause := range causes[:min(chart.Hues, len(causes))] {
		colors[cause] = i
	}
	return colors
}

// breakdown shows the time of usual and slow requests, and the difference, by cause.
func (b *tailBuilder) breakdown(c *tail.Comparison) *Figure {
	usual, slow, more := chart.Bar{Name: "usual"}, chart.Bar{Name: "slow"}, chart.Bar{Name: "difference"}
	bars := &chart.Bars{Unit: table.Duration}
	rows := slices.Clone(c.Rows)
	slices.SortStableFunc(rows, func(x, y tail.Difference) int { return cmp.Compare(b.color(x.Cause), b.color(y.Cause)) })
	var others tail.Difference
	var names []string
	add := func(name string, color int, d *tail.Difference, text string) {
		bars.Parts = append(bars.Parts, chart.Part{Name: name, Color: color})
		usual.Values = append(usual.Values, float64(d.Around))
		slow.Values = append(slow.Values, float64(d.Slow))
		more.Values = append(more.Values, float64(d.More))
		more.Texts = append(more.Texts, text)
	}
	for i := range rows {
		d := &rows[i]
		if _, ok := b.colors[d.Cause]; !ok {
			others.Slow, others.Around, others.More = others.Slow+d.Slow, others.Around+d.Around, others.More+d.More
			names = append(names, d.Cause.String())
			continue
		}
		add(d.Cause.String(), b.colors[d.Cause], d, fmt.Sprintf("%s (95 %%: %s to %s)", durationText(d.More), durationText(d.Low), durationText(d.High)))
	}
	if len(names) > 0 {
		add("others: "+strings.Join(names, ", "), otherCauses, &others, "")
	}
	usual.Total, slow.Total, more.Total = durationText(c.Around.Mean), durationText(c.Slow.Mean), durationText(c.Slow.Mean-c.Around.Mean)
	bars.Rows = []chart.Bar{usual, slow, more}
	return &Figure{
		ID: "tail-" + c.Metric.Name, Shows: []finding.Kind{finding.Tail, finding.Transfer, finding.Memory},
		Title: c.Verdict(), Defined: "Why slow requests are slow", Command: b.command(c.Metric), Body: bars,
		Caption: fmt.Sprintf("Means over the %d slowest of %d, from %s, and over the %d around the median. Causes that take less time in slow requests are left of zero.",
			c.Slow.N, c.N, durationText(c.Slow.From), c.Around.N),
	}
}

// color returns the color of a cause. Sorting by it puts the gray ones last.
func (b *tailBuilder) color(c cause.Cause) int {
	if color, ok := b.colors[c]; ok {
		return color
	}
	return otherCauses
}

// otherCauses is the color of causes without their own: a different gray from that of requests that are not slow.
const otherCauses = chart.Hues + 2

// Limits of the requests drawn as dots; crowdedDots is for pages about very many ranks.
const (
	maxDots     = 6000
	crowdedDots = 2000
)

// scatter shows every request; nil if there are too few to determine causes.
func (b *tailBuilder) scatter(c *tail.Comparison) *Figure {
	points := b.tail.Points(c)
	if points == nil {
		return nil
	}
	usual := chart.Group{Name: "up to " + durationText(c.Around.To), Color: chart.Gray}
	byCause := map[cause.Cause]*chart.Group{}
	var causes []cause.Cause
	most := maxDots
	if len(b.set.Procs) > crowded {
		most = crowdedDots
	}
	drawn := thin(points, most)
	count := 0
	for i, p := range points {
		g := &usual
		if p.Value > c.Around.To {
			if g = byCause[p.Cause]; g == nil {
				g = &chart.Group{Name: p.Cause.String(), Color: b.color(p.Cause)}
				byCause[p.Cause] = g
				causes = append(causes, p.Cause)
			}
		}
		g.All++
		if drawn[i] {
			r := &b.set.Requests[p.Request]
			g.Dots = append(g.Dots, chart.Dot{Name: b.set.Text(r.RID), Time: r.Start, Dur: p.Value})
			count++
		}
	}
	body := &chart.Scatter{Value: "E2E", Groups: []chart.Group{usual}}
	slices.SortFunc(causes, func(x, y cause.Cause) int {
		return cmp.Or(cmp.Compare(byCause[y].All, byCause[x].All), cmp.Compare(x, y))
	})
	for _, cause := range causes {
		body.Groups = append(body.Groups, *byCause[cause])
	}
	f := &Figure{
		ID: "arrivals", Title: "Finished requests by arrival and E2E",
		Caption: "Color: largest cause of extra time, compared with requests around the median; gray: no slower than those.",
		Defined: "Causes", Command: b.command(c.Metric), Body: body,
	}
	if count < len(points) {
		f.Notes = append(f.Notes, fmt.Sprintf("%d of %d requests are drawn: the slowest %d, and others at even distances", count, len(points), most/2))
	}
	if n := unfinished(b.set); n > 0 {
		f.Notes = append(f.Notes, fmt.Sprintf("%d requests that did not finish are not drawn", n))
	}
	return f
}

// thin chooses the points to draw: all of them, or, if there are more than most, the slowest most/2 and others at
// even distances.
func thin(points []tail.Point, most int) []bool {
	drawn := make([]bool, len(points))
	if len(points) <= most {
		for i := range drawn {
			drawn[i] = true
		}
		return drawn
	}
	slowest := order.Sorted(len(points), func(x, y int) int { return cmp.Compare(points[y].Value, points[x].Value) })
	for _, i := range slowest[:most/2] {
		drawn[i] = true
	}
	others := most - most/2
	rest, seen, taken := len(points)-most/2, 0, 0
	for i := range points {
		if drawn[i] {
			continue
		}
		if seen++; seen*others/rest > taken {
			drawn[i] = true
			taken++
		}
	}
	return drawn
}

func unfinished(set *request.Set) int {
	n := 0
	for i := range set.AllRequests() {
		if set.Requests[i].Status != request.Finished {
			n++
		}
	}
	return n
}

package page

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/load"
	"github.com/sgtrace/sgtrace/analyze/overtime"
	"github.com/sgtrace/sgtrace/analyze/page/chart"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/trace"
)

// GPUsOverTime makes the section about devices over time, with the times at which they changed. If requests is not
// nil and the recording covers at least a quarter of their time, it uses their time axis.
func GPUsOverTime(t *overtime.Timeline, requests *load.Timeline, findings []finding.Finding, src Source) Section {
	s := Section{ID: "time", Title: overTime}
	if len(t.Devices) == 0 {
		return s
	}
	b := newOvertimeBuilder(t, ranksNamed(findings))
	f := &Figure{ID: "gpus-over-time", Shows: []finding.Kind{finding.GPU}, Title: "GPUs", Defined: "GPUs over time", Command: src.Command("--timeline", "--table=timeline.gpus"),
		Caption: fmt.Sprintf("Each point is %s. Busy and communication are shares of the time that was recorded.", durationText(t.Bucket))}
	body := &chart.Panels{From: b.span.Start, To: t.Start(b.span.First+b.span.N-1) + trace.Time(t.Bucket), Times: middles(&t.Grid, b.span), Panels: b.panels()}
	// On the axis of the requests, a much shorter recording would shrink to a stroke.
	if requests != nil && b.Under != nil && 4*int64(b.span.N)*b.Bucket >= int64(requests.To-requests.From) {
		body.From = min(body.From, requests.Start(0))
		body.To = max(body.To, requests.Start(requests.N()))
	}
	for i := range t.Changes {
		c := &t.Changes[i]
		text := t.Sentence(c)
		s.Points = append(s.Points, text)
		if c.Time >= body.From && c.Time <= body.To {
			body.Marks = append(body.Marks, chart.Mark{First: c.First, Time: c.Time, Last: c.Last, Label: strconv.Itoa(i + 1), Text: text})
		}
	}
	if len(body.Marks) > 0 {
		f.Caption += " Bands are changes, by number, as wide as the time of the change is uncertain (95 %)."
	}
	if left := len(t.Devices) - len(b.devices); left > 0 {
		f.Notes = append(f.Notes, fmt.Sprintf("%d of %d devices are drawn, first those that findings are about; the command prints all", len(b.devices), len(t.Devices)))
	}
	if n := len(t.Spans) - 1; n > 0 {
		f.Notes = append(f.Notes, fmt.Sprintf("the longest of %d recordings is drawn, which are far apart; the command prints all", n+1))
	}
	f.Notes, f.Body = append(f.Notes, t.Notes()...), body
	s.Figures = append(s.Figures, f)
	if len(t.Changes) > 0 {
		s.Figures = append(s.Figures, TableOf(t.ChangeReport(), maxRows, "GPUs over time", src.Command("--timeline", "--table=timeline.gpuchanges")))
	}
	return s
}

// overTime is the title of the section that requests, devices, and logs share.
const overTime = "Over time"

// joinOverTime adds s to the section of requests over time, or as a section of its own if there is none.
func joinOverTime(sections []Section, s Section) []Section {
	if len(s.Figures) == 0 {
		return sections
	}
	i := slices.IndexFunc(sections, func(o Section) bool { return o.Title == s.Title })
	if i < 0 {
		return append(sections, s)
	}
	of := &sections[i]
	of.Points, of.Figures = append(of.Points, s.Points...), append(of.Figures, s.Figures...)
	return sections
}

// An overtimeBuilder makes the panels for the longest span of a timeline.
type overtimeBuilder struct {
	*overtime.Timeline
	span    load.Span
	devices []*overtime.Device // those drawn
	names   []string
}

func newOvertimeBuilder(t *overtime.Timeline, named func(rank string) bool) *overtimeBuilder {
	b := &overtimeBuilder{Timeline: t, span: longest(t.Spans)}
	const most = 8
	shown := order.Sorted(len(t.Devices), func(x, y int) int {
		return cmp.Or(order.Bool(named(t.Name(&t.Devices[y])), named(t.Name(&t.Devices[x]))), cmp.Compare(x, y))
	})
	for _, i := range slices.Sorted(slices.Values(shown[:min(most, len(shown))])) {
		b.devices = append(b.devices, &t.Devices[i])
		b.names = append(b.names, t.Name(&t.Devices[i]))
	}
	b.names = chart.ShortNames(b.names)
	return b
}

// longest returns the span with the most buckets.
func longest(spans []load.Span) (span load.Span) {
	for _, s := range spans {
		if s.N > span.N {
			span = s
		}
	}
	return span
}

// middles returns the middles of the buckets of a span.
func middles(g *load.Grid, span load.Span) []trace.Time {
	times := make([]trace.Time, span.N)
	for i := range times {
		times[i] = g.Start(span.First+i) + trace.Time(g.Bucket/2)
	}
	return times
}

// panels returns the charts from top to bottom.
func (b *overtimeBuilder) panels() []chart.Panel {
	var panels []chart.Panel
	add := func(title string, unit table.Unit, of func(*overtime.Device, *overtime.Cell) float64) {
		panels = appendPanel(panels, chart.Panel{Title: title, Unit: unit, Curves: b.deviceCurves(of)})
	}
	share := func(of func(*overtime.Cell) int64) func(*overtime.Device, *overtime.Cell) float64 {
		return func(_ *overtime.Device, c *overtime.Cell) float64 { return float64(of(c)) / float64(c.Recorded) }
	}
	if b.Under != nil {
		under := b.Under[b.span.First : b.span.First+b.span.N]
		panels = appendPanel(panels, chart.Panel{Title: "requests under way", Unit: table.Number, Curves: []chart.Curve{{Name: "all", Color: chart.Gray, Values: under}}})
	}
	add("GPU busy", table.Share, share(func(c *overtime.Cell) int64 { return c.Busy }))
	add("communication", table.Share, share(func(c *overtime.Cell) int64 { return c.Comm }))
	add("communication that computation hides", table.Share, func(_ *overtime.Device, c *overtime.Cell) float64 { return c.Overlap() })
	add("launched and not started, kernels and copies", table.Number, (*overtime.Device).QueueDepth)
	add("tokens per second", table.Number, (*overtime.Device).TokenRate)
	return append(panels, b.counterPanels()...)
}

// deviceCurves makes a curve for each device.
func (b *overtimeBuilder) deviceCurves(of func(*overtime.Device, *overtime.Cell) float64) []chart.Curve {
	var list []chart.Curve
	for i, d := range b.devices {
		c := chart.Curve{Name: b.names[i], Color: i % chart.Hues}
		for k := range b.span.N {
			v := math.NaN()
			if cell := &d.Cells[b.span.First+k]; cell.Recorded > 0 {
				v = of(d, cell)
			}
			c.Values = append(c.Values, v)
		}
		list = append(list, c)
	}
	return list
}

// counterPanels makes a panel for each kind of main counter (memory, device metrics, network cards), with a curve for
// each place.
func (b *overtimeBuilder) counterPanels() []chart.Panel {
	var panels order.Groups[string, chart.Panel] // by title
	for i := range b.Counters {
		c := &b.Counters[i]
		if !c.IsMain() {
			continue
		}
		title, unit, size := axisOf(c.Name, c.Unit)
		p := panels.Of(title)
		if p.Title, p.Unit = title, unit; len(p.Curves) < chart.Hues {
			p.Curves = append(p.Curves, b.counterCurve(c, size, len(p.Curves)))
		}
	}
	return slices.DeleteFunc(panels.List, func(p chart.Panel) bool { return len(appendPanel(nil, p)) == 0 })
}

// counterCurve makes the curve of a counter, with its values divided by size.
func (b *overtimeBuilder) counterCurve(c *overtime.Counter, size float64, color int) chart.Curve {
	curve := chart.Curve{Name: b.PlaceOf(c), Color: color}
	for i, d := range b.devices {
		if d.Rank == c.Rank && b.Name(d) == curve.Name {
			curve.Name, curve.Color = b.names[i], i%chart.Hues
		}
	}
	for _, p := range c.Points[b.span.First : b.span.First+b.span.N] {
		curve.Values = append(curve.Values, p.Mean/size)
	}
	return curve
}

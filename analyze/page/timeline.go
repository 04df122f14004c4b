package page

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/sgtrace/sgtrace/analyze/change"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/load"
	"github.com/sgtrace/sgtrace/analyze/page/chart"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/trace"
)

// Timeline makes the section about load and latency over time, with their changes marked. changes may be nil.
func Timeline(t *load.Timeline, changes *change.Changes, findings []finding.Finding, src Source) Section {
	s := Section{ID: "time", Title: overTime}
	b := timelineBuilder{Timeline: t, command: src.Command("--timeline"), named: ranksNamed(findings)}
	if changes != nil {
		b.addChanges(&s, changes)
	}
	for i := 0; i < len(t.Series); {
		of := &t.Series[i]
		i++
		if of.Location.Scope == place.Everywhere {
			f := b.figure("Everywhere", b.wholePanels(of))
			f.ID, f.Shows = "load", []finding.Kind{finding.Load, finding.Change, finding.Common}
			s.Figures = append(s.Figures, f)
			continue
		}
		from := i
		for i < len(t.Series) && t.Series[i].Location.Scope == place.OneRank {
			i++
		}
		s.Figures = append(s.Figures, b.roleFigure(of, t.Series[from:i]))
	}
	s.Figures = slices.DeleteFunc(s.Figures, func(f *Figure) bool { return len(f.Body.(*chart.Panels).Panels) == 0 })
	if changes != nil {
		s.Figures = append(s.Figures, TableOf(changes.Report(), 0, "Changes", b.command))
	}
	return s
}

type timelineBuilder struct {
	*load.Timeline
	command string
	marks   []chart.Mark
	named   func(rank string) bool
}

// addChanges adds the changes as marks and sentences.
func (b *timelineBuilder) addChanges(s *Section, c *change.Changes) {
	for i := range c.List {
		change := &c.List[i]
		text := change.Sentence()
		b.marks = append(b.marks, chart.Mark{First: change.First, Time: change.Time, Last: change.Last, Label: strconv.Itoa(i + 1), Text: text})
		s.Points = append(s.Points, text)
	}
	switch {
	case c.Series == 0:
		s.Lead = "Changes were not searched: " + cmp.Or(c.Check().Reason, "there are too few requests") + "."
	case len(c.List) == 0:
		s.Lead = fmt.Sprintf("Nothing changed: %d series were searched.", c.Series)
	default:
		s.Lead = fmt.Sprintf("Changes in %d series that were searched; times are in %s:", c.Series, words.ZoneAt(b.Start(0)))
	}
}

// figure makes a figure from panels.
func (b *timelineBuilder) figure(title string, panels []chart.Panel) *Figure {
	body := &chart.Panels{From: b.Start(0), To: b.Start(b.N()), Panels: panels, Marks: b.marks}
	for i := range b.N() {
		body.Times = append(body.Times, b.Start(i)+trace.Time(b.Bucket/2))
	}
	f := &Figure{
		Title: title, Defined: "Over time", Command: b.command, Body: body,
		Caption: fmt.Sprintf("Each point is %s.", durationText(b.Bucket)),
	}
	if len(b.marks) > 0 {
		f.Caption += " Bands are changes, by number, as wide as the time of the change is uncertain (95 %)."
	}
	return f
}

// wholePanels makes the panels about all requests.
func (b *timelineBuilder) wholePanels(s *load.Series) []chart.Panel {
	const rate = table.Number
	var panels []chart.Panel
	panels = appendPanel(panels, chart.Panel{Title: "arrivals per second", Unit: rate, Curves: []chart.Curve{{Name: "all", Values: b.rates(s, func(p *load.Point) int64 { return p.Arrivals })}}})
	panels = appendPanel(panels, chart.Panel{Title: "requests under way", Unit: rate, Curves: []chart.Curve{{Name: "all", Values: levels(s, func(p *load.Point) float64 { return p.Running })}}})
	panels = appendPanel(panels, chart.Panel{Title: "output tokens per second", Unit: rate, Curves: []chart.Curve{{Name: "all", Values: b.rates(s, func(p *load.Point) int64 { return p.Output })}}})
	panels = appendPanel(panels, chart.Panel{Title: "prompt tokens per second", Unit: rate, Curves: []chart.Curve{{Name: "all", Values: b.rates(s, func(p *load.Point) int64 { return p.Prefill })}}})
	panels = appendPanel(panels, goodputPanel(s))
	panels = appendPanel(panels, spreadPanel("TTFT", s.TTFT))
	return appendPanel(panels, spreadPanel("TPOT", s.TPOT))
}

// spreadPanel has the p50 and the p99 of a duration.
func spreadPanel(name string, list []load.Spread) chart.Panel {
	return chart.Panel{Title: name, Unit: table.Duration, Curves: []chart.Curve{
		{Name: "p50", Values: percentile(list, func(s *load.Spread) int64 { return s.P50 })},
		{Name: "p99", Color: 1, Thin: true, Values: percentile(list, func(s *load.Spread) int64 { return s.P99 })},
	}}
}

// roleFigure makes the figure of the servers of a role, with a curve for each lead rank if there are several.
func (b *timelineBuilder) roleFigure(role *load.Series, ranks []load.Series) *Figure {
	leads, left := load.Busiest(ranks, b.named)
	var panels []chart.Panel
	level := func(title string, unit table.Unit, of func(*load.Point) float64) {
		panels = appendPanel(panels, chart.Panel{Title: title, Unit: unit, Curves: placeCurves(leads, func(s *load.Series) []float64 { return levels(s, of) })})
	}
	level("requests running", table.Number, func(p *load.Point) float64 { return p.Running })
	level("requests queued", table.Number, func(p *load.Point) float64 { return p.Queued })
	level("requests whose KV cache is moved", table.Number, func(p *load.Point) float64 { return p.Transferring })
	level("busy", table.Share, func(p *load.Point) float64 { return p.Busy })
	level("share of arrivals", table.Share, func(p *load.Point) float64 { return p.Share })
	panels = appendPanel(panels, chart.Panel{Title: "imbalance: most running requests of a rank / mean", Unit: table.Number,
		Curves: []chart.Curve{{Name: role.Location.String(), Color: chart.Gray, Values: levels(role, func(p *load.Point) float64 { return p.Imbalance })}}})
	for k, stage := range b.Stages {
		if len(leads) == 1 {
			panels = appendPanel(panels, spreadPanel(stage, stageOf(role, k)))
			continue
		}
		p50 := func(s *load.Series) []float64 {
			return percentile(stageOf(s, k), func(s *load.Spread) int64 { return s.P50 })
		}
		panels = appendPanel(panels, chart.Panel{Title: stage + " p50", Unit: table.Duration, Curves: placeCurves(leads, p50)})
	}
	title := fmt.Sprintf("Role %s, %d ranks", role.Location.String(), len(ranks))
	if len(ranks) == 1 {
		title = fmt.Sprintf("Role %s, 1 rank", role.Location.String())
	}
	f := b.figure(title, panels)
	f.Role, _, _ = role.Location.Parts()
	f.ID = "load-" + f.Role
	f.Shows = []finding.Kind{finding.Load, finding.Limit, finding.Memory, finding.Imbalance, finding.Lifecycle, finding.Change, finding.Transfer}
	if left > 0 {
		f.Notes = append(f.Notes, fmt.Sprintf("%d of %d lead ranks are drawn, those that findings are about and those with most running requests; with --format csv the command prints all", len(leads), len(leads)+left))
	}
	return f
}

// stageOf returns the durations of a stage over time; nil if the place doesn't have the stage.
func stageOf(s *load.Series, stage int) []load.Spread {
	if stage >= len(s.Stages) {
		return nil
	}
	return s.Stages[stage]
}

// placeCurves makes a curve for each place.
func placeCurves(places []*load.Series, of func(*load.Series) []float64) []chart.Curve {
	names := order.Each(places, func(s *load.Series) string { return s.Location.String() })
	var curves []chart.Curve
	for i, s := range places {
		curves = append(curves, chart.Curve{Name: chart.ShortNames(names)[i], Color: i % chart.Hues, Values: of(s)})
	}
	return curves
}

// appendPanel appends p without its curves that have no positive value, unless none remains.
func appendPanel(list []chart.Panel, p chart.Panel) []chart.Panel {
	p.Curves = slices.DeleteFunc(p.Curves, func(c chart.Curve) bool {
		return !slices.ContainsFunc(c.Values, func(v float64) bool { return v > 0 })
	})
	if len(p.Curves) == 0 {
		return list
	}
	return append(list, p)
}

func (b *timelineBuilder) rates(s *load.Series, of func(*load.Point) int64) []float64 {
	values := make([]float64, len(s.Points))
	for i := range s.Points {
		values[i] = b.PerSecond(i, of(&s.Points[i]))
	}
	return values
}

func levels(s *load.Series, of func(*load.Point) float64) []float64 {
	values := make([]float64, len(s.Points))
	for i := range s.Points {
		values[i] = of(&s.Points[i])
	}
	return values
}

// percentile returns a percentile over time; NaN for buckets in which nothing started.
func percentile(list []load.Spread, of func(*load.Spread) int64) []float64 {
	values := make([]float64, len(list))
	for i := range list {
		values[i] = math.NaN()
		if list[i].N > 0 {
			values[i] = float64(of(&list[i]))
		}
	}
	return values
}

package chart

import (
	"math"
	"time"

	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/trace"
)

// Panels are curves over time, one frame below the other, that share the axis of
// time.
type Panels struct {
	From, To trace.Time
	Times    []trace.Time // of the points of all curves
	Panels   []Panel
	Marks    []Mark
}

// A Panel is curves that share an axis of values.
type Panel struct {
	Title  string
	Unit   table.Unit // Duration, Share or Number
	Curves []Curve
}

// A Curve is a number over time; NaN is unknown.
type Curve struct {
	Name   string
	Color  int
	Thin   bool
	Values []float64 // one for each of Panels.Times
}

// A Mark is a moment at which something changed, known to lie between two times.
type Mark struct {
	First, Time, Last trace.Time
	Label             string // short: a number
	Text              string
}

const (
	panelHeight = 84
	panelGap    = 26
	panelsLeft  = 70
)

func (p *Panels) Draw() (Drawing, error) {
	height := 16 + float64(len(p.Panels))*(panelHeight+panelGap) + 18
	s := newSVG(drawingWidth, height, "Curves over time")
	x := clock{p.From, p.To, 9}
	frames := make([]frame, len(p.Panels))
	for i := range frames {
		frames[i] = frame{panelsLeft, 34 + float64(i)*(panelHeight+panelGap), drawingWidth - panelsLeft - 16, panelHeight}
	}
	p.drawMarks(s, x, frames)
	hover := hoverLines{Axis: "x"}
	step := p.step()
	for _, t := range p.Times {
		hover.At = append(hover.At, round1(panelsLeft+x.of(t)*(drawingWidth-panelsLeft-16)))
		hover.Labels = append(hover.Labels, timeOfDay(t, step)+" UTC")
	}
	d := Drawing{}
	names := map[string]int{} // series by name: a rank is switched off in all panels
	several := p.several()
	for i := range p.Panels {
		f := frames[i]
		hover.Panels = append(hover.Panels, hoverPanel{table.Printable(p.Panels[i].Title), round1(f.top), round1(f.bottom()), f.left, f.right()})
		f.vertical(s, x, i == len(p.Panels)-1)
		for _, c := range p.Panels[i].Curves {
			series, known := names[c.Name]
			if !known {
				series = len(names)
				names[c.Name] = series
				if several[c.Name] {
					d.Legend = append(d.Legend, LegendEntry{colorClass(c.Color), table.Printable(c.Name), series})
				}
			}
			hover.Lines = append(hover.Lines, hoverLine{Panel: i, Series: series, Name: table.Printable(c.Name), Class: colorClass(c.Color)})
		}
		p.Panels[i].draw(s, f, hover.At, hover.Lines[len(hover.Lines)-len(p.Panels[i].Curves):])
	}
	d.Markup, d.Hover, d.Notes = s.finish(), hover, []string{dayNote(p.From)}
	return d, nil
}

// several tells of every curve whether there is another one beside it in some panel.
func (p *Panels) several() map[string]bool {
	several := map[string]bool{}
	for _, panel := range p.Panels {
		for _, c := range panel.Curves {
			several[c.Name] = several[c.Name] || len(panel.Curves) > 1
		}
	}
	return several
}

// step is the distance between the points, ns.
func (p *Panels) step() int64 {
	if len(p.Times) < 2 {
		return int64(time.Second)
	}
	return int64(p.Times[1] - p.Times[0])
}

// drawMarks draws the marks below the curves, as bands through all panels.
func (p *Panels) drawMarks(s *svg, x clock, frames []frame) {
	if len(frames) == 0 {
		return
	}
	f := frame{frames[0].left, frames[0].top - 6, frames[0].width, frames[len(frames)-1].bottom() - frames[0].top + 6}
	free := math.Inf(-1)
	for _, m := range p.Marks {
		from, to := f.x(x.of(max(m.First, p.From))), f.x(x.of(min(m.Last, p.To)))
		at := f.x(x.of(min(max(m.Time, p.From), p.To)))
		s.open("g", "class", "mark")
		s.title(m.Label + ": " + m.Text)
		s.empty("rect", "x", px(from), "y", px(f.top), "width", px(max(to-from, 1)), "height", px(f.height))
		s.line("", at, f.top, at, f.bottom())
		if at > free {
			s.empty("circle", "cx", px(at), "cy", px(f.top-8), "r", "8")
			s.label(at, f.top-4, "mid", m.Label)
			free = at + 17
		}
		s.close("g")
	}
}

// draw draws the panel, and adds what the script shows to its lines.
func (p *Panel) draw(s *svg, f frame, at []float64, lines []hoverLine) {
	y := p.axis()
	f.horizontal(s, y)
	s.label(f.left, f.top-6, "panel", p.Title)
	for i, c := range p.Curves {
		var path curvePath
		for k, v := range c.Values {
			place := math.NaN()
			if !math.IsNaN(v) {
				place = f.y(y.at(v))
			}
			path.to(at[k], place)
			lines[i].add(place, InUnit(p.Unit, v))
		}
		s.curve(path, c.Color, lines[i].Series, c.Thin)
	}
}

// axis returns the scale of the values: that of durations is logarithmic where the
// others would all be at the bottom.
func (p *Panel) axis() scale {
	const far = 50 // times the smallest
	least, positive, most := math.Inf(1), math.Inf(1), 0.0
	for _, c := range p.Curves {
		for _, v := range c.Values {
			if math.IsNaN(v) {
				continue
			}
			least, most = min(least, v), max(most, v)
			if v > 0 {
				positive = min(positive, v)
			}
		}
	}
	if p.Unit == table.Duration && most > far*positive && least > 0 {
		return newLogarithmic(positive, most, p.Unit, 4)
	}
	return newLinear(min(least, 0), most, p.Unit, 3)
}

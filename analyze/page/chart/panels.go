package chart

import (
	"html/template"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/trace"
)

// Panels are curves over time in frames stacked above each other, with a common time axis.
type Panels struct {
	From, To trace.Time
	Times    []trace.Time // of the points of all curves
	Panels   []Panel
	Marks    []Mark
}

// A Panel has curves with a common axis of values.
type Panel struct {
	Title  string
	Unit   table.Unit // Duration, Share or Number
	Curves []Curve
}

// A Curve is a number over time; NaN if unknown.
type Curve struct {
	Name   string
	Color  int
	Thin   bool
	Values []float64 // one for each of Panels.Times
}

// A Mark is a time at which something changed, with its bounds.
type Mark struct {
	First, Time, Last trace.Time
	Label             string // short, such as a number
	Text              string
}

const (
	panelHeight = 84
	panelGap    = 26
	panelsLeft  = 58
	pinWidth    = 17
)

func (p *Panels) Draw() (Drawing, error) {
	d := Drawing{Markup: twice(p.svg), Notes: []string{dayNote(p.From, p.To)}, Numbers: p.numbers()}
	x := clock{p.From, p.To, 9}
	hover := hoverLines{Axis: "x"}
	step := p.step()
	for _, t := range p.Times {
		hover.At = append(hover.At, part(x.position(t)))
		hover.Labels = append(hover.Labels, timeOfDay(t, step)+" "+words.ZoneAt(t))
	}
	series, several := p.series(), p.several()
	for i := range p.Panels {
		panel := &p.Panels[i]
		y := panel.axis()
		hover.Panels = append(hover.Panels, table.Printable(panel.Title))
		for _, c := range panel.Curves {
			line := hoverLine{Panel: i, Series: series[c.Name], Name: table.Printable(c.Name), Class: colorClass(c.Color)}
			for _, v := range c.Values {
				line.add(1-y.at(v), InUnit(panel.Unit, v)) // of NaN it is NaN
			}
			hover.Lines = append(hover.Lines, line)
			if several[c.Name] && !slices.ContainsFunc(d.Legend, func(e LegendEntry) bool { return e.Series == line.Series }) {
				d.Legend = append(d.Legend, LegendEntry{line.Class, line.Name, line.Series})
			}
		}
	}
	d.Hover = hover
	return d, nil
}

func (p *Panels) svg(width float64) template.HTML {
	frames := make([]frame, len(p.Panels))
	for i := range frames {
		frames[i] = frame{panelsLeft, 44 + float64(i)*(panelHeight+panelGap), width - panelsLeft - 16, panelHeight}
	}
	whole := frame{panelsLeft, 24, width - panelsLeft - 16, float64(len(frames))*(panelHeight+panelGap) - panelGap + 20}
	x := clock{p.From, p.To, whole.ticksIn(98)}
	s := newTimeSVG(width, whole.bottom()+26, "Curves over time; the table below has the numbers", x)
	p.drawMarks(s, x, whole)
	series := p.series()
	for i, f := range frames {
		f.vertical(s, x, i == len(frames)-1)
		p.drawPanel(s, i, f, x, series)
	}
	return s.finish()
}

// series numbers the curves by name, so that the legend switches a rank off in all panels.
func (p *Panels) series() map[string]int {
	names := map[string]int{}
	for _, panel := range p.Panels {
		for _, c := range panel.Curves {
			if _, known := names[c.Name]; !known {
				names[c.Name] = len(names)
			}
		}
	}
	return names
}

// numbers returns a row for each time, with a column for each curve of each panel.
func (p *Panels) numbers() *Numbers {
	n := &Numbers{Head: []string{words.ZoneAt(p.From)}}
	for _, panel := range p.Panels {
		for _, c := range panel.Curves {
			name := panel.Title
			if len(panel.Curves) > 1 {
				name += ", " + c.Name
			}
			n.Head = append(n.Head, name)
		}
	}
	for k, t := range p.Times {
		row := []string{timeOfDay(t, p.step())}
		for _, panel := range p.Panels {
			for _, c := range panel.Curves {
				row = append(row, InUnit(panel.Unit, c.Values[k]))
			}
		}
		n.add(row...)
	}
	return n
}

// several returns, by name of a curve, whether any panel has it together with other curves.
func (p *Panels) several() map[string]bool {
	several := map[string]bool{}
	for _, panel := range p.Panels {
		for _, c := range panel.Curves {
			several[c.Name] = several[c.Name] || len(panel.Curves) > 1
		}
	}
	return several
}

// step returns the distance between points, in ns.
func (p *Panels) step() int64 {
	if len(p.Times) < 2 {
		return int64(time.Second)
	}
	return int64(p.Times[1] - p.Times[0])
}

// drawMarks draws the marks behind the curves, as bands through all panels, with their labels above. The script moves
// the labels when the bands zoom.
func (p *Panels) drawMarks(s *svg, x clock, f frame) {
	s.viewOf("view marks", f)
	in := f.inside()
	for _, m := range p.Marks {
		from, to := in.x(x.position(max(m.First, p.From))), in.x(x.position(min(m.Last, p.To)))
		at := in.x(x.position(p.within(m.Time)))
		s.open("g", "class", "mark")
		s.title(m.Label + ": " + m.Text)
		s.empty("rect", "x", px(from), "y", "0", "width", px(max(to-from, 1)), "height", px(f.height))
		s.line("", at, 0, at, f.height)
		s.close("g")
	}
	s.close("svg")
	free := math.Inf(-1)
	for _, m := range p.Marks {
		place, class := x.position(p.within(m.Time)), "mark pin"
		if f.x(place) > free {
			free = f.x(place) + pinWidth
		} else {
			class += " off" // until the reader zooms in
		}
		s.open("g", "class", class, "data-at", strconv.FormatFloat(part(place), 'f', -1, 64), "data-wide", strconv.Itoa(pinWidth),
			"transform", "translate("+px(f.x(place))+" "+px(f.top-10)+")")
		s.title(m.Label + ": " + m.Text)
		s.empty("circle", "r", "8")
		s.label(0, 4, "mid", m.Label)
		s.close("g")
	}
}

// within clamps a time to the bounds.
func (p *Panels) within(t trace.Time) trace.Time { return min(max(t, p.From), p.To) }

// drawPanel draws panel i into its frame.
func (p *Panels) drawPanel(s *svg, i int, f frame, x clock, series map[string]int) {
	panel := &p.Panels[i]
	y := panel.axis()
	f.horizontal(s, y)
	s.heading(f, panel.Title, axisNote(y))
	s.view(f)
	in := f.inside()
	for _, c := range panel.Curves {
		var path curvePath
		for k, v := range c.Values {
			path.to(in.x(x.position(p.Times[k])), in.y(y.at(v)))
		}
		s.curve(path, c.Color, series[c.Name], c.Thin)
	}
	s.close("svg")
}

// axisNote returns a remark for an axis that is not linear.
func axisNote(s scale) string {
	if _, ok := s.(logarithmic); ok {
		return " (log axis)"
	}
	return ""
}

// axis returns the scale of the values. It is logarithmic for durations whose range is so wide that a linear scale
// would put most of them at the bottom.
func (p *Panel) axis() scale {
	const far = 50 // ratio of the largest to the smallest
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

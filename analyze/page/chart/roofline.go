package chart

import (
	"fmt"
	"html/template"
	"math"
	"strconv"

	"github.com/sgtrace/sgtrace/analyze/table"
)

// A Roofline has a dot for each kind of work of a GPU: by how many operations it has for each byte, and how
// many a second it does. Above are the roofs: what memory can feed, and what the GPU can compute.
type Roofline struct {
	Bandwidth float64 // TB/s
	Peaks     []Peak  // the lowest first
	Groups    []RoofGroup
}

// A Peak is what a GPU computes at most, in TFLOP/s.
type Peak struct {
	Name   string
	TFLOPs float64
}

// A RoofGroup is work of one color.
type RoofGroup struct {
	Name  string
	Color int
	Dots  []RoofDot
}

// A RoofDot is work of one kind.
type RoofDot struct {
	Name      string
	Intensity float64 // operations for each byte
	TFLOPs    float64 // that it does in a second
	Time      string
	Share     float64 // of the roof
}

func (r *Roofline) Draw() (Drawing, error) {
	d := Drawing{Markup: twice(r.svg), Wide: true, Numbers: &Numbers{Head: []string{"", "time", "operations per byte", "TFLOP/s", "of the roof"}}}
	for i, g := range r.Groups {
		d.Legend = append(d.Legend, LegendEntry{colorClass(g.Color), fmt.Sprintf("%s (%d)", table.Printable(g.Name), len(g.Dots)), i})
		for _, dot := range g.Dots {
			d.Numbers.add(dot.Name, dot.Time, threeDigits(dot.Intensity), threeDigits(dot.TFLOPs), InUnit(table.Share, dot.Share))
		}
	}
	return d, nil
}

func (r *Roofline) svg(width float64) template.HTML {
	height := min(430, 0.9*width)
	f := frame{left: 58, top: 26, width: width - 76, height: height - 70}
	x, y := r.axes(f)
	s := newSVG(width, height, "Roofline: operations per byte, and operations per second; the table below has the numbers")
	f.vertical(s, x, true)
	f.horizontal(s, y)
	s.heading(f, "TFLOP/s", axisNote(y))
	s.label(f.left+f.width/2, f.bottom()+36, "mid", "operations per byte (log axis)")
	s.viewOf("view marks", f)
	in := f.inside()
	for _, p := range r.Peaks {
		ridge := p.TFLOPs / r.Bandwidth
		from := max(x.low, y.low/r.Bandwidth)
		s.empty("path", "class", "roof", "d", "M"+px(in.x(x.at(from)))+" "+px(in.y(y.at(from*r.Bandwidth)))+
			"L"+px(in.x(x.at(max(from, ridge))))+" "+px(in.y(y.at(p.TFLOPs)))+"H"+px(in.width))
	}
	s.close("svg")
	for i, p := range r.Peaks { // beside each other: lines may be close
		s.label(f.right()-4-56*float64(len(r.Peaks)-1-i), f.y(y.at(p.TFLOPs))-5, "end dim", p.Name)
	}
	for i, g := range r.Groups {
		s.open("g", "class", "dots "+colorClass(g.Color), "data-s", strconv.Itoa(i))
		for _, dot := range g.Dots {
			s.open("g")
			s.title(fmt.Sprintf("%s\n%s, at %s of the roof\n%s TFLOP/s, %s operations per byte", dot.Name, dot.Time, InUnit(table.Share, dot.Share), threeDigits(dot.TFLOPs), threeDigits(dot.Intensity)))
			s.empty("path", "d", "M"+px(f.x(x.at(dot.Intensity)))+" "+px(f.y(y.at(dot.TFLOPs)))+"h0")
			s.close("g")
		}
		s.close("g")
	}
	return s.finish()
}

// axes returns the scales: they hold all dots, and where the lowest roof turns.
func (r *Roofline) axes(f frame) (x, y logarithmic) {
	left, right, low, high := math.Inf(1), 0.0, math.Inf(1), 0.0
	for _, p := range r.Peaks {
		left, right, high = min(left, p.TFLOPs/r.Bandwidth/10), max(right, 3*p.TFLOPs/r.Bandwidth), max(high, 1.5*p.TFLOPs)
		low = min(low, p.TFLOPs/100)
	}
	for _, g := range r.Groups {
		for _, dot := range g.Dots {
			left, right, low, high = min(left, dot.Intensity), max(right, dot.Intensity), min(low, dot.TFLOPs), max(high, dot.TFLOPs)
		}
	}
	return newLogarithmic(left, right, table.Number, f.ticksIn(60)), newLogarithmic(low, high, table.Number, 10)
}

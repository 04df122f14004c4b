package chart

import (
	"fmt"
	"html/template"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/trace"
)

// A Scatter shows each of many events as a dot, by time and duration.
type Scatter struct {
	Groups []Group // later ones are drawn over earlier ones
	Value  string  // name of the duration: "E2E"
}

// A Group has the dots of one color.
type Group struct {
	Name  string
	Color int
	Dots  []Dot
	All   int // number of events, including those not drawn
}

// A Dot is an event.
type Dot struct {
	Name string
	Time trace.Time
	Dur  int64 // ns
}

func (c *Scatter) Draw() (Drawing, error) {
	from, to, y := c.axes()
	x := clock{from, to, 9}
	d := Drawing{Markup: twice(c.svg), Notes: []string{dayNote(from, to)}, Numbers: c.numbers()}
	hover := hoverDots{Value: c.Value, From: int64(from) / 1e6}
	for i, g := range c.Groups {
		list := hoverGroup{Name: table.Printable(g.Name), Class: colorClass(g.Color), Series: i,
			X: []float64{}, Y: []float64{}, Names: []string{}, Times: []int64{}, Texts: []string{}}
		for _, dot := range g.Dots {
			list.X, list.Y = append(list.X, part(x.position(dot.Time))), append(list.Y, part(1-y.at(float64(dot.Dur))))
			list.Names = append(list.Names, table.Printable(dot.Name))
			list.Times = append(list.Times, int64(dot.Time)/1e6-hover.From)
			list.Texts = append(list.Texts, trace.FormatDuration(dot.Dur))
		}
		hover.Groups = append(hover.Groups, list)
		d.Legend = append(d.Legend, LegendEntry{list.Class, fmt.Sprintf("%s (%d)", list.Name, g.All), i})
	}
	d.Hover = hover
	return d, nil
}

func (c *Scatter) svg(width float64) template.HTML {
	height := min(420, 0.9*width)
	f := frame{left: 58, top: 26, width: width - 74, height: height - 52}
	from, to, y := c.axes()
	x := clock{from, to, f.ticksIn(98)}
	s := newTimeSVG(width, height, "A dot for each request: when it arrived, and how long it took", x)
	f.vertical(s, x, true)
	f.horizontal(s, y)
	s.heading(f, c.Value, axisNote(y))
	s.view(f)
	in := f.inside()
	for i, g := range c.Groups {
		var path strings.Builder
		for _, dot := range g.Dots {
			path.WriteString("M" + px(in.x(x.position(dot.Time))) + " " + px(in.y(y.at(float64(dot.Dur)))) + "h0")
		}
		s.open("g", "class", "dots "+colorClass(g.Color), "data-s", strconv.Itoa(i))
		s.empty("path", "d", path.String()) // strokes of zero length with round caps are dots
		s.close("g")
	}
	s.close("svg")
	return s.finish()
}

// numbers returns a summary of each group. Single dots are in their tips, and in a table of requests.
func (c *Scatter) numbers() *Numbers {
	n := &Numbers{Head: []string{"", "number", "drawn", "median " + c.Value + " of those drawn", "longest"}}
	for _, g := range c.Groups {
		row := []string{g.Name, strconv.Itoa(g.All), strconv.Itoa(len(g.Dots)), "-", "-"}
		if len(g.Dots) > 0 {
			values := order.Each(g.Dots, func(dot Dot) int64 { return dot.Dur })
			slices.Sort(values)
			row[3], row[4] = trace.FormatDuration(nearestRank(values, 50_000)), trace.FormatDuration(values[len(values)-1])
		}
		n.add(row...)
	}
	return n
}

// axes returns the bounds of the times and the scale of the durations.
func (c *Scatter) axes() (from, to trace.Time, y scale) {
	least, most, any := int64(0), int64(1), false
	for _, g := range c.Groups {
		for _, d := range g.Dots {
			if !any {
				from, to, any = d.Time, d.Time, true
			}
			from, to = min(from, d.Time), max(to, d.Time)
			most = max(most, d.Dur)
			if d.Dur > 0 && (least == 0 || d.Dur < least) {
				least = d.Dur
			}
		}
	}
	return from, to, newLogarithmic(float64(least), float64(most), table.Duration, 10)
}

// hoverDots is the data of dots for the script. Times are in ms: From since 1970, those of dots since From.
type hoverDots struct {
	Value  string       `json:"value"`
	From   int64        `json:"from"`
	Groups []hoverGroup `json:"groups"`
}

// A hoverGroup has lists of equal length; they are empty, not null, for a group without dots.
type hoverGroup struct {
	Name   string    `json:"name"`
	Class  string    `json:"class"`
	Series int       `json:"series"`
	X      []float64 `json:"x"`
	Y      []float64 `json:"y"`
	Names  []string  `json:"names"`
	Times  []int64   `json:"times"`
	Texts  []string  `json:"texts"`
}

// A Roofline has a dot for each kind of GPU work, by operations per byte and operations per second. Above them are
// the roofs: the memory bandwidth and the peak compute of the GPU.
type Roofline struct {
	Bandwidth float64 // TB/s
	Peaks     []Peak  // lowest first
	Groups    []RoofGroup
}

// A Peak is the peak compute of a GPU for one number format, in TFLOP/s.
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

// A RoofDot is one kind of work.
type RoofDot struct {
	Name      string
	Intensity float64 // operations per byte
	TFLOPs    float64 // rate it reaches
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
	for i, p := range r.Peaks { // side by side, because the lines may be close together
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

// axes returns the scales, which cover all dots and the points where memory and compute roofs meet.
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

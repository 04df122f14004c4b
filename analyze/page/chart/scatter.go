package chart

import (
	"fmt"
	"html/template"
	"slices"
	"strconv"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/trace"
)

// A Scatter is a dot for each of many things that happened, by time and duration.
type Scatter struct {
	Groups []Group // later ones are drawn over earlier ones
	Value  string  // what the duration is: "E2E"
}

// A Group is dots of one color.
type Group struct {
	Name  string
	Color int
	Dots  []Dot
	All   int // how many there are, where only some are drawn
}

// A Dot is something that took some time.
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
		s.empty("path", "d", path.String()) // strokes of no length with round ends are dots
		s.close("g")
	}
	s.close("svg")
	return s.finish()
}

// numbers sums up each group; what each dot is, its tip says, and a table of requests.
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

// axes returns the bounds of the times, and the scale of the durations.
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

// hoverDots is the data of dots that the script shows. Times are ms: From since 1970, those of
// the dots since From.
type hoverDots struct {
	Value  string       `json:"value"`
	From   int64        `json:"from"`
	Groups []hoverGroup `json:"groups"`
}

// A hoverGroup has lists of equal length, empty ones for a group of which no dot is drawn.
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

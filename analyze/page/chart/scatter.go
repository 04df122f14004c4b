package chart

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/table"
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
	const height = 400
	f := frame{left: 70, top: 10, width: drawingWidth - 86, height: height - 44}
	from, to, y := c.axes()
	x := clock{from, to, 9}
	s := newSVG(drawingWidth, height, "A dot for each request: time of arrival, and how long it took")
	f.vertical(s, x, true)
	f.horizontal(s, y)
	d := Drawing{Notes: []string{dayNote(from)}}
	hover := hoverDots{Value: c.Value, From: int64(from) / 1e6}
	for i, g := range c.Groups {
		class := colorClass(g.Color)
		list := hoverGroup{Name: table.Printable(g.Name), Class: class, Series: i}
		var path strings.Builder
		for _, dot := range g.Dots {
			at := [2]float64{round1(f.x(x.of(dot.Time))), round1(f.y(y.at(float64(dot.Dur))))}
			path.WriteString("M" + px(at[0]) + " " + px(at[1]) + "h0")
			list.X, list.Y = append(list.X, at[0]), append(list.Y, at[1])
			list.Names = append(list.Names, table.Printable(dot.Name))
			list.Times = append(list.Times, int64(dot.Time)/1e6-hover.From)
			list.Texts = append(list.Texts, trace.FormatDuration(dot.Dur))
		}
		s.open("g", "class", "dots "+class, "data-s", strconv.Itoa(i))
		s.empty("path", "d", path.String()) // strokes of no length with round ends are dots
		s.close("g")
		hover.Groups = append(hover.Groups, list)
		entry := LegendEntry{class, fmt.Sprintf("%s (%d)", list.Name, g.All), i}
		d.Legend = append(d.Legend, entry)
	}
	d.Markup, d.Hover = s.finish(), hover
	return d, nil
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

// hoverDots is what the script shows of dots. Times are ms: From since 1970, those of
// the dots since From.
type hoverDots struct {
	Value  string       `json:"value"`
	From   int64        `json:"from"`
	Groups []hoverGroup `json:"groups"`
}

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

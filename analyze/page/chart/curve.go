package chart

import (
	"fmt"
	"html/template"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/trace"
)

// A curvePath is a line through points; NaN breaks it.
type curvePath struct {
	b     strings.Builder
	drawn bool // the next point continues the line
	last  [2]float64
	dots  [][2]float64 // isolated points, which a line would not show
	run   int
}

func (p *curvePath) to(x, y float64) {
	if math.IsNaN(x) || math.IsNaN(y) {
		p.interrupt()
		return
	}
	if p.drawn {
		p.b.WriteByte('L')
	} else {
		p.b.WriteByte('M')
	}
	p.b.WriteString(px(x) + " " + px(y))
	p.drawn, p.last, p.run = true, [2]float64{x, y}, p.run+1
}

func (p *curvePath) interrupt() {
	if p.run == 1 {
		p.dots = append(p.dots, p.last)
	}
	p.drawn, p.run = false, 0
}

// curve draws a path as series i of its figure.
func (s *svg) curve(p curvePath, color, i int, faint bool) {
	p.interrupt()
	class := "curve " + colorClass(color)
	if faint {
		class += " thin"
	}
	s.open("g", "class", class, "data-s", strconv.Itoa(i))
	s.empty("path", "d", p.b.String())
	for _, dot := range p.dots {
		s.empty("path", "class", "dot", "d", "M"+px(dot[0])+" "+px(dot[1])+"h0") // its round cap is a dot
	}
	s.close("g")
}

// hoverLines is the data of curves for the script: the values of all lines at each position on an axis. Positions are
// fractions of a frame, from the left and from the top.
type hoverLines struct {
	Axis   string      `json:"axis"` // "x" or "y": the axis along which the pointer selects
	At     []float64   `json:"at"`
	Labels []string    `json:"labels"` // of At
	Panels []string    `json:"panels"` // titles of the frames, from the top
	Lines  []hoverLine `json:"lines"`
}

type hoverLine struct {
	Panel  int        `json:"panel"`
	Series int        `json:"series"`
	Name   string     `json:"name"`
	Class  string     `json:"class"`
	Place  []*float64 `json:"place"` // on the other axis; null if unknown
	Text   []string   `json:"text"`
}

func (l *hoverLine) add(place float64, text string) {
	l.Text = append(l.Text, text)
	if math.IsNaN(place) {
		l.Place = append(l.Place, nil)
		return
	}
	place = part(place)
	l.Place = append(l.Place, &place)
}

// Percentiles shows distributions of durations as curves: the percentage of the values that are no longer than the
// duration on the horizontal axis.
type Percentiles struct {
	Lines []Distribution
}

// A Distribution has the values of one line, in ns.
type Distribution struct {
	Name   string
	Values []int64 // sorted, at least one
	Color  int
	// Packed has the values with their owners, for the script, in the format of [PackDurations]; "" if the curve
	// can't follow a range of time.
	Packed string
}

// hoverPercentiles is the data of percentiles for the script, which redraws them from it.
type hoverPercentiles struct {
	hoverLines
	Packed []string `json:"packed,omitempty"` // of each line; nil if no line has any
	// Low and High are the bounds of the axis of durations, in ns.
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// percentGrid has the percentiles at which curves have points, in thousandths of a percent, so that nearest ranks are
// computed in integers.
var percentGrid = func() []int {
	var grid []int
	for p := minPercentile * 1000; p < 99_000; p += 1000 {
		grid = append(grid, p)
	}
	for p := 99_000; p <= 99_900; p += 100 {
		grid = append(grid, p)
	}
	return grid
}()

// nearestRank returns a percentile of sorted values, given in thousandths of a percent.
func nearestRank(sorted []int64, thousandths int) int64 {
	const all = 100_000
	return sorted[max(1, (thousandths*len(sorted)+all-1)/all)-1]
}

func (p *Percentiles) Draw() (Drawing, error) {
	lines := slices.DeleteFunc(slices.Clone(p.Lines), func(d Distribution) bool { return len(d.Values) == 0 })
	d := Drawing{Markup: twice(func(width float64) template.HTML { return p.svg(lines, width) }), Numbers: percentileNumbers(lines)}
	x, y := p.axis(lines, wideDrawing), percentileScale{}
	hover := hoverPercentiles{hoverLines: hoverLines{Axis: "y", Panels: []string{""}}, Low: x.low, High: x.high}
	if p.followsRange() {
		for _, line := range lines {
			hover.Packed = append(hover.Packed, line.Packed)
		}
	}
	for _, percent := range percentGrid {
		hover.At = append(hover.At, part(1-y.at(float64(percent)/1000)))
		hover.Labels = append(hover.Labels, fmt.Sprintf("p%g", float64(percent)/1000))
	}
	for i, line := range lines {
		c := hoverLine{Name: table.Printable(line.Name), Series: i, Class: colorClass(line.Color)}
		for _, percent := range percentGrid {
			ns := nearestRank(line.Values, percent)
			c.add(x.at(float64(ns)), trace.FormatDuration(ns))
		}
		hover.Lines = append(hover.Lines, c)
		d.Legend = append(d.Legend, LegendEntry{colorClass(line.Color), fmt.Sprintf("%s (%d)", c.Name, len(line.Values)), i})
	}
	d.Hover = hover
	if slices.ContainsFunc(lines, func(l Distribution) bool { return l.Values[0] <= 0 }) {
		d.Notes = []string{"durations of 0 ns are drawn at the left edge"}
	}
	return d, nil
}

// followsRange reports whether the script can redraw the curves for a range of time.
func (p *Percentiles) followsRange() bool {
	return slices.ContainsFunc(p.Lines, func(d Distribution) bool { return d.Packed != "" })
}

func (p *Percentiles) svg(lines []Distribution, width float64) template.HTML {
	height := min(400, 0.8*width)
	f := frame{left: 52, top: 10, width: width - 72, height: height - 60}
	x, y := p.axis(lines, width), percentileScale{}
	s := newSVG(width, height, "Percentiles of durations, one curve for each row of the legend; the table below has the numbers")
	f.vertical(s, x, true)
	f.horizontal(s, y)
	s.label(f.right(), height-5, "end dim", "duration (log axis)")
	s.view(f)
	in := f.inside()
	for i, line := range lines {
		var path curvePath
		for _, percent := range percentGrid {
			path.to(in.x(x.at(float64(nearestRank(line.Values, percent)))), in.y(y.at(float64(percent)/1000)))
		}
		s.curve(path, line.Color, i, false)
	}
	s.close("svg")
	return s.finish()
}

// percentileNumbers returns the common percentiles as a table.
func percentileNumbers(lines []Distribution) *Numbers {
	percents := []int{50, 90, 95, 99}
	n := &Numbers{Head: []string{"", "number", "p50", "p90", "p95", "p99", "longest"}}
	for _, line := range lines {
		row := []string{line.Name, strconv.Itoa(len(line.Values))}
		for _, p := range percents {
			row = append(row, trace.FormatDuration(nearestRank(line.Values, 1000*p)))
		}
		n.add(append(row, trace.FormatDuration(line.Values[len(line.Values)-1]))...)
	}
	return n
}

// axis returns the scale of durations, from p1, where the curves begin, to their end at p99.9. Curves that follow a
// range of time need it to reach the longest duration, because the p99 of a range may exceed that of the whole run.
func (p *Percentiles) axis(lines []Distribution, width float64) logarithmic {
	last := percentGrid[len(percentGrid)-1]
	if p.followsRange() {
		last = 100_000
	}
	least, most := int64(0), int64(1)
	for _, line := range lines {
		first := slices.IndexFunc(line.Values, func(ns int64) bool { return ns > 0 })
		if first < 0 {
			continue
		}
		if ns := max(line.Values[first], nearestRank(line.Values, percentGrid[0])); least == 0 || ns < least {
			least = ns
		}
		most = max(most, nearestRank(line.Values, last))
	}
	return newLogarithmic(float64(least), float64(most), table.Duration, int(width/80))
}

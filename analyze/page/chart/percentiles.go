package chart

import (
	"fmt"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/trace"
)

// Percentiles are distributions of durations as curves: how many percent of the
// values last no longer than what stands on the axis below.
type Percentiles struct {
	Lines []Distribution
}

// A Distribution is the values of one line, in ns.
type Distribution struct {
	Name   string
	Values []int64 // sorted, at least one
	Color  int
}

// percentGrid are the percentiles, in thousandths of a percent, at which curves have
// points: nearest rank is computed in integers.
var percentGrid = func() []int {
	var grid []int
	for p := leastPercentile * 1000; p < 99_000; p += 1000 {
		grid = append(grid, p)
	}
	for p := 99_000; p <= 99_900; p += 100 {
		grid = append(grid, p)
	}
	return grid
}()

// nearestRank returns a percentile, in thousandths of a percent, of sorted values.
func nearestRank(sorted []int64, thousandths int) int64 {
	const all = 100_000
	return sorted[max(1, (thousandths*len(sorted)+all-1)/all)-1]
}

func (p *Percentiles) Draw() (Drawing, error) {
	const height = 380
	f := frame{left: 58, top: 10, width: drawingWidth - 78, height: height - 40}
	lines := slices.DeleteFunc(slices.Clone(p.Lines), func(d Distribution) bool { return len(d.Values) == 0 })
	x := p.axis(lines)
	y := percentileScale{}
	s := newSVG(drawingWidth, height, "Percentiles of durations, one curve for each row of the legend")
	f.vertical(s, x, true)
	f.horizontal(s, y)
	hover := hoverLines{Axis: "y", Panels: []hoverPanel{{From: round1(f.top), To: round1(f.bottom()), Left: f.left, Right: f.right()}}}
	for _, percent := range percentGrid {
		hover.At = append(hover.At, round1(f.y(y.at(float64(percent)/1000))))
		hover.Labels = append(hover.Labels, fmt.Sprintf("p%g", float64(percent)/1000))
	}
	d := Drawing{}
	for i, line := range lines {
		c := hoverLine{Name: table.Printable(line.Name), Series: i, Class: colorClass(line.Color)}
		var path curvePath
		for k, percent := range percentGrid {
			ns := nearestRank(line.Values, percent)
			at := f.x(x.at(float64(ns)))
			path.to(at, hover.At[k])
			c.add(at, trace.FormatDuration(ns))
		}
		s.curve(path, line.Color, i, false)
		hover.Lines = append(hover.Lines, c)
		d.Legend = append(d.Legend, LegendEntry{colorClass(line.Color), fmt.Sprintf("%s (%d)", c.Name, len(line.Values)), i})
	}
	d.Markup, d.Hover = s.finish(), hover
	if slices.ContainsFunc(lines, func(l Distribution) bool { return l.Values[0] <= 0 }) {
		d.Notes = []string{"durations of 0 ns are drawn at the left edge"}
	}
	return d, nil
}

// axis returns the scale of the durations: over what the curves show, which is nothing
// below p1.
func (p *Percentiles) axis(lines []Distribution) scale {
	least, most := int64(0), int64(1)
	for _, line := range lines {
		first := slices.IndexFunc(line.Values, func(ns int64) bool { return ns > 0 })
		if first < 0 {
			continue
		}
		if ns := max(line.Values[first], nearestRank(line.Values, percentGrid[0])); least == 0 || ns < least {
			least = ns
		}
		most = max(most, nearestRank(line.Values, percentGrid[len(percentGrid)-1]))
	}
	return newLogarithmic(float64(least), float64(most), table.Duration, 12)
}

package chart

import (
	"fmt"
	"html/template"
	"maps"
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/trace"
)

// A TimeHeat is a heat map over time: stacked groups of rows, with each row divided into equal parts of its group's
// time.
type TimeHeat struct {
	From, To trace.Time
	Groups   []HeatGroup
	Steps    []float64 // five color thresholds, ascending
	Unit     table.Unit
	What     string // name of the value: "late"
}

// A HeatGroup has rows to compare with each other.
type HeatGroup struct {
	Name     string
	From, To trace.Time // of its cells
	Rows     []HeatRow
}

// A HeatRow has values over time; NaN if unknown.
type HeatRow struct {
	Name   string
	Values []float64
	Texts  []string // under the pointer
}

// Sizes of rows, in pixels.
const (
	heatRow  = 19
	heatHead = 24
)

func (h *TimeHeat) Draw() (Drawing, error) {
	d := Drawing{Markup: twice(h.svg), Wide: true, Notes: []string{dayNote(h.From, h.To)}, Legend: h.legend(), Numbers: h.numbers()}
	span := float64(max(1, h.To-h.From))
	var hover hoverHeat
	for _, g := range h.Groups {
		group := hoverHeatGroup{From: part(float64(g.From-h.From) / span), To: part(float64(g.To-h.From) / span)}
		for _, r := range g.Rows {
			group.Rows = append(group.Rows, table.Printable(r.Name))
			group.Texts = append(group.Texts, table.PrintableAll(r.Texts))
		}
		hover.Heat = append(hover.Heat, group)
	}
	d.Hover = hover
	return d, nil
}

// hoverHeat is the data of cells for the script. Bounds of groups are fractions of the whole axis.
type hoverHeat struct {
	Heat []hoverHeatGroup `json:"heat"`
}

type hoverHeatGroup struct {
	From  float64    `json:"from"`
	To    float64    `json:"to"`
	Rows  []string   `json:"rows"`
	Texts [][]string `json:"texts"` // by row and cell
}

func (h *TimeHeat) svg(width float64) template.HTML {
	var names []string
	height := 8.0
	for _, g := range h.Groups {
		height += heatHead + heatRow*float64(len(g.Rows))
		for _, r := range g.Rows {
			names = append(names, r.Name)
		}
	}
	names = table.Shorten(names, lettersIn(width))
	left := float64(longestName(names))*letter + 16
	x := clock{h.From, h.To, frame{width: width - left - 16}.ticksIn(98)}
	s := newTimeSVG(width, height+26, "Heat map over time: arrow keys move from cell to cell; the table below has the numbers", x)
	y := 4.0
	for i, g := range h.Groups {
		f := frame{left, y + heatHead, width - left - 16, heatRow * float64(len(g.Rows))}
		s.heading(frame{left: 4, top: f.top, width: width - 8}, g.Name, "")
		for k, r := range g.Rows {
			s.name(left-8, f.top+heatRow*(float64(k)+0.7), names[k], r.Name)
		}
		names = names[len(g.Rows):]
		h.drawCells(s, &g, f, x)
		f.vertical(s, x, i == len(h.Groups)-1)
		y = f.bottom()
	}
	return s.finish()
}

// drawCells draws the cells of a group: one path for each color of a row.
func (h *TimeHeat) drawCells(s *svg, g *HeatGroup, f frame, x clock) {
	s.view(f)
	in := f.inside()
	from, to := in.x(x.position(g.From)), in.x(x.position(g.To))
	for k, r := range g.Rows {
		paths := map[string]string{}
		wide := (to - from) / float64(max(1, len(r.Values)))
		for i := 0; i < len(r.Values); {
			n, class := 1, h.class(r.Values[i])
			for i+n < len(r.Values) && h.class(r.Values[i+n]) == class {
				n++
			}
			a := from + float64(i)*wide
			paths[class] += "M" + px(a) + " " + px(heatRow*float64(k)+1) + "h" + px(max(0.5, float64(n)*wide)) + "v" + px(heatRow-2) + "H" + px(a) + "z"
			i += n
		}
		delete(paths, "")
		for _, class := range slices.Sorted(maps.Keys(paths)) {
			s.empty("path", "class", "area "+class, "d", paths[class])
		}
	}
	s.close("svg")
}

// legend explains the colors.
func (h *TimeHeat) legend() []LegendEntry {
	var list []LegendEntry
	for i := len(h.Steps) - 1; i >= 0; i -= 2 {
		list = append(list, LegendEntry{fmt.Sprintf("l%d", i+1), "≤ −" + InUnit(h.Unit, h.Steps[i]), -1})
	}
	list = append(list, LegendEntry{"h0", "about 0", -1})
	for i, step := range h.Steps {
		list = append(list, LegendEntry{fmt.Sprintf("h%d", i+1), "≥ " + InUnit(h.Unit, step), -1})
	}
	return list
}

// numbers returns the mean and the largest value of each row, and the time of the largest.
func (h *TimeHeat) numbers() *Numbers {
	n := &Numbers{Head: []string{"", "group", "mean " + h.What, "most " + h.What, "at"}}
	for _, g := range h.Groups {
		for _, r := range g.Rows {
			sum, count, most := 0.0, 0, -1
			for i, v := range r.Values {
				if math.IsNaN(v) {
					continue
				}
				sum += v
				count++
				if most < 0 || v > r.Values[most] {
					most = i
				}
			}
			if most < 0 {
				continue
			}
			step := int64(g.To-g.From) / int64(len(r.Values))
			n.add(r.Name, g.Name, InUnit(h.Unit, sum/float64(count)), InUnit(h.Unit, r.Values[most]), timeOfDay(g.From+trace.Time(step*int64(most)), step))
		}
	}
	return n
}

// class returns the color of a value; "" for NaN.
func (h *TimeHeat) class(v float64) string {
	if math.IsNaN(v) {
		return ""
	}
	return stepClass(h.Steps, math.Abs(v), v < 0)
}

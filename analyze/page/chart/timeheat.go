package chart

import (
	"fmt"
	"html/template"
	"math"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/trace"
)

// A TimeHeat is a table of colors over time: groups of rows below each other, each row
// divided into equal parts of its group's time.
type TimeHeat struct {
	From, To trace.Time
	Groups   []HeatGroup
	Steps    []float64 // values at which the color becomes another one, ascending; five
	Unit     table.Unit
	What     string // the value: "late"
}

// A HeatGroup is rows that are compared with each other.
type HeatGroup struct {
	Name     string
	From, To trace.Time // of its cells
	Rows     []HeatRow
}

// A HeatRow is values over time; NaN is unknown.
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

// class returns the color of a value: h1 to h5 from each step on, and l1 to l5 below zero.
func (h *TimeHeat) class(v float64) string {
	side := "h"
	if v < 0 {
		side = "l"
	}
	depth := 0
	for depth < len(h.Steps) && math.Abs(v) >= h.Steps[depth] {
		depth++
	}
	if depth == 0 {
		return "h0"
	}
	return fmt.Sprintf("%s%d", side, depth)
}

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

// hoverHeat is the data of cells that the script shows. Bounds of groups are parts of the
// whole axis.
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

// drawCells draws the cells of a group: one path for those of a row that have one color.
func (h *TimeHeat) drawCells(s *svg, g *HeatGroup, f frame, x clock) {
	s.view(f)
	in := f.inside()
	from, to := in.x(x.position(g.From)), in.x(x.position(g.To))
	for k, r := range g.Rows {
		paths := map[string]*strings.Builder{}
		var classes []string
		wide := (to - from) / float64(max(1, len(r.Values)))
		for i := 0; i < len(r.Values); {
			n := 1
			if math.IsNaN(r.Values[i]) {
				i++
				continue
			}
			class := h.class(r.Values[i])
			for i+n < len(r.Values) && !math.IsNaN(r.Values[i+n]) && h.class(r.Values[i+n]) == class {
				n++
			}
			if paths[class] == nil {
				paths[class] = new(strings.Builder)
				classes = append(classes, class)
			}
			a := from + float64(i)*wide
			fmt.Fprintf(paths[class], "M%s %sh%sv%sH%sz", px(a), px(heatRow*float64(k)+1), px(max(0.5, float64(n)*wide)), px(heatRow-2), px(a))
			i += n
		}
		slices.Sort(classes)
		for _, class := range classes {
			s.empty("path", "class", "area "+class, "d", paths[class].String())
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

// numbers sums up each row: its mean, and where it is largest.
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

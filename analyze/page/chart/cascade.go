package chart

import (
	"html/template"
	"math"

	"github.com/sgtrace/sgtrace/analyze/table"
)

// A Cascade leads from one total to another by what was added and what went: each bar
// begins where the one above it ends.
type Cascade struct {
	From, To CascadeRow // totals
	Rows     []CascadeRow
	Unit     table.Unit
}

// A CascadeRow is a total, or a difference.
type CascadeRow struct {
	Name  string
	Value float64
}

// Colors of cascades.
const (
	totalColor = Hues + 2
	moreColor  = 1
	lessColor  = 0
)

func (c *Cascade) Draw() (Drawing, error) {
	n := &Numbers{Head: []string{"", "time"}}
	n.add(c.From.Name, InUnit(c.Unit, c.From.Value))
	for _, r := range c.Rows {
		n.add(r.Name, c.signed(r.Value))
	}
	n.add(c.To.Name, InUnit(c.Unit, c.To.Value))
	return Drawing{Markup: twice(c.svg), Numbers: n, Legend: []LegendEntry{
		{colorClass(moreColor), "more", -1}, {colorClass(lessColor), "less", -1}, {colorClass(totalColor), "total", -1},
	}}, nil
}

// signed prints a difference with its sign.
func (c *Cascade) signed(v float64) string {
	if v > 0 {
		return "+" + InUnit(c.Unit, v)
	}
	return InUnit(c.Unit, v)
}

// bounds returns the least and the most that any bar reaches.
func (c *Cascade) bounds() (least, most float64) {
	at := c.From.Value
	least, most = min(0, at, c.To.Value), max(at, c.To.Value)
	for _, r := range c.Rows {
		at += r.Value
		least, most = min(least, at), max(most, at)
	}
	return least, most
}

func (c *Cascade) svg(width float64) template.HTML {
	const high, gap = 20, 6
	rows := append(append([]CascadeRow{c.From}, c.Rows...), c.To)
	names := make([]string, len(rows))
	for i, r := range rows {
		names[i] = r.Name
	}
	short := table.Shorten(names, lettersIn(width))
	f := frame{left: float64(longestName(short))*letter + 18, top: 6, height: float64(len(rows))*(high+gap) + gap}
	f.width = width - f.left - 84
	least, most := c.bounds()
	x := linear{least, max(most, least+1), c.Unit, f.ticksIn(80)}
	s := newSVG(width, f.bottom()+24, "From one total to the other; the table below has the numbers")
	f.vertical(s, x, true)
	at := 0.0
	for i, r := range rows {
		y := f.top + gap + float64(i)*(high+gap)
		s.name(f.left-8, y+high/2+4, short[i], r.Name)
		from, to, color, text := at, at+r.Value, moreColor, c.signed(r.Value)
		switch {
		case i == 0 || i == len(rows)-1:
			from, to, color, text = 0, r.Value, totalColor, InUnit(c.Unit, r.Value)
		case r.Value < 0:
			color = lessColor
		}
		a, b := f.x(x.at(min(from, to))), f.x(x.at(max(from, to)))
		s.empty("rect", "class", "area "+colorClass(color), "x", px(a), "y", px(y), "width", px(math.Max(0.8, b-a)), "height", px(high))
		s.label(b+6, y+high/2+4, "dim", text)
		at = to
	}
	s.line("axis", f.x(x.at(0)), f.top, f.x(x.at(0)), f.bottom())
	return s.finish()
}

package chart

import (
	"html/template"
	"math"
	"strconv"

	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/internal/order"
)

// Bars are horizontal bars made of parts, such as a time divided by cause.
type Bars struct {
	Parts []Part
	Rows  []Bar
	// Unit is Duration or Share; a Share axis ends at 100 %.
	Unit table.Unit
}

// A Part is what one color of the bars stands for.
type Part struct {
	Name  string
	Color int
}

// Entry returns the legend entry of the part in figures whose legends don't switch parts off.
func (p Part) Entry() LegendEntry {
	return LegendEntry{colorClass(p.Color), table.Printable(p.Name), -1}
}

// A Bar has one value for each part. Negative values extend to the left of zero.
type Bar struct {
	Name   string
	Values []float64
	// Texts are shown under the pointer; "" shows only the value.
	Texts []string
	Total string // printed after the bar
}

func (b *Bars) Draw() (Drawing, error) {
	d := Drawing{Markup: twice(b.svg), Numbers: b.numbers()}
	for i, p := range b.Parts {
		d.Legend = append(d.Legend, LegendEntry{colorClass(p.Color), table.Printable(p.Name), i})
	}
	return d, nil
}

func (b *Bars) svg(width float64) template.HTML {
	const high, gap = 22, 8
	var names []string
	totals := 0
	least, most := 0.0, 0.0
	for _, r := range b.Rows {
		names = append(names, r.Name)
		totals = max(totals, len([]rune(r.Total)))
		below, above := r.extent()
		least, most = min(least, below), max(most, above)
	}
	names = table.Shorten(names, lettersIn(width))
	f := frame{left: float64(longestName(names))*letter + 18, top: 6, height: float64(len(b.Rows))*(high+gap) + gap}
	f.width = width - f.left - float64(totals)*digit - 24
	var x scale = linear{0, 1, table.Share, f.ticksIn(60)}
	if b.Unit != table.Share {
		x = linear{least, max(most, least+1), b.Unit, f.ticksIn(80)}
	}
	s := newSVG(width, f.bottom()+24, "Stacked bars; the table below has the numbers")
	f.vertical(s, x, true)
	for i, r := range b.Rows {
		y := f.top + gap + float64(i)*(high+gap)
		s.name(f.left-8, y+high/2+4, names[i], r.Name)
		end := b.drawBar(s, &r, f, x, y, high)
		s.label(end+6, y+high/2+4, "dim", r.Total)
	}
	s.line("axis", f.x(x.at(0)), f.top, f.x(x.at(0)), f.bottom())
	return s.finish()
}

// numbersOf returns a table without rows, with a column for each part and one for their total.
func numbersOf(parts []Part) *Numbers {
	n := &Numbers{Head: []string{""}}
	for _, p := range parts {
		n.Head = append(n.Head, p.Name)
	}
	n.Head = append(n.Head, "all")
	return n
}

// numbers returns a row for each bar, with a column for each part.
func (b *Bars) numbers() *Numbers {
	n := numbersOf(b.Parts)
	for i := range b.Rows {
		r := &b.Rows[i]
		row := []string{r.Name}
		for k := range b.Parts {
			row = append(row, b.text(r, k))
		}
		n.add(append(row, r.Total)...)
	}
	return n
}

// text returns the text of part k of a bar.
func (b *Bars) text(r *Bar, k int) string {
	if k < len(r.Texts) && r.Texts[k] != "" {
		return r.Texts[k]
	}
	return InUnit(b.Unit, r.Values[k])
}

// drawBar draws a bar and returns the x coordinate of its right end.
func (b *Bars) drawBar(s *svg, r *Bar, f frame, x scale, y, high float64) float64 {
	up, down := 0.0, 0.0
	for k, v := range r.Values {
		from, to := up, up+v
		if v < 0 {
			from, to = down+v, down
			down = from
		} else {
			up = to
		}
		if v == 0 {
			continue
		}
		s.open("g", "class", "piece "+colorClass(b.Parts[k].Color), "data-s", strconv.Itoa(k))
		s.title(r.Name + " · " + b.Parts[k].Name + ": " + b.text(r, k))
		s.empty("rect", "x", px(f.x(x.at(from))), "y", px(y), "width", px(max(0.5, f.x(x.at(to))-f.x(x.at(from)))), "height", px(high))
		s.close("g")
	}
	return f.x(x.at(up))
}

// extent returns the sums of the negative and the positive values.
func (r *Bar) extent() (below, above float64) {
	for _, v := range r.Values {
		below, above = below+min(v, 0), above+max(v, 0)
	}
	return below, above
}

// A Cascade explains the difference between two totals: each bar begins where the one above it ends.
type Cascade struct {
	From, To CascadeRow // totals
	Rows     []CascadeRow
	Unit     table.Unit
}

// A CascadeRow is a total or a difference.
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

// signed formats a difference with its sign.
func (c *Cascade) signed(v float64) string {
	if v > 0 {
		return "+" + InUnit(c.Unit, v)
	}
	return InUnit(c.Unit, v)
}

// bounds returns the least and largest values that any bar reaches.
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
	names := order.Each(rows, func(r CascadeRow) string { return r.Name })
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

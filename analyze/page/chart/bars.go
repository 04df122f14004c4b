package chart

import (
	"strconv"

	"github.com/sgtrace/sgtrace/analyze/table"
)

// Bars are horizontal bars made of parts, such as a time divided by cause.
type Bars struct {
	Parts []Part
	Rows  []Bar
	// Unit of the values: Duration, or Share, whose axis ends at all of it.
	Unit table.Unit
}

// A Part is what a piece of all bars stands for.
type Part struct {
	Name  string
	Color int
}

// A Bar is one value for each part. What is below zero is drawn to the left of it.
type Bar struct {
	Name   string
	Values []float64
	// Texts are shown under the pointer; "" is the value alone.
	Texts []string
	Total string // printed behind the bar
}

func (b *Bars) Draw() (Drawing, error) {
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
	names = table.Shorten(names, mostLabel)
	f := frame{left: float64(longestName(names))*letter + 18, top: 6, height: float64(len(b.Rows))*(high+gap) + gap}
	f.width = drawingWidth - f.left - float64(totals)*digit - 24
	var x scale = linear{0, 1, table.Share, 5}
	if b.Unit != table.Share {
		x = linear{least, max(most, least+1), b.Unit, 6}
	}
	s := newSVG(drawingWidth, f.bottom()+24, "Stacked bars")
	f.vertical(s, x, true)
	for i, r := range b.Rows {
		y := f.top + gap + float64(i)*(high+gap)
		s.name(f.left-8, y+high/2+4, names[i], r.Name)
		end := b.drawBar(s, &r, f, x, y, high)
		s.label(end+6, y+high/2+4, "dim", r.Total)
	}
	s.line("axis", f.x(x.at(0)), f.top, f.x(x.at(0)), f.bottom())
	d := Drawing{Markup: s.finish()}
	for i, p := range b.Parts {
		d.Legend = append(d.Legend, LegendEntry{colorClass(p.Color), table.Printable(p.Name), i})
	}
	return d, nil
}

// drawBar draws a bar and returns the pixel where it ends.
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
		text := InUnit(b.Unit, v)
		if k < len(r.Texts) && r.Texts[k] != "" {
			text = r.Texts[k]
		}
		s.open("g", "class", "piece "+colorClass(b.Parts[k].Color), "data-s", strconv.Itoa(k))
		s.title(r.Name + " · " + b.Parts[k].Name + ": " + text)
		s.empty("rect", "x", px(f.x(x.at(from))), "y", px(y), "width", px(max(0.5, f.x(x.at(to))-f.x(x.at(from)))), "height", px(high))
		s.close("g")
	}
	return f.x(x.at(up))
}

// extent returns the sums of what is below and of what is above zero.
func (r *Bar) extent() (below, above float64) {
	for _, v := range r.Values {
		below, above = below+min(v, 0), above+max(v, 0)
	}
	return below, above
}

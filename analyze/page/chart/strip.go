package chart

import (
	"html/template"
	"strconv"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/trace"
)

// A Strip has a row for each of several similar sequences, such as the layers of a model, each timed from its own
// start. The script zooms it to a range that the reader selects.
type Strip struct {
	Parts []Part
	Rows  []StripRow
}

// A StripRow has the pieces of one sequence, in order.
type StripRow struct {
	Name   string
	Pieces []StripPiece
}

// A StripPiece is one piece of a row, in ns since the row's start.
type StripPiece struct {
	Part     int
	From, To int64
	Text     string
}

func (c *Strip) Draw() (Drawing, error) {
	d := Drawing{Markup: twice(c.svg), Wide: true, Numbers: c.numbers(), Hover: c.hover()}
	for i, p := range c.Parts {
		d.Legend = append(d.Legend, LegendEntry{colorClass(p.Color), table.Printable(p.Name), i})
	}
	return d, nil
}

// hoverStrip is the data of pieces for the script.
type hoverStrip struct {
	Strip []string `json:"strip"` // names of rows
	Texts []string `json:"texts"` // of pieces
	// Pieces has five packed numbers each: the increase of the row, the part, the start and the length in ns, and the
	// index of the text.
	Pieces string `json:"pieces"`
}

func (c *Strip) hover() hoverStrip {
	h, row := hoverStrip{Texts: []string{}}, 0
	var list []int64
	var texts order.Groups[string, struct{}]
	for i, r := range c.Rows {
		h.Strip = append(h.Strip, table.Printable(r.Name))
		for _, p := range r.Pieces {
			list = append(list, int64(i-row), int64(p.Part), p.From, p.To-p.From, int64(texts.At(p.Text)))
			row = i
		}
	}
	h.Texts, h.Pieces = append(h.Texts, table.PrintableAll(texts.Keys)...), Pack(list)
	return h
}

// span returns the length of the longest row, in ns.
func (c *Strip) span() int64 {
	most := int64(1)
	for _, r := range c.Rows {
		for _, p := range r.Pieces {
			most = max(most, p.To)
		}
	}
	return most
}

func (c *Strip) svg(width float64) template.HTML {
	const high = 11
	names := order.Each(c.Rows, func(r StripRow) string { return r.Name })
	names = table.Shorten(names, lettersIn(width))
	f := frame{left: float64(longestName(names))*letter + 18, top: 8, height: float64(len(c.Rows)) * high}
	f.width = width - f.left - 24
	x := linear{0, float64(c.span()), table.Duration, f.ticksIn(80)}
	s := &svg{width: width}
	s.open("svg", "viewBox", "0 0 "+px(width)+" "+px(f.bottom()+24), "role", "img", "aria-label", "A row for each layer: drag, or press + and -, to zoom; the table below has the numbers", "tabindex", "0",
		"data-span", Milliseconds(trace.Time(c.span())))
	f.vertical(s, x, true)
	const every = 2 // one in this many rows has room for its name
	for i := 0; i < len(c.Rows); i += every {
		s.name(f.left-8, f.top+(float64(i)+0.9)*high, names[i], c.Rows[i].Name)
	}
	s.view(f)
	in := f.inside()
	for k, p := range c.Parts {
		s.open("g", "class", "strip "+colorClass(p.Color), "data-s", strconv.Itoa(k))
		var path strings.Builder
		for i, r := range c.Rows {
			for _, piece := range r.Pieces {
				if piece.Part == k {
					from, to := in.x(x.at(float64(piece.From))), in.x(x.at(float64(piece.To)))
					path.WriteString("M" + px(from) + " " + px(float64(i)*high+1) + "h" + px(max(0.2, to-from)) + "v" + px(high-2) + "H" + px(from) + "z")
				}
			}
		}
		s.empty("path", "d", path.String())
		s.close("g")
	}
	s.close("svg")
	return s.finish()
}

// numbers returns a row for each row, with the total time of each part.
func (c *Strip) numbers() *Numbers {
	n := numbersOf(c.Parts)
	for _, r := range c.Rows {
		sums, all := make([]int64, len(c.Parts)), int64(0)
		for _, p := range r.Pieces {
			sums[p.Part] += p.To - p.From
			all += p.To - p.From
		}
		row := []string{r.Name}
		for _, sum := range append(sums, all) {
			row = append(row, InUnit(table.Duration, float64(sum)))
		}
		n.add(row...)
	}
	return n
}

package chart

import (
	"html/template"
	"math"
	"strconv"

	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/trace"
)

// A Heatmap is a table of colored cells.
type Heatmap struct {
	Rows, Columns []string
	Cells         [][]HeatCell // by row
	// Sequential colors go from zero to the largest value. Otherwise Value is a ratio, and the color shows how far it
	// is from 1 in either direction.
	Sequential bool
	Unit       table.Unit // of sequential values
	// Course has sequential durations over time; nil if unknown.
	Course *SumCourse
}

// A HeatCell is a cell; a Value of NaN leaves it empty.
type HeatCell struct {
	Value float64
	Text  string // under the pointer
}

// ratioSteps are the color thresholds for ratios above 1 and, inverted, below it. Noise of a few percent has no
// color.
var ratioSteps = []float64{1.03, 1.1, 1.25, 1.5, 2}

// heatClass returns the color of a ratio: h0 near 1, h5 at least 2, l5 at most 1/2.
func heatClass(ratio float64) string {
	return stepClass(ratioSteps, max(ratio, 1/ratio)*(1+1e-9), ratio < 1)
}

// stepClass returns the color for a distance from the middle: h1 to h5 from each step up, or l1 to l5 if it is below
// the middle; h0 below the first step.
func stepClass(steps []float64, far float64, below bool) string {
	n := 0
	for n < len(steps) && far >= steps[n] {
		n++
	}
	if below && n > 0 {
		return "l" + strconv.Itoa(n)
	}
	return "h" + strconv.Itoa(n)
}

// sequentialClass returns the color of a value between zero and the largest: h0 to h5.
func sequentialClass(v, most float64) string {
	if v <= 0 || most <= 0 {
		return "h0"
	}
	return "h" + strconv.Itoa(min(5, 1+int(5*v/most)))
}

// Sizes of heat maps, in pixels.
const (
	letter   = 6.7 // width of a letter in a name; names are monospaced
	cellHigh = 24
	cellLow  = 16  // height of cells without numbers
	cellMost = 110 // widest cell
	cellText = 38  // narrowest cell that has a number
	maxLabel = 48  // most letters in a name

	minColumn = 9 // least distance between vertical names
)

func (h *Heatmap) Draw() (Drawing, error) {
	return Drawing{
		Markup: twice(h.svg), Legend: h.legend(h.largest()), Numbers: h.numbers(), Wide: len(h.Columns) > 12,
		Hover: hoverCells{table.PrintableAll(h.Rows), table.PrintableAll(h.Columns), h.Course.packed()},
	}, nil
}

func (h *Heatmap) svg(width float64) template.HTML {
	rows := table.Shorten(h.Rows, lettersIn(width))
	left := float64(longestName(rows))*letter + 16
	wide := min(cellMost, (width-left-8)/float64(max(1, len(h.Columns))))
	columns := table.Shorten(ShortNames(h.Columns), lettersIn(width))
	top, upright := 26.0, float64(longestName(columns))*letter > wide-1
	if upright {
		top = float64(longestName(columns))*letter + 14
	}
	high := float64(cellHigh)
	if wide < cellText {
		high = cellLow
	}
	s := newSVG(width, top+float64(len(h.Rows))*high+6, "Heat map: arrow keys move from cell to cell")
	every := int(math.Ceil(minColumn / wide)) // only one in this many columns has room for its name
	for c := 0; c < len(h.Columns); c += every {
		h.drawColumn(s, c, columns[c], left+(float64(c)+0.5)*wide, top, upright, wide)
	}
	most := h.largest()
	for r, name := range h.Rows {
		y := top + float64(r)*high
		s.name(left-8, y+high/2+4, rows[r], name)
		for c := range h.Cells[r] {
			h.drawCell(s, r, c, left+float64(c)*wide, y, wide, high, most)
		}
	}
	return s.finish()
}

// lettersIn returns the largest number of letters in the names beside a drawing.
func lettersIn(width float64) int { return min(maxLabel, int(0.36*width/letter)) }

// numbers returns the values of the cells as a table.
func (h *Heatmap) numbers() *Numbers {
	n := &Numbers{Head: append([]string{""}, h.Columns...)}
	for r, name := range h.Rows {
		row := []string{name}
		for _, c := range h.Cells[r] {
			row = append(row, h.valueText(c.Value))
		}
		n.add(row...)
	}
	return n
}

// valueText formats a value; "-" if there is none.
func (h *Heatmap) valueText(v float64) string {
	switch {
	case math.IsNaN(v):
		return "-"
	case h.Sequential:
		return InUnit(h.Unit, v)
	}
	return ratioText(v)
}

// longestName returns the number of letters in the longest name.
func longestName(names []string) int {
	longest := 0
	for _, name := range names {
		longest = max(longest, len([]rune(name)))
	}
	return longest
}

// drawColumn writes the name of column c above top, centered at x.
func (h *Heatmap) drawColumn(s *svg, c int, name string, x, top float64, upright bool, wide float64) {
	const tight = 14 // width below which columns need small letters
	s.open("g", "class", "column")
	s.title(h.Columns[c])
	switch {
	case !upright:
		s.label(x, top-9, "mid name", name)
	case wide < tight:
		s.open("g", "transform", "translate("+px(x+3)+" "+px(top-7)+") rotate(-90)")
		s.label(0, 0, "name small", name)
		s.close("g")
	default:
		s.open("g", "transform", "translate("+px(x+4)+" "+px(top-7)+") rotate(-90)")
		s.label(0, 0, "name", name)
		s.close("g")
	}
	s.close("g")
}

func (h *Heatmap) drawCell(s *svg, r, c int, x, y, wide, high, most float64) {
	cell := h.Cells[r][c]
	class, text := "none", ""
	switch {
	case math.IsNaN(cell.Value):
	case h.Sequential:
		class, text = sequentialClass(cell.Value, most), InUnit(h.Unit, cell.Value)
	default:
		class, text = heatClass(cell.Value), ratioText(cell.Value)
	}
	s.open("g", "class", "cell "+class, "data-r", strconv.Itoa(r), "data-c", strconv.Itoa(c))
	s.title(cell.Text)
	gap := min(1, wide/4) // of narrow cells, too, most of the width is color
	s.empty("rect", "x", px(x+gap/2), "y", px(y+0.5), "width", px(wide-gap), "height", px(high-1))
	if text != "" && (wide >= cellText && float64(len(text))*letter < wide-2) {
		s.label(x+wide/2, y+high/2+4, "mid", text)
	}
	s.close("g")
}

// ratioText formats a ratio, with hundredths below 10.
func ratioText(ratio float64) string {
	switch {
	case ratio >= 100:
		return "> 99"
	case ratio >= 10:
		return strconv.FormatFloat(ratio, 'f', 1, 64)
	}
	return strconv.FormatFloat(ratio, 'f', 2, 64)
}

// largest returns the largest value.
func (h *Heatmap) largest() float64 {
	most := 0.0
	for _, row := range h.Cells {
		for _, c := range row {
			if !math.IsNaN(c.Value) {
				most = max(most, c.Value)
			}
		}
	}
	return most
}

// legend explains the colors.
func (h *Heatmap) legend(most float64) []LegendEntry {
	if h.Sequential {
		var list []LegendEntry
		for i := 1; i <= 5; i++ {
			list = append(list, LegendEntry{"h" + strconv.Itoa(i), "from " + InUnit(h.Unit, most*float64(i-1)/5), -1})
		}
		return list
	}
	list := []LegendEntry{}
	for i := len(ratioSteps); i > 0; i-- {
		list = append(list, LegendEntry{"l" + strconv.Itoa(i), "≤ " + strconv.FormatFloat(1/ratioSteps[i-1], 'f', 2, 64), -1})
	}
	list = append(list, LegendEntry{"h0", "about 1", -1})
	for i, step := range ratioSteps {
		list = append(list, LegendEntry{"h" + strconv.Itoa(i+1), "≥ " + strconv.FormatFloat(step, 'f', 2, 64), -1})
	}
	return list
}

// hoverCells are the names that the script shows with the text of a cell.
type hoverCells struct {
	Rows    []string `json:"rows"`
	Columns []string `json:"columns"`
	// Course is what the script sums up for a range of time; nil if unknown.
	Course *packedCourse `json:"course,omitempty"`
}

// A SumCourse divides the durations of a heat map into equal parts of the time. The script sums up the parts that
// overlap a range.
type SumCourse struct {
	From, To trace.Time
	Counts   []int  // number of events in each part
	Of       string // name of an event: "collective"
	Text     string // text of a cell before its duration
	Sums     []SumIn
}

// A SumIn is what one part of the time adds to a cell, in ns. They are sorted by part.
type SumIn struct {
	Part, Row, Column int
	Value             int64
}

// packedCourse is a SumCourse in the format for the script. Times are in ms since 1970.
type packedCourse struct {
	From   float64 `json:"from"`
	To     float64 `json:"to"`
	Of     string  `json:"of"`
	Text   string  `json:"text"`
	Counts string  `json:"counts"` // packed
	// Sums has four packed numbers each: the increase of the part, the row, the column, and the value.
	Sums string `json:"sums"`
}

func (c *SumCourse) packed() *packedCourse {
	if c == nil {
		return nil
	}
	var counts, sums []int64
	for _, n := range c.Counts {
		counts = append(counts, int64(n))
	}
	part := 0
	for _, s := range c.Sums {
		sums = append(sums, int64(s.Part-part), int64(s.Row), int64(s.Column), s.Value)
		part = s.Part
	}
	return &packedCourse{float64(c.From) / 1e6, float64(c.To) / 1e6, c.Of, c.Text, Pack(counts), Pack(sums)}
}

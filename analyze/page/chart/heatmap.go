package chart

import (
	"html/template"
	"math"
	"strconv"

	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/trace"
)

// A Heatmap is a table of colors.
type Heatmap struct {
	Rows, Columns []string
	Cells         [][]HeatCell // by row
	// Sequential colors go from nothing to the largest value; otherwise Value is a
	// ratio, and colors tell how far it is from 1 in either direction.
	Sequential bool
	Unit       table.Unit // of the values of sequential ones
	// Course is how sequential durations add up as time goes on; nil is unknown.
	Course *SumCourse
}

// A HeatCell is a cell; with a value of NaN it is empty.
type HeatCell struct {
	Value float64
	Text  string // under the pointer
}

// ratioSteps are the ratios at which the color becomes another one, upward of 1 and,
// inverted, downward. Noise of a few percent has none.
var ratioSteps = []float64{1.03, 1.1, 1.25, 1.5, 2}

// heatClass returns the color of a ratio: h0 is 1, h5 at least twice, l5 at most half.
func heatClass(ratio float64) string {
	return stepClass(ratioSteps, max(ratio, 1/ratio)*(1+1e-9), ratio < 1)
}

// stepClass returns the color of what is so far from the middle: h1 to h5 from each step on, or l1 to l5 below it.
// h0 is nearer than the first step.
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

// sequentialClass returns the color of a value between nothing and the largest: h0 to h5.
func sequentialClass(v, most float64) string {
	if v <= 0 || most <= 0 {
		return "h0"
	}
	return "h" + strconv.Itoa(min(5, 1+int(5*v/most)))
}

// Sizes of heat maps, in pixels.
const (
	letter   = 6.7 // width of one of a name; names are monospaced
	cellHigh = 24
	cellLow  = 16  // height of cells without numbers
	cellMost = 110 // widest cell
	cellText = 38  // narrowest cell that has a number
	maxLabel = 48  // letters of a name

	minColumn = 9 // distance of names that stand upright
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
	every := int(math.Ceil(minColumn / wide)) // of which columns there is room for names
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

// lettersIn returns how many letters the names beside a drawing have at most.
func lettersIn(width float64) int { return min(maxLabel, int(0.36*width/letter)) }

// numbers returns the values of the cells.
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

// valueText prints a value; "-" is none.
func (h *Heatmap) valueText(v float64) string {
	switch {
	case math.IsNaN(v):
		return "-"
	case h.Sequential:
		return InUnit(h.Unit, v)
	}
	return ratioText(v)
}

// longestName returns how many letters the longest name has.
func longestName(names []string) int {
	longest := 0
	for _, name := range names {
		longest = max(longest, len([]rune(name)))
	}
	return longest
}

// drawColumn writes the name of column c, centered at x above top.
func (h *Heatmap) drawColumn(s *svg, c int, name string, x, top float64, upright bool, wide float64) {
	const tight = 14 // width of columns whose names need small letters
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
	s.empty("rect", "x", px(x+0.5), "y", px(y+0.5), "width", px(wide-1), "height", px(high-1))
	if text != "" && (wide >= cellText && float64(len(text))*letter < wide-2) {
		s.label(x+wide/2, y+high/2+4, "mid", text)
	}
	s.close("g")
}

// ratioText prints a ratio with as many decimals as tell a hundredth where it is near
// 1.
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
	// Course is summed up by the script for a range of time; nil is unknown.
	Course *packedCourse `json:"course,omitempty"`
}

// A SumCourse is how the durations of a heat map add up in equal parts of a time. The script
// sums up those that overlap a range.
type SumCourse struct {
	From, To trace.Time
	Counts   []int  // in each part: what the sums are of
	Of       string // what is counted: "collective"
	Text     string // of a cell, before its duration
	Sums     []SumIn
}

// A SumIn is a part of the sum of a cell, in ns. They are in the order of parts.
type SumIn struct {
	Part, Row, Column int
	Value             int64
}

// packedCourse is a SumCourse for the script. Times are ms since 1970.
type packedCourse struct {
	From   float64 `json:"from"`
	To     float64 `json:"to"`
	Of     string  `json:"of"`
	Text   string  `json:"text"`
	Counts string  `json:"counts"` // packed
	// Sums are packed: how many parts further, row, column, and value of each.
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

package load

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/olekukonko/tablewriter/pkg/twwidth"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
)

// A Drawing is everything that is drawn over some buckets.
type Drawing struct {
	Buckets int
	// Time formats when a bucket begins; Time(Buckets) is the end of the last one.
	Time   func(bucket int) string
	Marks  []int // buckets to mark, numbered from 1; those outside of the buckets are left out
	Blocks []Block
	Notes  []string // printed below
}

// A Block is what is drawn of a place.
type Block struct {
	Title  string
	Curves []Curve
}

// A Curve is a number over the buckets; NaN is unknown.
type Curve struct {
	Name   string
	Values []float64
	Unit   string
	Size   float64 // by which values are divided to be in Unit
	Peaks  bool    // when several buckets share a column, the highest counts, not the mean
}

// Add adds a block. It drops curves that are zero everywhere.
func (d *Drawing) Add(title string, curves []Curve) {
	d.Blocks = append(d.Blocks, Block{title, slices.DeleteFunc(curves, func(c Curve) bool { return !c.any() })})
}

// any reports whether the curve has a value above zero.
func (c *Curve) any() bool {
	return slices.ContainsFunc(c.Values, func(v float64) bool { return v > 0 })
}

// Write draws everything.
func (d *Drawing) Write(out io.Writer, style table.Style) error {
	p := &curvePrinter{Drawing: d, out: bufio.NewWriter(out), style: style}
	p.measure()
	if d.Buckets > 0 {
		p.row("", "", p.axis(), "least", "most")
		if marks := p.marks(); marks != "" {
			p.row("changes", "", marks, "", "")
		}
	}
	for i := range d.Blocks {
		p.block(&d.Blocks[i])
	}
	table.WriteNotes(p.out, style, d.Notes)
	return p.out.Flush()
}

type curvePrinter struct {
	*Drawing
	out   *bufio.Writer
	style table.Style
	name  int // width of the names
	plot  int // columns of the curves
}

// Widths of the columns next to the curves.
const (
	unitWidth  = 8
	valueWidth = 7
)

// measure divides the width among names and curves. Each bucket gets as many columns as fit, or several
// buckets share one.
func (p *curvePrinter) measure() {
	p.name = len("changes")
	for _, b := range p.Blocks {
		for _, c := range b.Curves {
			p.name = max(p.name, len(c.Name))
		}
	}
	width := p.style.Width
	if width <= 0 {
		width = table.DefaultWidth
	}
	p.plot = max(table.MinBar, width-2-p.name-1-unitWidth-1-2*(valueWidth+1))
	if n := p.Buckets; n > 0 && n <= p.plot {
		p.plot = p.plot / n * n
	}
}

// column returns the first column of bucket b.
func (p *curvePrinter) column(b int) int { return b * p.plot / max(1, p.Buckets) }

func (p *curvePrinter) printf(format string, args ...any) { fmt.Fprintf(p.out, format, args...) }

// row prints the name of a curve, the curve, and its lowest and highest value.
func (p *curvePrinter) row(name, unit, drawn, least, most string) {
	pad := strings.Repeat(" ", max(0, p.plot-twwidth.Width(drawn)))
	line := fmt.Sprintf("  %-*s %-*s %s%s %*s %*s", p.name, name, unitWidth, unit, drawn, pad, valueWidth, least, valueWidth, most)
	p.printf("%s\n", strings.TrimRight(line, " "))
}

// axis returns a ruler with times at both ends, and in the middle if there is
// room.
func (p *curvePrinter) axis() string {
	ruler := []byte(strings.Repeat(" ", p.plot))
	write := func(column int, text string) {
		for i := range len(text) {
			if column+i >= 0 && column+i < len(ruler) {
				ruler[column+i] = text[i]
			}
		}
	}
	n := p.Buckets
	write(0, p.Time(0))
	const apart = 2 // columns between times
	end, middle := p.Time(n), p.Time(n/2)
	if len(middle)+apart > p.plot-len(end) {
		return strings.TrimRight(string(ruler), " ")
	}
	write(p.plot-len(end), end)
	if at := p.column(n / 2); at >= len(middle)+apart && at+len(middle)+apart <= p.plot-len(end) {
		write(at, middle)
	}
	return string(ruler)
}

// marks returns a line with the numbers of the changes where they happened.
func (p *curvePrinter) marks() string {
	line := []byte(strings.Repeat(" ", p.plot))
	for i, b := range p.Marks {
		if b < 0 || b >= p.Buckets {
			continue
		}
		mark := byte('+') // numbers have one digit
		if i < 9 {
			mark = byte('1' + i)
		}
		column := p.column(b)
		for column < p.plot-1 && line[column] != ' ' {
			column++ // several changes in one bucket
		}
		line[column] = mark
	}
	return strings.TrimRight(string(line), " ")
}

func (p *curvePrinter) block(b *Block) {
	p.printf("%s\n", words.Clean(b.Title))
	for i := range b.Curves {
		c := &b.Curves[i]
		least, most := c.extremes()
		p.row(c.Name, c.Unit, p.draw(c, most), words.ThreeDigits(least/c.Size), words.ThreeDigits(most/c.Size))
	}
}

// extremes returns the lowest and the highest known value.
func (c *Curve) extremes() (least, most float64) {
	least, most = math.Inf(1), math.Inf(-1)
	for _, v := range c.Values {
		if !math.IsNaN(v) {
			least, most = min(least, v), max(most, v)
		}
	}
	return least, most
}

// Glyphs of a curve, from 0 to its highest value.
var (
	levels      = []rune("▁▂▃▄▅▆▇█")
	asciiLevels = []rune(".:-=+*#@")
)

// draw returns the curve, from zero to most. Unknown values are blank.
func (p *curvePrinter) draw(c *Curve, most float64) string {
	glyphs := levels
	if p.style.ASCII {
		glyphs = asciiLevels
	}
	n := len(c.Values)
	var b strings.Builder
	for column := range p.plot {
		from, to := column*n/p.plot, max(column*n/p.plot+1, (column+1)*n/p.plot)
		v := joint(c.Values[from:to], c.Peaks)
		if math.IsNaN(v) {
			b.WriteByte(' ')
			continue
		}
		level := int(v / most * float64(len(glyphs)))
		b.WriteRune(glyphs[min(max(level, 0), len(glyphs)-1)])
	}
	return b.String()
}

// joint returns the highest or the mean of the known values.
func joint(values []float64, highest bool) float64 {
	sum, n, most := 0.0, 0.0, math.NaN()
	for _, v := range values {
		if math.IsNaN(v) {
			continue
		}
		if sum, n = sum+v, n+1; math.IsNaN(most) || v > most {
			most = v
		}
	}
	if highest {
		return most
	}
	return distribution.Ratio(sum, n)
}

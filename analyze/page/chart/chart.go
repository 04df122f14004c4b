// Package chart draws the figures of a page as SVG, which needs no script: curves, percentiles, bars, dots, heat
// maps, strips, and flame graphs. None of them knows what a request or a rank is.
//
// They share their scales (scale.go), their axes (chart.go), and the writer that escapes every text (svg.go). Each is
// drawn twice, for desktops and for phones, and has its numbers as a table, for those who cannot see it.
//
// The script of the page reads its data from [Drawing.Hover], as JSON. Positions in it are fractions of a frame, 0 to
// 1, so that they hold for both drawings. Frames that zoom are nested svg elements of class "view"; see [svg.view].
package chart

import (
	"html/template"
	"slices"
	"strconv"
	"strings"
)

// A Body is what a figure shows.
type Body interface {
	// Draw returns the drawing. It must depend on the body alone: same input, same bytes.
	Draw() (Drawing, error)
}

// A Drawing is what the page shows of a body.
type Drawing struct {
	Markup template.HTML
	Legend []LegendEntry
	// Hover is data that the script shows under the pointer; nil if the markup has it.
	Hover   any
	Notes   []string
	Numbers *Numbers // nil if the markup is a table, or text
	Wide    bool     // takes the full width, with no figure beside it
}

// A LegendEntry explains a color.
type LegendEntry struct {
	Class string // class of the color
	Name  string
	// Series is what the entry switches off and on: the elements with this number in data-s. -1 switches nothing.
	Series int
}

// Numbers is a figure's table of numbers. The first column names the row.
type Numbers struct {
	Head []string
	Rows [][]string
}

// add adds a row.
func (n *Numbers) add(cells ...string) { n.Rows = append(n.Rows, cells) }

// Widths that drawings are laid out for, in pixels. The page scales them to the available width, and shows the one
// that fits.
const (
	wideDrawing   = 960
	narrowDrawing = 400
)

// twice draws for desktops and for phones.
func twice(draw func(width float64) template.HTML) template.HTML {
	return `<div class="for-wide">` + draw(wideDrawing) + `</div><div class="for-narrow">` + draw(narrowDrawing) + `</div>`
}

// A frame is the part of a drawing inside its axes, in pixels.
type frame struct{ left, top, width, height float64 }

func (f frame) right() float64  { return f.left + f.width }
func (f frame) bottom() float64 { return f.top + f.height }

// x and y return the pixel of a position on an axis, 0 to 1; y runs upward.
func (f frame) x(at float64) float64 { return f.left + at*f.width }
func (f frame) y(at float64) float64 { return f.bottom() - at*f.height }

// inside returns the frame in the coordinates of its own view.
func (f frame) inside() frame { return frame{0, 0, f.width, f.height} }

// digit is the largest width of a digit, in pixels, in the fonts that browsers use.
const digit = 7.8

// ticksIn returns the number of labels that fit on a horizontal axis.
func (f frame) ticksIn(labelWidth float64) int { return max(2, int(f.width/labelWidth)) }

// vertical draws the grid lines and labels of a horizontal axis. Without labels, the frame shares those of another
// one. The script redraws those of a clock when the reader zooms.
func (f frame) vertical(s *svg, axis scale, labels bool) {
	s.open("g", "class", "ticks", "data-labels", strconv.FormatBool(labels), "data-top", px(f.top), "data-bottom", px(f.bottom()))
	free := f.left - 40 // left end of the room for the next label
	for _, t := range axis.ticks() {
		x := f.x(axis.at(t.value))
		s.line(gridClass(t), x, f.top, x, f.bottom())
		width := digit * float64(len(t.label))
		if x = min(x, s.width-width/2); labels && t.label != "" && x-width/2 > free {
			s.label(x, f.bottom()+16, "mid", t.label)
			free = x + width/2 + 8
		}
	}
	s.close("g")
}

// horizontal draws those of a vertical axis. It omits the faint lines if they would be too close together.
func (f frame) horizontal(s *svg, axis scale) {
	const closest = 6
	ticks := axis.ticks()
	for _, t := range ticks {
		if t.label == "" && float64(len(ticks))*closest > f.height {
			continue
		}
		y := f.y(axis.at(t.value))
		s.line(gridClass(t), f.left, y, f.right(), y)
		if t.label != "" {
			s.label(f.left-7, y+4, "end", t.label)
		}
	}
}

func gridClass(t tick) string {
	if t.label == "" {
		return "grid faint"
	}
	return "grid"
}

// Colors are numbers. 0 to Hues-1 are distinguishable with any color vision as long as a figure has few of them; the
// grays after them are for what should not draw attention.
const (
	Hues  = 10
	grays = 3
	Gray  = Hues + 1 // the middle one
)

// colorClass returns the class of a color; the style sheet defines it for each theme.
func colorClass(color int) string { return "c" + strconv.Itoa(color) }

// ShortNames drops the words that all names share: of "decode DP0 TP0 (node0)" and "decode DP0 TP1 (node0)", only the
// TP rank remains. Different names stay different.
func ShortNames(names []string) []string {
	if len(names) < 2 {
		return names
	}
	split := make([][]string, len(names))
	for i, name := range names {
		split[i] = pieces(name)
		if len(split[i]) != len(split[0]) {
			return names
		}
	}
	short := make([]string, len(names))
	for i := range names {
		var words []string
		for k, piece := range split[i] {
			if !slices.ContainsFunc(split, func(other []string) bool { return other[k] != piece }) {
				continue
			}
			words = append(words, piece)
		}
		short[i] = strings.TrimLeft(strings.Join(words, ""), " -")
	}
	if len(slices.Compact(slices.Sorted(slices.Values(short)))) < len(slices.Compact(slices.Sorted(slices.Values(names)))) {
		return names
	}
	return short
}

// pieces splits a name before spaces and hyphens.
func pieces(name string) []string {
	var list []string
	from := 0
	for i, r := range name {
		if i > from && (r == ' ' || r == '-') {
			list = append(list, name[from:i])
			from = i
		}
	}
	return append(list, name[from:])
}

// Packed numbers are text for the script, which computes with them when a reader chooses a range of time. Each number
// is written as five-bit digits, lowest first, in the letters of base64; all but its last digit have the sixth bit
// set. Numbers are never negative.
const packedDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

// appendPacked appends a packed number.
func appendPacked(b []byte, v uint64) []byte {
	for ; v >= 32; v >>= 5 {
		b = append(b, packedDigits[32|v&31])
	}
	return append(b, packedDigits[v])
}

// Pack packs numbers, which must not be negative.
func Pack(list []int64) string {
	var b []byte
	for _, v := range list {
		b = appendPacked(b, uint64(v))
	}
	return string(b)
}

// PackDurations packs durations in ns, ascending from 0, with their owners: for each, the difference of its reading
// from the previous one, then its owner. Durations keep the precision that the page prints.
func PackDurations(sorted []int64, owners []int32) string {
	var b []byte
	last := uint64(0)
	for i, ns := range sorted {
		r := reading(ns)
		b = appendPacked(appendPacked(b, r-last), uint64(owners[i]))
		last = r
	}
	return string(b)
}

// Numbers of distinct readings of a unit: 9,000 (four digits) for each power of ten, and one for values that round up
// to the next unit: 1000us.
const (
	readings      = 3*9000 + 1
	readingsOfSec = 4*9000 + 1
)

// reading numbers durations, in ns, by their text from [trace.FormatDuration]: those with the same text have the same
// number, and longer ones have larger numbers.
func reading(ns int64) uint64 {
	from := uint64(1000)
	switch {
	case ns < 1e3:
		return uint64(ns)
	case ns < 1e6:
		return from + fourDigits(float64(ns)/1e3)
	case ns < 1e9:
		return from + readings + fourDigits(float64(ns)/1e6)
	case ns < 1e13:
		return from + 2*readings + fourDigits(float64(ns)/1e9)
	}
	return from + 2*readings + readingsOfSec + uint64(ns/1e9-1e4)
}

// fourDigits numbers the values from 1 up by their first four digits, rounded.
func fourDigits(v float64) uint64 {
	text := strconv.FormatFloat(v, 'e', 3, 64) // d.ddde+dd
	first, _ := strconv.ParseUint(text[:1]+text[2:5], 10, 64)
	power, _ := strconv.ParseUint(text[7:], 10, 64)
	return 9000*power + first - 1000
}

// Package chart draws the figures of a page as SVG, which needs no script: curves,
// percentiles, bars, dots, and heat maps. None of them knows what a request or a rank is.
//
// They share their scales (scale.go), their axes (frame.go), and the writer that escapes
// every text (svg.go). Each is drawn twice, for windows and for phones, and has its
// numbers as a table, for those who cannot see it.
//
// What the script of the page adds, it finds in [Drawing.Hover], as JSON. Places in it are
// parts of a frame, 0 to 1, so that they are the same in both drawings. Frames that zoom
// are nested svg elements of class "view"; see [svg.view].
package chart

import (
	"html/template"
	"slices"
	"strconv"
	"strings"
)

// A Body is what a figure shows.
type Body interface {
	// Draw makes the markup. What it returns must not depend on anything but the
	// body: same input, same bytes.
	Draw() (Drawing, error)
}

// A Drawing is a body as the page has it.
type Drawing struct {
	Markup template.HTML
	Legend []LegendEntry
	// Hover is shown by the script under the pointer; nil if the markup tells.
	Hover   any
	Notes   []string
	Numbers *Numbers // nil if the markup is a table, or text
	Wide    bool     // it is not drawn beside another figure
}

// A LegendEntry explains a color.
type LegendEntry struct {
	Class string // of the color
	Name  string
	// Series is what the entry switches off and on: elements with this number in
	// data-s. -1 is nothing.
	Series int
}

// Numbers is the table of a figure's numbers. The first column of a row names it.
type Numbers struct {
	Head []string
	Rows [][]string
}

// add adds a row.
func (n *Numbers) add(cells ...string) { n.Rows = append(n.Rows, cells) }

// Widths of drawings, in the pixels that they are drawn for. The page scales them to the
// room that there is, and shows the one that fits.
const (
	wideDrawing   = 960
	narrowDrawing = 400
)

// twice draws for windows and for phones.
func twice(draw func(width float64) template.HTML) template.HTML {
	return `<div class="for-wide">` + draw(wideDrawing) + `</div><div class="for-narrow">` + draw(narrowDrawing) + `</div>`
}

// A frame is the part of a drawing that has axes, in pixels.
type frame struct{ left, top, width, height float64 }

func (f frame) right() float64  { return f.left + f.width }
func (f frame) bottom() float64 { return f.top + f.height }

// x and y return the pixel of a place on an axis; y runs upward.
func (f frame) x(at float64) float64 { return f.left + at*f.width }
func (f frame) y(at float64) float64 { return f.bottom() - at*f.height }

// inside returns the frame in the pixels of its own view.
func (f frame) inside() frame { return frame{0, 0, f.width, f.height} }

// digit is how wide a digit is at most, in fonts that browsers take for this.
const digit = 7.8

// ticksIn returns how many labels an axis that runs to the right has room for.
func (f frame) ticksIn(labelWidth float64) int { return max(2, int(f.width/labelWidth)) }

// vertical draws lines and labels for the ticks of an axis that runs to the right.
// Without labels it is one of several that share them. The script draws those of a clock
// anew where they zoom.
func (f frame) vertical(s *svg, axis scale, labels bool) {
	s.open("g", "class", "ticks", "data-labels", strconv.FormatBool(labels), "data-top", px(f.top), "data-bottom", px(f.bottom()))
	free := f.left - 40 // where the next label has room
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

// horizontal draws them for an axis that runs upward, without the faint ones where
// they would be too close to each other.
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

// Colors are numbers: 0 to Hues-1 are told apart by people with any color vision
// where they are few, and the grays behind them are for what is not meant to be looked
// at first.
const (
	Hues  = 10
	grays = 3
	Gray  = Hues + 1 // the middle one
)

// colorClass returns the class of a color, which the style sheet gives it by theme.
func colorClass(color int) string { return "c" + strconv.Itoa(color) }

// ShortNames leaves out of names what all of them have: of "decode DP0 TP0 (node0)"
// and "decode DP0 TP1 (node0)" all but the TP rank. Names stay different.
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

// pieces cuts a name before spaces and hyphens.
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

// Packed numbers are text for the script, which computes with them where a reader chooses a
// range of time. Each is digits of five bits, the lowest first, in the letters of base64;
// all but the last have the sixth bit, too. No number is negative.
const packedDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

// appendPacked appends a number to packed ones.
func appendPacked(b []byte, v uint64) []byte {
	for ; v >= 32; v >>= 5 {
		b = append(b, packedDigits[32|v&31])
	}
	return append(b, packedDigits[v])
}

// Pack packs numbers, none of them negative.
func Pack(list []int64) string {
	var b []byte
	for _, v := range list {
		b = appendPacked(b, uint64(v))
	}
	return string(b)
}

// PackDurations packs durations in ns, ascending from 0 on, with what each is of: how far its
// reading is from the one before, then its owner. It is exact in what people read.
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

// Readings of a unit: 9,000 for each power of ten, of which four digits are read, and one
// for what is rounded up to the next: 1000us.
const (
	readings      = 3*9000 + 1
	readingsOfSec = 4*9000 + 1
)

// reading numbers durations, in ns, by how [trace.FormatDuration] prints them: those that it
// prints alike have one number, and longer ones larger numbers.
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

// fourDigits numbers the values from 1 on by their first four digits, rounded.
func fourDigits(v float64) uint64 {
	text := strconv.FormatFloat(v, 'e', 3, 64) // d.ddde+dd
	first, _ := strconv.ParseUint(text[:1]+text[2:5], 10, 64)
	power, _ := strconv.ParseUint(text[7:], 10, 64)
	return 9000*power + first - 1000
}

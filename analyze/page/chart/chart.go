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

import "html/template"

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
	// Hover is what the script shows under the pointer; nil if the markup tells.
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

// Numbers are what a figure shows as a table. The first column of a row names it.
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

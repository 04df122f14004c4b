// Package chart draws the figures of a page as SVG, which needs no script: curves,
// percentiles, bars, dots, and heat maps. None of them knows what a request or a rank is.
//
// They share their scales (scale.go), their axes (frame.go), and the writer that escapes
// every text (svg.go). What the script of the page adds to a figure, it finds in
// [Drawing.Hover], as JSON.
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
	Hover any
	Notes []string
	Wide  bool // it is not drawn beside another figure
}

// A LegendEntry explains a color.
type LegendEntry struct {
	Class string // of the color
	Name  string
	// Series is what the entry switches off and on: elements with this number in
	// data-s. -1 is nothing.
	Series int
}

package chart

import (
	"html"
	"html/template"
	"math"
	"strconv"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/table"
)

// An svg is a drawing in the making, in units that are about pixels. Whatever is
// written goes through attr or content, which escape it.
type svg struct{ b strings.Builder }

// newSVG begins a drawing; it is as wide as the page leaves room for. label tells
// those what it is who cannot see it.
func newSVG(width, height float64, label string) *svg {
	s := new(svg)
	s.open("svg", "viewBox", "0 0 "+px(width)+" "+px(height), "role", "img", "aria-label", label, "tabindex", "0")
	return s
}

// open begins an element; attrs are names and values by turns.
func (s *svg) open(name string, attrs ...string) {
	s.start(name, attrs)
	s.b.WriteByte('>')
}

// empty writes an element without content.
func (s *svg) empty(name string, attrs ...string) {
	s.start(name, attrs)
	s.b.WriteString("/>")
}

func (s *svg) start(name string, attrs []string) {
	s.b.WriteString("<" + name)
	for i := 0; i < len(attrs); i += 2 {
		s.b.WriteString(" " + attrs[i] + `="` + html.EscapeString(attrs[i+1]) + `"`)
	}
}

func (s *svg) close(name string) { s.b.WriteString("</" + name + ">") }

// content writes text.
func (s *svg) content(text string) { s.b.WriteString(html.EscapeString(text)) }

// title says what the element around it is, when the pointer is on it.
func (s *svg) title(text string) {
	s.open("title")
	s.content(table.Printable(text))
	s.close("title")
}

// label writes text at a place. class is how it is aligned and looks.
func (s *svg) label(x, y float64, class, text string) {
	s.open("text", "x", px(x), "y", px(y), "class", class)
	s.content(table.Printable(text))
	s.close("text")
}

// name writes a shortened name in front of a place, and the whole under the pointer.
func (s *svg) name(x, y float64, short, name string) {
	s.open("text", "x", px(x), "y", px(y), "class", "end name")
	s.content(short)
	if short != name {
		s.title(name)
	}
	s.close("text")
}

func (s *svg) line(class string, x1, y1, x2, y2 float64) {
	s.empty("line", "class", class, "x1", px(x1), "y1", px(y1), "x2", px(x2), "y2", px(y2))
}

func (s *svg) finish() template.HTML {
	s.close("svg")
	return template.HTML(s.b.String()) // of escaped parts only
}

// px prints a coordinate to a tenth of a pixel.
func px(v float64) string {
	return strconv.FormatFloat(math.Round(10*v)/10, 'f', -1, 64)
}

// round1 rounds a coordinate for the script as px does.
func round1(v float64) float64 { return math.Round(10*v) / 10 }

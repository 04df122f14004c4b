package chart

import (
	"fmt"
	"html"
	"html/template"
	"math"
	"strconv"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/trace"
)

// An svg is a drawing in progress, in units of about a pixel. Attributes and texts go through start and content,
// which escape them.
type svg struct {
	b     strings.Builder
	width float64
}

// newSVG starts a drawing, which the page scales to the available width. label describes it for those who cannot see
// it.
func newSVG(width, height float64, label string) *svg {
	s := &svg{width: width}
	s.open("svg", "viewBox", "0 0 "+px(width)+" "+px(height), "role", "img", "aria-label", label, "tabindex", "0")
	return s
}

// newTimeSVG starts a drawing over time, which the script can zoom.
func newTimeSVG(width, height float64, label string, axis clock) *svg {
	s := &svg{width: width}
	s.open("svg", "viewBox", "0 0 "+px(width)+" "+px(height), "role", "img", "aria-label", label, "tabindex", "0",
		"data-from", Milliseconds(axis.from), "data-to", Milliseconds(axis.to), "data-zone", zoneOffsets(axis))
	return s
}

// zoneOffsets lists the UTC offsets of the local clock along an axis as pairs of the time from which one holds, in
// ms, and the offset in ms: "1792880000000,7200000 1792890000000,3600000".
func zoneOffsets(axis clock) string {
	var list []string
	for at := axis.from; ; {
		local := words.Clock(at)
		_, seconds := local.Zone()
		list = append(list, fmt.Sprintf("%d,%d", local.UnixMilli(), seconds*1000))
		_, change := local.ZoneBounds()
		if change.IsZero() || change.UnixNano() > int64(axis.to) {
			return strings.Join(list, " ")
		}
		at = trace.Time(change.UnixNano())
	}
}

// Milliseconds formats a time in ms for the script, exact to the nanosecond.
func Milliseconds(t trace.Time) string { return strconv.FormatFloat(float64(t)/1e6, 'f', 6, 64) }

// viewOf starts a view of a class. Views of class "view marks" lie behind several frames: the script zooms them, but
// does not treat them as frames with curves.
func (s *svg) viewOf(class string, f frame) {
	s.open("svg", "class", class, "x", px(f.left), "y", px(f.top), "width", px(f.width), "height", px(f.height),
		"viewBox", "0 0 "+px(f.width)+" "+px(f.height), "preserveAspectRatio", "none")
}

// view starts the content of a frame, in pixels from its upper left corner. The content is clipped to the frame, and
// the script zooms it through its viewBox. It must contain only lines and areas, because zooming would stretch text
// and circles.
func (s *svg) view(f frame) { s.viewOf("view", f) }

// open starts an element; attrs alternate between names and values.
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

// title sets the tip of the enclosing element.
func (s *svg) title(text string) {
	s.open("title")
	s.content(table.Printable(text))
	s.close("title")
}

// label writes text at a position. class sets its alignment and style.
func (s *svg) label(x, y float64, class, text string) {
	attributes := []string{"x", px(x), "y", px(y)}
	if class != "" {
		attributes = append(attributes, "class", class)
	}
	s.open("text", attributes...)
	s.content(table.Printable(text))
	s.close("text")
}

// heading writes the title of a frame above it, shortened to its width, followed by a remark.
func (s *svg) heading(f frame, title, remark string) {
	const bold = 8 // width of a letter
	room := int(f.width/bold) - len(remark)
	s.label(f.left, f.top-8, "panel", table.Shorten([]string{title}, max(8, room))[0]+remark)
}

// name writes a shortened name that ends at a position; the whole name is its tip.
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
	return template.HTML(s.b.String()) // all parts are escaped
}

// px formats a coordinate to a tenth of a pixel.
func px(v float64) string { return strconv.FormatFloat(math.Round(10*v)/10, 'f', -1, 64) }

// part rounds a fraction of a frame for the script, to less than a pixel.
func part(v float64) float64 { return math.Round(10_000*v) / 10_000 }

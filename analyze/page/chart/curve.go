package chart

import (
	"math"
	"strconv"
	"strings"
)

// A curvePath is a line through points; NaN interrupts it.
type curvePath struct {
	b     strings.Builder
	drawn bool // the next point continues the line
	last  [2]float64
	dots  [][2]float64 // points between two interruptions, which no line shows
	run   int
}

func (p *curvePath) to(x, y float64) {
	if math.IsNaN(x) || math.IsNaN(y) {
		p.interrupt()
		return
	}
	if p.drawn {
		p.b.WriteByte('L')
	} else {
		p.b.WriteByte('M')
	}
	p.b.WriteString(px(x) + " " + px(y))
	p.drawn, p.last, p.run = true, [2]float64{x, y}, p.run+1
}

func (p *curvePath) interrupt() {
	if p.run == 1 {
		p.dots = append(p.dots, p.last)
	}
	p.drawn, p.run = false, 0
}

// curve draws a path as series number i of its figure.
func (s *svg) curve(p curvePath, color, i int, faint bool) {
	p.interrupt()
	class := "curve " + colorClass(color)
	if faint {
		class += " thin"
	}
	s.open("g", "class", class, "data-s", strconv.Itoa(i))
	s.empty("path", "d", p.b.String())
	for _, dot := range p.dots {
		s.empty("path", "class", "dot", "d", "M"+px(dot[0])+" "+px(dot[1])+"h0") // its round end is a dot
	}
	s.close("g")
}

// hoverLines is what the script shows of curves: the values of all lines at one place
// of an axis. Places are parts of a frame, from the left and from above.
type hoverLines struct {
	Axis   string      `json:"axis"` // "x" or "y": along which the pointer chooses
	At     []float64   `json:"at"`
	Labels []string    `json:"labels"` // of At
	Panels []string    `json:"panels"` // titles of the frames, which are above each other
	Lines  []hoverLine `json:"lines"`
}

type hoverLine struct {
	Panel  int        `json:"panel"`
	Series int        `json:"series"`
	Name   string     `json:"name"`
	Class  string     `json:"class"`
	Place  []*float64 `json:"place"` // on the other axis; null is unknown
	Text   []string   `json:"text"`
}

func (l *hoverLine) add(place float64, text string) {
	l.Text = append(l.Text, text)
	if math.IsNaN(place) {
		l.Place = append(l.Place, nil)
		return
	}
	place = part(place)
	l.Place = append(l.Place, &place)
}

package errortext

import (
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/series"
)

// A complaint is an error line, or a warning of trouble, of an unknown kind.
type complaint struct {
	x    series.Instant
	text string
	mild bool // only a warning
}

// Complaints are the complaints of a log: lines that only differ in digits are one.
type Complaints struct {
	list   []complaint
	shapes map[string]int // indexes in list
	before int            // instants of other inputs
}

// NewComplaints returns the complaints of a log that fills a set.
func NewComplaints(set *series.Set) Complaints {
	return Complaints{shapes: map[string]int{}, before: len(set.Instants)}
}

// Add keeps an error line, with the time and place of an instant, and reports whether it did.
func (c *Complaints) Add(text string, x series.Instant) bool {
	return c.add(complaint{x: x, text: text})
}

// Warn keeps a warning.
func (c *Complaints) Warn(text string, x series.Instant) {
	c.add(complaint{x: x, text: text, mild: true})
}

func (c *Complaints) add(one complaint) bool {
	if one.text == "" {
		return false
	}
	shape := shapeOf(one.text)
	k, ok := c.shapes[shape]
	if !ok {
		if len(c.list) == mostComplaints {
			return false
		}
		k = len(c.list)
		c.shapes[shape] = k
		one.x.Kind = series.Complaint
		c.list = append(c.list, one)
	}
	c.list[k].x.Count++
	return true
}

// Tell adds the complaints of a log. It only adds warnings if the log has nothing else: most programs warn about something
// when all is well.
func (c *Complaints) Tell(f *series.Filler) {
	others := len(f.Set.Instants) > c.before || slices.ContainsFunc(c.list, func(x complaint) bool { return !x.mild })
	for i := range c.list {
		says := "an error: "
		if c.list[i].mild {
			if others {
				continue
			}
			says = series.Warns
		}
		f.Line(int64(c.list[i].x.Line))
		f.Instant(c.list[i].x, says+c.list[i].text)
	}
}

// mostComplaints is the number of distinct complaints kept of a log: later ones follow from these.
const mostComplaints = 64

// shapeOf returns a text with one digit in place of every number.
func shapeOf(text string) string {
	var shape strings.Builder
	digit := false
	for i := range len(text) {
		c := text[i] | 0x20
		is := text[i] >= '0' && text[i] <= '9' || digit && (c >= 'a' && c <= 'f' || c == 'x') // in 0x7f35a
		switch {
		case !is:
			shape.WriteByte(text[i])
		case !digit:
			shape.WriteByte('0')
		}
		digit = is
	}
	return shape.String()
}

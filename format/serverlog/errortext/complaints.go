package errortext

import (
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/series"
)

// A complaint is a line that its program calls an error, or of trouble that it warns of, in words that nothing here knows.
type complaint struct {
	x    series.Instant
	text string
	mild bool // it only warns
}

// Complaints are those of a log: lines that differ in digits only are one.
type Complaints struct {
	list   []complaint
	shapes map[string]int // indexes into list
	before int            // instants of other inputs
}

// NewComplaints returns those of a log that fills a set.
func NewComplaints(set *series.Set) Complaints {
	return Complaints{shapes: map[string]int{}, before: len(set.Instants)}
}

// Add keeps what a line calls an error, at the time and place of an instant, and reports whether it did.
func (c *Complaints) Add(text string, x series.Instant) bool {
	return c.add(complaint{x: x, text: text})
}

// Warn keeps what a line only warns of, and reports whether it did.
func (c *Complaints) Warn(text string, x series.Instant) bool {
	return c.add(complaint{x: x, text: text, mild: true})
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

// Tell adds what a log complains of. Of warnings, only where it tells of nothing else: most programs warn of something when all is well.
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

// mostComplaints is how many shapes of complaints of a log are told apart: what comes behind them follows from these.
const mostComplaints = 64

// shapeOf is a text with one digit for every number.
func shapeOf(text string) string {
	var shape strings.Builder
	digit := false
	for i := range len(text) {
		c := text[i] | 0x20
		is := text[i] >= '0' && text[i] <= '9' || digit && (c >= 'a' && c <= 'f' || c == 'x') // of 0x7f35a
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

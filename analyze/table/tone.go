package table

// A Tone is what a text means for whoever reads it. On a terminal it has a color.
type Tone uint8

const (
	Plain   Tone = iota
	Good         // better than before
	Warning      // worth a look
	Bad          // worse than before; lost, critical
)

// colors are the ANSI colors of tones, those that every terminal has.
var colors = [...]string{Good: "32", Warning: "33", Bad: "31"}

// Paint returns the text in the color of its tone, if the style has colors.
func (s Style) Paint(tone Tone, text string) string {
	if !s.Color || tone == Plain || text == "" {
		return text
	}
	return "\x1b[" + colors[tone] + "m" + text + "\x1b[0m"
}

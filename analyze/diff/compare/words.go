package compare

import (
	"fmt"
	"math"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
)

// MaxNames limits the names in a sentence.
const MaxNames = 3

// Words returns how the number changed: "+16.1 % (+14.2 to +18.0)".
func (c *Change) Words() string {
	switch {
	case !c.Tested() && math.IsNaN(c.Change.Ratio):
		return "-"
	case !c.Tested() || c.Vague():
		return "? " + c.bare()
	case math.IsNaN(c.Change.Ratio) && c.Significant():
		return "from or to nothing"
	case math.IsNaN(c.Change.Ratio):
		return "~"
	case !c.Significant():
		return "~ " + c.Interval(" (", ")")
	case c.Sure == finding.Likely:
		return c.Interval(" (", ")") + " likely"
	}
	return c.Interval(" (", ")")
}

// scale returns the format for ratios: percent, or a factor if the number at least doubled.
func (c *Change) scale() (format func(ratio float64) string, unit string) {
	if c.Change.Ratio >= 2 {
		return func(ratio float64) string { return "x" + words.ThreeDigits(ratio) }, ""
	}
	return growth, " %"
}

// farthest is the largest factor that is given as such: beyond it, there was nearly nothing before.
const farthest = 10000

// bare returns the change without its interval.
func (c *Change) bare() string {
	if c.Change.Ratio >= farthest {
		return fmt.Sprintf("more than x%d", farthest)
	}
	format, unit := c.scale()
	return format(c.Change.Ratio) + unit
}

// Interval returns the change with its interval between open and end.
func (c *Change) Interval(open, end string) string {
	format, _ := c.scale()
	text := c.bare() + open
	switch {
	case math.IsNaN(c.Change.Low) || math.IsNaN(c.Change.High) || c.Change.Ratio >= farthest:
		return c.bare()
	case math.IsInf(c.Change.High, 1):
		return text + format(c.Change.Low) + " or more" + end
	case c.Change.Low == 0:
		return text + format(c.Change.High) + " or less" + end
	}
	return text + format(c.Change.Low) + " to " + format(c.Change.High) + end
}

// growth formats a ratio as percent: "+16.1".
func growth(ratio float64) string {
	percent := 100 * (ratio - 1)
	if math.Abs(percent) >= 99.95 {
		return fmt.Sprintf("%+.0f", percent)
	}
	return fmt.Sprintf("%+.1f", percent)
}

// InBrackets returns the change with its interval, in parentheses: " (+16.1 %, CI +14.2 to +18.0; likely)".
func (c *Change) InBrackets() string {
	sure := string(c.Sure)
	switch {
	case math.IsNaN(c.Change.Ratio) && c.Significant():
		return " (" + sure + ")"
	case math.IsNaN(c.Change.Ratio):
		return ""
	}
	switch {
	case c.Vague():
		return " (" + c.bare() + "; too few to tell)"
	case !c.Tested():
		sure = "not enough data to rule out chance"
	case !c.Significant():
		sure = "may be chance"
	}
	return " (" + c.Interval(", CI ", "") + "; " + sure + ")"
}

// PairInWords formats two durations in the same unit, "8.10 -> 9.40 ms", unless that would take too many digits: "6.85 ms -> 23.13 s".
func PairInWords(before, after int64) string {
	const far = 200
	if least, most := min(before, after), max(before, after); least > 0 && most/least >= far {
		return table.InWords(before) + " -> " + table.InWords(after)
	}
	s := table.ScaleFor(table.Duration, []int64{before, after})
	return s.Format(before, false) + " -> " + s.Format(after, false) + " " + s.Unit
}

// Words returns the load before and after.
func (l *Load) Words() string {
	return fmt.Sprintf("%s %s -> %s%s", l.Name, words.ThreeDigits(l.Before), words.ThreeDigits(l.After), l.Change.InBrackets())
}

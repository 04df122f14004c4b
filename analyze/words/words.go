package words

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/sgtrace/sgtrace/trace"
)

// InPercent prints a share in percent, with a decimal where there are few.
func InPercent(share float64) string {
	if share > 0 && share < 0.1 {
		return strconv.FormatFloat(100*share, 'f', 1, 64)
	}
	return strconv.FormatFloat(100*share, 'f', 0, 64)
}

// Size prints a number of bytes to three digits: "51 GB".
func Size(bytes int64) string {
	value, unit := float64(bytes), "B"
	for _, larger := range [...]string{"kB", "MB", "GB", "TB"} {
		if value < 1000 {
			break
		}
		value, unit = value/1000, larger
	}
	return ThreeDigits(value) + " " + unit
}

// Nearly prints a duration to three digits, from two hours or two days on in these.
func Nearly(ns int64) string {
	const hour, day = 3600e9, 24 * 3600e9
	size := max(ns, -ns)
	switch {
	case size >= 2*day:
		return ThreeDigits(float64(ns)/day) + " days"
	case size >= 2*hour:
		return ThreeDigits(float64(ns)/hour) + " h"
	}
	unit, of := UnitFor(size)
	return ThreeDigits(float64(ns)/of) + " " + unit
}

// When prints a time that is known to lie between first and last, as precisely as it is known:
// "12:04:33.1 ± 0.2 s", "2026-08-17 14:30 ± 12 h".
func When(t, first, last trace.Time) string {
	within := max(t-first, last-t)
	for _, coarse := range coarseTimes {
		if within >= 2*coarse.unit {
			return fmt.Sprintf("%s ± %d %s", At(t+coarse.step/2, coarse.layout), (within+coarse.unit-1)/coarse.unit, coarse.name)
		}
	}
	decimals := 0
	for unit := trace.Time(1_000_000_000); decimals < 3 && within < unit; unit /= 10 {
		decimals++
	}
	layout := "15:04:05.000"[:len("15:04:05")+min(1, decimals)+decimals]
	step := math.Pow10(-decimals)
	bound := math.Max(step, math.Ceil(float64(within)/1e9/step)*step)
	return fmt.Sprintf("%s ± %s s", At(t+rounding(decimals), layout), strconv.FormatFloat(bound, 'f', decimals, 64))
}

// coarseTimes are the units for times that are known to two of them or less, the longest first:
// nobody reads an hour in seconds. step is the last digit of the layout.
var coarseTimes = [...]struct {
	unit, step   trace.Time // ns
	layout, name string
}{
	{86400e9, 3600e9, "2006-01-02 15:00", "days"},
	{3600e9, 60e9, "2006-01-02 15:04", "h"},
	{60e9, 60e9, "15:04", "min"},
}

// rounding is half of the last decimal of a second, in ns: formatting cuts off.
func rounding(decimals int) trace.Time {
	half := trace.Time(500_000_000)
	for range decimals {
		half /= 10
	}
	return half
}

// Chance prints a probability.
func Chance(p float64) string {
	switch {
	case math.IsNaN(p):
		return ""
	case p < 1e-12:
		return "p < 1e-12"
	}
	return "p = " + strconv.FormatFloat(p, 'g', 1, 64)
}

func JoinNonEmpty(sep string, parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), sep)
}

// TenthLayout is for times at which something began, of which nobody needs more.
const TenthLayout = "15:04:05.0"

const (
	ClockLayout = "15:04:05.000"
	DateLayout  = "2006-01-02 15:04:05.000"
)

// Aside is a text in brackets behind another one; "" is none.
func Aside(text string) string {
	if text == "" {
		return ""
	}
	return " (" + text + ")"
}

// QuoteShell joins arguments to a line that a shell takes apart again. What does not
// draw itself is written as an escape sequence, which bash, zsh and ksh know.
func QuoteShell(args []string) string {
	quoted := make([]string, len(args))
	for i, arg := range args {
		switch {
		case strings.ContainsFunc(arg, Hidden) || Clean(arg) != arg:
			quoted[i] = "$'" + strings.ReplaceAll(Clean(strings.ReplaceAll(arg, `\`, `\\`)), "'", `\'`) + "'"
		case arg == "" || strings.ContainsFunc(arg, special):
			quoted[i] = "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
		default:
			quoted[i] = arg
		}
	}
	return strings.Join(quoted, " ")
}

// special reports whether r may mean something to a shell.
func special(r rune) bool {
	plain := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r > '~' || strings.ContainsRune("_-+=:,./@%", r)
	return !plain
}

// Thousands prints a count with commas.
func Thousands(n int64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Counted prints a number of things: "1 request", "2 requests".
func Counted(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return Thousands(int64(n)) + " " + thing + "s"
}

// IsOrAre is the verb behind a number of things.
func IsOrAre(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

// UnitFor returns the largest unit of which ns has one or more.
func UnitFor(ns int64) (string, float64) {
	switch {
	case ns < 1e6:
		return "us", 1e3
	case ns < 1e9:
		return "ms", 1e6
	}
	return "s", 1e9
}

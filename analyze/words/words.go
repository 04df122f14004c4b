package words

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/sgtrace/sgtrace/trace"
)

// InPercent formats a share in percent, with a decimal below 10 %.
func InPercent(share float64) string {
	if share > 0 && share < 0.1 {
		return strconv.FormatFloat(100*share, 'f', 1, 64)
	}
	return strconv.FormatFloat(100*share, 'f', 0, 64)
}

// Size formats a number of bytes with three digits: "51 GB".
func Size(bytes int64) string {
	value, unit := float64(bytes), "B"
	for _, larger := range [...]string{"kB", "MB", "GB", "TB"} {
		if value < 1000 {
			break
		}
		value, unit = value/1000, larger
	}
	return amount(value, unit)
}

// Nearly formats a duration with three digits: in minutes from 1,000 seconds, in hours from two hours, and in days
// from two days.
func Nearly(ns int64) string {
	const minute, hour, day = 60e9, 3600e9, 24 * 3600e9
	size := max(ns, -ns)
	switch {
	case size >= 2*day:
		return ThreeDigits(float64(ns)/day) + " days"
	case size >= 2*hour:
		return amount(float64(ns)/hour, "h")
	case size >= 1000e9:
		return amount(float64(ns)/minute, "min")
	}
	if _, of := UnitFor(size); size+int64(of)/2 >= 1000*int64(of) { // rounded to three digits, it is one of the next unit
		ns = ns / size * 1000 * int64(of)
	}
	unit, of := UnitFor(max(ns, -ns))
	return amount(float64(ns)/of, unit)
}

// When formats a time that is known to be between first and last, with that precision: "12:04:33.1 ± 0.2 s",
// "2026-08-17 14:30 ± 12 h".
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

// coarseTimes are the units for times that are known only to within two units or more, the longest first. step is the
// last digit of the layout.
var coarseTimes = [...]struct {
	unit, step   trace.Time // ns
	layout, name string
}{
	{86400e9, 3600e9, "2006-01-02 15:00", "days"},
	{3600e9, 60e9, "2006-01-02 15:04", "h"},
	{60e9, 60e9, "15:04", "min"},
}

// rounding returns half of the last decimal of a second, in ns, to add before formatting, which truncates.
func rounding(decimals int) trace.Time {
	half := trace.Time(500_000_000)
	for range decimals {
		half /= 10
	}
	return half
}

// Chance formats a p-value; "" for NaN.
func Chance(p float64) string {
	switch {
	case math.IsNaN(p):
		return ""
	case p < 1e-12:
		return "p < 1e-12"
	}
	return "p = " + strconv.FormatFloat(p, 'g', 1, 64)
}

// JoinNonEmpty joins the parts that are not empty.
func JoinNonEmpty(sep string, parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), sep)
}

// TenthLayout is the layout for onsets, which need no more precision.
const TenthLayout = "15:04:05.0"

const (
	ClockLayout = "15:04:05.000"
	DateLayout  = "2006-01-02 15:04:05.000"
)

// Some names the first few of a list: "a, b and 3 more".
func Some(names []string, few int) string {
	text := strings.Join(names[:min(few, len(names))], ", ")
	if n := len(names) - few; n > 0 {
		text += fmt.Sprintf(" and %d more", n)
	}
	return text
}

// Aside returns text in parentheses, with a space before them; "" if it is empty.
func Aside(text string) string {
	if text == "" {
		return ""
	}
	return " (" + text + ")"
}

// QuoteShell joins arguments into a command line for a shell. Characters that don't draw themselves become escape
// sequences, which bash, zsh, and ksh understand.
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

// special reports whether r may have a meaning in a shell.
func special(r rune) bool {
	plain := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r > '~' || strings.ContainsRune("_-+=:,./@%", r)
	return !plain
}

// Thousands formats a count with commas.
func Thousands(n int64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Counted formats a number of things: "1 request", "2 requests", "2 kernels of 1 MB or more".
func Counted(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	thing, of, found := strings.Cut(thing, " of ")
	if found {
		of = " of " + of
	}
	ending := "s"
	for _, hiss := range [...]string{"s", "x", "ch", "sh"} {
		if strings.HasSuffix(thing, hiss) {
			ending = "es"
		}
	}
	return Thousands(int64(n)) + " " + thing + ending + of
}

// IsOrAre returns the verb for a number of things.
func IsOrAre(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

// UnitFor returns the largest unit of which ns has at least one, but at least us, and its length in ns.
func UnitFor(ns int64) (string, float64) {
	switch {
	case ns < 1e6:
		return "us", 1e3
	case ns < 1e9:
		return "ms", 1e6
	}
	return "s", 1e9
}

// Clean makes a string from a file safe to print: control characters, escape sequences, bidirectional overrides, and
// invalid UTF-8 appear as \x1b or \u202e. A name must not be able to move the cursor, change the title of the window,
// or reorder the line.
func Clean(s string) string {
	if utf8.ValidString(s) && strings.IndexFunc(s, Hidden) < 0 {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		r, size := utf8.DecodeRuneInString(s)
		if Hidden(r) || r == utf8.RuneError && size == 1 {
			quoted := strconv.Quote(s[:size])
			b.WriteString(quoted[1 : len(quoted)-1])
		} else {
			b.WriteString(s[:size])
		}
		s = s[size:]
	}
	return b.String()
}

// Hidden reports whether r does not simply draw itself.
func Hidden(r rune) bool { return !strconv.IsPrint(r) }

// FormatNumber formats a number for programs, with six significant digits.
func FormatNumber(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }

// ShortNumber formats a number for a column of a table, where decimal points are aligned.
func ShortNumber(v float64) string {
	if a := math.Abs(v); a != 0 && a < 0.001 {
		return strconv.FormatFloat(v, 'g', 2, 64)
	}
	return alignedDigits(v)
}

// ThreeDigits formats a number for a sentence: with three significant digits, all digits before the point, at most
// three behind it, and "13" in place of "13.0". It keeps "1.00", because a plural may follow.
func ThreeDigits(v float64) string {
	text := alignedDigits(v)
	whole, behind, _ := strings.Cut(text, ".")
	if strings.Trim(behind, "0") == "" && !slices.Contains([]string{"0", "1"}, strings.TrimPrefix(whole, "-")) {
		return whole
	}
	return text
}

// Rate formats a rate with three digits, or with commas.
func Rate(v float64) string {
	if v >= 1000 {
		return Thousands(int64(math.Round(v)))
	}
	return ThreeDigits(v)
}

// amount formats a value with a unit that has no plural.
func amount(v float64, unit string) string {
	return strings.TrimSuffix(ThreeDigits(v), ".00") + " " + unit
}

// alignedDigits is [ThreeDigits] with trailing zeros.
func alignedDigits(v float64) string {
	switch a := math.Abs(v); {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return "-"
	case a == 0:
		return "0"
	case a >= 100:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case a >= 10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	case a >= 1:
		return strconv.FormatFloat(v, 'f', 2, 64)
	}
	return strconv.FormatFloat(v, 'f', 3, 64)
}

// zone is the zone in which times are formatted. Like [time.Local], it is global: sentences with times are made in
// every package, long before it is known who prints them.
var zone = time.UTC

// SetZone sets the zone in which times are formatted. The program calls it once, before it reads anything. Output for
// programs stays in UTC.
func SetZone(z *time.Location) { zone = z }

// Zone returns the zone set by [SetZone]; UTC by default.
func Zone() *time.Location { return zone }

// Clock returns t in the zone in which times are formatted.
func Clock(t trace.Time) time.Time { return time.Unix(0, int64(t)).In(zone) }

// dated says that times of day need their date.
var dated atomic.Bool

// SetDated sets whether times of day are formatted with their dates: what is reported lasts for more than a day. Like
// [SetZone], it is for the program.
func SetDated(is bool) { dated.Store(is) }

// At formats t. Within a day of a clock change, it adds the offset from UTC, because one hour occurs twice that
// night.
func At(t trace.Time, layout string) string {
	const near = 24 * time.Hour
	if dated.Load() && strings.HasPrefix(layout, time.TimeOnly) {
		layout = time.DateOnly + " " + layout
	}
	c := Clock(t)
	from, to := c.ZoneBounds()
	if !from.IsZero() && c.Sub(from) < near || !to.IsZero() && to.Sub(c) < near {
		layout += " -07:00"
	}
	return c.Format(layout)
}

// TimeOfDay formats a time to the second, like the stamps of logs: "15:04:05".
func TimeOfDay(t trace.Time) string { return At(t, "15:04:05") }

// Instant formats t to the nanosecond, with its date and the offset from UTC.
func Instant(t trace.Time) string {
	return Clock(t).Format("2006-01-02T15:04:05.000000000Z07:00")
}

// ZoneAt names the zone at a time: "UTC", "UTC+02:00".
func ZoneAt(t trace.Time) string {
	c := Clock(t)
	if _, offset := c.Zone(); offset == 0 {
		return "UTC"
	}
	return c.Format("UTC-07:00")
}

// Tenths formats two times to a tenth of a second, with their dates if these differ or are needed.
func Tenths(from, to trace.Time) (first, last string) {
	layout := TenthLayout
	if !dated.Load() && Clock(from).Format(time.DateOnly) != Clock(to).Format(time.DateOnly) {
		layout = time.DateOnly + " " + layout
	}
	first, last = At(from, layout), At(to, layout)
	if Clock(from).Format(time.DateOnly) == Clock(to).Format(time.DateOnly) {
		last = strings.TrimPrefix(last, Clock(to).Format(time.DateOnly+" "))
	}
	return first, last
}

// IsDate reports whether a time is a date. A time before 2000 counts from another origin than 1970, because no
// capture is that old.
func IsDate(t trace.Time) bool { return Clock(t).Year() >= 2000 }

// Between formats a period: "2026-08-17 20:53:20.049 to 20:53:41.823 UTC", or to the second if both times are whole
// seconds, as in logs. It has both zones if the clocks change in between.
func Between(from, to trace.Time) string {
	first, last := Clock(from), Clock(to)
	begin, end := DateLayout, ClockLayout
	if first.Format(time.DateOnly) != last.Format(time.DateOnly) {
		end = DateLayout
	}
	if first.Nanosecond() == 0 && last.Nanosecond() == 0 {
		begin, end = strings.TrimSuffix(begin, ".000"), strings.TrimSuffix(end, ".000")
	}
	text := first.Format(begin)
	if ZoneAt(from) != ZoneAt(to) {
		text += " " + ZoneAt(from)
	}
	return text + " to " + last.Format(end) + " " + ZoneAt(to)
}

// Were says when several things took place, to follow their name: "are from 2026-08-17 20:53:20.049 to 20:53:41.823
// UTC"; or how long they last, if their times are not dates.
func Were(from, to trace.Time) string {
	if !IsDate(to) {
		return "last " + Nearly(int64(to-from)) + ", and do not say when they began"
	}
	return "are from " + Between(from, to)
}

// Capitalized returns a sentence with a capital first letter.
func Capitalized(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

package table

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/olekukonko/tablewriter/pkg/twwidth"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/trace"
)

// RealCell returns a cell of v, unknown if v is NaN or infinite.
func RealCell(v float64) Cell { return Cell{Share: v, Unknown: math.IsNaN(v) || math.IsInf(v, 0)} }

// SummaryFields returns the columns of a summary.
func SummaryFields[T any](of func(*T) *distribution.Summary) []Field[T] {
	const scale = "duration" // people compare these with each other
	ns := func(name, doc string, v func(*distribution.Summary) int64) Field[T] {
		return Field[T]{Column{Name: name, Unit: Duration, Doc: doc, Scale: scale},
			func(row *T) Cell { return NumberCell(v(of(row))) }}
	}
	ranked := func(importance Importance, f Field[T]) Field[T] {
		f.Importance = importance
		return f
	}
	total := ns("total", "sum of all values", func(s *distribution.Summary) int64 { return s.Total })
	total.Scale, total.Importance = "", Minor
	return []Field[T]{
		{Column{Name: "n", Unit: Count, Doc: "number of values"}, func(row *T) Cell { return Cell{N: int64(of(row).N)} }},
		total,
		ranked(Minor, ns("mean", "arithmetic mean", func(s *distribution.Summary) int64 { return s.Mean })),
		ns("stddev", "sample standard deviation", func(s *distribution.Summary) int64 { return s.StdDev }).InDetail(),
		ns("min", "minimum", func(s *distribution.Summary) int64 { return s.Min }).InDetail(),
		ranked(Major, ns("p50", "median, nearest rank", func(s *distribution.Summary) int64 { return s.P50 })),
		ranked(Minor, ns("p90", "90th percentile, nearest rank", func(s *distribution.Summary) int64 { return s.P90 })),
		ranked(Minor, ns("p95", "95th percentile, nearest rank", func(s *distribution.Summary) int64 { return s.P95 })),
		ranked(Major, ns("p99", "99th percentile, nearest rank", func(s *distribution.Summary) int64 { return s.P99 })),
		ns("max", "maximum", func(s *distribution.Summary) int64 { return s.Max }),
	}
}

// NoteSamples warns about rows with too few values for a p99.
func NoteSamples[T any](r *Table, rows []T, count func(*T) int64, name func(*T) string) {
	const enough, named = 100, 3
	var names []string
	few := 0
	for i := range rows {
		n := count(&rows[i])
		if n >= enough {
			continue
		}
		if few++; few <= named {
			names = append(names, fmt.Sprintf("%s (n=%d)", name(&rows[i]), n))
		}
	}
	if few == 0 {
		return
	}
	list := strings.Join(names, ", ")
	if few > named {
		list += " and " + words.Counted(few-named, "more row")
	}
	r.Note("p99 of fewer than %d values is their maximum: %s", enough, list)
}

// TextColumn returns a column of texts; "" is unknown.
func TextColumn[T any](name, doc string, of func(*T) string) Field[T] {
	return Field[T]{Column{Name: name, Doc: doc}, func(row *T) Cell { return TextCell(of(row)) }}
}

// CountColumn returns a column of integers; request.Unknown is unknown.
func CountColumn[T any](name, doc string, of func(*T) int64) Field[T] {
	return Field[T]{Column{Name: name, Unit: Count, Doc: doc}, func(row *T) Cell { return NumberCell(of(row)) }}
}

// NumberColumn returns a column of numbers without a unit; NaN and infinity are unknown.
func NumberColumn[T any](name, doc string, of func(*T) float64) Field[T] {
	return Field[T]{Column{Name: name, Unit: Number, Doc: doc}, func(row *T) Cell { return RealCell(of(row)) }}
}

// ShareColumn returns a column of shares, 0 to 1; NaN is unknown.
func ShareColumn[T any](name, doc string, of func(*T) float64) Field[T] {
	return Field[T]{Column{Name: name, Unit: Share, Doc: doc}, func(row *T) Cell { return RealCell(of(row)) }}
}

// PartColumn returns a column of shares of part in whole, unknown if whole is 0.
func PartColumn[T any](name, doc string, of func(*T) (part, whole int64)) Field[T] {
	return Field[T]{Column{Name: name, Unit: Share, Doc: doc}, func(row *T) Cell { return ShareCell(of(row)) }}
}

// NsColumn returns a column of durations in ns; request.Unknown is unknown.
func NsColumn[T any](name, doc string, of func(*T) int64) Field[T] {
	return Field[T]{Column{Name: name, Unit: Duration, Doc: doc}, func(row *T) Cell { return NumberCell(of(row)) }}
}

// TookColumn returns a column of durations in ns, in the same unit as all others of its table.
func TookColumn[T any](name, doc string, of func(*T) int64) Field[T] {
	return NsColumn(name, doc, of).OnScale("duration")
}

// TimeColumn returns a column of times, all of which are known.
func TimeColumn[T any](name, doc string, of func(*T) trace.Time) Field[T] {
	return Field[T]{Column{Name: name, Unit: Instant, Doc: doc}, func(row *T) Cell { return InstantCell(of(row)) }}
}

// BytesColumn returns a column of sizes; request.Unknown is unknown.
func BytesColumn[T any](name, doc string, of func(*T) int64) Field[T] {
	return Field[T]{Column{Name: name, Unit: Bytes, Doc: doc}, func(row *T) Cell { return NumberCell(of(row)) }}
}

// FactorColumn returns a column of ratios, which may exceed 1; NaN and infinity are unknown.
func FactorColumn[T any](name, doc string, of func(*T) float64) Field[T] {
	return Field[T]{Column{Name: name, Unit: Factor, Doc: doc}, func(row *T) Cell { return RealCell(of(row)) }}
}

// YesColumn returns a column with "yes" or nothing.
func YesColumn[T any](name, doc string, of func(*T) bool) Field[T] {
	return TextColumn(name, doc, func(row *T) string {
		if of(row) {
			return "yes"
		}
		return ""
	})
}

// OnScale returns the column, printed in the same unit as all others with that scale.
func (f Field[T]) OnScale(scale string) Field[T] {
	f.Scale = scale
	return f
}

// InDetail returns the column, for CSV and JSON only.
func (f Field[T]) InDetail() Field[T] { return f.DetailIf(true) }

// DetailIf returns the column, for CSV and JSON only if detail is true.
func (f Field[T]) DetailIf(detail bool) Field[T] {
	f.Detail = detail
	return f
}

// AtMost returns the column, with texts cut to a width in text and Markdown.
func (f Field[T]) AtMost(width int) Field[T] {
	f.Most = width
	return f
}

// ShareCell returns a cell of the share of part in whole, unknown if whole is 0.
func ShareCell(part, whole int64) Cell {
	return Cell{Share: distribution.Fraction(part, whole), Unknown: whole == 0}
}

// Detail marks all fields as details, and returns them.
func Detail[T any](f []Field[T]) []Field[T] {
	for i := range f {
		f[i].Detail = true
	}
	return f
}

// FileField returns the column of a row's file.
func FileField[T any](of func(*T) string) Field[T] {
	return TextColumn("file", "input file", of).AtMost(44)
}

// TimeField returns a column of times, unknown where ok is false.
func TimeField[T any](name, doc string, of func(*T) (t trace.Time, ok bool)) Field[T] {
	return Field[T]{Column{Name: name, Unit: Instant, Doc: doc}, func(r *T) Cell {
		t, ok := of(r)
		return Cell{N: int64(t), Unknown: !ok}
	}}
}

// MaxName is the largest width of a name for people. Names of kernels may have thousands of characters, but most
// differ at one of their ends.
const MaxName = 90

// DistributionColumns configure the columns of a distribution.
type DistributionColumns[T any] struct {
	Prefix string // prefix of the names: "proj "
	Unit   Unit
	What   string // plural of the things counted: "kernels"
	Of     func(*T) *distribution.Distribution
	Show   []string // names, without prefix, of the columns shown to people
}

// DistributionFields returns the columns of a distribution, in the order of nsys stats, and percentiles. They are
// unknown if nothing was counted.
func DistributionFields[T any](c DistributionColumns[T]) []Field[T] {
	fields := []Field[T]{
		c.number("total", "sum of all values", false, func(d *distribution.Distribution) int64 { return d.Total }),
		{Column{Name: c.Prefix + "instances", Unit: Count, Doc: "number of " + c.What, Detail: !slices.Contains(c.Show, "instances")},
			func(row *T) Cell { return Cell{N: c.Of(row).N} }},
		c.number("avg", "arithmetic mean", true, func(d *distribution.Distribution) int64 { return d.MeanTenths }),
		c.number("med", "median; mean of the two middle values if the count is even", true, func(d *distribution.Distribution) int64 { return d.MedianTenths }),
		c.number("min", "minimum", false, func(d *distribution.Distribution) int64 { return d.Min }),
		c.number("max", "maximum", false, func(d *distribution.Distribution) int64 { return d.Max }),
		c.number("stddev", "sample standard deviation; 0 for a single value", true, func(d *distribution.Distribution) int64 { return d.StdDevTenths }),
		c.number("p90", "90th percentile, nearest rank", false, func(d *distribution.Distribution) int64 { return d.P90 }),
		c.number("p95", "95th percentile, nearest rank", false, func(d *distribution.Distribution) int64 { return d.P95 }),
		c.number("p99", "99th percentile, nearest rank", false, func(d *distribution.Distribution) int64 { return d.P99 }),
	}
	fields[0].Scale = "" // people only compare the other columns with each other
	return fields
}

// number returns one of the columns.
func (c *DistributionColumns[T]) number(name, doc string, tenths bool, v func(*distribution.Distribution) int64) Field[T] {
	return Field[T]{
		Column{Name: c.Prefix + name, Unit: c.Unit, Doc: doc, Scale: c.Prefix + "scale", Tenths: tenths, Detail: !slices.Contains(c.Show, name)},
		func(row *T) Cell {
			d := c.Of(row)
			return Cell{N: v(d), Unknown: d.N == 0}
		}}
}

// InWords formats a duration with its unit.
func InWords(ns int64) string {
	s := ScaleFor(Duration, []int64{ns})
	return s.Format(ns, false) + " " + s.Unit
}

// NoteFewSamples warns about rows with too few values for a p99.
func NoteFewSamples[T any](r *Table, rows []T, count func(*T) int64, name func(*T) string) {
	const width = 60 // of a name in the list
	NoteSamples(r, rows, count, func(row *T) string { return CutMiddle(name(row), width, Style{}) })
}

// NoteApproximate notes the number of rows with too many values to keep.
func NoteApproximate(r *Table, rows int) {
	if rows > 0 {
		r.Note("rows with more values than sgtrace keeps: %d; their medians and percentiles may be off by 0.4 %%, all other numbers are exact", rows)
	}
}

const DefaultWidth = 120

const MinBar = 20

// numberWithUnit matches a number and its unit, which stay on one line.
var numberWithUnit = regexp.MustCompile(`(\d) (%|[num]?s\b|/s\b|[kM]?B\b)`)

// Fill wraps text: the first line has at most first columns, and all others have at most rest. A longer word has a
// line of its own. A no-break space keeps a number and its unit together.
func Fill(text string, first, rest int) (lines []string) {
	line, used, room := "", 0, first
	for word := range strings.SplitSeq(numberWithUnit.ReplaceAllString(words.Clean(text), "$1\u00a0$2"), " ") {
		width := twwidth.Width(word)
		switch {
		case used == 0 && line == "":
			line, used = word, width
		case used+1+width > room:
			lines, line, used, room = append(lines, strings.TrimRight(line, " ")), word, width, rest
		default:
			line, used = line+" "+word, used+1+width
		}
	}
	return append(lines, strings.TrimRight(line, " "))
}

// A Tone is the significance of a text for the reader. Terminals show it as a color.
type Tone uint8

const (
	Plain   Tone = iota
	Good         // better than before
	Warning      // worth a look
	Bad          // worse than before; lost, critical
)

// colors are the ANSI colors of tones, which every terminal has.
var colors = [...]string{Good: "32", Warning: "33", Bad: "31"}

// Paint returns text in the color of its tone, if the style has colors.
func (s Style) Paint(tone Tone, text string) string {
	if !s.Color || tone == Plain || text == "" {
		return text
	}
	return "\x1b[" + colors[tone] + "m" + text + "\x1b[0m"
}

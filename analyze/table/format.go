package table

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// A Format is a way to write a report.
type Format string

const (
	FormatText     Format = "text"     // aligned, for a terminal
	FormatMarkdown Format = "markdown" // a table for GitHub
	FormatCSV      Format = "csv"      // one table, unscaled
	FormatJSON     Format = "json"     // objects, unscaled
)

// Formats lists the formats of every table, the default first.
var Formats = []Format{FormatText, FormatMarkdown, FormatCSV, FormatJSON}

// A Style adapts text output to the terminal; other formats ignore it.
type Style struct {
	Width int  // columns of the terminal; 0 is unlimited
	ASCII bool // the tool itself draws only ASCII
	Color bool // tones have colors
}

// ascii replaces the non-ASCII characters in sentences of the tool.
var ascii = strings.NewReplacer("±", "+-", "→", "->", "…", "...")

// Draw returns a text of the tool itself with characters that can be shown.
func (s Style) Draw(text string) string {
	if s.ASCII {
		return ascii.Replace(text)
	}
	return text
}

// Write writes the report in the given format.
func (r *Table) Write(w io.Writer, f Format, s Style) error {
	switch f {
	case FormatText:
		return r.writeText(w, s)
	case FormatMarkdown:
		return r.writeMarkdown(w)
	case FormatCSV:
		return r.writeCSV(w)
	case FormatJSON:
		return r.WriteJSON(w)
	case FormatFolded:
		return r.writeFolded(w)
	}
	return fmt.Errorf("no format %q; there are %v", f, Formats)
}

// A scale is the unit and the number of decimals in which the times or sizes of a column are printed.
type scale struct {
	Unit     string
	size     float64 // ns or bytes in one unit
	decimals int
}

// scaleUnits are the units by kind, smallest first; usual is the index of the one for columns without a value above
// 0, and percent the percentile that decides. Sizes of copies range from one byte to gigabytes, so the largest one
// decides, but only up to MB, the unit of nsys stats.
var scaleUnits = map[Unit]struct {
	units   []scale
	usual   int
	percent int
}{
	Duration: {[]scale{{Unit: "ns", size: 1}, {Unit: "us", size: 1e3}, {Unit: "ms", size: 1e6}, {Unit: "s", size: 1e9}}, 2, 50},
	Bytes:    {[]scale{{Unit: "B", size: 1}, {Unit: "kB", size: 1e3}, {Unit: "MB", size: 1e6}}, 0, 100},
}

// ScaleFor chooses the largest unit in which the deciding percentile (of times, the median) is at least 1, and enough
// decimals for the smallest value to have three significant digits, but at most three decimals. It reorders values.
func ScaleFor(unit Unit, values []int64) scale {
	of := scaleUnits[unit]
	values = slices.DeleteFunc(values, func(v int64) bool { return v == 0 })
	for i, v := range values {
		values[i] = max(v, -v)
	}
	if len(values) == 0 {
		return of.units[of.usual]
	}
	slices.Sort(values)
	s := of.units[0]
	for _, u := range of.units[1:] {
		if float64(request.NearestRank(values, of.percent)) >= u.size {
			s = u
		}
	}
	return s.fine(float64(values[0]))
}

// fine returns s with enough decimals for a value above 0 to have three significant digits, but at most three
// decimals.
func (s scale) fine(value float64) scale {
	for value > 0 && s.size > 1 && s.decimals < 3 && value*math.Pow10(s.decimals) < 100*s.size {
		s.decimals++
	}
	return s
}

// Format formats a time or size, small ones with more decimals. Tenths of ns or bytes may be less than 1, because
// there is no smaller unit.
func (s scale) Format(n int64, tenths bool) string {
	value := float64(n)
	if tenths {
		value /= 10
	}
	return strconv.FormatFloat(value/s.size, 'f', s.fine(math.Abs(value)).decimals, 64)
}

// A textTable is a report formatted for people: strings, without empty columns.
type textTable struct {
	columns    []int    // indexes into the columns of the report
	names      []string // names of the columns, without units
	header     []string
	right      []bool // column is aligned to the right
	most       []int  // largest width of texts in a column; 0 is unlimited
	importance []Importance
	rows       [][]string
	tones      [][]Tone // of the cells of rows
	notes      []string
	tooWide    string // note about columns that do not fit the terminal
}

// textTable formats the report for people. Columns without any value are left out, with a note.
func (r *Table) textTable() *textTable {
	s := &textTable{rows: make([][]string, r.Len()), tones: make([][]Tone, r.Len()), notes: slices.Clone(r.Footnotes)}
	var empty []string
	scales := r.scales()
	clock := r.clock()
	if clock.day != "" {
		s.notes = append(s.notes, "all times are on "+clock.day)
	}
	names := true // still in the columns left of the first number
	for c, column := range r.Columns {
		if column.Detail {
			continue
		}
		if r.Len() > 0 && r.unknown(c) {
			empty = append(empty, column.Name)
			continue
		}
		f := formatter{column: column, scale: scales[column.scaleKey(c)], clock: clock}
		names = names && (column.Unit == Text || column.Unit == Instant)
		s.columns = append(s.columns, c)
		s.names = append(s.names, column.Name)
		s.importance = append(s.importance, column.importance(names))
		s.header = append(s.header, f.header())
		s.right = append(s.right, column.Unit != Text)
		s.most = append(s.most, column.Most)
		for row := range s.rows {
			cell := r.Cell(row, c)
			s.rows[row] = append(s.rows[row], f.format(cell))
			s.tones[row] = append(s.tones[row], cell.Tone)
		}
	}
	if len(empty) > 0 {
		s.notes = append(s.notes, "columns without values left out: "+strings.Join(empty, ", "))
	}
	for i := range s.notes {
		s.notes[i] = words.Clean(s.notes[i])
	}
	return s
}

// importance returns how long c stays on a narrow terminal. Texts and times left of all numbers distinguish rows, and
// so do names of kernels anywhere.
func (c Column) importance(left bool) Importance {
	if c.Importance == Usual && (left || c.Most == MaxName) {
		return nameOfRow
	}
	return c.Importance
}

// unknown reports whether column c has no value at all.
func (r *Table) unknown(c int) bool {
	for row := range r.Len() {
		if !r.Cell(row, c).Unknown {
			return false
		}
	}
	return true
}

// scaleKey names the set of columns that share a scale with c.
func (c Column) scaleKey(index int) string {
	if c.Scale != "" {
		return c.Scale
	}
	return strconv.Itoa(index)
}

// firstRows is the number of rows that decide how times and sizes are printed, so that a number is printed the same
// with any limit. In a column that the table is sorted by, largest first, only firstValues do: smaller values matter
// less, and would turn a second into microseconds.
const (
	firstRows   = 20
	firstValues = 5
)

// scales chooses the scale for every set of columns that share one.
func (r *Table) scales() map[string]scale {
	rows := r.whole
	if rows == nil {
		rows = r.order
	}
	rows = rows[:min(firstRows, len(rows))]
	values := map[string][]int64{}
	units := map[string]Unit{}
	for c, column := range r.Columns {
		if _, scaled := scaleUnits[column.Unit]; !scaled || column.Detail {
			continue
		}
		key := column.scaleKey(c)
		units[key] = column.Unit
		var of []int64
		for _, row := range rows {
			if v := r.cell(int(row), c); !v.Unknown && column.Tenths {
				of = append(of, v.N/10)
			} else if !v.Unknown {
				of = append(of, v.N)
			}
		}
		if slices.IsSortedFunc(of, func(a, b int64) int { return cmp.Compare(b, a) }) {
			of = of[:min(firstValues, len(of))]
		}
		if len(of) > 0 {
			values[key] = append(values[key], of...)
		}
	}
	scales := map[string]scale{}
	for key, v := range values {
		scales[key] = ScaleFor(units[key], v)
	}
	return scales
}

// A clock is how the times of a report are formatted.
type clock struct {
	layout string
	day    string // the day of all times; "" if they differ, and each has its own
	zone   string // the zone of all times; "" if they differ, and each has its own
	counts bool   // times are not dates, but seconds since an unknown origin
}

// clock decides how to format times: what all have in common is written once.
func (r *Table) clock() clock {
	c, known, dates := clock{layout: words.DateLayout, zone: words.ZoneAt(0)}, false, false
	for i, column := range r.Columns {
		if column.Unit != Instant || column.Detail {
			continue
		}
		for row := range r.Len() {
			cell := r.Cell(row, i)
			if cell.Unknown {
				continue
			}
			at := trace.Time(cell.N)
			dates = dates || words.IsDate(at)
			day, zone := words.Clock(at).Format(time.DateOnly), words.ZoneAt(at)
			if !known {
				c.day, c.zone, known = day, zone, true
			}
			if c.day != day {
				c.day = ""
			}
			if c.zone != zone {
				c.zone = ""
			}
		}
	}
	if known && !dates {
		return clock{zone: "s", counts: true}
	}
	if c.day != "" {
		c.layout = words.ClockLayout
	}
	if c.zone == "" {
		c.layout += " -07:00"
	}
	return c
}

// count formats a time that is not a date, in seconds.
func (c *clock) count(ns int64) string {
	sign, us := "", ns/1000
	if us < 0 {
		sign, us = "-", -us
	}
	return fmt.Sprintf("%s%d.%06d", sign, us/1e6, us%1e6)
}

// A formatter formats the cells of one column.
type formatter struct {
	column Column
	scale  scale
	clock  clock
}

func (f *formatter) header() string {
	name := cmp.Or(f.column.Title, f.column.Name)
	switch f.column.Unit {
	case Duration, Bytes:
		if f.scale.Unit == "" {
			return name
		}
		return name + " [" + f.scale.Unit + "]"
	case Share:
		return name + " [%]"
	case Instant:
		if f.clock.zone == "" {
			return name
		}
		return name + " [" + f.clock.zone + "]"
	}
	return name
}

func (f *formatter) format(c Cell) string {
	if c.Unknown {
		return "-"
	}
	switch f.column.Unit {
	case Count:
		return string(f.column.appendNumber(nil, c.N))
	case Duration, Bytes:
		return f.scale.Format(c.N, f.column.Tenths)
	case Instant:
		if f.clock.counts {
			return f.clock.count(c.N)
		}
		return words.Clock(trace.Time(c.N)).Format(f.clock.layout)
	case Number, Factor:
		return words.ShortNumber(c.Share)
	case Share:
		// Half away from zero, like nsys stats.
		return strconv.FormatFloat(math.Round(1000*c.Share)/10, 'f', 1, 64)
	}
	return words.Clean(c.Text)
}

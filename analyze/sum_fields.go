package analyze

import (
	"slices"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/profile"
)

// mostName is how wide a name is for people: names of kernels reach thousands of
// characters, but their two ends tell most of them apart.
const mostName = 90

// distributionColumns say which columns a distribution has.
type distributionColumns[T any] struct {
	prefix string // of the names: "proj "
	unit   Unit
	what   string // has been counted: "kernel"
	of     func(*T) *distribution.Distribution
	show   []string // names, without prefix, of the columns for people
}

// distributionFields are the columns of a distribution, in the order of nsys stats,
// and percentiles. Where nothing was counted, they are unknown.
func distributionFields[T any](c distributionColumns[T]) []field[T] {
	fields := []field[T]{
		c.number("total", "sum", false, func(d *distribution.Distribution) int64 { return d.Total }),
		{Column{Name: c.prefix + "instances", Unit: Count, Doc: "how many " + c.what + "s", Detail: !slices.Contains(c.show, "instances")},
			func(row *T) Cell { return Cell{N: c.of(row).N} }},
		c.number("avg", "arithmetic mean", true, func(d *distribution.Distribution) int64 { return d.Mean }),
		c.number("med", "median; the mean of the two middle values if there are two", true, func(d *distribution.Distribution) int64 { return d.Median }),
		c.number("min", "least", false, func(d *distribution.Distribution) int64 { return d.Min }),
		c.number("max", "most", false, func(d *distribution.Distribution) int64 { return d.Max }),
		c.number("stddev", "standard deviation of the sample; 0 of one value", true, func(d *distribution.Distribution) int64 { return d.StdDev }),
		c.number("p90", "90th percentile, nearest rank", false, func(d *distribution.Distribution) int64 { return d.P90 }),
		c.number("p95", "95th percentile, nearest rank", false, func(d *distribution.Distribution) int64 { return d.P95 }),
		c.number("p99", "99th percentile, nearest rank", false, func(d *distribution.Distribution) int64 { return d.P99 }),
	}
	fields[0].Scale = "" // people compare the others with each other
	return fields
}

// number is one of the columns.
func (c *distributionColumns[T]) number(name, doc string, tenths bool, v func(*distribution.Distribution) int64) field[T] {
	return field[T]{
		Column{Name: c.prefix + name, Unit: c.unit, Doc: doc, Scale: c.prefix + "scale", Tenths: tenths, Detail: !slices.Contains(c.show, name)},
		func(row *T) Cell {
			d := c.of(row)
			return Cell{N: v(d), Unknown: d.N == 0}
		}}
}

// rankFields name the rank of a row, where rows have one.
func rankFields[T any](byRank bool, of func(*T) *sumRow) []field[T] {
	if !byRank {
		return nil
	}
	return []field[T]{{Column{Name: "rank", Doc: "rank, or process that is none"}, func(row *T) Cell { return textCell(of(row).Rank) }}}
}

// ranksFields count the ranks of a row that pools them. Of one rank there is
// nothing to count.
func ranksFields[T any](byRank bool, all int, of func(*T) *sumRow) []field[T] {
	if byRank {
		return nil
	}
	return []field[T]{{Column{Name: "ranks", Unit: Count, Doc: "how many ranks have any", Detail: all < 2},
		func(row *T) Cell { return Cell{N: int64(of(row).Ranks)} }}}
}

func shareField[T any](doc string, of func(*T) float64) field[T] {
	return field[T]{Column{Name: "time", Unit: Share, Doc: doc}, func(row *T) Cell { return Cell{Share: of(row)} }}
}

// nameField is the last column, since names are long.
func nameField[T any](what string, of func(*T) *sumRow) field[T] {
	return field[T]{Column{Name: what, Doc: "name of the " + what, Most: mostName}, func(row *T) Cell { return textCell(of(row).Name) }}
}

// threadFields name the thread of a row.
func threadFields[T any](of func(*T) (pid int32, tid int64)) []field[T] {
	return []field[T]{
		{Column{Name: "pid", Unit: Count, Doc: "process"}, func(row *T) Cell {
			pid, _ := of(row)
			return numberCell(int64(pid))
		}},
		{Column{Name: "tid", Unit: Count, Doc: "thread"}, func(row *T) Cell {
			_, tid := of(row)
			return numberCell(tid)
		}},
	}
}

func styleField[T any](of func(*T) profile.RangeStyle) field[T] {
	return field[T]{Column{Name: "style", Doc: "PushPop nests, StartEnd need not"}, func(row *T) Cell { return textCell(of(row).String()) }}
}

// inWords returns a time with its unit.
func inWords(ns int64) string {
	s := scaleFor(Duration, []int64{ns})
	return s.format(ns, false) + " " + s.unit
}

// noteFewSamples warns of rows with too few values for a p99.
func noteFewSamples[T any](r *Report, rows []T, count func(*T) int64, name func(*T) string) {
	const width = 60 // in a list
	noteSamples(r, rows, count, func(row *T) string { return cutMiddle(name(row), width, Style{}) })
}

// noteApproximate tells of rows with too many values to hold.
func noteApproximate(r *Report, rows int) {
	if rows > 0 {
		r.note("rows of more values than are held: %d; their medians and percentiles may be off by 0.4 %%, all other numbers are exact", rows)
	}
}

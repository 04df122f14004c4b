package analyze

import (
	"fmt"
	"math"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/words"
)

// realCell is unknown when v is NaN or infinite.
func realCell(v float64) Cell { return Cell{Share: v, Unknown: math.IsNaN(v) || math.IsInf(v, 0)} }

// summaryFields are the columns of a summary.
func summaryFields[T any](of func(*T) *distribution.Summary) []field[T] {
	const scale = "duration" // people compare these with each other
	ns := func(name, doc string, v func(*distribution.Summary) int64) field[T] {
		return field[T]{Column{Name: name, Unit: Duration, Doc: doc, Scale: scale},
			func(row *T) Cell { return numberCell(v(of(row))) }}
	}
	detail := func(f field[T]) field[T] {
		f.Detail = true
		return f
	}
	total := ns("total", "sum", func(s *distribution.Summary) int64 { return s.Total })
	total.Scale = ""
	return []field[T]{
		{Column{Name: "n", Unit: Count, Doc: "how many"}, func(row *T) Cell { return Cell{N: int64(of(row).N)} }},
		total,
		ns("mean", "arithmetic mean", func(s *distribution.Summary) int64 { return s.Mean }),
		detail(ns("stddev", "standard deviation of the sample", func(s *distribution.Summary) int64 { return s.StdDev })),
		detail(ns("min", "shortest", func(s *distribution.Summary) int64 { return s.Min })),
		ns("p50", "median, nearest rank", func(s *distribution.Summary) int64 { return s.P50 }),
		ns("p90", "90th percentile, nearest rank", func(s *distribution.Summary) int64 { return s.P90 }),
		ns("p95", "95th percentile, nearest rank", func(s *distribution.Summary) int64 { return s.P95 }),
		ns("p99", "99th percentile, nearest rank", func(s *distribution.Summary) int64 { return s.P99 }),
		ns("max", "longest", func(s *distribution.Summary) int64 { return s.Max }),
	}
}

// noteSamples warns of rows with too few values for a p99.
func noteSamples[T any](r *Report, rows []T, count func(*T) int64, name func(*T) string) {
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
	r.note("p99 of fewer than %d values is their maximum: %s", enough, list)
}

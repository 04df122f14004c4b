package analyze

import (
	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/request"
)

// A lateRow is a rank in one kind of step.
type lateRow struct {
	*StepGroup
	rank int
}

func (l *lateRow) lateness() *Lateness { return &l.Late[l.rank] }

func (r *Ranks) stepReport() *Report {
	type R = lateRow
	var rows []lateRow
	for _, g := range r.Groups {
		for rank := range g.Ranks {
			rows = append(rows, lateRow{g, rank})
		}
	}
	late := func(name, doc string, of func(*Lateness) int64) field[R] {
		f := nsColumn(name, doc, func(l *R) int64 { return of(l.lateness()) })
		f.Scale = "late"
		known := f.of
		f.of = func(l *R) Cell {
			c := known(l)
			c.Unknown = l.lateness().Meetings == 0
			return c
		}
		return f
	}
	fields := append([]field[R]{textColumn("step", "what the ranks compute together", func(l *R) string { return l.Kind.String() })},
		rankColumns(func(l *R) *Where { return &l.Ranks[l.rank] })...)
	fields = append(fields,
		countColumn("steps", "that it took with others of its TP group", func(l *R) int64 { return int64(l.lateness().Meetings) }),
		late("late p50", "median of its end of the step minus the median of those of its TP peers; negative is early", func(l *Lateness) int64 { return l.P50 }),
		late("late p99", "99th percentile of that", func(l *Lateness) int64 { return l.P99 }),
		countColumn("last", "steps that it ended after all others", func(l *R) int64 { return int64(l.lateness().Last) }),
		shareColumn("last share", "of its steps", func(l *R) float64 {
			return distribution.Ratio(float64(l.lateness().Last), float64(l.lateness().Meetings))
		}),
		late("late if last", "mean of its lateness where it was last", func(l *Lateness) int64 { return l.LastMean }),
		shareColumn("lost share", "how long the others waited for it where it was last, as part of their time in all steps", func(l *R) float64 { return l.lateness().LostShare }),
	)
	fields = append(fields, detail([]field[R]{
		late("late mean", "mean of its lateness", func(l *Lateness) int64 { return l.Mean }),
		nsColumn("others lost", "how long the others waited for it where it was last, together", func(l *R) int64 { return l.lateness().Lost }),
	})...)
	out := tabulate("sgtrace.report.ranks.steps/v1", r.Verdict(), rows, fields)
	out.note("requests that end a step within %s of each other on a rank are one batch, and one step", words.Nearly(request.SameBatch))
	r.skipped.note(out)
	return out
}

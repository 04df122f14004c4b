package rank

import (
	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/straggler"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/request"
)

// A lateRow is a rank in one kind of step.
type lateRow struct {
	*StepGroup
	rank int
}

func (l *lateRow) lateness() *straggler.Lateness { return &l.Late[l.rank] }

func (r *Ranks) stepReport() *table.Table {
	type R = lateRow
	var rows []lateRow
	for _, g := range r.Groups {
		for rank := range g.Ranks {
			rows = append(rows, lateRow{g, rank})
		}
	}
	late := func(name, doc string, of func(*straggler.Lateness) int64) table.Field[R] {
		f := table.NsColumn(name, doc, func(l *R) int64 { return of(l.lateness()) })
		f.Scale = "late"
		known := f.Cell
		f.Cell = func(l *R) table.Cell {
			c := known(l)
			c.Unknown = l.lateness().SyncPoints == 0
			return c
		}
		return f
	}
	fields := append([]table.Field[R]{table.TextColumn("step", "what the ranks compute together", func(l *R) string { return l.Kind.String() })},
		rankColumns(func(l *R) *place.Where { return &l.Ranks[l.rank] })...)
	fields = append(fields,
		table.CountColumn("steps", "that it took with others of its TP group", func(l *R) int64 { return int64(l.lateness().SyncPoints) }),
		late("late p50", "median of its end of the step minus the median of those of its TP peers; negative is early", func(l *straggler.Lateness) int64 { return l.P50 }),
		late("late p99", "99th percentile of that", func(l *straggler.Lateness) int64 { return l.P99 }),
		table.CountColumn("last", "steps that it ended after all others", func(l *R) int64 { return int64(l.lateness().Last) }),
		table.ShareColumn("last share", "of its steps", func(l *R) float64 {
			return distribution.Ratio(float64(l.lateness().Last), float64(l.lateness().SyncPoints))
		}),
		late("late if last", "mean of its lateness where it was last", func(l *straggler.Lateness) int64 { return l.LastMean }),
		table.ShareColumn("lost share", "how long the others waited for it where it was last, as part of their time in all steps", func(l *R) float64 { return l.lateness().LostShare }),
	)
	fields = append(fields, table.Detail([]table.Field[R]{
		late("late mean", "mean of its lateness", func(l *straggler.Lateness) int64 { return l.Mean }),
		table.NsColumn("others lost", "how long the others waited for it where it was last, together", func(l *R) int64 { return l.lateness().Lost }),
	})...)
	out := table.New("sgtrace.report.ranks.steps/v1", r.Verdict(), rows, fields)
	out.Stay("late if last", "lost share").Leave("steps", "late p50", "late p99", "last")
	out.Note("requests that end a step within %s of each other on a rank count as one batch and one step", words.Nearly(request.SameBatch))
	r.skipped.note(out)
	return out
}

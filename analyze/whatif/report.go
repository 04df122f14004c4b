package whatif

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/request"
)

// An Answer is what a change would have done.
type Answer struct {
	*Change
	Metrics []finding.Without
}

// A line is a metric of an answer.
type line struct {
	change string
	*finding.Without
}

// Report returns a table of answers, with what was assumed, and how far the replay is off.
func (r *Run) Report(answers []Answer) *table.Table {
	t := StepReport(answers)
	t.Note("%s", r.fit())
	return t
}

// StepReport returns a table of answers, with what was assumed.
func StepReport(answers []Answer) *table.Table {
	var lines []line
	for i := range answers {
		for k := range answers[i].Metrics {
			lines = append(lines, line{answers[i].Name, &answers[i].Metrics[k]})
		}
	}
	shares := slices.ContainsFunc(lines, func(l line) bool { return l.Unit == table.Share })
	fields := []table.Field[line]{
		table.TextColumn("change", "what is different in the replay", func(l *line) string { return l.change }),
		table.TextColumn("metric", "of the finished requests: percentiles of E2E and of TTFT as users see them; the share that meets --slo. Of steps: means; of bubbles, the part of their time in which stages of pipelines compute nothing", func(l *line) string { return l.Metric }),
	}
	valueFields := func(name, doc string, of func(*finding.Without) float64) []table.Field[line] {
		list := valueFields(name, doc, of)
		if !shares {
			list = list[:1]
		}
		return list
	}
	fields = append(fields, valueFields("actual", "as recorded", func(w *finding.Without) float64 { return w.Actual })...)
	fields = append(fields, valueFields("with change", "as it would have been", func(w *finding.Without) float64 { return w.Without })...)
	fields = append(fields, valueFields("low", "lower end of the interval in which that lies", func(w *finding.Without) float64 { return w.Low })...)
	fields = append(fields, valueFields("high", "upper end of it", func(w *finding.Without) float64 { return w.High })...)
	fields = append(fields, table.TextColumn("differs", "whether the interval leaves out what was recorded; else it may be noise", func(l *line) string {
		if l.Differs() {
			return "yes"
		}
		return "no"
	}))
	t := table.New("sgtrace.report.whatif/v1", "What if", lines, fields)
	for i := range answers {
		for _, text := range answers[i].Assumed {
			t.Note("%s: assumes that %s", answers[i].Name, text)
		}
	}
	return t
}

// valueFields returns the columns of a value: a time, or a share.
func valueFields(name, doc string, of func(*finding.Without) float64) []table.Field[line] {
	return []table.Field[line]{
		table.NsColumn(name, doc, func(l *line) int64 {
			if v := of(l.Without); l.Unit == table.Duration && !math.IsNaN(v) {
				return int64(v)
			}
			return request.Unknown
		}),
		table.ShareColumn(name+" share", doc+", of goodput and bubbles", func(l *line) float64 {
			if l.Unit == table.Share {
				return of(l.Without)
			}
			return math.NaN()
		}),
	}
}

// fit says how far the replay without a change is from what was recorded.
func (r *Run) fit() string {
	var list []string
	for i := range r.Off {
		w := &r.Off[i]
		if w.Unit == table.Share {
			list = append(list, fmt.Sprintf("%s %+.1f points", w.Metric, 100*(w.Without-w.Actual)))
		} else if w.Actual > 0 {
			list = append(list, fmt.Sprintf("%s %+.1f %%", w.Metric, 100*(w.Without/w.Actual-1)))
		}
	}
	return fmt.Sprintf("played without a change, %s are off by: %s", words.Counted(len(r.recorded), "request"), strings.Join(list, ", "))
}

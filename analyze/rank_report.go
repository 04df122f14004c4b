package analyze

import (
	"math"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/request"
)

// Reports returns the tables: what every rank had to do, how load is divided where
// several ranks could have it, who is late at the end of steps, and the stages of
// pipelines.
func (r *Ranks) Reports() []*Report {
	reports := []*Report{r.loadReport()}
	if divisions := r.divisions(); len(divisions) > 0 {
		reports = append(reports, r.divisionReport(divisions))
	}
	if len(r.Groups) > 0 {
		reports = append(reports, r.stepReport())
	} else {
		r.skipped.note(reports[0])
	}
	if len(r.Pipes) > 0 {
		reports = append(reports, r.pipelineReport())
	}
	return reports
}

// rankColumns are the columns that name a rank.
func rankColumns[T any](of func(*T) *Where) []field[T] {
	fields := []field[T]{
		textColumn("role", "of the server", func(row *T) string { return of(row).Role.String() }),
		textColumn("host", "machine", func(row *T) string { return of(row).serverName() }),
		textColumn("label", "thread label", func(row *T) string { return of(row).Label }),
		textColumn("rank", "parallel ranks", func(row *T) string { return of(row).Rank.String() }),
	}
	detail(fields[2:3]) // the role tells as much
	return fields
}

func (r *Ranks) loadReport() *Report {
	type R = RankLoad
	perSecond := func(n int64) float64 {
		if n == request.Unknown {
			return math.NaN()
		}
		return distribution.Ratio(float64(n), float64(r.Length)/1e9)
	}
	fields := append(rankColumns(func(l *R) *Where { return &l.Where }),
		countColumn("requests", "that the rank worked for", func(l *R) int64 { return l.Requests }),
		countColumn("prompt tokens", "of prompts that were computed; what was in the cache is not among them", func(l *R) int64 { return l.Prompt }),
		countColumn("output tokens", "that came out", func(l *R) int64 { return l.Output }),
		numberColumn("output rate", "output tokens per s of the whole time", func(l *R) float64 { return perSecond(l.Output) }),
		shareColumn("busy", "part of the whole time in which it computed for at least one request", func(l *R) float64 { return l.Busy }),
		numberColumn("running", "requests that it computed for at once, on average over the whole time", func(l *R) float64 { return l.Running }),
		nsColumn("queue", "how long a request waited for a batch, memory or its other half, on average", func(l *R) int64 { return l.Queue }),
		countColumn("aborted", "requests that were aborted", func(l *R) int64 { return l.Aborted }),
		countColumn("failed", "requests that failed", func(l *R) int64 { return l.Failed }),
		countColumn("retracted", "how often a request was thrown out of the batch", func(l *R) int64 { return l.Retractions }),
	)
	fields = append(fields, detail([]field[R]{
		nsColumn("step", "median of decode_loop", func(l *R) int64 { return l.Step }),
		numberColumn("prompt rate", "prompt tokens per s of the whole time", func(l *R) float64 { return perSecond(l.Prompt) }),
		{Column{Name: "lead", Doc: "yes: the rank stands for those that do the same work beside it"}, func(l *R) Cell { return yesCell(l.Lead) }},
	})...)
	out := tabulate("sgtrace.report.ranks/v1", "Ranks", r.Loads, fields)
	for _, note := range r.notes {
		out.note("%s", note)
	}
	if r.unlaunched {
		out.note("the stages of pipelines cannot be compared: run_batch_cpu is missing (trace level below 4)")
	}
	return out
}

func (r *Ranks) divisionReport(divisions []Division) *Report {
	type R = *RankLoad
	var rows []*RankLoad
	title := "Load is divided evenly, or it does not matter"
	for i := range divisions {
		rows = append(rows, divisions[i].Ranks...)
	}
	if slow := r.slowFindings(); len(slow) > 0 {
		title = "Slow server: " + slow[0].Text
	}
	for i := range divisions {
		if divisions[i].Uneven {
			title = "Imbalance: " + divisions[i].Text()
			break
		}
	}
	fields := append(rankColumns(func(l *R) *Where { return &(*l).Where }),
		countColumn("requests", "that were sent to the rank", func(l *R) int64 { return (*l).Requests }),
		shareColumn("share", "of the requests of the role", func(l *R) float64 { return (*l).Share }),
		countColumn("tokens", "prompt and output tokens that it computed", func(l *R) int64 { return (*l).tokens() }),
		shareColumn("token share", "of the tokens of the role", func(l *R) float64 { return (*l).TokenShare }),
		numberColumn("running", "requests that it computed for at once, on average", func(l *R) float64 { return (*l).Running }),
		nsColumn("queue", "how long a request waited for a batch, memory or its other half, on average", func(l *R) int64 { return (*l).Queue }),
		shareColumn("queue share", "of the time that the requests of the role waited", func(l *R) float64 { return (*l).QueueShare }),
		nsColumn("step", "median of decode_loop", func(l *R) int64 { return (*l).Step }),
	)
	out := tabulate("sgtrace.report.ranks.share/v1", title, rows, fields)
	out.note("ranks that work side by side on a request (TP, PP) are one here")
	return out
}

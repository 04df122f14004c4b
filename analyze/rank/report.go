package rank

import (
	"math"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/request"
)

// Reports returns the tables: what every rank had to do, how load is divided where
// several ranks could have it, who is late at the end of steps, and the stages of
// pipelines.
func (r *Ranks) Reports() []*table.Table {
	reports := []*table.Table{r.loadReport()}
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
func rankColumns[T any](of func(*T) *place.Where) []table.Field[T] {
	fields := []table.Field[T]{
		table.TextColumn("role", "of the server", func(row *T) string { return of(row).Role.String() }),
		table.TextColumn("host", "machine", func(row *T) string { return of(row).ServerName() }),
		table.TextColumn("label", "thread label", func(row *T) string { return of(row).Label }),
		table.TextColumn("rank", "parallel ranks", func(row *T) string { return of(row).RankName() }),
	}
	table.Detail(fields[2:3]) // the role tells as much
	return fields
}

func (r *Ranks) loadReport() *table.Table {
	type R = Load
	perSecond := func(n int64) float64 {
		if n == request.Unknown {
			return math.NaN()
		}
		return distribution.Ratio(float64(n), float64(r.Length)/1e9)
	}
	fields := append(rankColumns(func(l *R) *place.Where { return &l.Where }),
		table.CountColumn("requests", "that the rank worked for", func(l *R) int64 { return l.Requests }),
		table.CountColumn("prompt tokens", "of prompts that were computed; what was in the cache is not among them", func(l *R) int64 { return l.Prompt }),
		table.CountColumn("output tokens", "that came out", func(l *R) int64 { return l.Output }),
		table.NumberColumn("output rate", "output tokens per s of the whole time", func(l *R) float64 { return perSecond(l.Output) }),
		table.ShareColumn("busy", "of the time, prefilling; else running requests, of the most that ran at once on a rank of the role", func(l *R) float64 { return l.Busy }),
		table.NumberColumn("running", "requests that it computed for at once, on average over the whole time", func(l *R) float64 { return l.Running }),
		table.NsColumn("queue", "how long a request waited for a batch, memory or its other half, on average", func(l *R) int64 { return l.Queue }),
		table.CountColumn("aborted", "requests that were aborted", func(l *R) int64 { return l.Aborted }),
		table.CountColumn("failed", "requests that failed", func(l *R) int64 { return l.Failed }),
		table.CountColumn("retracted", "how often a request was thrown out of the batch", func(l *R) int64 { return l.Retractions }),
	)
	fields = append(fields, table.Detail([]table.Field[R]{
		table.NsColumn("step", "median of decode_loop", func(l *R) int64 { return l.Step }),
		table.NumberColumn("prompt rate", "prompt tokens per s of the whole time", func(l *R) float64 { return perSecond(l.Prompt) }),
		{Column: table.Column{Name: "lead", Doc: "yes: the rank stands for those that do the same work beside it"}, Cell: func(l *R) table.Cell { return table.YesCell(l.Lead) }},
	})...)
	out := table.New("sgtrace.report.ranks/v1", "Ranks", r.Loads, fields)
	out.Stay("requests", "busy", "output rate").Leave("prompt tokens", "output tokens", "aborted", "failed", "retracted")
	for _, note := range r.notes {
		out.Note("%s", note)
	}
	if r.unlaunched {
		out.Note("pipeline stages cannot be compared: run_batch_cpu is missing (trace level below 4)")
	}
	return out
}

func (r *Ranks) divisionReport(divisions []Division) *table.Table {
	type R = *Load
	var rows []*Load
	title := "Load is divided evenly, or it does not matter"
	for i := range divisions {
		rows = append(rows, divisions[i].Ranks...)
	}
	if slow := r.slowServers(); len(slow) > 0 {
		title = "Slow server: " + slow[0].Text()
	}
	for i := range divisions {
		if divisions[i].Uneven {
			title = "Imbalance: " + divisions[i].Text()
			break
		}
	}
	fields := append(rankColumns(func(l *R) *place.Where { return &(*l).Where }),
		table.CountColumn("requests", "that were sent to the rank", func(l *R) int64 { return (*l).Requests }),
		table.ShareColumn("share", "of the requests of the role", func(l *R) float64 { return (*l).Share }),
		table.CountColumn("tokens", "prompt and output tokens that it computed", func(l *R) int64 { return (*l).tokens() }),
		table.ShareColumn("token share", "of the tokens of the role", func(l *R) float64 { return (*l).TokenShare }),
		table.NumberColumn("running", "requests that it computed for at once, on average", func(l *R) float64 { return (*l).Running }),
		table.NsColumn("queue", "how long a request waited for a batch, memory or its other half, on average", func(l *R) int64 { return (*l).Queue }),
		table.ShareColumn("queue share", "of the time that the requests of the role waited", func(l *R) float64 { return (*l).QueueShare }),
		table.NsColumn("step", "median of decode_loop", func(l *R) int64 { return (*l).Step }),
	)
	out := table.New("sgtrace.report.ranks.share/v1", title, rows, fields)
	out.Stay("share", "token share").Leave("tokens", "queue share")
	out.Note("ranks that work side by side on a request (TP, PP) count as one")
	return out
}

package rank

import (
	"maps"
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/straggler"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// Reports returns the tables: the load of every rank, how load is divided where several ranks could serve it,
// lateness at the end of steps, and the stages of pipelines.
func (r *Ranks) Reports() []*table.Table {
	reports := []*table.Table{r.loadReport()}
	if balances := r.balances(); len(balances) > 0 {
		reports = append(reports, r.balanceReport(balances))
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

// rankColumns returns the columns that name a rank.
func rankColumns[T any](of func(*T) *place.Location) []table.Field[T] {
	fields := []table.Field[T]{
		table.TextColumn("role", "role of the server", func(row *T) string { return of(row).Role.String() }),
		table.TextColumn("host", "host name, or the start of its ID", func(row *T) string { return of(row).ServerName() }),
		table.TextColumn("label", "label of the thread, such as Tokenizer", func(row *T) string { return of(row).Label }),
		table.TextColumn("rank", "parallel ranks, such as DP1 TP0", func(row *T) string { return of(row).RankName() }),
	}
	table.Detail(fields[2:3]) // the role says the same
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
	fields := append(rankColumns(func(l *R) *place.Location { return &l.Location }),
		table.CountColumn("requests", "number of requests that the rank worked on", func(l *R) int64 { return l.Requests }),
		table.CountColumn("prompt tokens", "prompt tokens computed, without cached ones", func(l *R) int64 { return l.Prompt }),
		table.CountColumn("output tokens", "output tokens", func(l *R) int64 { return l.Output }),
		table.NumberColumn("output rate", "output tokens per second over the whole time", func(l *R) float64 { return perSecond(l.Output) }),
		table.ShareColumn("busy", "prefill servers: share of time spent on prefill; others: running, divided by the most requests that ran at once on any rank of the role", func(l *R) float64 { return l.Busy }),
		table.NumberColumn("running", "average number of running requests over the whole time", func(l *R) float64 { return l.Running }),
		table.NsColumn("queue", "average time that a request waited for a batch, for memory, or for the other server", func(l *R) int64 { return l.Queue }),
		table.CountColumn("aborted", "aborted requests", func(l *R) int64 { return l.Aborted }),
		table.CountColumn("failed", "failed requests", func(l *R) int64 { return l.Failed }),
		table.CountColumn("retracted", "number of retractions", func(l *R) int64 { return l.Retractions }),
	)
	fields = append(fields, table.Detail([]table.Field[R]{
		table.NsColumn("step", "median duration of decode_loop", func(l *R) int64 { return l.Step }),
		table.NumberColumn("prompt rate", "prompt tokens per second over the whole time", func(l *R) float64 { return perSecond(l.Prompt) }),
		table.YesColumn("lead", "yes if the rank represents all ranks that do the same work", func(l *R) bool { return l.Lead }),
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

func (r *Ranks) balanceReport(balances []loadBalance) *table.Table {
	type R = *Load
	var rows []*Load
	title := "Load is divided evenly, or it does not matter"
	for i := range balances {
		rows = append(rows, balances[i].Ranks...)
	}
	if slow := r.slowServers(); len(slow) > 0 {
		title = "Slow server: " + slow[0].text()
	}
	for i := range balances {
		if balances[i].Uneven {
			title = "Imbalance: " + balances[i].text()
			break
		}
	}
	fields := append(rankColumns(func(l *R) *place.Location { return &(*l).Location }),
		table.CountColumn("requests", "number of requests sent to the rank", func(l *R) int64 { return (*l).Requests }),
		table.ShareColumn("share", "share of the role's requests", func(l *R) float64 { return (*l).Share }),
		table.CountColumn("tokens", "prompt and output tokens computed", func(l *R) int64 { return (*l).tokens() }),
		table.ShareColumn("token share", "share of the role's tokens", func(l *R) float64 { return (*l).TokenShare }),
		table.NumberColumn("running", "average number of running requests", func(l *R) float64 { return (*l).Running }),
		table.NsColumn("queue", "average time that a request waited for a batch, for memory, or for the other server", func(l *R) int64 { return (*l).Queue }),
		table.ShareColumn("queue share", "share of the time that the role's requests waited", func(l *R) float64 { return (*l).QueueShare }),
		table.NsColumn("step", "median duration of decode_loop", func(l *R) int64 { return (*l).Step }),
	)
	out := table.New("sgtrace.report.ranks.share/v1", title, rows, fields)
	out.Stay("share", "token share").Leave("tokens", "queue share")
	out.Note("ranks that work side by side on a request (TP, PP) count as one")
	return out
}

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
	fields := append([]table.Field[R]{table.TextColumn("step", "kind of step that the ranks compute together", func(l *R) string { return l.Kind.String() })},
		rankColumns(func(l *R) *place.Location { return &l.Ranks[l.rank] })...)
	fields = append(fields,
		table.CountColumn("steps", "number of steps together with other ranks of its TP group", func(l *R) int64 { return int64(l.lateness().SyncPoints) }),
		late("late p50", "median lateness: its end of the step minus the median end of its TP peers; negative is early", func(l *straggler.Lateness) int64 { return l.P50 }),
		late("late p99", "99th percentile of the same", func(l *straggler.Lateness) int64 { return l.P99 }),
		table.CountColumn("last", "number of steps that it finished last", func(l *R) int64 { return int64(l.lateness().Last) }),
		table.ShareColumn("last share", "last, as a share of steps", func(l *R) float64 {
			return distribution.Ratio(float64(l.lateness().Last), float64(l.lateness().SyncPoints))
		}),
		late("late if last", "mean lateness in the steps that it finished last", func(l *straggler.Lateness) int64 { return l.LastMean }),
		table.ShareColumn("lost share", "time that the others waited for it when it was last, as a share of their time in all steps", func(l *R) float64 { return l.lateness().LostShare }),
	)
	fields = append(fields, table.Detail([]table.Field[R]{
		late("late mean", "mean lateness", func(l *straggler.Lateness) int64 { return l.Mean }),
		table.NsColumn("others lost", "total time that the others waited for it when it was last", func(l *R) int64 { return l.lateness().Lost }),
	})...)
	out := table.New("sgtrace.report.ranks.steps/v1", r.Verdict(), rows, fields)
	out.Stay("late if last", "lost share").Leave("steps", "late p50", "late p99", "last")
	out.Note("requests that end a step within %s of each other on a rank count as one batch and one step", words.Nearly(request.SameBatch))
	r.skipped.note(out)
	return out
}

// A pipelineRow is a stage of a pipeline.
type pipelineRow struct {
	*Pipeline
	*PipelineStage
}

func (r *Ranks) pipelineReport() *table.Table {
	type R = pipelineRow
	var rows []pipelineRow
	title, apart := "Pipelines: no stage is slow", false
	for _, p := range r.Pipes {
		for s := range p.Stages {
			rows = append(rows, pipelineRow{p, &p.Stages[s]})
		}
		apart = apart || p.Apart
	}
	for _, p := range r.Pipes {
		if len(p.Slow) > 0 {
			title = "Pipelines: " + p.text(&p.Slow[0])
			break
		}
	}
	known := func(s *distribution.Summary, ns int64) int64 {
		if s.N == 0 {
			return request.Unknown
		}
		return ns
	}
	fields := append(rankColumns(func(l *R) *place.Location { return &l.Location }),
		table.CountColumn("batches", "number of micro-batches that went through the pipeline", func(l *R) int64 { return int64(l.Batches) }),
		table.NsColumn("launch p50", "median duration of run_batch_cpu: host time to launch a micro-batch", func(l *R) int64 { return known(&l.Launch, l.Launch.P50) }),
		table.NsColumn("launch p99", "99th percentile of the same", func(l *R) int64 { return known(&l.Launch, l.Launch.P99) }),
		table.CountColumn("timed", "number of micro-batches with a known stage time, because they left the stage without waiting", func(l *R) int64 { return int64(l.Took.N) }),
		table.NsColumn("took p50", "median stage time: from the launch of a micro-batch to its launch on the next stage, or on the last stage to the end of its step", func(l *R) int64 { return known(&l.Took, l.Took.P50) }),
		table.NsColumn("took p99", "99th percentile of the same", func(l *R) int64 { return known(&l.Took, l.Took.P99) }),
		table.ShareColumn("busy", "share of the whole time in which the stage had a micro-batch", func(l *R) float64 { return l.Busy }),
		table.ShareColumn("bubble", "1 - (time in which the stage had a micro-batch) / (time in which any stage of the pipeline had one)", func(l *R) float64 { return l.Bubble }),
	)
	out := table.New("sgtrace.report.ranks.pipeline/v1", title, rows, fields)
	if apart {
		out.Note("stages on different hosts are not timed: clocks may differ by more than a stage takes")
	}
	if r.unequalBatches > 0 {
		out.Note("%s left out because some stages have more micro-batches than others", words.Counted(r.unequalBatches, "request"))
	}
	return out
}

// dataParallelAttention reports whether a server's DP ranks are its TP ranks, one each: TP0-DP0, TP1-DP1, and so on.
func (r *Ranks) dataParallelAttention() bool {
	ranks := map[place.Location]int{} // number of ranks, by server
	taken := map[place.Location]bool{}
	for i := range r.Loads {
		server, of := r.Loads[i].Location, r.Loads[i].Location.Rank
		byTP, byDP := server, server
		server.Rank = trace.NoRank
		byTP.Rank = trace.Rank{TP: of.TP, PP: of.PP, DP: -1}
		byDP.Rank = trace.Rank{TP: -1, PP: of.PP, DP: of.DP}
		if of.TP < 0 || of.DP < 0 || taken[byTP] || taken[byDP] {
			return false
		}
		taken[byTP], taken[byDP] = true, true
		ranks[server]++
	}
	return len(ranks) > 0 && slices.Max(slices.Collect(maps.Values(ranks))) > 1
}

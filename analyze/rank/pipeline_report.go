package rank

import (
	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/request"
)

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
	fields := append(rankColumns(func(l *R) *place.Where { return &l.Where }),
		table.CountColumn("batches", "micro-batches that went through the pipeline", func(l *R) int64 { return int64(l.Batches) }),
		table.NsColumn("launch p50", "median of run_batch_cpu: what the host does to launch a micro-batch", func(l *R) int64 { return known(&l.Launch, l.Launch.P50) }),
		table.NsColumn("launch p99", "99th percentile of that", func(l *R) int64 { return known(&l.Launch, l.Launch.P99) }),
		table.CountColumn("timed", "micro-batches that left the stage at once, so that it is known how long it took", func(l *R) int64 { return int64(l.Took.N) }),
		table.NsColumn("took p50", "median of the time from the launch of a micro-batch to that on the next stage; on the last one to the end of its step", func(l *R) int64 { return known(&l.Took, l.Took.P50) }),
		table.NsColumn("took p99", "99th percentile of that", func(l *R) int64 { return known(&l.Took, l.Took.P99) }),
		table.ShareColumn("busy", "part of the whole time in which the stage had a micro-batch", func(l *R) float64 { return l.Busy }),
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

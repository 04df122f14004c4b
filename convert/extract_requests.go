package convert

import (
	"slices"
	"strconv"

	"github.com/sgtrace/sgtrace/dataset"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace/naming"
)

// writeRequests writes requests, their parts, and the stages that reports measure.
func (s *solution) writeRequests(set *request.Set) {
	for i := range set.AllRequests() {
		s.Solution.Request(requestRow(set, i))
		for _, p := range set.PartsOf(&set.Requests[i]) {
			s.Solution.Part(partRow(set, i, &set.Parts[p]))
		}
	}
	w := newStageWriter(set)
	for r := range set.AllRequests() {
		set.EachRowOf(r, func(i, proc int) { s.Solution.Stage(w.row(i, proc, r)) })
	}
	set.EachRowBeside(func(i, proc int) { s.Solution.Stage(w.row(i, proc, request.None)) })
}

// known returns a pointer to n, or nil if n is unknown.
func known(n int64) *int64 {
	if n == request.Unknown {
		return nil
	}
	return &n
}

func requestRow(set *request.Set, number int) dataset.RequestRow {
	r := &set.Requests[number]
	x := &r.Metrics
	return dataset.RequestRow{
		Time: int64(r.Start), RID: set.Text(r.RID), Roles: set.RolesOf(r),
		Queue: known(x.Queue), Prefill: known(x.Prefill), Transfer: known(x.Transfer), Decode: known(x.Decode), Tokens: known(x.CompletionTokens),
		ITLP50: known(x.ITL.P50), ITLP90: known(x.ITL.P90), ITLP99: known(x.ITL.P99), ITLMax: known(x.ITL.Max), TPOT: known(x.TPOT),
		TTFT: known(x.TTFT), E2E: known(x.E2E), Unaccounted: known(x.Unaccounted), Status: r.Status.String(), Reason: set.Syms.Name(r.Reason), Flags: r.Flags.String(),
		PromptTokens: known(x.PromptTokens), CachedTokens: known(x.CachedTokens), Retractions: known(x.Retractions), Model: set.ModelOf(r), Room: set.Text(r.Room),
		Request: int32(number), TraceID: set.TraceID(r), Dur: max(0, int64(r.End-r.Start)),
	}
}

func partRow(set *request.Set, number int, p *request.Part) dataset.PartRow {
	row := dataset.PartRow{Request: int32(number), RID: set.Text(p.RID), Role: p.Role.String(), Start: int64(p.Start), Dur: int64(p.End - p.Start), Reason: set.Syms.Name(p.FinishReason)}
	if p.Proc != request.None {
		row.Host = set.HostOf(p.Proc)
	}
	return row
}

// A stageWriter makes the rows of stages.
type stageWriter struct {
	set    *request.Set
	stages map[string]int32 // the position of each stage in reports
	procs  []dataset.StageRow
}

func newStageWriter(set *request.Set) *stageWriter {
	w := &stageWriter{set: set, stages: map[string]int32{}}
	ranks := map[string]int32{}
	for p := range set.Procs {
		x := &set.Procs[p]
		rank := set.RankName(p)
		if _, ok := ranks[rank]; !ok {
			ranks[rank] = int32(len(ranks))
		}
		w.procs = append(w.procs, dataset.StageRow{Rank: rank, RankOrder: ranks[rank], Process: rank + naming.Separator + "pid " + strconv.FormatInt(x.PID, 10),
			Host: set.HostOf(p), Label: x.Label, Role: x.Role.String(), Service: x.Service})
	}
	var names []string
	note := func(i, _ int) {
		name := set.StageName(i)
		if _, ok := w.stages[name]; !ok {
			w.stages[name], names = 0, append(names, name)
		}
	}
	for r := range set.AllRequests() {
		set.EachRowOf(r, note)
	}
	set.EachRowBeside(note)
	slices.SortFunc(names, set.CompareStages)
	for i, name := range names {
		w.stages[name] = int32(i)
	}
	return w
}

// row returns the row of span i, which belongs to the given proc and request; None is unknown.
func (w *stageWriter) row(i, proc, number int) dataset.StageRow {
	set := w.set
	row := dataset.StageRow{RankOrder: int32(len(w.procs))}
	if proc != request.None {
		row = w.procs[proc]
	}
	x := set.Row(i)
	row.Start, row.Dur, row.Stage = int64(x.Start), x.Dur(), set.StageName(i)
	row.StageOrder, row.Request, row.File = w.stages[row.Stage], int32(number), set.Files[set.Sources[x.Source].File].Name
	row.Counted = !set.Implausible(i) && !set.Again(i)
	if number != request.None {
		r := &set.Requests[number]
		row.Began, row.Lasted = int64(r.Start), max(0, int64(r.End-r.Start))
		row.RID, row.Status, row.Model = set.Text(r.RID), r.Status.String(), set.ModelOf(r)
	}
	return row
}

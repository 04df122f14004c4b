package rank

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/load"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/straggler"
	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// A Pipeline is the stages of a pipeline parallel server and DP rank. Each stage is represented by the rank with the
// lowest TP, because the others do the same work.
type Pipeline struct {
	Stages  []PipelineStage // by PP
	Batches int             // number of micro-batches
	// Slow lists the stages that take longer than the others; usually there are none.
	Slow []straggler.Straggler
	// Apart says that the stages are on several hosts. Their clocks may differ by more than a stage takes, so that
	// only Launch is known.
	Apart bool
}

// A PipelineStage is the work of one stage on its micro-batches.
type PipelineStage struct {
	Location place.Location
	// Launch is how long the host takes to launch a micro-batch.
	Launch distribution.Summary
	// Took is how long the stage computes a micro-batch: from its launch, or from when the previous one left if that
	// is later, until it is launched on the next stage, or until its step ends on the last stage. It leaves out
	// micro-batches that found the next stage occupied, as their time includes the wait.
	Took distribution.Summary
	// Busy is the share of the whole time in which the stage had a micro-batch. Bubble is the share of the time in
	// which any stage had one, but this stage did not. NaN if unknown.
	Busy, Bubble float64
}

// minStageShare is how much longer than the median a slow stage must take, because layers and the ends of a model
// cannot be divided more evenly.
const minStageShare = 0.1

// A pipeWalk collects the micro-batches of pipelines.
type pipeWalk struct {
	ranks *place.RankSet
	pipes map[int32]*pipeRows // by place of the first stage

	unequal    int
	unlaunched bool // there are pipelines without launches

	spans [][]request.Interval
	ends  []trace.Time
	part  []stageThread
}

// A stageThread is the thread of a pipeline stage that worked on a part.
type stageThread struct {
	rank   trace.Rank
	place  int32
	thread int
}

// pipeRows are the micro-batches of the requests of a pipeline.
type pipeRows struct {
	places []int32 // by stage
	list   []pipeRow
	spans  []request.Interval // launches of every row, by stage
}

type pipeRow struct {
	launch trace.Time // on the first stage
	done   trace.Time // when the step ended on the last stage
	row    int32
}

// measurePipelines measures the stages of pipelines, which trace level 4 records.
func (r *Ranks) measurePipelines(of *place.RankSet, all load.Bulk) {
	if !slices.ContainsFunc(of.Places, func(p place.Location) bool { return p.Rank.PP > 0 }) {
		return
	}
	w := &pipeWalk{ranks: of, pipes: map[int32]*pipeRows{}}
	for p := range of.Set.ServingParts {
		if all.Holds(&of.Set.Requests[p.Request]) {
			w.addPart(p)
		}
	}
	for _, first := range slices.Sorted(maps.Keys(w.pipes)) {
		r.Pipes = append(r.Pipes, w.pipes[first].measure(of, r.Length))
	}
	r.unequalBatches, r.unlaunched = w.unequal, w.unlaunched
}

// HiddenStages returns the number of pipeline stages of a server at the place whose work the dump does not show; of
// several servers, the largest number. It returns 0 if the dump shows the work of stages, or there is only one.
func (r *Ranks) HiddenStages(at *place.Location) int {
	if !r.unlaunched {
		return 0
	}
	last := int16(0)
	for i := range r.Loads {
		if of := &r.Loads[i].Location; at.Overlaps(of) {
			last = max(last, of.Rank.PP)
		}
	}
	if last == 0 {
		return 0
	}
	return int(last) + 1
}

// addPart adds the micro-batches of a part, which are the same on every stage, in the same order.
func (w *pipeWalk) addPart(p *request.Part) {
	threads := w.stages(p)
	if len(threads) < 2 {
		return
	}
	for len(w.spans) < len(threads) {
		w.spans = append(w.spans, nil)
	}
	spans := w.spans[:len(threads)]
	for i, t := range threads {
		spans[i] = w.readBatches(spans[i][:0], t.thread)
		if len(spans[i]) != len(spans[0]) {
			w.unequal++
			return
		}
	}
	if len(spans[0]) == 0 {
		w.unlaunched = true
		return
	}
	rows := order.Memo(w.pipes, threads[0].place, func() *pipeRows {
		rows := &pipeRows{}
		for _, t := range threads {
			rows.places = append(rows.places, t.place)
		}
		return rows
	})
	if len(rows.places) != len(threads) {
		w.unequal++
		return
	}
	w.readEnds(threads[len(threads)-1].thread)
	for k := range spans[0] {
		end, _ := slices.BinarySearch(w.ends, spans[len(spans)-1][k].To)
		if end == len(w.ends) {
			continue // the step is not in the dump
		}
		rows.list = memory.Append(rows.list, pipeRow{spans[0][k].From, w.ends[end], int32(len(rows.list))})
		for _, of := range spans {
			rows.spans = memory.Append(rows.spans, of[k])
		}
	}
}

// stages returns the thread of each stage that worked on a part, in order of stages: the one with the lowest TP.
func (w *pipeWalk) stages(p *request.Part) []stageThread {
	w.part = w.part[:0]
	for _, t := range w.ranks.Set.ThreadsOf(p) {
		if place := w.ranks.Of[w.ranks.Set.Threads[t].Proc]; place != request.None && w.ranks.Places[place].Rank.PP >= 0 {
			w.part = append(w.part, stageThread{w.ranks.Places[place].Rank, place, t})
		}
	}
	slices.SortStableFunc(w.part, func(x, y stageThread) int {
		return cmp.Or(cmp.Compare(x.rank.PP, y.rank.PP), cmp.Compare(x.rank.TP, y.rank.TP))
	})
	w.part = slices.CompactFunc(w.part, func(x, y stageThread) bool { return x.rank.PP == y.rank.PP })
	return w.part
}

// readBatches appends the launches on a thread, sorted by start.
func (w *pipeWalk) readBatches(list []request.Interval, thread int) []request.Interval {
	w.ranks.Set.EachSelectedStage(w.ranks.Set.StagesOf(thread), true, func(i int, _ bool) {
		if span := w.ranks.Set.Row(i); span.Means == request.Launching && span.End >= span.Start && request.Plausible(span.Start, span.End) {
			list = append(list, request.Interval{From: span.Start, To: span.End})
		}
	})
	slices.SortFunc(list, func(x, y request.Interval) int { return cmp.Compare(x.From, y.From) })
	return list
}

// readEnds fills w.ends with the ends of the steps on a thread, sorted.
func (w *pipeWalk) readEnds(thread int) {
	w.ends = w.ends[:0]
	w.ranks.Set.EachSelectedStage(w.ranks.Set.StagesOf(thread), true, func(i int, _ bool) {
		switch span := w.ranks.Set.Row(i); span.Means {
		case request.Stepping, request.PrefillingChunk, request.Prefilling:
			if request.Plausible(span.End) {
				w.ends = append(w.ends, span.End)
			}
		}
	})
	slices.Sort(w.ends)
}

// measure merges the rows of requests that share a micro-batch, and sums up the stages.
func (rows *pipeRows) measure(of *place.RankSet, length int64) *Pipeline {
	k := len(rows.places)
	p := &Pipeline{Stages: make([]PipelineStage, k)}
	for s, place := range rows.places {
		p.Stages[s].Location = of.Places[place]
		p.Apart = p.Apart || p.Stages[s].Location.Host != p.Stages[0].Location.Host
	}
	slices.SortFunc(rows.list, func(x, y pipeRow) int { return cmp.Or(cmp.Compare(x.launch, y.launch), cmp.Compare(x.row, y.row)) })
	rows.list = slices.CompactFunc(rows.list, func(x, y pipeRow) bool { return max(x.launch-y.launch, y.launch-x.launch) <= request.SameBatch })
	p.Batches = len(rows.list)
	m := newPipeMeter(k)
	for _, row := range rows.list {
		m.add(rows.spans[int(row.row)*k:int(row.row+1)*k], row)
	}
	m.finish(p, length)
	return p
}

// A pipeMeter follows the micro-batches of a pipeline.
type pipeMeter struct {
	launches, took [][]int64            // by stage
	held           [][]request.Interval // by stage: from the launch until it leaves
	left           []trace.Time         // by stage: when the previous micro-batch left
	meet           *straggler.SyncSamples
	arrivals       []int64
}

func newPipeMeter(stages int) *pipeMeter {
	m := &pipeMeter{
		launches: make([][]int64, stages), took: make([][]int64, stages), held: make([][]request.Interval, stages),
		left: make([]trace.Time, stages), arrivals: make([]int64, stages),
	}
	names := make([]string, stages)
	for s := range names {
		names[s] = "PP" + strconv.Itoa(s)
		m.left[s] = -request.Farthest
	}
	m.meet = straggler.NewSyncSamples(names, minStepLateness)
	m.meet.Share, m.meet.What = minStageShare, "micro-batches"
	return m
}

// add adds a micro-batch, given its launch on each stage.
func (m *pipeMeter) add(launches []request.Interval, row pipeRow) {
	const handover = 500_000 // ns; the most that a free stage takes to launch what it gets
	var known []int64
	for s, l := range launches {
		left, waited := row.done, false
		if s+1 < len(launches) {
			left = launches[s+1].From
			waited = left-m.left[s+1] < handover // because the next stage was occupied
		}
		m.launches[s] = memory.Append(m.launches[s], int64(l.To-l.From))
		m.arrivals[s] = straggler.NoArrival
		if from := max(l.From, m.left[s]); left > from {
			m.held[s] = memory.Append(m.held[s], request.Interval{From: l.From, To: left})
			if !waited {
				m.arrivals[s] = int64(left - from)
				m.took[s] = memory.Append(m.took[s], int64(left-from))
				known = append(known, int64(left-from))
			}
		}
		m.left[s] = max(m.left[s], left)
	}
	if len(known) > 1 {
		m.meet.Meet(row.launch, m.arrivals, distribution.LowerMedian(known))
	}
}

// finish fills in the stages of p.
func (m *pipeMeter) finish(p *Pipeline, length int64) {
	var all []request.Interval
	for _, held := range m.held {
		all = append(all, held...)
	}
	any := request.NewCoverage(all)
	for s := range p.Stages {
		stage := &p.Stages[s]
		stage.Launch, stage.Took = distribution.Summarize(m.launches[s]), distribution.Summarize(nil)
		stage.Busy, stage.Bubble = math.NaN(), math.NaN()
		if p.Apart {
			continue
		}
		held := request.NewCoverage(m.held[s])
		stage.Took = distribution.Summarize(m.took[s])
		stage.Busy = distribution.Ratio(float64(held.Total()), float64(length))
		stage.Bubble = 1 - distribution.Ratio(float64(held.Total()), float64(any.Total()))
	}
	if !p.Apart {
		p.Slow = m.meet.Stragglers()
	}
}

package gpu

import (
	"slices"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/profilewalk"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// A StepTime is how long steps of one kind and about one batch size took on a rank.
type StepTime struct {
	Rank string
	Kind profile.StepKind
	// MinBatch and MaxBatch bound the requests in a batch; -1 is unknown.
	MinBatch, MaxBatch int32
	Host               distribution.Summary // from begin to end of the annotation
	// Device is from the start of the first kernel or copy that the step launched on its thread to the
	// end of the last one. Steps that launched nothing do not count.
	Device distribution.Summary
	// Busy is the part of Device in which something that the step launched ran.
	Busy distribution.Summary

	rankIndex int32
}

// RankSteps are the steps of a server on a rank, each once.
type RankSteps struct {
	Rank     string
	Captured int64 // how long the rank was recorded, ns
	Steps    []profilewalk.Step
	Graphs   []GraphUse // of the decode steps
}

// project adds a row to the steps that contain l, the call that launched it.
func (r *rankWork) project(l *profilewalk.Launch, row *gpuRow) {
	for i := l.Step; i != profilewalk.NoStep; i = r.steps[i].Around {
		s := &r.steps[i]
		if !holdsCall(s, row) {
			continue
		}
		if !s.Projected {
			s.Projected, s.First, s.Last = true, row.start, row.end()
		}
		s.First, s.Last = min(s.First, row.start), max(s.Last, row.end())
		if row.flags&rowKernel != 0 {
			s.Kernels++
			if row.flags&rowGraph != 0 {
				s.GraphKernels++
			}
		}
	}
}

// holdsCall reports whether the call that launched a row also ends in s: where steps cross each other,
// it may not.
func holdsCall(s *profilewalk.Step, row *gpuRow) bool {
	return row.launch+trace.Time(row.launched) <= s.End
}

// A stepBusy measures how long a device worked for each step of its rank: the union of the rows that
// the step launched. Rows come in the order of their starts.
type stepBusy struct {
	steps []profilewalk.Step
	until []trace.Time // by step: counted up to here
}

func (b *stepBusy) add(row *gpuRow) {
	for i := row.inStep - 1; i != profilewalk.NoStep; i = b.steps[i].Around {
		if from := max(row.start, b.until[i]); from < row.end() && holdsCall(&b.steps[i], row) {
			b.steps[i].Busy = distribution.AddTimes(b.steps[i].Busy, distribution.Between(from, row.end()))
			b.until[i] = row.end()
		}
	}
}

// groupSteps sums up the steps of a rank, each once. Parts of steps count only where there are no whole
// ones.
func groupSteps(set *profile.Set, rank int32, steps []profilewalk.Step) []StepTime {
	type key struct {
		kind     profile.StepKind
		from, to int32
	}
	host, device, busy := map[key][]int64{}, map[key][]int64{}, map[key][]int64{}
	whole := slices.ContainsFunc(steps, func(s profilewalk.Step) bool { return s.OfServer() })
	for i := range steps {
		s := &steps[i]
		if s.Again || s.Part && whole {
			continue
		}
		k := key{kind: s.StepName.Kind}
		k.from, k.to = profilewalk.BatchBucket(s.StepName.Batch)
		host[k] = append(host[k], distribution.Between(s.Start, s.End))
		if s.Projected {
			device[k] = append(device[k], distribution.Between(s.First, s.Last))
			busy[k] = append(busy[k], s.Busy)
		}
	}
	var out []StepTime
	for k, durations := range host {
		out = append(out, StepTime{Rank: set.Ranks[rank], rankIndex: rank, Kind: k.kind, MinBatch: k.from, MaxBatch: k.to,
			Host: distribution.Summarize(durations), Device: distribution.Summarize(device[k]), Busy: distribution.Summarize(busy[k])})
	}
	return out
}

// A StepShare is what a device did for one kind of steps.
type StepShare struct {
	gpu  *GPU
	Kind profile.StepKind
	Activity
}

// StepShares returns what devices did by kind of step, prefill first; nil where no kind is
// known.
func (g *GPUs) StepShares() []StepShare {
	var out []StepShare
	known := false
	for _, kind := range [...]profile.StepKind{profile.StepPrefill, profile.StepDecode, profile.StepOther} {
		for i := range g.GPUs {
			if a := &g.GPUs[i].BySteps[kind]; a.Total() > 0 {
				out = append(out, StepShare{&g.GPUs[i], kind, *a})
				known = known || kind != profile.StepOther
			}
		}
	}
	if !known {
		return nil
	}
	return out
}

// StepShareReport makes a table of what devices did by kind of step: prefill and decode differ so much
// that shares of a whole capture, which mix them, say little.
func (g *GPUs) StepShareReport() *table.Table {
	type row = StepShare
	fields := []table.Field[row]{
		table.TextColumn("kind", "kind of step that launched the work that started last, or that ended the gap: prefill (EXTEND), decode, or other (mixed steps, and outside of steps)", func(r *row) string { return profilewalk.StepKinds[r.Kind] }),
		table.TextColumn("rank", "rank, or name of a process that is not a rank; with the device if a rank uses several", func(r *row) string { return g.Label(r.gpu) }),
		table.NsColumn("time", "busy and idle time of such steps", (*row).Total),
		table.PartColumn("of length", "share of the device's length", func(r *row) (int64, int64) { return r.Total(), r.gpu.Length() }),
	}
	fields = append(fields, partsOf(func(r *row) *Activity { return &r.Activity }, (*row).Total, "time", computeTime, commTime, exposedComm, exposedCopy, idleTime)...)
	for cause, name := range causeNames {
		fields = append(fields, part(name, causeDocs[cause], "time", (*row).Total, func(r *row) int64 { return r.Idle.Time[cause] })...)
	}
	return table.New("sgtrace.report.gpu.steps/v1", "GPUs by kind of step and rank", g.StepShares(), fields).Stay("idle", "time").Leave("exposed copy")
}

// A Start is the first call of a process if it took long and its devices had not run anything: CUDA
// starts in it. It is not part of the devices' time, which begins when they first run something, or
// with a step.
type Start struct {
	Call     string
	Time     int64 // ns
	Captured int64 // see [GPU]
}

// A firstCall is the earliest call of a rank.
type firstCall struct {
	start trace.Time
	dur   int64 // ns
	name  trace.Sym
}

func (f *firstCall) join(o *firstCall) {
	if o.name != 0 && (f.name == 0 || o.start < f.start || o.start == f.start && o.dur > f.dur) {
		*f = *o
	}
}

// addStart adds the time that a rank took to start CUDA.
func (g *GPUs) addStart(set *profile.Set, r *rankWork) {
	if r.first.dur < slowStart || len(r.gpus) == 0 {
		return
	}
	for _, part := range r.gpus {
		if part.gpu.began < r.first.start+trace.Time(r.first.dur) {
			return
		}
	}
	name := set.Syms.Name(r.first.name)
	if startsIn(name) != startsNothing || ReasonOf(name) == Allocation {
		of := r.gpus[0].gpu
		g.Starts = append(g.Starts, Start{Call: name, Time: r.first.dur, Captured: of.Captured})
	}
}

// grids sums up the grids of the launches of a kernel.
type grids struct {
	single  int64 // time of launches of one block, ns
	threads int32 // of the largest of those
	blocks  profilewalk.Blocks
}

func (g *grids) add(r *gpuRow) {
	g.blocks.Add(r.grid)
	if threads := r.grid.OneBlock(); threads > 0 {
		g.single, g.threads = distribution.AddTimes(g.single, r.dur), max(g.threads, threads)
	}
}

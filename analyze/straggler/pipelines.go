package straggler

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// A pipeline runs micro-batches through its stages, one forward and one backward pass of each at a time (1F1B). If
// micro-batches take equally long, the pipeline is done when the slowest stage has computed all of them, and the
// other stages one before and after. With C for the time that a stage computes in a step, and M micro-batches, that
// takes sum(C)/M + (1 - 1/M) max(C). All pipelines are done when the slowest one is.
//
// See Narayanan et al., Efficient Large-Scale Language Model Training on GPU Clusters Using Megatron-LM, SC 2021,
// section 2.2, for the resulting bubble, which is (stages - 1) / M if stages are even.

// pipelines are the pipelines of a training run, one for each process of the timeline.
type pipelines struct {
	list    []*worker
	batches float64 // micro-batches in a step
	steps   []pipelineStep
}

// A pipelineStep is the duration of a step in the slowest process, ns: from the first pass to the last, and including
// what surrounds these.
type pipelineStep struct {
	step           int64
	passing, whole float64
}

// maxOff is the largest relative error of the modeled time of pipelines.
const maxOff = 0.05

// IsWorker reports whether a finding comes from [Workers].
func IsWorker(f *finding.Finding) bool { return strings.HasPrefix(f.Subkind, workerSubkind) }

// WithoutWorker predicts the duration of a step, and the idle time of stages, without the cause of a finding of
// [Workers]: with the worker as fast as those of its stage, or with stages that compute equally long. name is the
// change, and assumed what the prediction assumes. model is the possible relative error of the savings, 0 to 1, which
// widens the interval.
func WithoutWorker(set *profile.Set, f *finding.Finding, model float64) (out []finding.Without, name, assumed string, err error) {
	p := pipelinesOf(set.Lanes)
	if len(p.list) < fewWorkers || len(p.steps) < fewSteps {
		return nil, "", "", errors.New("the steps of the workers are not known")
	}
	slow := strings.TrimPrefix(f.Subkind, workerSubkind)
	change, name, assumed := p.evenStages, "even stages", "pipelines compute the same, divided evenly over their stages"
	if slices.ContainsFunc(p.list, func(w *worker) bool { return w.name == slow }) {
		change, name, assumed = func(took []float64) { p.asPeers(slow, took) }, slow+" as fast as its peers", "the worker computes what those of its stage do"
	}
	recorded, whole, played, changed := 0.0, 0.0, 0.0, 0.0
	idle, idleChanged := 0.0, 0.0
	n := float64(len(p.steps))
	took := make([]float64, len(p.list))
	for _, s := range p.steps {
		for i, w := range p.list {
			took[i] = float64(w.steps[s.step])
		}
		before := p.time(took)
		idle += (1 - order.Total(took)/float64(len(took))/s.passing) / n
		change(took)
		after := p.time(took) * s.passing / before
		idleChanged += (1 - order.Total(took)/float64(len(took))/after) / n
		recorded, whole, played, changed = recorded+s.passing/n, whole+s.whole/n, played+before/n, changed+after/n
	}
	if off := math.Abs(played/recorded - 1); off > maxOff {
		return nil, "", "", fmt.Errorf("played again without a change, steps are %s %% off what was recorded: their stages wait for more than the slowest of them", words.InPercent(off))
	}
	saved := recorded - changed
	half := model*math.Abs(saved) + math.Abs(played-recorded)
	step := finding.Without{Metric: finding.Step, Unit: table.Duration, Actual: whole, Without: whole - saved, Low: max(0, whole-saved-half), High: whole - saved + half}
	bubble := finding.Without{Metric: finding.Bubble, Unit: table.Share, Actual: idle, Without: idleChanged}
	part := half / changed * (1 - idleChanged)
	bubble.Low, bubble.High = max(0, idleChanged-part), min(1, idleChanged+part)
	return []finding.Without{step, bubble}, name, assumed, nil
}

// pipelinesOf takes workers that do the same work, and the steps that all of them have.
func pipelinesOf(lanes []profile.LaneTime) *pipelines {
	passes := work(lanes)
	p := &pipelines{list: sameWork(workersOf(passes))}
	if len(p.list) == 0 {
		return p
	}
	for _, n := range p.list[0].counts {
		p.batches = max(p.batches, float64(n)/float64(len(p.list[0].steps)))
	}
	passing, whole := longest(passes), longest(lanes)
	for step := range p.list[0].steps {
		if !slices.ContainsFunc(p.list, func(w *worker) bool { return w.steps[step] <= 0 }) && passing[step] > 0 {
			p.steps = append(p.steps, pipelineStep{step, passing[step], whole[step]})
		}
	}
	slices.SortFunc(p.steps, func(a, b pipelineStep) int { return int(a.step - b.step) })
	return p
}

// longest returns the duration of each step in the process where it took longest. Processes are measured separately,
// because their clocks may differ.
func longest(lanes []profile.LaneTime) map[int64]float64 {
	type key struct {
		process string
		step    int64
	}
	spans := map[key][2]trace.Time{}
	for i := range lanes {
		l := &lanes[i]
		k := key{l.Process, l.Step}
		s, known := spans[k]
		if !known {
			s = [2]trace.Time{l.First, l.Last}
		}
		spans[k] = [2]trace.Time{min(s[0], l.First), max(s[1], l.Last)}
	}
	out := map[int64]float64{}
	for k, s := range spans {
		out[k.step] = max(out[k.step], float64(s[1]-s[0]))
	}
	return out
}

// time returns how long the slowest pipeline takes if its workers compute for the given times.
func (p *pipelines) time(took []float64) (most float64) {
	all, slowest := map[string]float64{}, map[string]float64{}
	for i, w := range p.list {
		all[w.process] += took[i]
		slowest[w.process] = max(slowest[w.process], took[i])
	}
	for process := range all {
		most = max(most, all[process]/p.batches+(1-1/p.batches)*slowest[process])
	}
	return most
}

// asPeers replaces the time of a worker by the median of the others of its stage, or of all others if its stage has
// too few.
func (p *pipelines) asPeers(name string, took []float64) {
	at := slices.IndexFunc(p.list, func(w *worker) bool { return w.name == name })
	var peers, others []float64
	for i, w := range p.list {
		if i == at {
			continue
		}
		others = append(others, took[i])
		if w.stage == p.list[at].stage {
			peers = append(peers, took[i])
		}
	}
	if len(peers) < 2 {
		peers = others
	}
	took[at] = distribution.LowerMedian(peers)
}

// evenStages divides the work of each pipeline evenly over its workers.
func (p *pipelines) evenStages(took []float64) {
	all, n := map[string]float64{}, map[string]float64{}
	for i, w := range p.list {
		all[w.process] += took[i]
		n[w.process]++
	}
	for i, w := range p.list {
		took[i] = all[w.process] / n[w.process]
	}
}

package straggler

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/internal/significance"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// The workers of a training run whose timeline names ranks and steps, but has no devices, are compared by how long
// they compute. Workers that do the same work equally often take equally long, unless a machine is slow or a stage
// has more to do. It matters if a worker takes at least a tenth longer than the median, and the others wait for it in
// most steps, more often than by chance.
const (
	muchSlower = 1.1
	maxSteps   = 0.75
	fewSteps   = 5 // fewer steps are not judged
	fewWorkers = 3
)

// A worker is the rows of a timeline that belong to the same ranks.
type worker struct {
	name, stage string
	process     string
	steps       map[int64]int64 // ns of computation, by step
	counts      map[string]int64
}

// rankIn matches a rank in the name of a process or row: "PP rank 0", "DP rank [1]", "tp3".
var rankIn = regexp.MustCompile(`(?i)\b(DP|PP|TP|EP|CP|SP)[ _-]*(?:rank)?[ _=:\[]*([0-9]+)`)

// waits are words in names of work that waits for others, so that its duration says nothing about the worker.
var waits = []string{"send", "recv", "reduce", "gather", "broadcast", "all-to-all", "alltoall", "all2all", "comm", "nccl", "barrier", "wait", "sync", "p2p", "idle"}

func isWait(name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc(waits, func(w string) bool { return strings.Contains(name, w) })
}

// passes are words in names of the work of a training step that grows with the data.
var passes = []string{"forward", "backward", "compute"}

func isPass(l *profile.LaneTime) bool {
	return slices.ContainsFunc(passes, func(w string) bool { return strings.Contains(strings.ToLower(l.Name), w) })
}

// work drops rows that wait for others and, if there are forward and backward passes, all other rows.
func work(lanes []profile.LaneTime) []profile.LaneTime {
	lanes = slices.DeleteFunc(slices.Clone(lanes), func(l profile.LaneTime) bool { return isWait(l.Name) || isWait(l.Row) })
	if slices.ContainsFunc(lanes, func(l profile.LaneTime) bool { return isPass(&l) }) {
		lanes = slices.DeleteFunc(lanes, func(l profile.LaneTime) bool { return !isPass(&l) })
	}
	return lanes
}

// workersOf groups the rows of the same ranks into workers.
func workersOf(lanes []profile.LaneTime) (list []*worker) {
	by := map[string]*worker{}
	for i := range lanes {
		l := &lanes[i]
		name, stage := placeOf(l)
		w := by[name]
		if w == nil {
			w = &worker{name: name, stage: stage, process: l.Process, steps: map[int64]int64{}, counts: map[string]int64{}}
			by[name] = w
			list = append(list, w)
		}
		w.steps[l.Step] = distribution.AddTimes(w.steps[l.Step], l.Time)
		w.counts[l.Name] += l.N
	}
	slices.SortFunc(list, func(a, b *worker) int { return cmp.Compare(a.name, b.name) })
	return list
}

// placeOf names the worker that a row belongs to, by the ranks in the names of its process and of the row, and its
// pipeline stage; "" is unknown.
func placeOf(l *profile.LaneTime) (name, stage string) {
	var parts []string
	for _, m := range rankIn.FindAllStringSubmatch(l.Process+" / "+l.Row, -1) {
		part := strings.ToUpper(m[1]) + " " + m[2]
		if slices.Contains(parts, part) {
			continue
		}
		parts = append(parts, part)
		if strings.EqualFold(m[1], "PP") {
			stage = part
		}
	}
	if len(parts) == 0 {
		return l.Process, ""
	}
	return strings.Join(parts, " / "), stage
}

// sameWork returns the largest set of workers that did the same work equally often, in equally many steps.
func sameWork(list []*worker) []*worker {
	groups := map[string][]*worker{}
	best := ""
	for _, w := range list {
		var key []string
		for name, n := range w.counts {
			key = append(key, fmt.Sprintf("%s*%d", name, n))
		}
		slices.Sort(key)
		k := fmt.Sprint(len(w.steps), key)
		groups[k] = append(groups[k], w)
		if len(groups[k]) > len(groups[best]) || len(groups[k]) == len(groups[best]) && k < best {
			best = k
		}
	}
	return groups[best]
}

// A pace is how long workers take relative to the median of all, step by step.
type pace struct {
	list    []*worker
	ratio   []float64 // medians over steps, by worker
	slowest []int     // number of steps in which each is the slowest
	steps   int
	// cost is the part of the steps by which their slowest worker exceeds the median: what they would be shorter without
	// the excess. The other workers compute less than the slowest one in all of a step, and wait for it. uneven is that
	// by which it exceeds the mean: what they would be shorter if the same work were divided evenly.
	cost, uneven float64
}

// paceOf compares workers in the steps that all of them have. lasts is how long each step lasts.
func paceOf(list []*worker, lasts map[int64]int64) pace {
	p := pace{list: list, slowest: make([]int, len(list))}
	var excess, beyond, length int64
	ratios := make([][]float64, len(list))
	g := NewSyncSamples(make([]string, len(list)), 0)
	took := make([]int64, len(list))
	for step := range list[0].steps {
		for i, w := range list {
			took[i] = w.steps[step]
		}
		if slices.Min(took) <= 0 {
			continue
		}
		p.steps++
		g.Meet(trace.Time(step), took, 0)
		median := distribution.LowerMedian(slices.Clone(took))
		for i, ns := range took {
			ratios[i] = append(ratios[i], distribution.Fraction(ns, median))
		}
		excess = distribution.AddTimes(excess, slices.Max(took)-median)
		beyond = distribution.AddTimes(beyond, slices.Max(took)-distribution.SumTimes(took)/int64(len(took)))
		length = distribution.AddTimes(length, lasts[step])
	}
	if p.steps == 0 {
		return p
	}
	p.cost, p.uneven = distribution.Fraction(excess, max(length, excess)), distribution.Fraction(beyond, max(length, excess))
	g.EachWait(func(_ trace.Time, last int, _ []int64) { p.slowest[last]++ })
	for _, r := range ratios {
		p.ratio = append(p.ratio, distribution.LowerMedian(r))
	}
	return p
}

// stepsOf returns how long each step lasts: in the process in which it lasts longest, since each may have a clock of its
// own.
func stepsOf(lanes []profile.LaneTime) map[int64]int64 {
	type key struct {
		process string
		step    int64
	}
	spans, lasts := map[key]request.Interval{}, map[int64]int64{}
	for i := range lanes {
		l := &lanes[i]
		k := key{l.Process, l.Step}
		s, ok := spans[k]
		if !ok {
			s = request.Interval{From: l.First, To: l.Last}
		}
		s = request.Interval{From: min(s.From, l.First), To: max(s.To, l.Last)}
		spans[k], lasts[l.Step] = s, max(lasts[l.Step], distribution.Between(s.From, s.To))
	}
	return lasts
}

// chance bounds the probability that one of the workers in slow is the slowest so often if all are alike, so that
// each is equally likely to be in every step. questions is the number of such sets that are tested.
func (p *pace) chance(slow []int, questions int) float64 {
	return min(1, float64(questions)*significance.AtLeastOf(p.timesSlowest(slow), p.steps, float64(len(slow))/float64(len(p.list))))
}

// Workers finds the worker, or the pipeline stage, that takes longer than its peers in nearly all steps. If the
// slowest one changes from step to step, the data is the reason, not a machine.
func Workers(set *profile.Set) ([]finding.Finding, finding.Check) {
	list := sameWork(workersOf(work(set.Lanes)))
	check := finding.Check{What: "workers that take longer than their peers", Of: "step", Needed: fewSteps}
	if len(list) < fewWorkers {
		check.Reason = "no timeline names workers and steps"
		return nil, check
	}
	p := paceOf(list, stepsOf(set.Lanes))
	if check.N = p.steps; check.State() != finding.LookedAt {
		return nil, check
	}
	slow, chance := p.slow()
	if len(slow) == 0 {
		return nil, check
	}
	return []finding.Finding{p.finding(slow, chance)}, check
}

// timesSlowest returns the number of steps in which one of the given workers is the slowest.
func (p *pace) timesSlowest(of []int) (n int) {
	return order.Sum(of, func(i int) int { return p.slowest[i] })
}

// slow returns the workers of the stage, or the one worker, that is slowest too often for chance, or nil. It is a
// stage if all of its workers are slow.
func (p *pace) slow() (slow []int, chance float64) {
	slow = []int{slices.Index(p.slowest, slices.Max(p.slowest))}
	questions := len(p.list)
	if stage := p.list[slow[0]].stage; p.stageIsSlow(stage) {
		slow = p.ofStage(stage)
		questions = len(p.list) / len(slow)
	}
	chance = p.chance(slow, questions)
	rare := float64(p.timesSlowest(slow)) < maxSteps*float64(p.steps)
	if rare || p.ratio[slow[0]] < muchSlower || 2*len(slow) >= len(p.list) || chance > LikelyLevel {
		return nil, 1
	}
	return slow, chance
}

func (p *pace) ofStage(stage string) (of []int) {
	for i, w := range p.list {
		if w.stage == stage {
			of = append(of, i)
		}
	}
	return of
}

// stageIsSlow reports whether all workers of a stage with several workers are slow.
func (p *pace) stageIsSlow(stage string) bool {
	of := p.ofStage(stage)
	return stage != "" && len(of) > 1 && !slices.ContainsFunc(of, func(i int) bool { return p.ratio[i] < muchSlower })
}

// workerSubkind precedes the name of the worker or stage in the subkind of its finding.
const workerSubkind = "worker "

func (p *pace) finding(slow []int, chance float64) finding.Finding {
	n, from, to := p.timesSlowest(slow), math.Inf(1), 0.0
	for _, i := range slow {
		from, to = min(from, p.ratio[i]), max(to, p.ratio[i])
	}
	others := [2]float64{math.Inf(1), 0}
	for i, r := range p.ratio {
		if !slices.Contains(slow, i) {
			others[0], others[1] = min(others[0], r), max(others[1], r)
		}
	}
	where, cost := p.list[slow[0]].name, p.cost
	text := fmt.Sprintf("%s computes %.2f times as long as the median of its %d peers, and is the slowest in %d of %d steps", where, to, len(p.list)-1, n, p.steps)
	cause := "one worker alone is slow: look at its machine"
	if len(slow) > 1 {
		where, cost = p.list[slow[0]].stage, p.uneven
		all := fmt.Sprintf("all %d", len(slow))
		if len(slow) == 2 {
			all = "both"
		}
		text = fmt.Sprintf("%s workers of %s compute %.2f to %.2f times as long as the median of %d workers, and one of them is the slowest in %d of %d steps",
			all, where, from, to, len(p.list), n, p.steps)
		cause = "all workers of the stage are slow, so the stage has more to do and no machine is slow: rebalance the layers between stages"
	}
	f := finding.Finding{Subkind: workerSubkind + where, Text: text, Cost: cost, P: finding.Chance(chance), CostBasis: finding.RankTime,
		Metric: finding.Metric{Name: "computation", Unit: table.Number, Before: 1, After: to}}
	f.Evidence = []finding.Evidence{finding.Sentence("%s", cause),
		finding.Sentence("the other %s take %.2f to %.2f times the median", words.Counted(len(p.list)-len(slow), "worker"), others[0], others[1])}
	return f
}

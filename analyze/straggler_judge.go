package analyze

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/sgtrace/sgtrace/internal/changepoint"
	"github.com/sgtrace/sgtrace/trace"
)

// How a straggler is told from chance. Someone is last at every meeting, and who was
// last at one is likelier to be last at the next. So meetings are not counted, but
// put into blocks: by which part of its time a rank arrives later, on average over a
// block, than the median of the others. Among ranks that are alike that is zero in
// the mean, but for what is left of rare and long delays. Student's t tells how
// probable a larger mean is, times the number of ranks; it is given as many
// observations as the blocks are worth, as neighbours resemble each other.
//
// Ranks are never quite alike: one of them talks to the tokenizer, too. So, however
// certain it is, the median over the blocks has to be beyond what that can cost, and
// to be a part of the time that matters.
const (
	mostBlocksJudged = 40
	leastInBlock     = 4     // meetings, so that a single long one does not make a block
	fewestMeetings   = 40    // ten blocks: a start is no state
	leastWorth       = 5     // independent blocks; with fewer, one spell looks like a rule
	errorLevel       = 0.001 // largest P of a straggler: a deployment has many groups
)

// stragglers returns the ranks that the others wait for; what costs most comes
// first.
func (g *gathering) stragglers() []Straggler {
	g.settle()
	var found []Straggler
	whole := g.blocks(0, len(g.meetings))
	for r := range g.names {
		if s, ok := g.judge(r, whole); ok {
			found = append(found, s)
		}
	}
	sortStragglers(found)
	return found
}

// A block sums up some meetings that follow each other.
type block struct {
	offset []float64 // of every rank, mean; NaN if it was not there
	took   float64   // mean, ns
}

// blocks divides the meetings [from, to) into as many blocks as there can be.
func (g *gathering) blocks(from, to int) []block {
	k := len(g.names)
	blocks := make([]block, min(mostBlocksJudged, (to-from)/leastInBlock))
	for b := range blocks {
		first, end := from+b*(to-from)/len(blocks), from+(b+1)*(to-from)/len(blocks)
		sums, counts := make([]float64, k), make([]float64, k)
		for i := first; i < end; i++ {
			for r, d := range g.offset[i*k : (i+1)*k] {
				if d != noArrival {
					sums[r] += float64(d)
					counts[r]++
				}
			}
			blocks[b].took += float64(g.meetings[i].took) / float64(end-first)
		}
		for r := range sums {
			sums[r] = ratio(sums[r], counts[r])
		}
		blocks[b].offset = sums
	}
	return blocks
}

// excess returns by how much a rank was later than the median of the others, in ns;
// NaN if there are no others. It is the mean of the two in the middle, where there
// are two: by nearest rank, every one of three ranks would be late on average.
func (b *block) excess(rank int) float64 {
	var others []float64
	for r, x := range b.offset {
		if r != rank && !math.IsNaN(x) {
			others = append(others, x)
		}
	}
	if len(others) == 0 {
		return math.NaN()
	}
	slices.Sort(others)
	n := len(others)
	return b.offset[rank] - (others[(n-1)/2]+others[n/2])/2
}

// An effect is by how much a rank is late, block by block: in ns, and as part of the
// time.
type effect struct{ ns, part []float64 }

func effectOn(rank int, blocks []block) effect {
	var e effect
	for i := range blocks {
		if ns := blocks[i].excess(rank); !math.IsNaN(ns) {
			e.ns, e.part = append(e.ns, ns), append(e.part, ns/max(1, blocks[i].took))
		}
	}
	return e
}

// matters tells whether an effect is large enough in most blocks.
func (g *gathering) matters(e effect) bool {
	return len(e.ns) > 0 && floatMedian(e.ns) >= float64(g.floor) && floatMedian(e.part) >= g.share
}

// probability bounds the probability of such an effect on any of the ranks if all
// are alike.
func (g *gathering) probability(e effect) float64 {
	mean, variance, worth := changepoint.Mean(e.part)
	switch {
	case mean <= 0 || worth < leastWorth:
		return 1
	case variance == 0:
		return 0
	}
	t := distuv.StudentsT{Sigma: 1, Nu: worth - 1}
	return min(1, float64(len(g.names))*t.Survival(mean/math.Sqrt(variance)))
}

// interval returns the 95 % confidence interval of the mean of an effect, in ns.
func (e effect) interval() (low, high int64) {
	mean, variance, worth := changepoint.Mean(e.ns)
	margin := distuv.StudentsT{Sigma: 1, Nu: max(1, worth-1)}.Quantile(0.975) * math.Sqrt(variance)
	return int64(mean - margin), int64(mean + margin)
}

// floatMedian returns the median by nearest rank.
func floatMedian(x []float64) float64 {
	sorted := slices.Sorted(slices.Values(x))
	return sorted[(len(sorted)+1)/2-1]
}

// judge tells whether a rank is a straggler, all the time or in a part of it.
func (g *gathering) judge(rank int, whole []block) (Straggler, bool) {
	if !g.suspect(rank, whole) {
		return Straggler{}, false
	}
	run, ok := g.slowest(rank)
	if !ok || run.to-run.from < fewestMeetings {
		return Straggler{}, false
	}
	e := effectOn(rank, g.blocks(run.from, run.to))
	s := Straggler{
		Rank: rank, Name: g.names[rank], Group: g.group, What: g.what, Verb: g.verb,
		Lateness: g.lateness(rank, run.from, run.to), P: min(1, g.probability(e)*float64(run.tried)),
		Part: float64(run.to-run.from) / float64(len(g.meetings)),
	}
	if s.P > errorLevel {
		return Straggler{}, false
	}
	s.Low, s.High = e.interval()
	if c := run.began; c != nil {
		s.Since, s.Earliest, s.Latest = g.time(c.At), g.time(c.First), g.time(c.Last)
	}
	if run.to < len(g.meetings) {
		s.Until = g.time(run.to)
	}
	return s, true
}

// suspect tells whether a rank is late enough in some of the blocks; if not,
// nothing is searched.
func (g *gathering) suspect(rank int, blocks []block) bool {
	const part, fewest = 8, 3
	n := 0
	for i := range blocks {
		if blocks[i].excess(rank) >= max(float64(g.floor), g.share*blocks[i].took) {
			n++
		}
	}
	return n >= max(fewest, len(blocks)/part)
}

// A slowRun is a part of the meetings in which a rank is slow.
type slowRun struct {
	from, to int
	began    *changepoint.Change // nil if it always was
	lost     int64
	tried    int // parts that were looked at
}

// slowest divides the meetings where the lateness of a rank changed, and returns the
// run of slow parts that costs most.
func (g *gathering) slowest(rank int) (slowRun, bool) {
	changes := g.changes(rank)
	var best, run slowRun
	open := false
	for i := 0; i <= len(changes); i++ {
		part := slowRun{to: len(g.meetings)}
		if i > 0 {
			part.from, part.began = changes[i-1].At, &changes[i-1]
		}
		if i < len(changes) {
			part.to = changes[i].At
		}
		if !g.matters(effectOn(rank, g.blocks(part.from, part.to))) {
			open = false
			continue
		}
		if !open {
			run, open = part, true
		}
		run.to = part.to
		if run.lost = g.lateness(rank, run.from, run.to).Lost; run.lost > best.lost {
			best = run
		}
	}
	best.tried = len(changes) + 1
	return best, best.lost > 0
}

// changes finds where the lateness of a rank became another one.
func (g *gathering) changes(rank int) []changepoint.Change {
	const most = 2000 // values that are searched; beyond, means of several are
	n := len(g.meetings)
	size := (n + most - 1) / most
	var values, took []float64
	for from := 0; from < n; from += size {
		sum, count, time := 0.0, 0.0, 0.0
		for i := from; i < min(n, from+size); i++ {
			if d := g.late[i*len(g.names)+rank]; d != noArrival {
				sum += float64(d)
				count++
			}
			time += float64(g.meetings[i].took)
		}
		values, took = append(values, sum/max(1, count)), append(took, time/float64(size))
	}
	found := changepoint.Levels(values, changepoint.Options{Alpha: errorLevel, Keep: func(from, k, to int) bool {
		least := max(float64(g.floor), g.share*stat.Mean(took[from:to], nil))
		return math.Abs(floatMedian(values[k:to])-floatMedian(values[from:k])) >= least/2
	}})
	for i := range found {
		c := &found[i]
		c.At, c.First, c.Last = c.At*size, c.First*size, min(n-1, c.Last*size)
	}
	return found
}

// time returns the time between the meetings k-1 and k.
func (g *gathering) time(k int) trace.Time {
	return midway(g.meetings, k, g.meetings[0].at, g.meetings[len(g.meetings)-1].at, func(m meeting) trace.Time { return m.at })
}

// sortStragglers puts what costs most first.
func sortStragglers(found []Straggler) {
	slices.SortStableFunc(found, func(x, y Straggler) int { return cmp.Compare(y.Lost, x.Lost) })
}

package straggler

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/internal/changepoint"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/trace"
)

// How a straggler is told from chance. Some rank is last at every sync point, and the rank that was last at one is
// likelier to be last at the next. So sync points are not counted but grouped into blocks. The judge looks at how
// much later than the median of the others a rank arrives, on average over a block, as a fraction of its time. Among
// ranks that are alike the mean of that is zero, apart from rare long delays. Student's t gives the probability of a
// larger mean, which is multiplied by the number of ranks. Neighboring blocks are similar, so t counts only as many
// observations as the blocks are worth.
//
// Lateness that rises and falls slowly is worth few observations, so t proves nothing, however late the rank is: one
// that gets hot, or whose host drifts. Such a rank is a straggler if it was late in every single block, which a mere
// spell never is.
//
// Ranks are never quite alike: one of them talks to the tokenizer, too. So, however certain it is, the mean over the
// blocks has to exceed what that can cost, and to be a fraction of the time that matters. And the others have to lose
// time to the rank: next to one that is later still, it may be late and cost nothing.
const (
	MaxBlocksJudged  = 40
	MinInBlock       = 4     // sync points, so that a single long one does not make a block
	FewestSyncPoints = 40    // ten blocks: the start of a capture is not a lasting state
	minWorth         = 5     // independent blocks; with fewer, one spell looks like a rule
	ErrorLevel       = 0.001 // largest P of a straggler: a deployment has many groups
	LikelyLevel      = 0.01  // largest P of a rank that is likely one

	minBlocks = 20 // least number of blocks, all of which must show a straggler: more than one spell
)

// minLost is how much the others have to lose to a straggler: as a fraction of Share, and of its even share of what
// is lost to all ranks. It is below 1 because ranks that are slow together share the loss.
const minLost = 0.5

// Stragglers returns the ranks that the others wait for, the costliest first.
func (g *SyncSamples) Stragglers() []Straggler {
	g.judgeAll()
	return g.found
}

// Likely returns ranks to which the others lose time, likely but not certainly for a reason other than chance. It
// returns none if there are stragglers, next to which other ranks may look late.
func (g *SyncSamples) Likely() []Straggler {
	g.judgeAll()
	if len(g.found) > 0 {
		return nil
	}
	return g.likely
}

// judgeAll judges every rank, once. Finders that run concurrently may call it at the same time.
func (g *SyncSamples) judgeAll() {
	g.judging.Lock()
	defer g.judging.Unlock()
	if g.judged {
		return
	}
	g.settle()
	g.judged, g.found, g.likely = true, nil, nil
	g.guilty = make([]bool, len(g.Names))
	whole := g.blocks(0, len(g.SyncPoints))
	for again := true; again; again = again && g.Apart {
		again = g.judgeOnce(whole)
	}
	Sort(g.found)
	Sort(g.likely)
	g.unsettle()
}

// judgeOnce judges the ranks that are not found yet, and reports whether it found any. Ranks that work apart are
// judged again without those found, which hid the others.
func (g *SyncSamples) judgeOnce(whole []block) bool {
	g.likely, g.order = nil, nil
	var found []Straggler
	for r := range g.Names {
		if g.guilty[r] {
			continue
		}
		switch s, verdict := g.judge(r, whole); verdict {
		case guilty:
			found = append(found, s)
		case suspected:
			g.likely = append(g.likely, s)
		}
	}
	for i := range found {
		g.guilty[found[i].Rank] = true
	}
	g.found = append(g.found, found...)
	return len(found) > 0
}

// A verdict is the judge's verdict on a rank.
type verdict uint8

const (
	innocent  verdict = iota
	suspected         // it costs enough to matter, and chance is unlikely
	guilty
)

// judge decides whether a rank is a straggler: in some of its steps, or else on average.
func (g *SyncSamples) judge(rank int, whole []block) (Straggler, verdict) {
	occasional, verdict := g.occasional(rank)
	if verdict == guilty {
		return occasional, verdict
	}
	if s, v := g.regular(rank, whole); v != innocent {
		return s, v
	}
	return occasional, verdict
}

// regular judges whether a rank is late on average, all the time or in a part of it.
func (g *SyncSamples) regular(rank int, blocks []block) (Straggler, verdict) {
	if !g.suspect(rank, blocks) {
		return Straggler{}, innocent
	}
	var s, part Straggler
	v, vPart := innocent, innocent
	changes := g.changes(rank)
	whole, ok := g.slowest(rank, changes, false, g.perhaps)
	if ok {
		s, v = g.regularIn(rank, whole)
	}
	if run, ok := g.slowest(rank, changes, true, g.perhaps); ok && (run.from != whole.from || run.to != whole.to) {
		part, vPart = g.regularIn(rank, run)
	}
	if v == innocent && vPart == innocent {
		if run, ok := g.slowest(rank, changes, false, g.matters); ok {
			return g.regularIn(rank, run)
		}
	}
	const nearlyAll = 0.8
	if vPart != innocent && (v == innocent || vPart == v && float64(part.Lost) > nearlyAll*float64(s.Lost)) {
		return part, vPart
	}
	return s, v
}

// regularIn judges whether a rank is late on average in a run.
func (g *SyncSamples) regularIn(rank int, run slowRun) (Straggler, verdict) {
	s := g.straggler(rank, run)
	verdict := guilty
	switch {
	case !g.costs(&s, run):
		return Straggler{}, innocent
	case s.P <= ErrorLevel:
	case g.always(&s):
		s.P, s.DelayLow, s.DelayHigh = math.NaN(), math.NaN(), math.NaN()
	case s.P <= LikelyLevel && g.lost(&s) >= g.Share:
		verdict = suspected
	default:
		return Straggler{}, innocent
	}
	s.Bulk = g.bulk(rank, run.from, run.to, nil)
	return s, verdict
}

// straggler sums up a rank in a run in which it may be one.
func (g *SyncSamples) straggler(rank int, run slowRun) Straggler {
	e := effectOn(rank, g.blocks(run.from, run.to))
	s := Straggler{
		Rank: rank, Name: g.Names[rank], Group: g.Group, What: g.What, Verb: g.Verb,
		Lateness: g.lateness(rank, run.from, run.to), P: g.probability(e),
		Delay: stat.Mean(e.part, nil), Blocks: len(e.part), LateBlocks: g.lateBlocks(e),
		Part: float64(run.to-run.from) / float64(len(g.SyncPoints)),
	}
	if g.Apart {
		s.P = g.orderIn(run.from, run.to).chance(rank)
	}
	s.P = min(1, s.P*float64(run.tried))
	s.DelayLow, s.DelayHigh = e.interval()
	s.took = g.meanTook(run.from, run.to)
	if s.Undated = g.Undated(); s.Undated {
		return s
	}
	if c := run.began; c != nil {
		s.Since, s.Earliest, s.Latest = g.time(c.At), g.time(c.First)-trace.Time(g.Blur), g.time(c.Last)+trace.Time(g.Blur)
	}
	if run.to < len(g.SyncPoints) {
		s.Until = g.time(run.to)
	}
	return s
}

// meanTook returns the mean duration of the sync points [from, to), in ns.
func (g *SyncSamples) meanTook(from, to int) float64 {
	sum := order.SumRows(g.SyncPoints[from:to], func(m *syncPoint) float64 { return float64(m.Took) })
	return sum / float64(to-from)
}

// costs reports whether the others lose enough time to a rank in a run.
func (g *SyncSamples) costs(s *Straggler, run slowRun) bool {
	return g.Apart || s.LostShare >= minLost*g.Share && g.hasItsPart(s, run)
}

// lost returns the fraction of their time that the ranks waiting for a straggler lose, or the fraction of its own
// time if no rank waits for it.
func (g *SyncSamples) lost(s *Straggler) float64 {
	if g.Apart {
		return s.Delay
	}
	return s.LostShare
}

// hasItsPart reports whether a rank accounts for enough of what is lost in a run, either in all of it or without the
// tenth of its sync points with the largest losses. Otherwise a few long waits for another rank would hide one that
// is late all along.
func (g *SyncSamples) hasItsPart(s *Straggler, run slowRun) bool {
	points := g.SyncPoints[run.from:run.to]
	part := func(most int64) bool {
		own, lost := int64(0), int64(0)
		for _, m := range points {
			if m.last < 0 || m.lost > most {
				continue
			}
			if lost += m.lost; m.last == s.Rank {
				own += m.lost
			}
		}
		return float64(own)*float64(len(g.Names)) >= minLost*float64(lost) && own > 0
	}
	if part(math.MaxInt64) {
		return true
	}
	losses := order.EachRow(points, func(s *syncPoint) int64 { return s.lost })
	return part(order.Nth(losses, len(losses)-1-len(losses)/fewOf))
}

// always reports whether a rank was late in every block, and the others lost enough to matter. If the run is a part
// of the capture, it may have been picked because the rank is late there. Then the rank must also be last nearly
// every time, and the part at least half of the whole.
func (g *SyncSamples) always(s *Straggler) bool {
	const half, nearlyEvery = 0.5, 0.9
	if s.Blocks < minBlocks || s.LateBlocks < s.Blocks || g.lost(s) < g.Share {
		return false
	}
	return s.Part == 1 || s.Part >= half && float64(s.Last) >= nearlyEvery*float64(s.SyncPoints)
}

// suspect reports whether a rank is late enough in some of the blocks. If not, no periods are searched.
func (g *SyncSamples) suspect(rank int, blocks []block) bool {
	const part, fewest = 8, 3
	n := order.Count(blocks, func(b block) bool { return b.excess(rank) >= max(float64(g.Floor), g.Share*b.took) })
	return n >= max(fewest, len(blocks)/part)
}

// A slowRun is a range of the sync points in which a rank is slow.
type slowRun struct {
	from, to int
	began    *changepoint.Change // nil if it began with the first sync point
	lost     int64
	tried    int // number of ranges examined
}

// slowest divides the sync points at the changes of a rank's lateness, and returns the costliest run of adjacent slow
// parts. If divided, the parts of a run must be about equally slow. Parts for which only joins holds may connect slow
// parts, but are not a run on their own.
func (g *SyncSamples) slowest(rank int, changes []changepoint.Change, divided bool, joins func(effect) bool) (slowRun, bool) {
	return g.costliest(rank, changes, divided, func(from, to int) (slow, joined bool) {
		e := effectOn(rank, g.blocks(from, to))
		slow = g.matters(e)
		return slow, slow || joins(e)
	})
}

// perhaps reports whether a rank may be late, though by less than clocks can show: in short steps, the fraction of
// the time that matters is less than the error of the clocks.
func (g *SyncSamples) perhaps(e effect) bool {
	return len(e.part) > 0 && distribution.LowerMedian(slices.Clone(e.part)) >= g.Share
}

// costliest joins adjacent slow parts between changes, and returns the costliest run. If divided, a part must be
// about as slow as the run that it joins. Parts for which is returns only joined make no run on their own.
func (g *SyncSamples) costliest(rank int, changes []changepoint.Change, divided bool, is func(from, to int) (slow, joined bool)) (slowRun, bool) {
	var best, run slowRun
	open, counts := false, false
	for i := 0; i <= len(changes); i++ {
		part := slowRun{to: len(g.SyncPoints)}
		if i > 0 {
			part.from, part.began = changes[i-1].At, &changes[i-1]
		}
		if i < len(changes) {
			part.to = changes[i].At
		}
		slow, joined := is(part.from, part.to)
		if !joined {
			open = false
			continue
		}
		if !open || divided && g.apart(rank, &run, &part) {
			run, open, counts = part, true, false
		}
		run.to, counts = part.to, counts || slow
		l := g.lateness(rank, run.from, run.to)
		if run.lost = l.Lost; g.Apart {
			run.lost = l.Mean * int64(l.SyncPoints)
		}
		if counts && run.lost > best.lost {
			best = run
		}
	}
	best.tried = len(changes) + 1
	return best, best.lost > 0 && best.to-best.from >= g.fewest()
}

// apart reports whether a rank's lateness differs too much between two runs for these to be one state. It must differ
// both in ns, and relative to what the sync points take without it: a rank that computes more slowly is later where
// there is more to compute, while one whose host is slow is always late by the same time.
func (g *SyncSamples) apart(rank int, x, y *slowRun) bool {
	const muchLater = 4
	differ := func(a, b float64) bool { return max(a, b) > muchLater*min(a, b) }
	a, b := float64(g.lateness(rank, x.from, x.to).Mean), float64(g.lateness(rank, y.from, y.to).Mean)
	return differ(a, b) && differ(a/max(1, g.meanTook(x.from, x.to)-a), b/max(1, g.meanTook(y.from, y.to)-b))
}

// fewest returns the fewest sync points that show the state of a rank. Those of ranks that work apart stand for many
// steps each, and the judge counts what they are worth.
func (g *SyncSamples) fewest() int {
	if g.Apart {
		return FewestSyncPoints / 2
	}
	return FewestSyncPoints
}

// changes finds where the lateness of a rank changed.
func (g *SyncSamples) changes(rank int) []changepoint.Change {
	const most = 2000 // values that are searched; if there are more, means of several are
	n := len(g.SyncPoints)
	size := (n + most - 1) / most
	var values, took []float64
	for from := 0; from < n; from += size {
		sum, count, time := 0.0, 0.0, 0.0
		for i := from; i < min(n, from+size); i++ {
			if d := g.late[i*len(g.Names)+rank]; d != NoArrival {
				sum += float64(d)
				count++
			}
			time += float64(g.SyncPoints[i].Took)
		}
		values, took = append(values, sum/max(1, count)), append(took, time/float64(size))
	}
	found := changepoint.Levels(values, changepoint.Options{Alpha: ErrorLevel, Keep: func(from, k, to int) bool {
		least := max(float64(g.Floor), g.Share*stat.Mean(took[from:to], nil))
		return math.Abs(distribution.LowerMedian(slices.Clone(values[k:to]))-distribution.LowerMedian(slices.Clone(values[from:k]))) >= least/2
	}})
	for i := range found {
		found[i] = found[i].Of(func(k int) int { return min(n, k*size) })
	}
	if g.Recorded {
		found = g.divide(found)
	}
	return found
}

// divide adds a change between two recordings if the gap is longer than all that was recorded and no known change
// lies in it. So each recording is judged separately.
func (g *SyncSamples) divide(changes []changepoint.Change) []changepoint.Change {
	recorded := order.SumRows(g.SyncPoints, func(m *syncPoint) int64 { return m.Took })
	for k := 1; k < len(g.SyncPoints); k++ {
		known := slices.ContainsFunc(changes, func(c changepoint.Change) bool { return c.First <= k && k <= c.Last })
		if gap := distribution.Between(g.SyncPoints[k-1].At, g.SyncPoints[k].At); gap > recorded && !known {
			changes = append(changes, changepoint.Change{At: k, First: k - 1, Last: k + 1})
		}
	}
	slices.SortFunc(changes, func(a, b changepoint.Change) int { return cmp.Compare(a.At, b.At) })
	return changes
}

// time returns the time between the sync points k-1 and k.
func (g *SyncSamples) time(k int) trace.Time {
	return distribution.Midway(g.SyncPoints, k, g.SyncPoints[0].At, g.SyncPoints[len(g.SyncPoints)-1].At, func(m syncPoint) trace.Time { return m.At })
}

// Sort sorts stragglers by cost, the costliest first.
func Sort(found []Straggler) {
	slices.SortStableFunc(found, func(x, y Straggler) int { return cmp.Compare(y.Lost, x.Lost) })
}

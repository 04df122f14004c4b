package matching

import (
	"cmp"
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/internal/order"
)

const (
	landmarks    = 64     // largest gaps of a sequence that are looked up
	perLandmark  = 64     // gaps of the peer that may be equal to one of them, at most
	voteWeight   = 1000   // weight of the vote of a gap with a single equal one
	voted        = 16     // number of shifts with the most votes that are considered
	judged       = 5      // number of shifts that are judged, of these, and of the others
	probes       = 128    // pairs of calls by which a shift is judged
	gapTolerance = 20_000 // ns; ends of a collective are up to 7 us apart, and a gap has two ends
	evenSpread   = 30_000 // ns; ends that vary more than this are not those of one collective
	evenPart     = 8      // of the median gap
	driftLimit   = 1e-4   // drift of clocks relative to each other
	SameClock    = 30_000 // ns; ends on one clock that are farther apart are not those of one collective
	nearEnds     = 10_000 // ns; most ends are closer on one clock, even if ranks leave one by one
)

// A shift says that call i of a is call i+by of b, for overlap calls from call at on.
type shift struct {
	by, at  int32
	votes   int
	overlap int32
	agree   float64 // share of calls that are equal
	spread  float64 // ns; median absolute deviation of the differences between ends from a line
	skew    int64   // ns; median difference between ends, b minus a ...
	skewAt  int64   // ... in the middle of the overlap, in the time of a
}

// even returns how much ends of a collective may vary, in ns. What two ranks enter that have no others must be the same, so that only its
// number is to be found: a part of the usual gap is enough for that. Over a slow link, they leave a collective of milliseconds that far apart.
func (s *sequence) even() float64 {
	least := float64(s.loose * evenSpread)
	if !s.pair || len(s.calls) < 2 {
		return least
	}
	gaps := s.sortedGaps()
	return max(least, float64(gaps[len(gaps)/2].size)/evenPart)
}

// gapTolerance is how much gaps between ends may differ, in ns.
func (s *sequence) gapTolerance() int64 { return int64(s.even()) * gapTolerance / evenSpread }

func (s *sequence) sortedGaps() []gap {
	if s.gaps == nil {
		for i := 1; i < len(s.ends); i++ {
			s.gaps = append(s.gaps, gap{s.ends[i] - s.ends[i-1], int32(i)})
		}
		slices.SortFunc(s.gaps, compareGaps)
	}
	return s.gaps
}

func compareGaps(a, b gap) int {
	return cmp.Or(cmp.Compare(a.size, b.size), cmp.Compare(a.at, b.at))
}

// largest returns the n largest gaps of s, ascending.
func (s *sequence) largest(n int) []gap {
	top := make([]gap, 0, 2*n)
	var least gap // least of the n largest so far
	for i := 1; i < len(s.ends); i++ {
		g := gap{s.ends[i] - s.ends[i-1], int32(i)}
		if len(top) >= n && compareGaps(g, least) < 0 {
			continue
		}
		if top = append(top, g); len(top) == cap(top) {
			slices.SortFunc(top, compareGaps)
			top = append(top[:0], top[n:]...)
			least = top[0]
		}
	}
	slices.SortFunc(top, compareGaps)
	return top[max(0, len(top)-n):]
}

// same reports whether call i of a and call j of b can be the same collective.
func same(a *sequence, i int32, b *sequence, j int32) bool {
	return a.token[i] == b.token[j] && (a.step[i] == b.step[j] || a.step[i] < 0 || b.step[j] < 0)
}

// votes returns the shifts to judge, the best first.
func votes(a, b *sequence) []shift {
	count := map[int32]int{}
	known := a.sortedGaps()
	for _, g := range b.largest(landmarks) {
		tolerance := a.gapTolerance() + int64(driftLimit*math.Abs(float64(g.size)))
		equal := known[gapsBelow(known, g.size-tolerance):gapsBelow(known, g.size+tolerance+1)]
		// A gap with many equal ones says little about which one it is.
		for _, k := range equal[:min(len(equal), perLandmark)] {
			if same(a, k.at, b, g.at) && same(a, k.at-1, b, g.at-1) {
				count[g.at-k.at] += voteWeight / len(equal)
			}
		}
	}
	for by := range stepShifts(a, b) {
		count[by] += voteWeight
	}
	// Captures may begin, or end, at the same call.
	for _, by := range []int32{0, int32(len(b.calls) - len(a.calls))} {
		count[by]++
	}
	list := make([]shift, 0, len(count))
	for by, n := range count {
		list = append(list, shift{by: by, votes: n})
	}
	slices.SortFunc(list, func(x, y shift) int {
		return cmp.Or(cmp.Compare(y.votes, x.votes), cmp.Compare(x.by, y.by))
	})
	// If all gaps are alike, as in decoding, votes say little; then differences of a few us decide.
	list, others := list[:min(len(list), voted)], list[min(len(list), voted):]
	if list = alike(a, b, list); a.loose == 1 {
		list = append(list, alike(a, b, others)...)
	}
	return list
}

// alike returns the shifts in a list with the smallest differences between gaps, the best first.
func alike(a, b *sequence, list []shift) []shift {
	difference := make(map[int32]int64, len(list))
	for _, s := range list {
		difference[s.by] = s.gapDifference(a, b)
	}
	slices.SortStableFunc(list, func(x, y shift) int { return cmp.Compare(difference[x.by], difference[y.by]) })
	return slices.Clip(list[:min(len(list), judged)])
}

// gapDifference returns the sum of the differences between some gaps of a and b, each capped
// at the tolerance. It is a quick measure of a shift.
func (s shift) gapDifference(a, b *sequence) (sum int64) {
	tolerance := a.gapTolerance()
	from := max(0, -s.by) + 1
	to := min(int32(len(a.calls)), int32(len(b.calls))-s.by)
	n := min(to-from, probes/2)
	for k := range n {
		i := from + int32(int64(k)*int64(to-from)/int64(n))
		d := (b.ends[i+s.by] - b.ends[i+s.by-1]) - (a.ends[i] - a.ends[i-1])
		if d = max(d, -d); d > tolerance || !same(a, i, b, i+s.by) {
			d = tolerance
		}
		sum += d
	}
	return sum + int64(probes/2-max(n, 0))*tolerance/2 // a short overlap shows less
}

// gapsBelow returns how many of the sorted gaps are smaller than size.
func gapsBelow(sorted []gap, size int64) int {
	n, _ := slices.BinarySearchFunc(sorted, size, func(g gap, size int64) int { return cmp.Compare(g.size, size) })
	return n
}

// stepShifts returns the shifts that align the first calls of equal steps.
func stepShifts(a, b *sequence) map[int32]bool {
	first := map[int32]int32{}
	for i, s := range a.step {
		if _, seen := first[s]; !seen && s >= 0 && i > 0 { // the first step may be cut off
			first[s] = int32(i)
		}
	}
	shifts := map[int32]bool{}
	for j, s := range b.step {
		if i, ok := first[s]; ok && j > 0 && b.step[j-1] != s && len(shifts) < voted/2 {
			shifts[int32(j)-i] = true
		}
	}
	return shifts
}

// bestShift judges the shifts and returns the best one, if it is clearly better than the others.
func bestShift(a, b *sequence) (shift, outcome) {
	var list []shift
	for _, s := range votes(a, b) {
		if s.judge(a, b); s.overlap < minRun || s.agree < 0.9 || s.spread > a.even() {
			continue
		}
		list = append(list, s)
	}
	if len(list) == 0 {
		return shift{}, unlike
	}
	// A short overlap may be even by chance, so it needs more evidence than a long one.
	slices.SortStableFunc(list, func(x, y shift) int {
		return cmp.Or(cmp.Compare(x.cost(a), y.cost(a)), cmp.Compare(y.votes, x.votes), cmp.Compare(x.by, y.by))
	})
	rivals := order.Only(list[1:], func(s shift) bool { return s.cost(a) < 3*list[0].cost(a) && !s.agrees(list[0], a) })
	if len(rivals) == 0 {
		return list[0], fits
	}
	// Of shifts that fit equally well, one may leave the clocks a hundred times closer together
	// than the next one does, which chance does only once in a hundred times: then it is that one.
	rivals = append(rivals, list[0])
	slices.SortFunc(rivals, func(x, y shift) int { return cmp.Compare(max(x.skew, -x.skew), max(y.skew, -y.skew)) })
	if nearest, next := rivals[0], rivals[1]; 100*max(nearest.skew, -nearest.skew) < max(next.skew, -next.skew) {
		return nearest, fits
	}
	return shift{}, ambiguous
}

// cost returns the evidence against s. Ends of a few calls are even by chance, and those of many calls never vary by less than about
// 100 ns, so spreads below that count as equal. One unequal call in twenty weighs as much as it takes to prefer another shift.
func (s shift) cost(a *sequence) float64 {
	floor := min(max(8000/float64(s.overlap), 100), 1000) * float64(a.loose)
	return max(s.spread, floor) * (1 + 8/float64(s.overlap)) * (1 + 60*(1-s.agree))
}

// agrees reports whether two shifts are the same answer: calls lost between two stretches make
// their shifts different, but the difference of the clocks remains the same.
func (s shift) agrees(o shift, a *sequence) bool {
	disjoint := s.at >= o.at+o.overlap || o.at >= s.at+s.overlap
	apart, elapsed := s.skew-o.skew, s.skewAt-o.skewAt
	return disjoint && float64(max(apart, -apart)) < a.even()+driftLimit*float64(max(elapsed, -elapsed))
}

// judge measures s on the longest stretch of the overlap that is even. A call that one side
// lost makes the rest of the overlap uneven, which is no evidence against s.
func (s *shift) judge(a, b *sequence) {
	from := max(0, -s.by)
	to := min(int32(len(a.calls)), int32(len(b.calls))-s.by)
	s.overlap, s.at = to-from, from
	if s.overlap < minRun {
		return
	}
	s.measure(a, b, from, to)
	whole := s.overlap
	for size := whole / 2; s.spread > a.even() && size >= 64 && size >= whole/8; size /= 2 {
		for start := from; start+size <= to; start += size {
			part := *s
			part.overlap, part.at = size, start
			if part.measure(a, b, start, start+size); part.spread < s.spread {
				*s = part
			}
		}
	}
}

// measure sets agree, spread, and skew from the calls [from, to) of a.
func (s *shift) measure(a, b *sequence, from, to int32) {
	n := min(to-from, probes)
	diffs := make([]float64, 0, n)
	base := b.ends[from+s.by] - a.ends[from]
	equal := 0
	for k := range n {
		i := from + int32(int64(k)*int64(to-from)/int64(n))
		if same(a, i, b, i+s.by) {
			equal++
		}
		diffs = append(diffs, float64(b.ends[i+s.by]-a.ends[i]-base))
	}
	s.agree = float64(equal) / float64(n)
	s.skew = base + int64(order.Median(diffs))
	s.skewAt = a.ends[from+(to-from)/2]
	// Fit a line through the medians of both halves, with a slope limited to the drift of clocks.
	half := len(diffs) / 2
	slope := (order.Median(diffs[half:]) - order.Median(diffs[:half])) / float64(max(half, 1))
	spanA := float64(a.ends[to-1]-a.ends[from]) / float64(n)
	slope = math.Copysign(min(math.Abs(slope), driftLimit*math.Abs(spanA)), slope)
	for k := range diffs {
		diffs[k] -= slope * float64(k)
	}
	center := order.Median(diffs)
	for k := range diffs {
		diffs[k] = math.Abs(diffs[k] - center)
	}
	s.spread = order.Median(diffs)
}

// shiftByTime returns the shift of two sequences on one clock.
func shiftByTime(a, b *sequence) (shift, bool) {
	count := map[int32]int{}
	for k := range min(probes, len(b.ends)) {
		j := int32(k * len(b.ends) / min(probes, len(b.ends)))
		i, _ := slices.BinarySearch(a.ends, b.ends[j])
		best, off := -1, a.loose*SameClock
		for _, c := range [...]int{i - 1, i, i + 1} {
			if c < 0 || c >= len(a.ends) || !same(a, int32(c), b, j) {
				continue
			}
			if d := b.ends[j] - a.ends[c]; max(d, -d) < off {
				best, off = c, max(d, -d)
			}
		}
		if best >= 0 {
			count[j-int32(best)]++
		}
	}
	var s shift
	for by, n := range count {
		if n > s.votes || n == s.votes && by < s.by {
			s = shift{by: by, votes: n}
		}
	}
	if s.votes*8 < min(probes, len(b.ends)) { // the overlap is too small, or too many calls were lost
		return s, false
	}
	s.judge(a, b)
	return s, s.overlap >= minRun && s.spread <= a.even() && max(s.skew, -s.skew) < a.loose*SameClock
}

// Ends are the ends of a rank's collectives in which all ranks wait, by what the collectives do.
type Ends map[uint32]*sequence

// EndsOf returns the ends of a rank.
func EndsOf(r *Rank, names *Names) Ends {
	of := Ends{}
	for i := range r.Calls.Len() {
		c := r.Calls.At(i)
		info := names.Of(c.Call)
		if info.Kind != KindSync && info.Kind != KindMeet || !c.Timed() {
			continue
		}
		s := of[info.Seq]
		if s == nil {
			s = &sequence{loose: 1}
			of[info.Seq] = s
		}
		s.calls, s.ends = append(s.calls, int32(i)), append(s.ends, c.End)
		s.token, s.step = append(s.token, info.Seq), append(s.step, c.Step)
	}
	for _, s := range of {
		slices.Sort(s.ends)
	}
	return of
}

// OnOneClock reports whether two ranks whose clocks nothing relates end all collectives that
// both have at the same times, as ranks on one clock do.
func (e Ends) OnOneClock(o Ends) bool {
	here := 0
	for token, s := range o {
		peer := e[token]
		if peer == nil || len(s.ends) < minRun || len(peer.ends) < minRun {
			continue
		}
		// By chance, ends are within a tenth of the mean distance of another collective in one of five cases.
		near := min(nearEnds, (s.ends[len(s.ends)-1]-s.ends[0])/int64(10*(len(s.ends)-1)))
		if x, ok := shiftByTime(peer, s); !ok || max(x.skew, -x.skew) > near || x.spread > float64(near) {
			return false
		}
		here++
	}
	return here > 0
}

// followTolerance is how far the end of a call may be from where the previous calls predict it, in ns.
const followTolerance = 50_000

// A follower walks along two parallel sequences, and pairs their calls by time. skew is the difference of the clocks, b
// minus a, according to the last pairs; it adapts slowly to drift and noise, so that one late end does not mislead it.
type follower struct {
	a, b *sequence
	skew float64
	last int64 // end of the last pair on a
}

// follow returns the pairs of calls along s, ascending.
func follow(a, b *sequence, s shift) []pair {
	from, to := s.at, s.at+s.overlap
	start, best := from, int64(-1)
	for i := from; i < to; i++ { // begin where the difference is closest to the typical one
		if !same(a, i, b, i+s.by) {
			continue
		}
		d := b.ends[i+s.by] - a.ends[i] - s.skew
		if d = max(d, -d); best < 0 || d < best {
			start, best = i, d
		}
		if best < 1000*a.loose {
			break
		}
	}
	if best < 0 {
		return nil
	}
	back := follower{a, b, float64(s.skew), a.ends[start]}.walk(start-1, start+s.by-1, -1)
	pairs := make([]pair, 0, len(back)+int(to-start))
	for k := len(back) - 1; k >= 0; k-- {
		pairs = append(pairs, back[k])
	}
	ahead := follower{a, b, float64(s.skew), a.ends[start]}.walk(start, start+s.by, 1)
	return append(pairs, ahead...)
}

// walk goes from calls i and j in steps of by (1 or -1) to the end of a sequence.
func (f follower) walk(i, j, by int32) []pair {
	var pairs []pair
	na, nb := int32(len(f.a.ends)), int32(len(f.b.ends))
	for i >= 0 && j >= 0 && i < na && j < nb {
		ea, eb := f.a.ends[i], f.b.ends[j]
		d := float64(eb-ea) - f.skew
		elapsed := max(ea-f.last, f.last-ea)
		tolerance := max(float64(f.a.loose*followTolerance), f.a.even()) + driftLimit*float64(elapsed)
		tolerance = min(tolerance, max(float64(nearest(f.a, i))/2, float64(nearest(f.b, j))/2, float64(2000*f.a.loose)))
		if d < tolerance && -d < tolerance && same(f.a, i, f.b, j) {
			pairs = append(pairs, pair{i, j})
			f.skew += d / 4
			f.last = ea
			i, j = i+by, j+by
			continue
		}
		// The call that comes first in the direction of the walk has no match.
		switch later := d*float64(by) > 0; {
		case d < tolerance && -d < tolerance:
			i, j = i+by, j+by // different calls at the same time: neither has a match
		case later:
			i += by
		default:
			j += by
		}
	}
	return pairs
}

// nearest returns the distance from the end of call i to the nearest end of its neighbors.
func nearest(s *sequence, i int32) int64 {
	d := int64(1 << 62)
	if i > 0 {
		d = min(d, s.ends[i]-s.ends[i-1])
	}
	if int(i)+1 < len(s.ends) {
		d = min(d, s.ends[i+1]-s.ends[i])
	}
	return d
}

package ranks

import (
	"cmp"
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/trace"
)

// A guess is an offset that many anchors of one piece agree on.
type guess struct {
	piece  int
	offset int64 // median
	spread int64 // median distance from offset
	score  int   // number of anchors
}

// A knot is the offset at one time; offsets between knots are interpolated.
type knot struct {
	at     trace.Time // on the held events' clock
	offset int64
}

// settle finds the shift from the observed events; false if no shift is clearly better than all others.
func (t *comparison) settle() (Shift, bool) {
	var all []guess
	for i := range t.pieces {
		all = append(all, t.guesses(i)...)
	}
	best, rival, chosen := t.vote(all)
	if best < minAnchors || float64(best) < rivalry*float64(rival) {
		return Shift{}, false
	}
	chosen = t.straighten(chosen)
	spread, matches := int64(0), 0
	for _, g := range chosen {
		t.knots = append(t.knots, knot{t.pieces[g.piece].middle, g.offset})
		spread = max(spread, g.spread)
		matches += g.score
	}
	shift := Shift{At: t.knots[0].at, Offset: t.knots[0].offset, Matches: matches}
	const long = 1_000_000_000 // ns; over a shorter time, noise looks like drift
	if last := t.knots[len(t.knots)-1]; last.at-shift.At >= long {
		t.drift = float64(last.offset-shift.Offset) / float64(last.at-shift.At)
		shift.DriftPPB = int64(math.Round(t.drift * 1e9))
	}
	for _, k := range t.knots {
		off := k.offset - shift.offsetAt(k.at)
		shift.Bound = max(shift.Bound, off, -off)
	}
	noise := 3*spread + t.rounding()
	shift.Bound += noise
	const slack, farthest = 250, 5000 // ns; equal kernels are hardly ever closer together
	t.by = min(noise+slack, farthest)
	return shift, true
}

// offsetAt returns the offset at a time on the held events' clock.
func (s *Shift) offsetAt(at trace.Time) int64 {
	return s.Offset + int64(math.Round(float64(s.DriftPPB)*float64(at-s.At)/1e9))
}

// rounding returns how far equal times may differ by rounding alone.
func (t *comparison) rounding() int64 {
	other := int64(1)
	if t.coarse {
		other = 1000
	}
	return tolerance(t.grain, other)
}

// window returns how far apart the differences of a piece's anchors may be.
func (t *comparison) window(p *piece) int64 {
	const slack = 2000 // ns between two profilers' notions of an event's start
	return 2*t.rounding() + slack + int64(maxDrift*float64(p.span))
}

// most is the maximum number of guesses kept per piece.
const most = 8

// guesses returns the offsets on which the most anchors of a piece agree.
func (t *comparison) guesses(number int) []guess {
	p := &t.pieces[number]
	type pair struct {
		diff   int64
		anchor int32
	}
	var pairs []pair
	for i := p.first; i < p.last; i++ {
		for _, d := range t.anchors[i].diffs {
			pairs = append(pairs, pair{d, int32(i)})
		}
	}
	slices.SortFunc(pairs, func(a, b pair) int { return cmp.Or(cmp.Compare(a.diff, b.diff), cmp.Compare(a.anchor, b.anchor)) })
	type span struct{ from, to, score int }
	var spans []span
	width, in, distinct, to := t.window(p), map[int32]int{}, 0, 0
	for from := range pairs {
		for ; to < len(pairs) && pairs[to].diff-pairs[from].diff <= width; to++ {
			if in[pairs[to].anchor]++; in[pairs[to].anchor] == 1 {
				distinct++
			}
		}
		if distinct >= 2 {
			spans = append(spans, span{from, to, distinct})
		}
		if in[pairs[from].anchor]--; in[pairs[from].anchor] == 0 {
			distinct--
		}
	}
	slices.SortStableFunc(spans, func(a, b span) int { return cmp.Compare(b.score, a.score) })
	var found []guess
	var taken []span
	for _, s := range spans {
		if len(found) == most {
			break
		}
		if slices.ContainsFunc(taken, func(o span) bool { return s.from < o.to && o.from < s.to }) {
			continue
		}
		taken = append(taken, s)
		diffs := order.Each(pairs[s.from:s.to], func(x pair) int64 { return x.diff })
		middle, spread := medians(diffs)
		found = append(found, guess{number, middle, spread, s.score})
	}
	return found
}

// medians returns the median of values and the median distance from it. It reorders and overwrites values.
func medians(values []int64) (middle, spread int64) {
	slices.Sort(values)
	middle = values[len(values)/2]
	for i, v := range values {
		values[i] = max(v-middle, middle-v)
	}
	slices.Sort(values)
	return middle, values[len(values)/2]
}

// agree reports whether two guesses may be of the same shift.
func (t *comparison) agree(a, b *guess) bool {
	p, q := &t.pieces[a.piece], &t.pieces[b.piece]
	far := float64(max(p.middle-q.middle, q.middle-p.middle))
	by := a.offset - b.offset
	return max(by, -by) <= max(t.window(p), t.window(q))+int64(maxDrift*far)
}

// vote returns the score of the best shift, the score of the best remaining shift without the guesses that
// support it, and those guesses, one for each piece, by time.
func (t *comparison) vote(all []guess) (best, rival int, chosen []guess) {
	best, chosen = t.elect(all)
	others := slices.DeleteFunc(slices.Clone(all), func(g guess) bool {
		return slices.ContainsFunc(chosen, func(c guess) bool { return c == g })
	})
	rival, _ = t.elect(others)
	return best, rival, chosen
}

// elect returns the score of the shift that the most guesses agree with, and the best agreeing guess of
// each piece.
func (t *comparison) elect(all []guess) (best int, chosen []guess) {
	for i := range all {
		score, list := 0, chosen[:0:0]
		for k := range all {
			g := &all[k]
			if !t.agree(&all[i], g) {
				continue
			}
			switch last := len(list) - 1; {
			case last < 0 || list[last].piece != g.piece:
				list = append(list, *g)
				score += g.score
			case g.score > list[last].score:
				score += g.score - list[last].score
				list[last] = *g
			}
		}
		if score > best {
			best, chosen = score, list
		}
	}
	return best, chosen
}

// straighten drops guesses that are off the line through the others: within a recording, the drift of
// clocks hardly changes.
func (t *comparison) straighten(all []guess) []guess {
	var slopes []float64
	at := func(i int) float64 { return float64(t.pieces[all[i].piece].middle - t.pieces[all[0].piece].middle) }
	for i := range all {
		for j := range i {
			if far := at(i) - at(j); far > 0 {
				slopes = append(slopes, float64(all[i].offset-all[j].offset)/far)
			}
		}
	}
	if len(slopes) < 3 {
		return all
	}
	slices.Sort(slopes)
	slope := slopes[len(slopes)/2]
	rest := make([]int64, len(all))
	for i := range all {
		rest[i] = all[i].offset - int64(slope*at(i))
	}
	middle, spread := medians(slices.Clone(rest))
	var kept []guess
	for i := range all {
		by := rest[i] - middle
		if max(by, -by) <= max(5*spread, t.window(&t.pieces[all[i].piece])) {
			kept = append(kept, all[i])
		}
	}
	return kept
}

// forEvents returns a comparison with the same shift for other held events on the same clock.
func (t *comparison) forEvents(held moments) *comparison {
	return &comparison{held: held, grain: min(t.grain, grainOf(held)), coarse: t.coarse, knots: t.knots, drift: t.drift, by: t.by}
}

// A search finds held events that are equal to streamed ones, each at most once. It serves one walk over
// the streamed events.
type search struct {
	duplicates *comparison
	used       []uint64 // one bit per held event
	at         int      // position of the last lookup
	knot       int      // index of the knot before the last lookup
}

// begin starts a walk. settle must have found a shift.
func (t *comparison) begin() *search {
	return &search{duplicates: t, used: make([]uint64, t.held.len()/64+1)}
}

// heldTime converts a time from the streamed events' clock to the held events'.
func (s *search) heldTime(at trace.Time) trace.Time {
	knots := s.duplicates.knots
	shown := func(k int) trace.Time { return knots[k].at + trace.Time(knots[k].offset) }
	for s.knot+1 < len(knots) && shown(s.knot+1) <= at {
		s.knot++
	}
	for s.knot > 0 && shown(s.knot) > at {
		s.knot--
	}
	from, slope := s.knot, s.duplicates.drift
	if at >= shown(from) && from+1 < len(knots) {
		slope = float64(knots[from+1].offset-knots[from].offset) / float64(knots[from+1].at-knots[from].at)
	}
	return at - trace.Time(knots[from].offset) - trace.Time(math.Round(slope/(1+slope)*float64(at-shown(from))))
}

// has reports whether a streamed event matches a held one, which is then used up.
func (s *search) has(name trace.Sym, start trace.Time, dur int64) bool {
	_, ok := s.find(name, start, dur)
	return ok
}

// find is like has, and returns the index of the held event: the nearest one with the same name and
// duration.
func (s *search) find(name trace.Sym, start trace.Time, dur int64) (int, bool) {
	held := &s.duplicates.held
	want := s.heldTime(start)
	by := s.duplicates.rounding()
	reach := trace.Time(s.duplicates.by)
	s.seek(want - reach)
	found, nearest := -1, int64(math.MaxInt64)
	for i := s.at; i < held.len() && held.Start[i] <= want+reach; i++ {
		if held.Name[i] != name || max(held.Dur[i]-dur, dur-held.Dur[i]) > by || s.used[i/64]>>(i%64)&1 != 0 {
			continue
		}
		if far := int64(max(held.Start[i]-want, want-held.Start[i])); far < nearest {
			found, nearest = i, far
		}
	}
	if found < 0 {
		return -1, false
	}
	s.used[found/64] |= 1 << (found % 64)
	return found, true
}

// seek moves to the first held event that does not start before the given time. Streamed events are nearly
// in order, so it is usually near the last one.
func (s *search) seek(from trace.Time) {
	starts := s.duplicates.held.Start
	const near = 64
	for range near {
		switch {
		case s.at < len(starts) && starts[s.at] < from:
			s.at++
		case s.at > 0 && starts[s.at-1] >= from:
			s.at--
		default:
			return
		}
	}
	s.at, _ = slices.BinarySearch(starts, from)
}

package matching

import (
	"cmp"
	"slices"
)

// Without ids, the n-th collective of a communicator is the n-th one on all its ranks; but captures begin and end at
// different calls, and lose some. Besides their names, what matching calls have in common is the time between
// their ends: ranks leave a collective together, so the gaps between ends are equal on all of them, within a few us,
// whatever their clocks show. So
//
//  1. the largest gaps of a rank (between steps, while it waited for a batch) are looked up among the gaps of a
//     peer; each pair of equal gaps votes for a shift;
//  2. the shifts with the most votes are judged by how constant the difference of the ends is over the whole overlap,
//     and by whether the calls are equal;
//  3. along the best one, the two sequences are followed by time (shift.go), so that calls lost on one side do not
//     shift the rest.
//
// If a second shift is about as good, the sequence repeats itself so exactly that the shift is unknown, and nothing is
// matched.

// minRun is the least number of calls that can show a pattern.
const minRun = 4

// A sequence is the open calls of one rank on one communicator, or in one family of kernels.
type sequence struct {
	pos   int // position of the rank in matcher.order
	clock int
	loose int64   // see matcher.loose
	pair  bool    // see Rank.Pair
	calls []int32 // indexes, ordered by start
	ends  []int64
	token []uint32 // must be equal on both sides, as must the step
	step  []int32
	gaps  []gap // sorted; computed on first use
}

// A gap is the time between the ends of calls at-1 and at.
type gap struct {
	size int64
	at   int32
}

// A lane identifies what sequences must have in common to be matched.
type lane struct {
	job  uint64
	comm CommID
	lane uint32 // 0 if the call has an op
}

// ordinals matches by order what is still open.
func (m *matcher) ordinals() {
	numbers := map[lane]int{}
	var lanes []lane
	var sequences [][]*sequence // by number of the lane
	for pos := range m.order {
		current := map[int]*sequence{}
		m.eachOpen(pos, func(i int32, c Collective, info CallInfo) {
			l := lane{m.jobs[pos], c.Comm, info.lane}
			n, ok := numbers[l]
			if !ok {
				n = len(lanes)
				numbers[l] = n
				lanes = append(lanes, l)
				sequences = append(sequences, nil)
			}
			s := current[n]
			if s == nil {
				s = &sequence{pos: pos, clock: m.ranks[m.order[pos]].Clock, loose: m.loose, pair: m.ranks[m.order[pos]].Pair}
				current[n] = s
				sequences[n] = append(sequences[n], s)
			}
			s.calls = append(s.calls, i)
			s.ends = append(s.ends, c.End)
			s.token = append(s.token, info.Seq)
			s.step = append(s.step, c.Step)
		})
	}
	for n, l := range lanes {
		level := ByOrdinal
		if l.lane != 0 {
			level = ByFamily
		}
		m.matchSequences(level, sequences[n])
	}
}

// eachOpen calls f for the open calls of a rank that can be matched by order, ordered by start.
func (m *matcher) eachOpen(pos int, f func(int32, Collective, CallInfo)) {
	calls, of := m.ranks[m.order[pos]].Calls, m.of[pos]
	var list []int32
	for i := range of {
		if of[i] != open {
			continue
		}
		c := calls.At(i)
		info := m.names.Of(c.Call)
		// Calls without a communicator and without a kernel name could belong to anybody, and uneven ends show
		// no order: see MatchRest. On hosts, only collectives in which all wait have ends that are even enough.
		if info.Kind != KindMeet && (m.loose == 1 || info.Kind == KindSync) && c.Timed() && (c.Comm != 0 && info.op != 0 || info.lane != 0) {
			list = append(list, int32(i))
		}
	}
	byStart := func(a, b int32) int {
		x, y := calls.At(int(a)), calls.At(int(b))
		return cmp.Or(cmp.Compare(x.Start, y.Start), cmp.Compare(x.End, y.End), cmp.Compare(a, b))
	}
	if !slices.IsSortedFunc(list, byStart) {
		slices.SortFunc(list, byStart)
	}
	for _, i := range list {
		c := calls.At(int(i))
		f(i, c, m.names.Of(c.Call))
	}
}

// matchSequences matches the sequences of one lane, the longest first, each with the first of
// the earlier ones that it fits. Calls outside of that one's time are matched with further ones.
func (m *matcher) matchSequences(level Level, all []*sequence) {
	slices.SortStableFunc(all, func(a, b *sequence) int { return cmp.Compare(len(b.calls), len(a.calls)) })
	for i, s := range all {
		outcome := unlike
		for _, peer := range m.peers(all[:i], s) {
			pairs, o := m.pairUp(peer, s)
			if o == fits {
				m.joinPairs(level, peer, s, pairs)
				outcome = fits
				if m.outside(s) < minRun {
					break
				}
			} else if outcome != fits {
				outcome = o
			}
		}
		switch {
		case i == 0:
		case outcome == unlike:
			m.report.Unlike++
		case outcome == ambiguous:
			m.report.Ambiguous++
		}
	}
}

// outside returns how many calls of s come before its first matched call, or after its last one.
func (m *matcher) outside(s *sequence) int {
	of, n := m.of[s.pos], len(s.calls)
	first, last := 0, n-1
	for first < n && of[s.calls[first]] < 0 {
		first++
	}
	for last >= 0 && of[s.calls[last]] < 0 {
		last--
	}
	return first + n - 1 - last
}

// maxPeers limits how many sequences on the same clock, and on other clocks, are tried: a
// sequence that fits none of these usually belongs to another group.
const maxPeers = 8

// peers returns the sequences that s may be matched with. Those on its own clock come first, as time alone decides there.
func (m *matcher) peers(before []*sequence, s *sequence) []*sequence {
	var here, elsewhere []*sequence
	global := m.ranks[m.order[s.pos]].Global
	for _, p := range before {
		switch {
		case global >= 0 && m.ranks[m.order[p.pos]].Global == global:
		case p.clock == s.clock:
			here = append(here, p)
		default:
			elsewhere = append(elsewhere, p)
		}
	}
	return append(here[:min(len(here), maxPeers)], elsewhere[:min(len(elsewhere), maxPeers)]...)
}

// A pair is two matching calls, as indexes into two sequences.
type pair struct{ a, b int32 }

func (m *matcher) joinPairs(level Level, a, b *sequence, pairs []pair) {
	for _, p := range pairs {
		ca, cb := a.calls[p.a], b.calls[p.b]
		g := m.of[a.pos][ca]
		if m.of[b.pos][cb] >= 0 || g >= 0 && int(m.groups[g].last) == b.pos {
			continue // one of them is matched with another peer already
		}
		if g < 0 {
			g = m.addGroup(level, m.info(a, ca), a.pos)
			m.of[a.pos][ca] = g
		}
		m.join(&m.groups[g], m.info(b, cb), b.pos)
		m.of[b.pos][cb] = g
	}
}

func (m *matcher) info(s *sequence, call int32) CallInfo {
	return m.names.Of(m.ranks[m.order[s.pos]].Calls.At(int(call)).Call)
}

type outcome uint8

const (
	fits outcome = iota
	ambiguous
	unlike
)

// pairUp finds which calls of a and b match.
func (m *matcher) pairUp(a, b *sequence) ([]pair, outcome) {
	var best shift
	if a.clock == b.clock {
		s, ok := shiftByTime(a, b)
		if !ok {
			return nil, unlike
		}
		best = s
	} else {
		var o outcome
		if best, o = bestShift(a, b); o == ambiguous && a.loose > 1 {
			// Different clocks may be those of one host with unknown name, on which time decides.
			if s, ok := shiftByTime(a, b); ok {
				best, o = s, fits
			}
		}
		if o != fits {
			return nil, o
		}
	}
	pairs := follow(a, b, best)
	// Within the overlap, nearly all calls must have a match.
	if len(pairs) < minRun {
		return nil, unlike
	}
	first, last := pairs[0], pairs[len(pairs)-1]
	overlap := max(last.a-first.a, last.b-first.b) + 1
	if float64(len(pairs)) < 0.8*float64(overlap) {
		return nil, unlike
	}
	return pairs, fits
}

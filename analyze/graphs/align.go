package graphs

// An alignment pairs two sequences in the order of both, so that the sum of the scores of pairs is the
// largest, less what it costs to leave something out. It looks at a band around the diagonal.
type alignment struct {
	n, m  int // lengths
	width int
	gap   int32   // what it costs to leave out one of either side
	sums  []int32 // of the best alignment of what follows, by i and place in the band
	score []int32 // of pairs; never
}

func newAlignment(n, m int, gap int32) *alignment {
	a := &alignment{n: n, m: m, width: 2*band + 1, gap: gap}
	if d := m - n; d > 0 {
		a.width += d
	} else {
		a.width -= d
	}
	a.sums = make([]int32, (n+1)*a.width)
	a.score = make([]int32, (n+1)*a.width)
	return a
}

// first is the place that the band begins with at i.
func (a *alignment) first(i int) int {
	if a.m >= a.n {
		return i - band
	}
	return i - band - (a.n - a.m)
}

// gap is what it costs to leave out one of either side of a graph and its capture: where names are
// unknown, one pair of the same kind more is no reason to.
const gap = 2 * kindred

// outside is worse than any sum.
const outside = -1 << 30

// sum returns the best sum from i and j on.
func (a *alignment) sum(i, j int) int32 {
	if at := j - a.first(i); i <= a.n && j <= a.m && at >= 0 && at < a.width {
		return a.sums[i*a.width+at]
	}
	return outside
}

// pair returns the score of a pair; never outside of the band.
func (a *alignment) pair(i, j int) int32 {
	if at := j - a.first(i); i < a.n && j < a.m && j >= 0 && at >= 0 && at < a.width {
		return a.score[i*a.width+at]
	}
	return never
}

// fill finds the sums, from the ends of both sequences.
func (a *alignment) fill(score func(i, j int) int32) {
	for i := a.n; i >= 0; i-- {
		from := a.first(i)
		for j := min(a.m, from+a.width-1); j >= max(0, from); j-- {
			at := i*a.width + j - from
			best := max(a.sum(i+1, j), a.sum(i, j+1)) - a.gap
			if i == a.n && j == a.m {
				best = 0
			}
			a.score[at] = never
			if i < a.n && j < a.m {
				if s := score(i, j); s != never {
					a.score[at] = s
					best = max(best, s+a.sum(i+1, j+1))
				}
			}
			a.sums[at] = best
		}
	}
}

// trace returns the partner of each i; none. Of alignments that are equally good, it is the one that
// pairs as early as can be, or as late.
func (a *alignment) trace(early bool) []int32 {
	partner := make([]int32, a.n)
	i, j := 0, 0
	for i < a.n {
		s := a.pair(i, j)
		pairs := s != never && s+a.sum(i+1, j+1) == a.sum(i, j)
		skipsJ := j < a.m && a.sum(i, j+1)-a.gap == a.sum(i, j)
		skipsI := a.sum(i+1, j)-a.gap == a.sum(i, j)
		switch {
		case pairs && (early || !skipsJ && !skipsI):
			partner[i] = int32(j)
			i, j = i+1, j+1
		case skipsJ && (!skipsI || !early):
			j++
		case skipsI:
			partner[i] = none
			i++
		default:
			j++
		}
	}
	return partner
}

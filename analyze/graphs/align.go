package graphs

import (
	"strconv"

	"github.com/sgtrace/sgtrace/internal/lazyregexp"
	"github.com/sgtrace/sgtrace/trace"
)

// An alignment pairs two sequences, in the order of both, so that the sum of the scores of pairs, less
// the cost of leaving elements out, is the largest. It looks only at a band around the diagonal.
type alignment struct {
	n, m  int // lengths
	width int
	gap   int32   // cost of leaving out one element of either side
	sums  []int32 // best sum of what follows, by i and place in the band
	score []int32 // of pairs, likewise; never if they do not fit
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

// first returns the first j of the band at i.
func (a *alignment) first(i int) int {
	if a.m >= a.n {
		return i - band
	}
	return i - band - (a.n - a.m)
}

// gap is the cost of leaving out one element of a graph or its capture: where names are unknown, that
// is not worth one more pair of the same kind.
const gap = 2 * kindred

// outside is worse than any sum.
const outside = -1 << 30

// sum returns the best sum of both sequences from i and j on.
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

// fill computes the sums, from the ends of both sequences.
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

// trace returns the partner of each i, or none. Of equally good alignments, it is the one that pairs as
// early as possible, or as late.
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

// margins returns by how much the best alignment beats the best one in which i has no partner, or one
// that says something else than its partner. It is 0 for those without a partner.
func (a *alignment) margins(partner []int32, same func(x, y int32) bool) []int32 {
	margins := make([]int32, a.n)
	before, row := a.firstRow(), make([]int32, a.width) // the best sums of what comes before i and j
	for i := range a.n {
		other := int32(outside)
		for at := range a.width {
			j := at + a.first(i)
			if j < 0 || j > a.m || before[at] <= outside {
				continue
			}
			other = max(other, before[at]-a.gap+a.sum(i+1, j))
			if s := a.pair(i, j); s != never && partner[i] != none && partner[i] != int32(j) && !same(partner[i], int32(j)) {
				other = max(other, before[at]+s+a.sum(i+1, j+1))
			}
		}
		if partner[i] != none {
			margins[i] = a.sum(0, 0) - other
		}
		a.next(row, before, i)
		before, row = row, before
	}
	return margins
}

// firstRow returns the best sums of what comes before the first i and each j.
func (a *alignment) firstRow() []int32 {
	row := make([]int32, a.width)
	for at := range row {
		row[at] = outside
		if j := at + a.first(0); j >= 0 && j <= a.m {
			row[at] = -int32(j) * a.gap
		}
	}
	return row
}

// next computes the sums of what comes before i + 1 and each j from those before i.
func (a *alignment) next(row, before []int32, i int) {
	shift := a.first(i+1) - a.first(i)
	for at := range row {
		row[at] = outside
		j := at + a.first(i+1)
		if j < 0 || j > a.m {
			continue
		}
		if over := at + shift; over >= 0 && over < a.width && before[over] > outside {
			row[at] = max(row[at], before[over]-a.gap)
		}
		if over := at + shift - 1; j > 0 && over >= 0 && over < a.width && before[over] > outside {
			if s := a.pair(i, j-1); s != never {
				row[at] = max(row[at], before[over]+s)
			}
		}
		if at > 0 && row[at-1] > outside {
			row[at] = max(row[at], row[at-1]-a.gap)
		}
	}
}

// A resizer gives the operators of a pass the sizes that they have in a graph of a different batch size.
type resizer struct {
	syms  *trace.Symbols
	known map[sized]*Capture
	clear map[*Capture]bool // whether the number of tokens of a pass cannot be a size of its model
}

// A sized is a pass with the sizes of a step.
type sized struct {
	pass          *Capture
	tokens, batch int64
}

// resized returns a pass as one of the given numbers of tokens and sequences. Its operators have no
// shapes if either number of tokens is unknown, or if that of the pass may also be a size of the model.
func (r *resizer) resized(x *Capture, tokens, batch int64) *Capture {
	key := sized{x, tokens, batch}
	if c := r.known[key]; c != nil {
		return c
	}
	c := *x
	c.Tokens, c.batch, c.sizes = tokens, batch, map[trace.Sym]trace.Sym{}
	for i := range x.Frames {
		shapes := x.Frames[i].Shapes
		if _, ok := c.sizes[shapes]; ok || shapes == 0 {
			continue
		}
		c.sizes[shapes] = 0
		if r.isClear(x) && tokens > 0 {
			c.sizes[shapes] = r.syms.Intern(resize(r.syms.Name(shapes), x.Tokens, x.batch, tokens, batch))
		}
	}
	r.known[key] = &c
	return &c
}

var (
	firstSize  = lazyregexp.New(`\[\d+`)
	otherSizes = lazyregexp.New(`, ?(\d+)`)
)

// isClear reports whether no size of any input but the first is a multiple of the pass's tokens: then a
// first size that is a multiple counts tokens.
func (r *resizer) isClear(x *Capture) bool {
	known, ok := r.clear[x]
	if ok {
		return known
	}
	is := x.Tokens > 1
	seen := map[trace.Sym]bool{0: true}
	for i := range x.Frames {
		sym := x.Frames[i].Shapes
		if !is || seen[sym] {
			continue
		}
		seen[sym] = true
		for _, m := range otherSizes.FindAllStringSubmatch(r.syms.Name(sym), -1) {
			if n, _ := strconv.ParseInt(m[1], 10, 64); n > 0 && n%x.Tokens == 0 {
				is = false
			}
		}
	}
	r.clear[x] = is
	return is
}

// resize replaces the tokens and sequences of one step with those of another where inputs begin with
// them: "[[15360, 4096], [4096, 6144]]" becomes "[[32, 4096], [4096, 6144]]".
func resize(shapes string, tokens, batch, toTokens, toBatch int64) string {
	return firstSize.Compiled().ReplaceAllStringFunc(shapes, func(text string) string {
		n, err := strconv.ParseInt(text[1:], 10, 64)
		switch {
		case err != nil:
		case n > 0 && n%tokens == 0:
			return "[" + strconv.FormatInt(n/tokens*toTokens, 10)
		case n == batch && batch > 1 && toBatch > 0:
			return "[" + strconv.FormatInt(toBatch, 10)
		}
		return text
	})
}

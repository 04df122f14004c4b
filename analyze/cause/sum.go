package cause

import (
	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/finding"
)

// A Sum is how the extra time of requests adds up: what they took beyond the usual, or would not
// have taken without what findings tell of.
type Sum struct {
	Ns      float64        // that the finished requests took in all
	Claimed float64        // the part of it that findings have
	Rest    [Count]float64 // the parts that nothing explains, by cause
}

// Extra is the part of all time that is extra.
func (s *Sum) Extra() float64 { return s.Claimed + s.Unexplained() }

// Unexplained is the part of all time that is extra, and of no finding.
func (s *Sum) Unexplained() (part float64) {
	for _, rest := range s.Rest {
		part += rest
	}
	return part
}

// Largest is the cause that has most of the time that nothing explains, with its part of all time.
func (s *Sum) Largest() (c Cause, part float64) {
	for k, rest := range s.Rest {
		if rest > part {
			c, part = Cause(k), rest
		}
	}
	return c, part
}

// alone is what a claim costs by itself, as a part of all time.
func (b *Costs) alone(claim finding.Claim) float64 {
	costs, _ := b.cost([]finding.Claim{claim})
	return costs[0]
}

// cost is what claims cost, one after the other, as parts of all time; and what is beyond the
// usual of what they leave, by cause.
func (b *Costs) cost(claims []finding.Claim) (costs []float64, rest [Count]float64) {
	costs = make([]float64, len(claims))
	for i := range b.list {
		spent := b.list[i].spent()
		left := spent
		have := left.Total()
		for k, claim := range claims {
			if claim == nil {
				continue
			}
			claim(i, left[:])
			now := left.Total()
			costs[k] += float64(have - now)
			have = now
		}
		b.addRest(&rest, &b.list[i], &spent, &left)
	}
	for k := range costs {
		costs[k] = b.Part(costs[k])
	}
	for c := range rest {
		rest[c] = b.Part(max(0, rest[c]))
	}
	return costs, rest
}

// addRest adds what is beyond the usual of what claims leave of a request. Requests that take longer
// than usual and those that take less make up for each other; what a finding has claimed a part of
// makes up for nothing.
func (b *Costs) addRest(rest *[Count]float64, a *Attribution, spent, left *Causes) {
	for c := range Count {
		if whole(c) != c {
			continue
		}
		more := left[c] - b.usualFor(c, a)
		if left[c] < spent[c] {
			more = max(0, more)
		}
		rest[c] += float64(more)
	}
}

// Price says what findings cost, each by itself, that claim time of requests; if any of it is
// there.
func (b *Costs) Price(found []finding.Finding) []finding.Finding {
	for i := range found {
		if f := &found[i]; f.Claim != nil {
			if cost := b.alone(f.Claim); cost > 0 || f.Whose == finding.RequestTime || f.Whose == "" {
				f.Cost, f.Whose = cost, finding.RequestTime
			}
		}
	}
	return found
}

// Settle says what findings cost together: those before have the time that several claim. It
// returns how that adds up.
func (b *Costs) Settle(found []finding.Finding) Sum {
	claims := claimsOf(found)
	costs, rest := b.cost(claims)
	sum := Sum{Ns: b.total, Rest: rest}
	for i, cost := range costs {
		if claims[i] != nil {
			found[i].Cost = cost
			sum.Claimed += cost
		}
	}
	return sum
}

// claimsOf are what findings claim of the time of requests; nil of those that cost something else.
func claimsOf(found []finding.Finding) []finding.Claim {
	claims := make([]finding.Claim, len(found))
	for i := range found {
		if found[i].Whose == finding.RequestTime {
			claims[i] = found[i].Claim
		}
	}
	return claims
}

// Taken tells of what each finding claims which one before it has most of it, and how much all of
// them have.
func (b *Costs) Taken(found []finding.Finding) []finding.Taken {
	claims := claimsOf(found)
	n := len(claims)
	whole, by := make([]float64, n), make([][]float64, n)
	for k := range by {
		by[k] = make([]float64, k)
	}
	lefts := make([]Causes, n+1) // before each claim, and after the last one
	for i := range b.list {
		lefts[0] = b.list[i].spent()
		for k, claim := range claims {
			lefts[k+1] = lefts[k]
			if claim == nil {
				continue
			}
			alone := lefts[0]
			claim(i, alone[:])
			claim(i, lefts[k+1][:])
			for c := range Count {
				own := lefts[0][c] - alone[c]
				whole[k] += float64(own)
				for j := range k {
					by[k][j] += float64(min(own, lefts[j][c]-lefts[j+1][c]))
				}
			}
		}
	}
	out := make([]finding.Taken, n)
	for k := range out {
		for j, ns := range by[k] {
			out[k].Part += distribution.Ratio(ns, max(1, whole[k]))
			if ns > by[k][out[k].By] {
				out[k].By = j
			}
		}
	}
	return out
}

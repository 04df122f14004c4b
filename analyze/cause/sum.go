package cause

import (
	"slices"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/internal/parallel"
)

// A Sum says how the extra time of requests adds up: time beyond the usual, or that findings explain.
type Sum struct {
	Ns      float64        // all time of the requests in the ledger
	Claimed float64        // fraction of Ns that findings claim
	Rest    [Count]float64 // by cause: fraction of Ns beyond the usual that no finding explains
}

// Extra returns the part of all time that is extra.
func (s *Sum) Extra() float64 { return s.Claimed + s.Unexplained() }

// Unexplained returns the part of all time that is extra and that no finding explains.
func (s *Sum) Unexplained() (part float64) {
	for _, rest := range s.Rest {
		part += rest
	}
	return part
}

// Largest returns the cause with the most unexplained time, with its part of all time.
func (s *Sum) Largest() (c Cause, part float64) {
	for k, rest := range s.Rest {
		if rest > part {
			c, part = Cause(k), rest
		}
	}
	return c, part
}

// A budget is the remaining time of a request by cause, followed by the time that claims of
// slower servers have, by cause: see [Costs.Slower].
type budget [2 * Count]int64

func budgetOf(spent *Causes) (b budget) {
	copy(b[:], spent[:])
	return b
}

// slower reports whether slower servers have claimed anything.
func (b *budget) slower() bool {
	return slices.ContainsFunc(b[Count:], func(ns int64) bool { return ns > 0 })
}

func (b *budget) total() int64 {
	sum := int64(0)
	for _, ns := range b[:Count] {
		sum += ns
	}
	return sum
}

// alone returns what each claim costs by itself, as a part of all time.
func (b *Costs) alone(claims []finding.Claim) []float64 {
	costs := b.fold(len(claims), func(costs []float64, i int) {
		spent := b.at(i).spent()
		have := spent.Total()
		for k, claim := range claims {
			if claim != nil {
				left := budgetOf(&spent)
				claim(i, left[:])
				costs[k] += float64(have - left.total())
			}
		}
	})
	for k := range costs {
		costs[k] = b.Part(costs[k])
	}
	return costs
}

// fold adds up n numbers over all requests, on all cores: add adds those of the i-th request.
// It sums up fixed blocks of requests, so that the results are the same on any number of cores.
func (b *Costs) fold(n int, add func(sums []float64, i int)) []float64 {
	const together = 1 << 12 // requests in a block
	parts := make([][]float64, (b.n()+together-1)/together)
	parallel.Each(len(parts), func(p int) {
		parts[p] = make([]float64, n)
		first := p * together
		for i := range memory.Each(min(together, b.n()-first), attributionSize) {
			add(parts[p], first+i)
		}
	})
	sums := make([]float64, n)
	for _, part := range parts {
		for k, v := range part {
			sums[k] += v
		}
	}
	return sums
}

// cost returns what claims cost one after the other, as parts of all time, and what remains beyond the usual, by cause. If
// any claim is for more work, claims of slower servers come first, and claims for more work take their part of the remainder:
// twice the work at half the pace takes four times as long, of which the pace costs half, and the work half of the rest.
func (b *Costs) cost(claims []finding.Claim, moreWork []bool) (costs []float64, rest [Count]float64) {
	beside := slices.Contains(moreWork, true)
	sums := b.fold(len(claims)+int(Count), func(sums []float64, i int) {
		spent := b.at(i).spent()
		all := budgetOf(&spent)
		left, have := all, all.total()
		settle := func(k int) {
			now := left.total()
			sums[k] += float64(have - now)
			have = now
		}
		var first []bool
		if beside {
			first = make([]bool, len(claims))
			for k, claim := range claims {
				if alone := all; claim != nil && !moreWork[k] {
					if claim(i, alone[:]); alone.slower() {
						first[k] = true
						claim(i, left[:])
						settle(k)
					}
				}
			}
		}
		slower := left
		for k, claim := range claims {
			switch {
			case claim == nil || beside && first[k]:
				continue
			case moreWork[k]:
				alone := all
				claim(i, alone[:])
				for c := range Count {
					left[c] = min(left[c], int64(float64(slower[c])*distribution.Fraction(alone[c], spent[c])))
				}
			default:
				claim(i, left[:])
			}
			settle(k)
		}
		b.addRest(sums[len(claims):], i, &spent, &left)
	})
	costs = sums[:len(claims)]
	copy(rest[:], sums[len(claims):])
	for k := range costs {
		costs[k] = b.Part(costs[k])
	}
	for c := range rest {
		rest[c] = b.Part(max(0, rest[c]))
	}
	return costs, rest
}

// addRest adds the remaining time of a request beyond the usual. Requests that take longer than usual and those that take less
// offset each other. A request with claimed time offsets nothing, nor does one without an answer, which might have taken longer.
func (b *Costs) addRest(rest []float64, i int, spent *Causes, left *budget) {
	a := b.at(i)
	for c := range Count {
		if whole(c) != c {
			continue
		}
		more := left[c] - b.usualFor(c, a)
		if left[c] < spent[c] || !b.answered(i) {
			more = max(0, more)
		}
		rest[c] += float64(more)
	}
}

// Price sets what findings that claim request time cost, each by itself.
func (b *Costs) Price(found []finding.Finding) []finding.Finding {
	if !slices.ContainsFunc(found, func(f finding.Finding) bool { return f.Claim != nil }) {
		return found
	}
	claims := order.EachRow(found, func(f *finding.Finding) finding.Claim { return f.Claim })
	costs := b.alone(claims)
	for i, cost := range costs {
		if f := &found[i]; f.Claim != nil {
			if cost > 0 || f.CostBasis == finding.RequestTime || f.CostBasis == "" {
				f.Cost, f.CostBasis = cost, finding.RequestTime
			}
		}
	}
	return found
}

// Settle sets what findings cost together: earlier ones have the time that several claim. It returns how that adds up.
func (b *Costs) Settle(found []finding.Finding) Sum {
	claims := claimsOf(found)
	costs, rest := b.cost(claims, order.EachRow(found, func(f *finding.Finding) bool { return f.MoreWork }))
	sum := Sum{Ns: b.total, Rest: rest}
	for i, cost := range costs {
		if claims[i] != nil {
			found[i].Cost = cost
			sum.Claimed += cost
		}
	}
	return sum
}

// claimsOf returns the claims of findings on request time; nil for those that cost something else.
func claimsOf(found []finding.Finding) []finding.Claim {
	claims := make([]finding.Claim, len(found))
	for i := range found {
		if found[i].CostBasis == finding.RequestTime {
			claims[i] = found[i].Claim
		}
	}
	return claims
}

// Taken returns, for each finding, which earlier finding has most of the time that it claims,
// and how much all earlier ones have together.
func (b *Costs) Taken(found []finding.Finding) []finding.Taken {
	claims := claimsOf(found)
	n := len(claims)
	// For claim k, sums[(n+1)*k+n] is all of its time, and sums[(n+1)*k+j] the part that claim j has.
	sums := b.fold(n*(n+1), func(sums []float64, i int) {
		var before [8]budget // avoids an allocation for few claims
		spent := b.at(i).spent()
		lefts := append(before[:0], budgetOf(&spent)) // the budget before each claim, and after the last one
		for k, claim := range claims {
			left := lefts[k]
			if claim == nil {
				lefts = append(lefts, left)
				continue
			}
			alone := lefts[0]
			claim(i, alone[:])
			claim(i, left[:])
			lefts = append(lefts, left)
			of := sums[(n+1)*k:]
			for c := range Count {
				own := lefts[0][c] - alone[c]
				if own == 0 {
					continue
				}
				of[n] += float64(own)
				for j := range k {
					of[j] += float64(min(own, lefts[j][c]-lefts[j+1][c]))
				}
			}
		}
	})
	out := make([]finding.Taken, n)
	for k := range out {
		by, whole := sums[(n+1)*k:(n+1)*k+k], sums[(n+1)*k+n]
		for j, ns := range by {
			out[k].Part += distribution.Ratio(ns, max(1, whole))
			if ns > by[out[k].By] {
				out[k].By = j
			}
		}
	}
	return out
}

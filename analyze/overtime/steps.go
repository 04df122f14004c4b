package overtime

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat/combin"

	"github.com/sgtrace/sgtrace/analyze/metric"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/changepoint"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// mostObservations is the most values in a series of steps: with more steps, each value is the mean of several.
const mostObservations = 1000

// ofSteps returns the series of how long a device is busy with what each step launched, averaged over a few steps where there are many.
func (t *Timeline) ofSteps(d *Device) series {
	s := series{place: t.Name(d), rank: d.RankIndex, rounds: d.rounds, size: (len(d.rounds) + mostObservations - 1) / mostObservations}
	if len(d.rounds) < fewestSteps {
		return series{}
	}
	s.metric = &observed{perStep: true, metric: &metric.Metric{Long: "GPU time per " + d.step, Unit: table.Duration, Better: metric.Less}}
	for i := range len(d.rounds) / s.size {
		sum := order.SumRows(s.steps(i, i+1), func(r *round) int64 { return r.busy })
		s.values = append(s.values, float64(sum)/float64(s.size))
	}
	return s
}

// steps returns the steps of observations from..to-1.
func (s *series) steps(from, to int) []round { return s.rounds[from*s.size : to*s.size] }

// setRounds sets the steps before and after a change.
func (c *Change) setRounds(before, after []round) {
	c.known, c.rounds = true, [2]float64{float64(len(before)), float64(len(after))}
	c.from, c.middle, c.to = before[0].first, after[0].first, after[len(after)-1].last
	c.every = [2]float64{distance(before), distance(after)}
}

// distance returns the median time from the first kernel of a step to that of the next, ns: where the host
// runs ahead, only kernels show how long steps take. It is a median since recordings may have pauses.
func distance(of []round) float64 {
	var list []float64
	for i := 1; i < len(of); i++ {
		list = append(list, float64(of[i].first-of[i-1].first))
	}
	if len(list) == 0 {
		return 0
	}
	return order.Median(list)
}

// otherWork returns the observation from which the program launches different kernels: no earlier step has the same kernels
// as any from there on. Of several, it is the one at which the time of steps changes most. Unlike the time of steps, which
// depends on the clock of the GPU, this is free of noise: p bounds how likely it is if steps come in random order.
func (s *series) otherWork() (at int, p float64) {
	n, last := len(s.rounds), map[uint64]int{}
	for i := range s.rounds {
		last[s.rounds[i].kernels] = i
	}
	least := max(s.size*leastSteps, int(math.Ceil(minLasting*float64(n))))
	until, apart, sum, all := 0, 0.0, int64(0), int64(0)
	for i := range s.rounds {
		all += s.rounds[i].busy
	}
	for i := range s.rounds {
		if i >= least && i <= n-least && until < i && i%s.size == 0 {
			before, after := float64(sum)/float64(i), float64(all-sum)/float64(n-i)
			if d := math.Abs(after - before); d > apart {
				at, apart = i/s.size, d
			}
		}
		until = max(until, last[s.rounds[i].kernels])
		sum += s.rounds[i].busy
	}
	if at == 0 {
		return 0, 1
	}
	// The kinds of steps can be divided into two groups in 2^len(last) ways, and the steps of one group
	// come first in one of at least C(n, least) orders.
	return at, min(1, math.Exp(float64(len(last))*math.Ln2-combin.LogGeneralizedBinomial(float64(n), float64(least))))
}

// gradual returns the change of steps that take longer or shorter gradually, from the beginning or
// from some time on. Before and After are fitted to the first and the last observation of that. ok is
// false if a sudden change explains it better: left is the sum of squares that one leaves unexplained.
func (t *Timeline) gradual(s *series, level, left float64) (c Change, ok bool) {
	x, from, sum, ok := changepoint.BitByBit(s.values, steepest, level)
	if !ok || left <= sum {
		return c, false
	}
	n := len(s.values)
	c = Change{What: s.metric.metric.Long, Where: []string{s.place}, ranks: []int32{s.rank}, metric: s.metric, gradual: true, P: min(1, x.P*alpha/level),
		Time: t.start(s, from), First: t.start(s, max(from, int(x.First))), Last: t.start(s, max(from, int(x.Last))),
		Before: x.Level + x.Of(float64(from), float64(from+1)), After: x.Level + x.Of(float64(n-1), float64(n))}
	middle := (from + n) / 2
	before, after := t.within(s, from, middle), t.within(s, middle, n)
	c.setRounds(s.steps(from, middle), s.steps(middle, n))
	t.compareWork(&c, before, after)
	// A ramp costs half of its final increase in each step, which is the final increase in half of them.
	c.lost = t.lost(&c, after)
	c.lasts = float64(n-from) >= minLasting*float64(n) && t.isLong(&c, before) && t.isLong(&c, after)
	return c, s.metric.matters(c.Before, c.After)
}

// A kernelShare is how long kernels of a name run per step before and after a change, ns, and how many there are per step.
type kernelShare struct {
	name          trace.Sym
	before, after float64
	n, later      float64
}

// mostlyTogether is the least share of a change that lost overlap must explain to be named as its cause.
const mostlyTogether = 0.5

// addKernels says which kernels changed most in changes of steps, and sets less if their number per step changed: then the work did.
func (c *Collector) addKernels(t *Timeline) {
	for i := range t.Changes {
		x := &t.Changes[i]
		if !x.metric.perStep {
			continue
		}
		rank, shares := x.ranks[0], map[trace.Sym]*kernelShare{}
		var all kernelShare
		add := func(s *kernelShare, from trace.Time, took int64) {
			if from < x.middle {
				s.before, s.n = s.before+float64(took)/x.rounds[0], s.n+1/x.rounds[0]
			} else {
				s.after, s.later = s.after+float64(took)/x.rounds[1], s.later+1/x.rounds[1]
			}
		}
		copies := kernelShare{}
		for _, st := range c.set.Streams {
			st.Kernels(func(k *profile.Kernel) bool {
				from, _ := c.place(rank, k.Start, k.End)
				if k.Rank == rank && from >= x.from && from < x.to {
					add(order.Memo(shares, k.Name, func() *kernelShare { return &kernelShare{name: k.Name} }), from, k.Dur())
					add(&all, from, k.Dur())
				}
				return true
			})
			st.Copies(func(k *profile.Copy) bool {
				if from, _ := c.place(rank, k.Start, k.End); k.Rank == rank && from >= x.from && from < x.to {
					add(&copies, from, k.Dur())
				}
				return true
			})
		}
		x.less = math.Abs(all.n-all.later) > otherPart*max(all.n, all.later)
		before, after := x.halves()
		x.Load += fmt.Sprintf("; kernels per step: %s %s and %s %s", words.ThreeDigits(all.n), before, words.ThreeDigits(all.later), after)
		list := make([]*kernelShare, 0, len(shares))
		for _, s := range shares {
			list = append(list, s)
		}
		slices.SortFunc(list, func(a, b *kernelShare) int {
			return cmp.Or(cmp.Compare(math.Abs(b.after-b.before), math.Abs(a.after-a.before)), strings.Compare(c.set.Syms.Name(a.name), c.set.Syms.Name(b.name)))
		})
		summed := [2]float64{all.before + copies.before, all.after + copies.after}
		if together := (x.After - x.Before) - (summed[1] - summed[0]); together >= mostlyTogether*math.Abs(x.After-x.Before) {
			x.kernels = append(x.kernels, fmt.Sprintf("kernels and copies add up to %s per step %s, and %s %s: what ran at the same time runs one after the other", nearly(summed[0]), before, nearly(summed[1]), after))
		}
		for _, s := range list[:min(2, len(list))] {
			x.kernels = append(x.kernels, fmt.Sprintf("%s: %s per step %s, and %s %s", words.Clean(c.set.Syms.Name(s.name)), nearly(s.before), before, nearly(s.after), after))
		}
	}
}

// halves names the two stretches that the numbers of a change compare.
func (c *Change) halves() (before, after string) {
	if c.gradual {
		return "in the first half", "in the second"
	}
	return "before", "after"
}

// nearly writes a time that may be none.
func nearly(ns float64) string {
	if ns < 1 {
		return "none"
	}
	return words.Nearly(int64(ns))
}

package collective

import (
	"cmp"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/straggler"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// A WaitHistory is who waited for whom over time: the sums of [Collectives.Waits] in equal parts of the time.
type WaitHistory struct {
	straggler.Parts
	Met   []int // by part: collectives at which ranks wait
	Waits []WaitIn
}

// A WaitIn is how long a rank waited for another in a part of the time. Waits of 0 are left out.
type WaitIn struct {
	Part int
	Wait
}

// Limits on the number of parts of a history, which many ranks would make large.
const (
	maxParts   = 200
	minParts   = 10
	usualWaits = 30_000  // in all parts together, about
	maxWaits   = 300_000 // beyond that, there is no history
)

// WaitHistory divides the time of the collectives; it returns nil if no ranks wait, or if there are too many.
func (c *Collectives) WaitHistory() *WaitHistory {
	pairs := max(1, len(c.Ranks)*len(c.Ranks))
	parts := max(minParts, min(maxParts, usualWaits/pairs))
	if parts*pairs > maxWaits || c.Counts.Sync == 0 {
		return nil
	}
	return c.waitHistory(parts)
}

func (c *Collectives) waitHistory(parts int) *WaitHistory {
	h := &WaitHistory{Met: make([]int, parts)}
	for i, g := range c.peerGroups {
		of := g.gathering.Parts(parts)
		if i == 0 {
			h.Parts = of
		}
		h.From, h.To = min(h.From, of.From), max(h.To, of.To)
	}
	for _, g := range c.peerGroups {
		for i := range g.gathering.SyncPoints {
			h.Met[h.Of(g.gathering.SyncPoints[i].At)]++
		}
	}
	h.Waits = c.waits(func(at trace.Time) int { return h.Of(at) })
	return h
}

// waits returns how long ranks waited for each other, by part, rank, and last rank, without zeros.
func (c *Collectives) waits(part func(trace.Time) int) (list []WaitIn) {
	at := map[int32]int{} // by rank of the set: index into c.Ranks
	for i := range c.Ranks {
		at[c.Ranks[i].rankIndex] = i
	}
	type key struct{ part, last int }
	sums := map[WaitIn]int64{} // keys have no Ns; two ranks may be together in several groups
	for _, g := range c.peerGroups {
		of := map[key][]int64{} // by rank of the group
		g.gathering.EachWait(func(when trace.Time, last int, waits []int64) {
			k := key{part(when), last}
			sum := order.Memo(of, k, func() []int64 { return make([]int64, len(waits)) })
			for rank, ns := range waits {
				sum[rank] = distribution.AddTimes(sum[rank], ns)
			}
		})
		for k, waits := range of {
			for rank, ns := range waits {
				if ns > 0 {
					pair := WaitIn{k.part, Wait{Rank: at[g.ranks[rank]], Last: at[g.ranks[k.last]]}}
					sums[pair] = distribution.AddTimes(sums[pair], ns)
				}
			}
		}
	}
	for pair, ns := range sums {
		pair.Ns = ns
		list = append(list, pair)
	}
	slices.SortFunc(list, func(a, b WaitIn) int {
		return cmp.Or(cmp.Compare(a.Part, b.Part), cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.Last, b.Last))
	})
	return list
}

// Waited is how long ranks waited in collectives, and for whom.
type Waited struct {
	Took, Wait int64 // sums over all ranks, ns; Wait is a part of Took
	Covered    finding.Coverage
	// ByClock reports that clocks show who came last; otherwise, durations do.
	ByClock bool
	// Lacking reports that ranks may also have waited for others that are not in the files, beyond Wait.
	Lacking bool
	Groups  []WaitedGroup // the groups with most of the waiting, in decreasing order
}

// A WaitedGroup is a group of ranks that wait for each other.
type WaitedGroup struct {
	Names  []string
	Set    []int32 // their indexes in the set, in the same order
	Spells []straggler.Spell
}

// Only the spells of a few groups are reported, each with a good part of all waiting.
const (
	maxWaited  = 8
	muchWaited = 0.05
)

// Waited sums up how long ranks waited for each other.
func (c *Collectives) Waited() Waited {
	w := Waited{Covered: c.coverage(), ByClock: c.Counts.byDuration == 0, Lacking: c.lacking()}
	for i := range c.Ranks {
		w.Took, w.Wait = distribution.AddTimes(w.Took, c.Ranks[i].Took), distribution.AddTimes(w.Wait, c.Ranks[i].Wait)
	}
	groups, all := slices.Clone(c.peerGroups), int64(0)
	for _, g := range groups {
		all = distribution.AddTimes(all, g.gathering.Lost())
	}
	slices.SortStableFunc(groups, func(a, b *peerGroup) int { return cmp.Compare(b.gathering.Lost(), a.gathering.Lost()) })
	for _, g := range groups[:min(len(groups), maxWaited)] {
		if spells := g.gathering.Spells(); len(spells) > 0 && float64(g.gathering.Lost()) >= muchWaited*float64(all) {
			w.Groups = append(w.Groups, WaitedGroup{g.gathering.Names, g.ranks, spells})
		}
	}
	return w
}

// Kernels of unknown size are compared with the kernels around them: the layers of a step send
// equal amounts of data, but different steps do not.
const (
	// calledAround is how many successive kernels are compared with each other.
	calledAround = 16
	// longOfUnknown is longTimes for kernels of unknown size: one in a step may have more to send.
	longOfUnknown = 16
)

// judgeAround finds the long ones among kernels of unknown size, given in order. A collectives library may send any
// amount of data; other kernels, such as custom all-reduces, send so little that data alone makes none of them long.
func (p *partTimes) judgeAround(took []int64) {
	anySize := strings.Contains(strings.ToLower(p.Kernel), "nccl")
	if len(took) < fewestLong || anySize && len(took) < calledAround {
		return
	}
	var long []int // positions
	usual := map[int]int64{}
	sorted := make([]int64, 0, calledAround)
	for from := 0; from < len(took); from += calledAround {
		around := took[max(0, min(from, len(took)-calledAround)):min(from+calledAround, len(took))]
		sorted = append(sorted[:0], around...)
		slices.Sort(sorted)
		median := request.NearestRank(sorted, 50)
		for i := from; i < min(from+calledAround, len(took)); i++ {
			if p.isLong(took[i], median, longOfUnknown) {
				long, usual[i] = append(long, i), median
			}
		}
	}
	period := 0
	if anySize {
		period = periodOf(long, len(took))
	}
	for _, i := range long {
		if period == 0 {
			p.judge(took[i], usual[i], longOfUnknown)
			continue
		}
		sorted = sorted[:0]
		for k := i % period; k < len(took); k += period {
			sorted = append(sorted, took[k])
		}
		slices.Sort(sorted)
		p.judge(took[i], max(usual[i], request.NearestRank(sorted, 50)), longTimes)
	}
}

const (
	// fewestRounds is how many periods there must be.
	fewestRounds = 3
	// comesAgain is the least part of long kernels that must be followed by another one a period
	// later; that must also be comesByChance times the part that chance explains.
	comesAgain    = 0.5
	comesByChance = 2
	// maxPeriods limits the periods that are tried, and maxAsked the kernels that each is tried with.
	maxPeriods, maxAsked = 4096, 512
)

// periodOf returns the period, in kernels, with which long kernels recur, as kernels that send more than
// the others in every step do; 0 if they do not. long are their positions among n kernels, in order.
func periodOf(long []int, n int) int {
	isLong := make([]bool, n)
	for _, i := range long {
		isLong[i] = true
	}
	asked := long[:min(len(long), maxAsked)]
	best, most := 0, max(comesAgain, comesByChance*float64(len(long))/float64(n))
	tried := map[int]bool{}
	for _, anchor := range []int{0, len(long) / 4, len(long) / 2} { // some are long by chance
		for k := anchor + 1; k < len(long) && len(tried) < maxPeriods; k++ {
			period := long[k] - long[anchor]
			if period > n/fewestRounds {
				break
			}
			if period < 2 || tried[period] {
				continue
			}
			tried[period] = true
			again, asks := 0, 0
			for _, i := range asked {
				if i+period < n {
					asks++
					if isLong[i+period] {
						again++
					}
				}
			}
			if part := float64(again) / float64(max(1, asks)); part > most || part == most && best == 0 {
				best, most = period, part
			}
		}
	}
	return best
}

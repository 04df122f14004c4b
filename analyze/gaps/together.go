package gaps

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/trace"
)

// Hosts of this part of the ranks stand still at once: that one does so is what it works on, but that all do is no chance, unless all
// work in the same function of Python.
const mostRanks = 3.0 / 4

// nobody is the rank, and the device, of a pause that many have.
const nobody = -1

// stops returns when the hosts of most ranks stand still at once, in order, the one of the longest time of each; the fewest
// ranks of any, and the time of all together, ns. nil if they do not, or there is one rank.
func (g *Gaps) stops() (list []pause, fewest int, ns int64) {
	if g.used < 2 {
		return nil, 0, 0
	}
	all := slices.Clone(g.stills)
	slices.SortStableFunc(all, func(a, b pause) int { return cmp.Compare(a.at, b.at) })
	fewest = g.used
	for from, to := 0, 0; from < len(all); from = to {
		// Those from..to overlap all of each other, and mostly.
		until, ranks, time, longest, working := all[from].at+trace.Time(all[from].ns), map[int32]bool{}, int64(0), &all[from], all[from].in != 0
		for to = from; to < len(all) && 2*int64(until-all[to].at) > max(longest.ns, all[to].ns); to++ {
			p := &all[to]
			until, ranks[p.rank], time = min(until, p.at+trace.Time(p.ns)), true, distribution.AddTimes(time, p.ns)
			working = working && p.in == all[from].in
			if p.ns > longest.ns {
				longest = p
			}
		}
		if n := len(ranks); !working && n >= 2 && float64(n) >= mostRanks*float64(g.used) {
			stop := *longest
			stop.rank, stop.device = nobody, nobody
			list, fewest, ns = append(list, stop), min(fewest, n), distribution.AddTimes(ns, time)
		}
	}
	return list, fewest, ns
}

// standing is the suspect that the hosts of most ranks stand still at once; of no time where they do not.
func (g *Gaps) standing() suspect {
	stops, fewest, ns := g.stops()
	s := suspect{rank: standstill, table: "gaps", time: ns}
	for i := range g.Causes {
		if c := &g.Causes[i]; c.counts() && ownWork(c.Reason) && silent(c.Activity) {
			s.rows = append(s.rows, c)
		}
	}
	if len(stops) == 0 || s.rows == nil {
		return suspect{}
	}
	slices.SortStableFunc(s.rows, func(a, b *Cause) int { return cmp.Compare(b.LongestPart, a.LongestPart) })
	who := fmt.Sprintf("all %d ranks", g.used)
	if fewest < g.used {
		who = fmt.Sprintf("at least %d of %d ranks", fewest, g.used)
	}
	s.text = fmt.Sprintf("is %s of %s at once, in which no launching thread recorded anything: %s", words.Counted(len(stops), "pause"), who, g.pauseWords(stops))
	return s
}

package collective

import (
	"maps"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/gpu"
	"github.com/sgtrace/sgtrace/profile"
)

// addAbsence counts a sync point of all ranks but one, or two: one may be of processes that use no device.
func (w *collectiveWalk) addAbsence(x *profile.CollectiveMatch) {
	here := len(x.Arrivals)
	if here < 2 || len(w.set.Ranks)-here > 2 || len(w.set.Ranks) == here || x.GroupSize > 0 && int(x.GroupSize) <= here || len(w.set.MissingRanks) > 0 {
		return
	}
	absent, n := [2]int32{-1, -1}, 0
	for rank := range int32(len(w.set.Ranks)) {
		if at := int(rank) - n; at == here || x.Arrivals[at].Rank != rank { // they are by rank
			absent[n], n = rank, n+1
		}
	}
	if w.out.without == nil {
		w.out.without = map[[2]int32]absence{}
	}
	of := w.out.without[absent]
	if of.n++; x.GroupSize > 0 {
		of.sized++
	}
	w.out.without[absent] = of
}

// An absence is how many collectives some ranks are not in, and how many of them say that their group has more ranks.
type absence struct{ n, sized int }

// fewestLacks is how many collectives tell that a rank is in a group, or that it is not in them.
const fewestLacks = 10

// A Lack is a rank that is not in N of the Of collectives that all other ranks are in.
type Lack struct {
	Rank  string
	N, Of int
}

// Lacking returns the ranks that use devices, and that many collectives of all others lack: no fewer than a tenth of them, and ten. A kernel of such
// a rank of which no other one was found may be of one of these. One that no group is known to have communicates with nobody.
func (c *Collectives) Lacking(g *gpu.GPUs) (list []Lack) {
	uses, lacks := map[int32]string{}, map[int32]absence{}
	together := true // ranks that only tensor parallelism tells apart are one group
	for i := range g.GPUs {
		name := g.GPUs[i].Rank
		uses[g.GPUs[i].RankIndex] = name
		together = together && strings.HasPrefix(name, "TP") && !strings.Contains(name, "DP") && !strings.Contains(name, "PP")
	}
	for absent, n := range c.without {
		var of []int32
		for _, rank := range absent {
			if uses[rank] != "" {
				of = append(of, rank)
			}
		}
		if len(of) == 1 {
			lacks[of[0]] = absence{lacks[of[0]].n + n.n, lacks[of[0]].sized + n.sized}
		}
	}
	for _, rank := range slices.Sorted(maps.Keys(lacks)) {
		l, known := Lack{uses[rank], lacks[rank].n, lacks[rank].n}, lacks[rank].sized >= fewestLacks || together
		for i := range c.Parts {
			if p := &c.Parts[i]; p.rankIndex == rank {
				l.N -= p.Alone
			}
		}
		if r := c.rankOf(rank); r != nil {
			l.Of += r.SyncPoints
			known = known || r.SyncPoints >= fewestLacks
		}
		if known && l.N >= fewestLacks && 10*l.N >= l.Of {
			list = append(list, l)
		}
	}
	return list
}

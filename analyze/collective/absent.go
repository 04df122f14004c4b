package collective

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/gpu"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/profile"
)

// muchAbsent is the part of its GPU time that a rank must wait for ranks without files to be reported.
const muchAbsent = 1.0 / 10

// AbsentSubkind is the subkind of findings about ranks that wait for others without files.
const AbsentSubkind = "absent ranks"

// AbsentWait returns how long all ranks waited for ranks that are not in the files, as far as tasks or long kernels show it, in ns.
func (c *Collectives) AbsentWait() (ns int64) {
	if _, ns := c.awaitedAbsent(); ns > 0 {
		return ns
	}
	for _, p := range c.longParts(func(p *PartKind) bool { return p.absent }) {
		ns = distribution.AddTimes(ns, p.LongWait)
	}
	return distribution.AddTimes(ns, c.waitTogether())
}

// lacks reports whether ranks that are not in the files belong to a collective that several
// ranks are in. A group of unknown size has a divisor of the job's size.
func lacks(set *profile.Set, x *profile.CollectiveMatch) bool {
	if seen := len(x.Arrivals); x.GroupSize <= 0 {
		return slices.ContainsFunc(set.MissingRanks, func(m profile.MissingRanks) bool { return !m.AtLeast && m.Size%seen != 0 })
	} else if int(x.GroupSize) <= seen {
		return false
	}
	return int(x.GroupSize) > len(set.Ranks) || len(set.MissingRanks) > 0
}

// waitTogether returns how long ranks waited for ranks without files after all others had come, in total, in ns.
func (c *Collectives) waitTogether() (ns int64) {
	return distribution.SumTimes(order.EachRow(c.Kinds, func(k *Kind) int64 { return k.LongWait * int64(k.Ranks) }))
}

// together finds that ranks spend much of their GPU time on such waits.
func (c *Collectives) together(g *gpu.GPUs) []finding.Finding {
	share := min(1, distribution.Fraction(c.waitTogether(), g.Length()))
	if share < muchAbsent {
		return nil
	}
	f := finding.Finding{
		Subkind: AbsentSubkind, Cost: share, Confidence: finding.Likely,
		Text:   fmt.Sprintf("the recorded ranks spend %.0f %% of their GPU time in collectives waiting after all of them have come: likely for ranks that are not in the files", 100*share),
		Metric: finding.Metric{Name: "wait for ranks that are not in the files", Unit: table.Share, Before: math.NaN(), After: share},
	}
	long := slices.DeleteFunc(slices.Clone(c.Kinds), func(k Kind) bool { return k.Long == 0 })
	slices.SortStableFunc(long, func(a, b Kind) int { return cmp.Compare(b.LongWait, a.LongWait) })
	for i := range long[:min(len(long), maxLongTold)] {
		k := &long[i]
		f.Evidence = append(f.Evidence, finding.Sentence("%d of %d `%s` of %s took %s longer in total than usual (median %s) after the last of these ranks came",
			k.Long, k.N, k.Name(), words.Counted(k.Ranks, "rank"), words.Nearly(k.LongWait), words.Nearly(k.Transfer.P50)))
	}
	return []finding.Finding{f}
}

// longWaits reports the unmatched kernels that took much longer than usual, the longest wait
// first, if that is at least a hundredth of the time in collectives.
func (c *Collectives) longWaits() []finding.Evidence {
	all := c.coverage().All
	return tellLong(c.longParts(func(p *PartKind) bool { return p.absent && p.LongWait >= all/100 }))
}

// longParts returns the kinds that have long kernels, the longest wait first.
func (c *Collectives) longParts(is func(*PartKind) bool) []*PartKind {
	var long []*PartKind
	for i := range c.Parts {
		if p := &c.Parts[i]; p.Long > 0 && is(p) {
			long = append(long, p)
		}
	}
	slices.SortStableFunc(long, func(a, b *PartKind) int { return cmp.Compare(b.LongWait, a.LongWait) })
	return long
}

// maxLongTold limits the kinds of long kernels in sentences.
const maxLongTold = 3

// tellLong returns a sentence for each of the first kinds of long kernels.
func tellLong(long []*PartKind) []finding.Evidence {
	var out []finding.Evidence
	for _, p := range long[:min(len(long), maxLongTold)] {
		out = append(out, finding.Sentence("%s likely waited for ranks that are not in the files: %d of its %d `%s` took %s longer in total than usual (median %s); all %s waited %s at most",
			p.Rank, p.Long, p.Took.N, p.Name(), words.Nearly(p.LongWait), words.Nearly(p.Took.P50), words.Counted(p.Alone, "kernel"), words.Nearly(p.MostWait)))
	}
	return out
}

// Absent returns the ranks that spend much of their GPU time in collectives waiting for ranks that are not in the files.
func (c *Collectives) Absent(g *gpu.GPUs) ([]finding.Finding, finding.Check) {
	check := finding.Check{What: "waits for ranks that are not in the files", Of: "collective kernel", N: c.Counts.kernels, Needed: fewestLong}
	if found := c.byTasks(g); found != nil {
		check.Needed = 1
		return found, check
	}
	switch {
	case c.Counts.kernels == 0:
		check.Reason = "no collectives were recorded"
	case c.Counts.alone == 0 && c.waitTogether() == 0:
		check.Reason = "other ranks were seen in all collectives"
	case !slices.ContainsFunc(c.Parts, func(p PartKind) bool { return p.absent }) && c.waitTogether() == 0:
		check.Reason = "no rank of a group is known to be missing"
	}
	lengths := map[int32]int64{}
	for i := range g.GPUs {
		gpu := &g.GPUs[i]
		lengths[gpu.RankIndex] = distribution.AddTimes(lengths[gpu.RankIndex], gpu.Length())
	}
	byRank := map[int32][]*PartKind{}
	for _, p := range c.longParts(func(p *PartKind) bool { return p.absent }) {
		byRank[p.rankIndex] = append(byRank[p.rankIndex], p)
	}
	found := c.together(g)
	for rank, long := range byRank {
		wait := distribution.SumTimes(order.Each(long, func(p *PartKind) int64 { return p.LongWait }))
		share := min(1, distribution.Fraction(wait, lengths[rank]))
		if share < muchAbsent {
			continue
		}
		found = append(found, finding.Finding{
			Subkind: AbsentSubkind, At: place.Named(long[0].Rank), Evidence: tellLong(long), Cost: share * distribution.Fraction(lengths[rank], g.Length()),
			Text:   fmt.Sprintf("%s waited %.0f %% of its GPU time in collectives for ranks that are not in the files", long[0].Rank, 100*share),
			Metric: finding.Metric{Name: "wait for ranks that are not in the files", Unit: table.Share, Before: math.NaN(), After: share},
		})
	}
	slices.SortFunc(found, func(a, b finding.Finding) int { return cmp.Compare(a.Text, b.Text) })
	return found, check
}

// addAbsence counts a sync point of all ranks but one, or but two: one may be a process that uses no device.
func (w *collectiveWalk) addAbsence(x *profile.CollectiveMatch) {
	here := len(x.Arrivals)
	if here < 2 || len(w.set.Ranks)-here > 2 || len(w.set.Ranks) == here || x.GroupSize > 0 && int(x.GroupSize) <= here || len(w.set.MissingRanks) > 0 {
		return
	}
	absent, n := [2]int32{-1, -1}, 0
	for rank := range int32(len(w.set.Ranks)) {
		if at := int(rank) - n; at == here || x.Arrivals[at].Rank != rank { // arrivals are ordered by rank
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

// An absence is the number of collectives that some ranks are missing from, and the number of
// those whose group is known to have more ranks.
type absence struct{ n, sized int }

// fewestLacks is how many collectives it takes to show that a rank is in a group, or missing from its collectives.
const fewestLacks = 10

// A Lack is a rank that is missing from N of the Of collectives that all other ranks are in.
type Lack struct {
	Rank  string
	N, Of int
}

// Lacking returns the ranks that use devices, and are missing from many collectives of all
// others: at least a tenth of them, and ten. An unmatched kernel of such a rank may belong to
// one of these. A rank that is not known to be in any group communicates with nobody.
func (c *Collectives) Lacking(g *gpu.GPUs) (list []Lack) {
	uses, lacks := map[int32]string{}, map[int32]absence{}
	together := true // ranks that differ only in TP are one group
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

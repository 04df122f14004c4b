package collective

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/gpu"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// A member is a rank of a group, by its number there plus one.
type member struct {
	group trace.Sym
	rank  int32
}

// An awaited is how long a rank waited for a member of its group, as the tasks of their collectives say: the longest wait of each of n.
type awaited struct {
	rank    int32 // index in Set.Ranks
	n       int
	ns      int64
	longest int64
}

// addTasks counts whom a rank waited for.
func (c *Collectives) addTasks(p *profile.Part) {
	t := &p.Tasks
	if t.Member == 0 {
		return
	}
	if c.recorded == nil {
		c.recorded, c.awaited = map[member]bool{}, map[member][]awaited{}
	}
	c.recorded[member{p.Group, t.Member}] = true
	if t.AwaitedNs == 0 {
		return
	}
	of := member{p.Group, t.Awaited}
	k := slices.IndexFunc(c.awaited[of], func(a awaited) bool { return a.rank == p.Rank })
	if k < 0 {
		k, c.awaited[of] = len(c.awaited[of]), append(c.awaited[of], awaited{rank: p.Rank})
	}
	a := &c.awaited[of][k]
	a.n, a.ns, a.longest = a.n+1, distribution.AddTimes(a.ns, t.AwaitedNs), max(a.longest, t.AwaitedNs)
}

// awaitedAbsent returns the ranks without files that others waited for, by tasks of collectives, the longest waits first, and how long that was in total.
func (c *Collectives) awaitedAbsent() (list []member, total int64) {
	list = order.Only(slices.Collect(maps.Keys(c.awaited)), func(m member) bool { return !c.recorded[m] })
	for _, m := range list {
		total = distribution.AddTimes(total, c.waitedFor(m))
	}
	slices.SortFunc(list, func(a, b member) int {
		return cmp.Or(cmp.Compare(c.waitedFor(b), c.waitedFor(a)), cmp.Compare(a.rank, b.rank), cmp.Compare(c.set.Syms.Name(a.group), c.set.Syms.Name(b.group)))
	})
	return list, total
}

func (c *Collectives) waitedFor(m member) int64 {
	return distribution.SumTimes(order.Each(c.awaited[m], func(a awaited) int64 { return a.ns }))
}

// byTasks finds that ranks spend much of their time waiting for a rank without a file, which the tasks of their collectives name.
func (c *Collectives) byTasks(g *gpu.GPUs) []finding.Finding {
	list, total := c.awaitedAbsent()
	share := min(1, distribution.Fraction(total, g.Length()))
	if share < muchAbsent {
		return nil
	}
	top := list[0]
	whom := fmt.Sprintf("rank %d of `%s`", top.rank-1, c.set.Syms.Name(top.group))
	if ns := c.waitedFor(top); 100*ns < 95*total {
		whom = fmt.Sprintf("ranks that are not in the files: %.0f %% of that for %s", 100*distribution.Fraction(ns, total), whom)
	} else {
		whom += ", which is not in the files"
	}
	f := finding.Finding{
		Subkind: AbsentSubkind, Cost: share,
		Text:   fmt.Sprintf("the recorded ranks spend %.0f %% of their GPU time in collectives waiting for %s", 100*share, whom),
		Metric: finding.Metric{Name: "wait for ranks that are not in the files", Unit: table.Share, Before: math.NaN(), After: share},
	}
	for _, a := range c.awaited[top][:min(len(c.awaited[top]), maxLongTold)] {
		f.Evidence = append(f.Evidence, finding.Sentence("tasks of %s of %s wait %s for it, %s at most in one", words.Counted(a.n, "collective"), c.set.Ranks[a.rank], words.Nearly(a.ns), words.Nearly(a.longest)))
	}
	return []finding.Finding{f}
}

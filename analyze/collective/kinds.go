package collective

import (
	"cmp"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// A Kind sums up the collectives of one operation, type, and size in a group. Times are in ns.
type Kind struct {
	Op        string // as the producer calls it; "" if unknown
	Kernel    string // without types
	Dtype     string // "" if unknown
	Bytes     int64  // see [Kind.BusBandwidth]; -1 if unknown
	Group     string // "" if unknown
	GroupSize int32  // -1 if unknown
	// First is the first of the ranks, in the set's order: replicas give their groups the same names.
	First string
	Ranks int // the most ranks seen in one collective

	N    int
	Took int64 // sum over all ranks
	// Transfer summarizes the shortest duration in each collective: that of the rank that waited
	// least, of the ranks that were seen. An unseen rank may have come later.
	Transfer distribution.Summary
	// Whole is how many of the N have all ranks of the group, as far as its size is known, and
	// WholeP50 the median of their Transfer; 0 if there are none.
	Whole    int
	WholeP50 int64

	// Long counts the collectives that took longer than usual after the last seen rank came, of those whose group has ranks that
	// are not in the files. LongWait is by how much in total, in ns: each rank waited that long, likely for the missing ones.
	Long     int
	LongWait int64

	Sync int                  // of N: at these, ranks wait for the last one
	Wait distribution.Summary // of all ranks but the last one
	// Last is the rank that came last most often, LastN times; "" and 0 if no rank ever came last alone.
	Last  string
	LastN int
}

// Name returns the operation, or else the kernel's name without NCCL's common prefix.
func (k *Kind) Name() string { return collectiveName(k.Op, k.Kernel) }

func collectiveName(op, kernel string) string {
	if op != "" {
		return op
	}
	_, name, found := strings.Cut(kernel, "Kernel_")
	if !found || !strings.HasPrefix(kernel, "nccl") {
		return kernel
	}
	return name
}

// BusBandwidth returns the bus bandwidth at the median transfer of those with all ranks, as nccl-tests define it, in GB/s; 0 if
// unknown. Bytes is the size by the same definition: what a rank has if each has all of it, and all parts together if each has one.
func (k *Kind) BusBandwidth() float64 {
	return busBandwidth(k.Op, k.Bytes, k.GroupSize, k.WholeP50)
}

// kindKey identifies collectives of one kind.
type kindKey struct {
	op, kernel, dtype, group trace.Sym
	bytes                    int64
	size, first              int32
}

// kindTimes collects the collectives of one kind.
type kindTimes struct {
	Kind
	transfers, waits distribution.Sample
	whole, part      distribution.Sample // parts of transfers: all ranks of the group were seen; some are not in the files
	last             map[int32]int       // by rank: how often it came last
}

// kindTable maps sync points to kinds.
type kindTable struct {
	set   *profile.Set
	bare  *trace.PerName[trace.Sym]
	index map[kindKey]int
	kinds []*kindTimes
	held  int // index of the first kind whose times are still held
	sums  summarizer

	// Cache: sync points like the previous one are of its kind.
	like  kindLike
	known *kindTimes
}

// kindLike is what sync points of one kind, and of one group of ranks, have in common.
type kindLike struct {
	name, op, dtype, group trace.Sym
	in, out                int64
	size, first            int32
}

// of returns the kind of a sync point; first is the first rank of its group.
func (t *kindTable) of(x *profile.CollectiveMatch, first int32) *kindTimes {
	like := kindLike{x.Name, x.Op, x.Dtype, x.Group, x.In, x.Out, x.GroupSize, first}
	if t.known == nil || like != t.like {
		t.like, t.known = like, t.find(x, first)
	}
	return t.known
}

func (t *kindTable) find(x *profile.CollectiveMatch, first int32) *kindTimes {
	name := t.set.Syms.Name
	op, dtype := name(x.Op), name(x.Dtype)
	key := kindKey{x.Op, t.bare.Of(x.Name), x.Dtype, x.Group, profile.CollectiveBytes(op, dtype, x.In, x.Out, x.GroupSize), max(-1, x.GroupSize), first}
	key.size = cmp.Or(key.size, -1)
	i := order.At(t.index, &t.kinds, key, func() *kindTimes {
		return &kindTimes{last: map[int32]int{}, Kind: Kind{
			Op: op, Kernel: name(key.kernel), Dtype: dtype, Bytes: key.bytes, Group: name(x.Group), GroupSize: key.size,
			First: t.set.Ranks[first],
		}}
	})
	return t.kinds[i]
}

func (t *kindTable) add(e *encounter, first int32) {
	k := t.of(e.Match, first)
	k.N++
	k.Ranks = max(k.Ranks, len(e.Match.Arrivals))
	k.transfers.Add(e.transfer, distribution.NoLimit)
	if int(e.Match.GroupSize) <= len(e.Match.Arrivals) {
		k.whole.Add(e.transfer, distribution.NoLimit)
	}
	if e.waits && lacks(t.set, e.Match) {
		k.part.Add(e.transfer, distribution.NoLimit)
	}
	for _, took := range e.took {
		k.Took = distribution.AddTimes(k.Took, took)
	}
	if !e.waits {
		return
	}
	k.Sync++
	latest := slices.Index(e.arrivals, e.latest)
	for i := range e.Match.Arrivals {
		if i != latest {
			k.waits.Add(e.wait(i), distribution.NoLimit)
		}
	}
	if e.last != nobody {
		k.last[e.Match.Arrivals[e.last].Rank]++
	}
}

// settle summarizes the kinds of the current component of ranks, and frees their times.
func (t *kindTable) settle() {
	for _, k := range t.kinds[t.held:] {
		k.Transfer, k.Wait = t.sums.of(&k.transfers), t.sums.of(&k.waits)
		if k.Whole = k.whole.Len(); k.Whole == k.N {
			k.WholeP50 = k.Transfer.P50
		} else {
			k.WholeP50 = t.sums.of(&k.whole).P50
		}
		late := partTimes{PartKind: PartKind{Kernel: k.Kernel, Bytes: k.Bytes}, took: k.part, alone: k.part}
		late.settle(&t.sums)
		k.Long, k.LongWait = late.Long, late.LongWait
		k.transfers, k.waits, k.whole, k.part = distribution.Sample{}, distribution.Sample{}, distribution.Sample{}, distribution.Sample{}
	}
	t.held, t.known = len(t.kinds), nil
}

// finish returns the kinds, all of which are settled.
func (t *kindTable) finish() []Kind {
	kinds := make([]Kind, len(t.kinds))
	for i, k := range t.kinds {
		for rank, n := range k.last {
			if name := t.set.Ranks[rank]; n > k.LastN || n == k.LastN && name < k.Last {
				k.Last, k.LastN = name, n
			}
		}
		kinds[i] = k.Kind
	}
	slices.SortFunc(kinds, func(a, b Kind) int {
		return cmp.Or(cmp.Compare(b.Took, a.Took), strings.Compare(a.Op, b.Op), strings.Compare(a.Kernel, b.Kernel),
			strings.Compare(a.Dtype, b.Dtype), cmp.Compare(a.Bytes, b.Bytes), strings.Compare(a.Group, b.Group), cmp.Compare(a.GroupSize, b.GroupSize), strings.Compare(a.First, b.First))
	})
	return kinds
}

// busBandwidth returns the bus bandwidth of a collective in GB/s, 0 if unknown.
func busBandwidth(op string, bytes int64, ranks int32, ns int64) float64 {
	if ns <= 0 {
		return 0
	}
	return profile.BusBytes(op, bytes, ranks) / float64(ns)
}

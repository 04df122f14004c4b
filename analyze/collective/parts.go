package collective

import (
	"cmp"
	"iter"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/profile/kernelname"
	"github.com/sgtrace/sgtrace/trace"
)

// A PartKind sums up the collectives of one operation, type, size, and group on one rank,
// whether other ranks were seen there or not. Times are in ns.
type PartKind struct {
	Rank      string
	Op        string // "" if unknown
	Kernel    string // without types
	Dtype     string // "" if unknown
	Bytes     int64  // as in a [Kind]; -1 if unknown
	GroupSize int32  // -1 if unknown

	Took  distribution.Summary // of the kernels
	Alone int                  // of them: no other rank was seen
	// Of those, Long took more than longTimes the median, by LongWait in total. MostWait is how
	// much longer all of them took than the shortest kernel: an upper bound of their waiting.
	Long               int
	LongWait, MostWait int64

	rankIndex int32
	absent    bool // some ranks of its group are not in the files
	meets     bool // host collectives: ranks wait for each other
}

// A collective's kernel waited for another rank if it took longTimes the median of its kind,
// and longFloor longer: neither data nor links make it so long.
const (
	longTimes = 4
	longFloor = 100_000 // ns
	// fewestLong is how many kernels show what is usual.
	fewestLong = 8
)

// Name returns what the collective is called.
func (p *PartKind) Name() string { return collectiveName(p.Op, p.Kernel) }

// BusBandwidth returns the bus bandwidth of the shortest kernel, in GB/s as nccl-tests define
// it: an upper bound for all of them; 0 if unknown.
func (p *PartKind) BusBandwidth() float64 {
	return busBandwidth(p.Op, p.Bytes, p.GroupSize, p.Took.Min)
}

// partTimes collects the kernels of one kind on one rank.
type partTimes struct {
	PartKind
	exchanges   bool // all-to-alls with known sizes
	took, alone distribution.Sample
}

// partTable maps the kernels of one rank to kinds, rank after rank.
type partTable struct {
	set   *profile.Set
	bare  *trace.PerName[trace.Sym]
	out   []PartKind
	sums  summarizer
	rank  int32
	kinds []*partTimes
	index map[kindKey]*partTimes

	// Cache: parts like the previous one are of its kind.
	like  kindLike
	known *partTimes
}

// of returns the kind of a part.
func (t *partTable) of(p *profile.Part) *partTimes {
	if p.Rank != t.rank {
		t.settle()
		t.rank = p.Rank
	}
	like := kindLike{p.Name, p.Op, p.Dtype, p.Group, p.In, p.Out, p.GroupSize, p.Rank}
	if t.known == nil || like != t.like {
		t.like, t.known = like, t.find(p)
	}
	return t.known
}

func (t *partTable) find(p *profile.Part) *partTimes {
	name := t.set.Syms.Name
	op, dtype := name(p.Op), name(p.Dtype)
	bytes := profile.CollectiveBytes(op, dtype, p.In, p.Out, p.GroupSize)
	key := kindKey{p.Op, t.bare.Of(p.Name), p.Dtype, p.Group, bytes, p.GroupSize, 0}
	k := t.index[key]
	if k == nil {
		k = &partTimes{PartKind: PartKind{Rank: t.set.Ranks[p.Rank], rankIndex: p.Rank, Op: op, Kernel: name(key.kernel),
			Dtype: dtype, Bytes: bytes, GroupSize: max(-1, p.GroupSize), meets: kernelname.MeetsOnHost(op), absent: isIncomplete(t.set, p.GroupSize)}, exchanges: profile.IsAllToAll(op) && profile.ElementBytes(dtype) != 0}
		t.index[key] = k
		t.kinds = append(t.kinds, k)
	}
	return k
}

// isIncomplete reports whether a group is known to have ranks that are not in the files: it is
// larger than the set, or its size is unknown and the job lacks some ranks.
func isIncomplete(set *profile.Set, groupSize int32) bool {
	if groupSize > 0 {
		return int(groupSize) > len(set.Ranks)
	}
	return len(set.MissingRanks) > 0
}

// settle summarizes the kinds of the current rank.
func (t *partTable) settle() {
	for _, k := range t.kinds {
		k.settle(&t.sums)
		t.out = append(t.out, k.PartKind)
	}
	t.kinds, t.index, t.known = nil, map[kindKey]*partTimes{}, nil
}

// measureParts sums up the kernels that overlap [from, to]; 0 is open.
func (c *Collectives) measureParts(set *profile.Set, from, to trace.Time) {
	exchange := &exchange{set: set, sent: map[exchangeKey]*AllToAll{}, split: map[trace.Sym][]int64{}}
	table := &partTable{set: set, bare: profile.BareNames(set.Syms), index: map[kindKey]*partTimes{}}
	c.set = set
	for p := range partsWithin(set, from, to) {
		k := table.of(p)
		c.addTasks(p)
		if !c.OfHosts || k.meets {
			c.Counts.addPart(p)
		}
		if k.exchanges {
			exchange.add(p)
		}
		k.took.Add(max(0, p.Dur), distribution.NoLimit)
		if !p.Matched {
			k.alone.Add(max(0, p.Dur), distribution.NoLimit)
		}
	}
	table.settle()
	c.Parts = table.out
	slices.SortFunc(c.Parts, func(a, b PartKind) int {
		return cmp.Or(cmp.Compare(b.Took.Total, a.Took.Total), cmp.Compare(a.rankIndex, b.rankIndex), strings.Compare(a.Op, b.Op),
			strings.Compare(a.Kernel, b.Kernel), strings.Compare(a.Dtype, b.Dtype), cmp.Compare(a.Bytes, b.Bytes), cmp.Compare(a.GroupSize, b.GroupSize))
	})
	c.AllToAlls = exchange.finish()
}

// partsWithin yields the kernels that overlap [from, to]; 0 is open.
func partsWithin(set *profile.Set, from, to trace.Time) iter.Seq[*profile.Part] {
	return func(yield func(*profile.Part) bool) {
		for p := range set.Parts() {
			if (from == 0 || p.Time+trace.Time(p.Dur) >= from) && (to == 0 || p.Time <= to) && !yield(p) {
				return
			}
		}
	}
}

func (n *collectiveCounts) addPart(p *profile.Part) {
	n.kernels++
	n.ran = distribution.AddTimes(n.ran, max(0, p.Dur))
	switch {
	case p.Refused:
		n.refused++
	case !p.Matched:
		n.alone++
		n.ranAlone = distribution.AddTimes(n.ranAlone, max(0, p.Dur))
	}
}

// settle summarizes the kernels, and finds the long ones.
func (p *partTimes) settle(sums *summarizer) {
	p.Took, p.Alone = sums.of(&p.took), p.alone.Len()
	took := make([]int64, 0, p.Alone)
	p.alone.Each(func(ns int64) {
		p.MostWait = distribution.AddTimes(p.MostWait, ns-p.Took.Min)
		if p.Bytes >= 0 {
			p.judge(ns, p.Took.P50, longTimes)
		} else {
			took = append(took, ns)
		}
	})
	p.judgeAround(took)
}

// judge counts a kernel if it took at least `times` times as long as usual.
func (p *partTimes) judge(ns, usual, times int64) {
	if p.isLong(ns, usual, times) {
		p.Long++
		p.LongWait = distribution.AddTimes(p.LongWait, ns-usual)
	}
}

// isLong reports whether a kernel took at least `times` times as long as usual, and longFloor longer.
func (p *partTimes) isLong(ns, usual, times int64) bool {
	return p.Took.N >= fewestLong && ns-usual >= longFloor && ns/times >= usual
}

// Passes reports whether collectives of a kind send to another rank or receive from it. Several coalesced ones are one kernel for both directions.
func (p *PartKind) Passes() bool {
	return p.Op == "send" || p.Op == "recv" || p.Op == "coalesced" && strings.Contains(p.Kernel, "SendRecv")
}

// PassesLate returns which part of the time of sends and receives is beyond the shortest of each kind: at most that is waiting.
func (c *Collectives) PassesLate() float64 {
	took, waits := int64(0), int64(0)
	for i := range c.Parts {
		if p := &c.Parts[i]; p.Passes() {
			took, waits = distribution.AddTimes(took, p.Took.Total), distribution.AddTimes(waits, p.MostWait)
		}
	}
	return distribution.Fraction(waits, took)
}

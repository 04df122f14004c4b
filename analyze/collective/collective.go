package collective

import (
	"fmt"
	"iter"
	"math"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// Collectives are the collectives that several ranks were seen in: who came last, how long the
// others waited, and how long the data took.
type Collectives struct {
	Ranks []Rank // those that met others, in the set's order
	Kinds []Kind // by decreasing time
	Waits []Wait // ordered by rank, and by last rank
	// ByStep is the same by kind of the step that asked for them; nil if steps are unknown.
	ByStep []StepRank
	// Parts are the kernels of collectives by rank, whether other ranks were seen in them or not.
	Parts     []PartKind
	AllToAlls []AllToAll // what ranks send each other, if known

	First, Last trace.Time // bounds of the collectives of several ranks; 0 if none, or unknown
	OfHosts     bool       // host collectives, from [MeasureHosts]

	peerGroups []*peerGroup
	Counts     collectiveCounts
	// without counts the collectives of all ranks but one or two, by the missing ranks; -1 if there is no second one.
	without map[[2]int32]absence
	// recorded are the members of groups that have files, and awaited who waited for whom, as far as tasks of collectives show it.
	recorded map[member]bool
	awaited  map[member][]awaited
	set      *profile.Set
	// lengths is the total time of the groups, once for each of their ranks, in ns.
	lengths int64
}

// collectiveCounts are numbers of collectives.
type collectiveCounts struct {
	all        int // measured ones
	Sync       int // at which ranks wait for the last one
	byDuration int // of Sync: order of arrival derived from durations
	blurred    int // of Sync: only durations were recorded
	partial    int // of Sync: not all ranks of the group were seen
	unsure     int // of Sync: unknown whether any of the job's missing ranks belong to the group
	unsized    int // of Sync: the number of ranks in the group was not recorded
	begin      int // host collectives with which the recording of some rank begins, so that nobody is judged by them
	impossible int // left out: a rank was gone before the last one came
	// kernels counts the collective kernels of all ranks; alone those without any other rank
	// found, refused those whose clocks contradict the others.
	kernels, alone, refused int
	// ran is how long all kernels ran in total, ranAlone how long those that are alone did, in ns.
	ran, ranAlone int64
	// beginTook is how long ranks were in the collectives of begin, beginWait how much of that
	// exceeds the time of the rank that was there for the shortest time, in ns.
	beginTook, beginWait int64
}

// coverage returns how much of the time in collectives is in those for which it is known who waits for whom.
func (c *Collectives) coverage() finding.Coverage {
	known := distribution.SumTimes(order.EachRow(c.Ranks, func(r *Rank) int64 { return r.Took }))
	known = distribution.AddTimes(known, c.Counts.beginTook) // nobody is judged there
	return finding.Coverage{Of: "communication time", Known: known, All: c.Counts.ran}
}

// Some reports whether there are collectives of several ranks.
func (c *Collectives) Some() bool { return c.Counts.all > 0 }

// A Rank sums up the collectives of a rank. Times are in ns.
type Rank struct {
	Rank       string
	SyncPoints int // collectives in which other ranks were seen, too
	// The other fields are about those at which ranks wait for the last one.
	Sync int
	Last int // those to which it came after all others
	// LateP50 and LateP99 are percentiles of its arrival minus the median (nearest rank) arrival; negative is early.
	LateP50, LateP99 int64
	Took             int64 // from the start of its kernels to their end
	Wait             int64 // part of Took before the last rank came
	Blame            int64 // total wait of all others where it was last
	Transfer         int64 // part of Took that the rank with the shortest wait took

	rankIndex int32 // index into Set.Ranks
}

// A Wait is how long one rank waited for another, summed over the collectives to which that
// one came last. Both are indexes into [Collectives.Ranks].
type Wait struct {
	Rank, Last int
	Ns         int64
}

// A StepRank sums up the collectives of a rank in one kind of steps.
type StepRank struct {
	Kind profile.StepKind
	Rank
}

// Measure sums up the sync points of a set that overlap [from, to]; 0 is open. It holds about
// 14 bytes for each rank of a sync point, most of which may be in a file.
func Measure(set *profile.Set, from, to trace.Time) *Collectives {
	return measure(set, from, to, endSpread)
}

// MeasureHosts is [Measure] for host collectives; it returns nil if there are none. A rank arrives
// when its thread begins to send or receive; a kernel is what the thread did from then to the end.
func MeasureHosts(set *profile.Set, from, to trace.Time) *Collectives {
	if set.HostCollectives == nil {
		return nil
	}
	hosts := *set
	hosts.Collectives = set.HostCollectives
	return measure(&hosts, from, to, hostSpread)
}

func measure(set *profile.Set, from, to trace.Time, spread int64) *Collectives {
	w := newCollectiveWalk(set, from, to, spread)
	w.kinds = &kindTable{set: set, bare: profile.BareNames(set.Syms), index: map[kindKey]int{}}
	w.walk(set, from, to)
	out := w.finish(set)
	out.Kinds = w.kinds.finish()
	out.measureParts(set, from, to)
	return out
}

// MeasureRanks is [Measure] for callers who only ask who is late: without Kinds, Parts, and
// AllToAlls, which take a third of the time.
func MeasureRanks(set *profile.Set, from, to trace.Time) *Collectives {
	w := newCollectiveWalk(set, from, to, endSpread)
	w.walk(set, from, to)
	out := w.finish(set)
	for p := range partsWithin(set, from, to) {
		out.Counts.addPart(p)
	}
	return out
}

// within yields the sync points that overlap [from, to]; 0 is open.
func within(set *profile.Set, from, to trace.Time) iter.Seq[*profile.CollectiveMatch] {
	if from == 0 && to == 0 {
		return set.Matches(false)
	}
	return func(yield func(*profile.CollectiveMatch) bool) {
		for x := range set.Matches(false) {
			start, end := bounds(x)
			if (from == 0 || end >= from) && (to == 0 || start <= to) && !yield(x) {
				return
			}
		}
	}
}

// bounds returns when a sync point began and ended.
func bounds(x *profile.CollectiveMatch) (start, end trace.Time) {
	start, end = x.Arrivals[0].Start, x.Arrivals[0].End
	for _, a := range x.Arrivals[1:] {
		start, end = min(start, a.Start), max(end, a.End)
	}
	return start, end
}

// A collectiveWalk goes over the sync points of a set. It holds the times of a component of ranks while its sync points pass.
type collectiveWalk struct {
	set        *profile.Set
	out        *Collectives
	syncPoints []int // by rank of the set
	bySteps    [stepKinds][]rankTimes
	late       [][2]int64 // by rank, over all steps: LateP50 and LateP99
	kinds      *kindTable // nil if not asked for
	peerGroups *peerGroupTable
	seen       encounter // the current sync point
	sorter     timeSorter

	component int32   // the component of seen
	met       []int32 // ranks of that component
}

func newCollectiveWalk(set *profile.Set, from, to trace.Time, spread int64) *collectiveWalk {
	n := len(set.Ranks)
	w := &collectiveWalk{set: set, out: &Collectives{OfHosts: spread == hostSpread}, syncPoints: make([]int, n), late: make([][2]int64, n), peerGroups: newPeerGroupTable(set, within(set, from, to), spread)}
	w.seen.spread = spread
	for kind := range w.bySteps {
		w.bySteps[kind] = make([]rankTimes, n)
	}
	return w
}

func (w *collectiveWalk) walk(set *profile.Set, from, to trace.Time) {
	for x := range within(set, from, to) {
		w.add(x)
	}
	w.settle()
}

func (w *collectiveWalk) add(x *profile.CollectiveMatch) {
	if x.Component != w.component {
		w.settle()
		w.component = x.Component
	}
	e := &w.seen
	if !e.look(x) {
		w.out.Counts.impossible++
		return
	}
	w.out.Counts.all++
	w.addAbsence(x)
	if start, end := bounds(x); x.Blur != math.MaxInt64 {
		if w.out.Last == 0 {
			w.out.First = start
		}
		w.out.First, w.out.Last = min(w.out.First, start), max(w.out.Last, end)
	}
	for i := range x.Arrivals {
		rank := x.Arrivals[i].Rank
		if w.syncPoints[rank] == 0 {
			w.met = append(w.met, rank)
		}
		w.syncPoints[rank]++
	}
	if w.kinds != nil {
		w.kinds.add(e, w.peerGroups.first(x))
	}
	if e.begins {
		w.out.Counts.begin++
		for _, took := range e.took {
			w.out.Counts.beginTook = distribution.AddTimes(w.out.Counts.beginTook, took)
			w.out.Counts.beginWait = distribution.AddTimes(w.out.Counts.beginWait, took-e.transfer)
		}
	}
	if !e.waits {
		return
	}
	w.out.Counts.Sync++
	switch {
	case x.Blur > 0:
		w.out.Counts.blurred++
	case !e.byClock:
		w.out.Counts.byDuration++
	}
	if int(max(x.GroupSize, x.AtLeast)) > len(x.Arrivals) {
		w.out.Counts.partial++
	}
	if x.GroupSize <= 0 {
		w.out.Counts.unsized++
		if len(w.set.MissingRanks) > 0 {
			w.out.Counts.unsure++
		}
	}
	w.peerGroups.add(e)
	addWaits(w.bySteps[x.Step], e)
}

// settle computes the percentiles of the current component, and frees its times.
func (w *collectiveWalk) settle() {
	for _, rank := range w.met {
		var late []*times
		for kind := range w.bySteps {
			if s := &w.bySteps[kind][rank]; s.Sync > 0 {
				s.LateP50, s.LateP99 = w.sorter.percentiles(&s.late)
				w.late[rank] = [2]int64{s.LateP50, s.LateP99}
				late = append(late, &s.late)
			}
		}
		if len(late) > 1 {
			w.late[rank][0], w.late[rank][1] = w.sorter.percentiles(late...)
		}
		for _, t := range late {
			*t = times{}
		}
	}
	w.met = w.met[:0]
	if w.kinds != nil {
		w.kinds.settle()
	}
}

// rankTimes are the sums of a rank in steps of one kind, with its arrival times relative to the others.
type rankTimes struct {
	Rank
	late times
}

// addWaits adds a sync point with waits to the sums of its ranks.
func addWaits(ranks []rankTimes, e *encounter) {
	median := request.NearestRank(e.sorted, 50)
	for i, a := range e.Match.Arrivals {
		r := &ranks[a.Rank]
		r.Sync++
		r.late.add(e.arrivals[i] - median)
		r.Took = distribution.AddTimes(r.Took, e.took[i])
		r.Wait = distribution.AddTimes(r.Wait, e.wait(i))
		r.Transfer = distribution.AddTimes(r.Transfer, e.transfer)
		switch e.last {
		case nobody:
		case i:
			r.Last++
		default:
			last := &ranks[e.Match.Arrivals[e.last].Rank]
			last.Blame = distribution.AddTimes(last.Blame, e.wait(i))
		}
	}
}

// finish sums up the ranks that met others.
func (w *collectiveWalk) finish(set *profile.Set) *Collectives {
	out := w.out
	for i, n := range w.syncPoints {
		if n > 0 {
			out.Ranks = append(out.Ranks, w.rank(set, i))
		}
	}
	out.ByStep = w.finishSteps(set)
	out.peerGroups = w.peerGroups.finish()
	for _, x := range out.waits(func(trace.Time) int { return 0 }) {
		out.Waits = append(out.Waits, x.Wait)
	}
	for _, c := range out.peerGroups {
		out.lengths = distribution.AddTimes(out.lengths, c.length)
	}
	return out
}

// rank sums up a rank over all kinds of steps.
func (w *collectiveWalk) rank(set *profile.Set, rank int) Rank {
	r := Rank{Rank: set.Ranks[rank], rankIndex: int32(rank), SyncPoints: w.syncPoints[rank], LateP50: w.late[rank][0], LateP99: w.late[rank][1]}
	for kind := range w.bySteps {
		s := &w.bySteps[kind][rank]
		r.Sync, r.Last = r.Sync+s.Sync, r.Last+s.Last
		r.Took, r.Wait = distribution.AddTimes(r.Took, s.Took), distribution.AddTimes(r.Wait, s.Wait)
		r.Blame, r.Transfer = distribution.AddTimes(r.Blame, s.Blame), distribution.AddTimes(r.Transfer, s.Transfer)
	}
	return r
}

// stepKinds is how many kinds of steps there are.
const stepKinds = profile.StepDecode + 1

// finishSteps returns the sums by kind of step and rank; nil if no kinds are known.
func (w *collectiveWalk) finishSteps(set *profile.Set) []StepRank {
	var out []StepRank
	known := false
	for _, kind := range [...]profile.StepKind{profile.StepPrefill, profile.StepDecode, profile.StepOther} {
		for i := range w.bySteps[kind] {
			if r := &w.bySteps[kind][i]; r.Sync > 0 {
				r.Rank.Rank, r.rankIndex = set.Ranks[i], int32(i)
				out = append(out, StepRank{kind, r.Rank})
				known = known || kind != profile.StepOther
			}
		}
	}
	if !known {
		return nil
	}
	return out
}

// WaitMatrix returns Waits as a matrix: for each rank, how long it waited for each other one, in ns.
func (c *Collectives) WaitMatrix() [][]int64 {
	m := make([][]int64, len(c.Ranks))
	for i := range m {
		m[i] = make([]int64, len(c.Ranks))
	}
	for _, w := range c.Waits {
		m[w.Rank][w.Last] = w.Ns
	}
	return m
}

// WaitedFor returns how long all others together waited in collectives to which a rank came last, in ns.
func (c *Collectives) WaitedFor(rank int32) int64 {
	if r := c.rankOf(rank); r != nil {
		return r.Blame
	}
	return 0
}

// rankOf returns the sums of a rank of the set, or nil.
func (c *Collectives) rankOf(rank int32) *Rank {
	for i := range c.Ranks {
		if c.Ranks[i].rankIndex == rank {
			return &c.Ranks[i]
		}
	}
	return nil
}

// Unseen says, if no rank was seen to wait for another, that it is unknown how much of the
// time in collectives is waiting, and how much it may be.
func (c *Collectives) Unseen() []finding.Evidence {
	covered := c.coverage()
	if covered.Known > 0 || covered.All == 0 {
		return nil
	}
	most, ranks := int64(0), map[int32]bool{} // most: time beyond the shortest kernels
	for i := range c.Parts {
		most = distribution.AddTimes(most, c.Parts[i].MostWait)
		ranks[c.Parts[i].rankIndex] = true
	}
	if most == 0 {
		return nil // there is only one kernel of each kind
	}
	why := "the trace of one rank cannot tell which"
	if len(ranks) > 1 {
		why = fmt.Sprintf("nothing tells which of the %d ranks belong together", len(ranks))
	}
	return []finding.Evidence{finding.Sentence("of %s in collectives, %s is beyond the shortest of each kind: waiting for other ranks, or moving more data; %s",
		words.Nearly(covered.All), words.Nearly(min(most, covered.All)), why)}
}

// Waiting says how much of the time in collectives ranks wait for the last one, and which
// ranks waited for ranks that were not recorded.
func (c *Collectives) Waiting() []finding.Evidence {
	took, wait := int64(0), int64(0)
	for i := range c.Ranks {
		took, wait = distribution.AddTimes(took, c.Ranks[i].Took), distribution.AddTimes(wait, c.Ranks[i].Wait)
	}
	if took == 0 {
		return c.longWaits()
	}
	collectives := words.Counted(c.Counts.Sync, "collective")
	if covered := c.coverage().String(); covered != "" {
		collectives += ", which are " + covered + ","
	}
	rest := "data transfer"
	if c.lacking() {
		rest += ", or waiting for ranks that are not in the files"
	} else if c.Counts.unsized > 0 {
		rest += ", or waiting for ranks that are not in the files: how many a group has was not recorded"
	}
	waiting := finding.Sentence("ranks spend %.0f %% of their time in %s waiting for the last rank; the rest is %s", 100*distribution.Fraction(wait, took), collectives, rest)
	return append([]finding.Evidence{waiting}, c.longWaits()...)
}

// mostlyStood is the part of transfer time that must be stalls for these to be reported.
const mostlyStood = 0.5

// Stood reports that transfers stood still, or returns "": all ranks had come, and yet a few collectives took many
// times as long as others of their kind and size. A link or the network between hosts does that, or whoever shares it.
func (c *Collectives) Stood() string {
	all, beyond := int64(0), int64(0)
	var worst *Kind
	for i := range c.Kinds {
		k := &c.Kinds[i]
		all = distribution.AddTimes(all, k.Transfer.Total)
		usual := k.Transfer.P50
		if k.Bytes < 0 || k.GroupSize < 0 || k.Whole != k.N || k.N < fewestLong || k.Transfer.Max < longTimes*usual || k.Transfer.Max < usual+longFloor {
			continue
		}
		if more := k.Transfer.Total - int64(k.N)*usual; more > 0 {
			beyond = distribution.AddTimes(beyond, more)
			if worst == nil || k.Transfer.Max > worst.Transfer.Max {
				worst = k
			}
		}
	}
	if worst == nil || float64(beyond) < mostlyStood*float64(all) {
		return ""
	}
	return fmt.Sprintf("%.0f %% of what transfers take is beyond the median of their kind and size, %s at most instead of %s, though all ranks had come, as if a link or the network stood still",
		100*distribution.Fraction(beyond, all), words.Nearly(worst.Transfer.Max), words.Nearly(worst.Transfer.P50))
}

// lacking reports whether ranks that are not in the files may have come to collectives later than all others.
func (c *Collectives) lacking() bool { return c.Counts.partial+c.Counts.unsure > 0 }

// Begin reports how long ranks waited in host collectives for the profilers of others to start.
func (c *Collectives) Begin() []finding.Evidence {
	if c.Counts.begin == 0 {
		return nil
	}
	return []finding.Evidence{finding.Sentence("%s of the waiting in %s is in %s with which a rank's recording begins: the others wait for its profiler, which does not happen without one",
		words.Nearly(c.Counts.beginWait), c.what(), words.Counted(c.Counts.begin, "collective"))}
}

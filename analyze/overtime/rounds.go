package overtime

import (
	"cmp"
	"slices"
	"sort"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/profilewalk"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/internal/parallel"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// Programs that are not servers name their steps as they like: "train_step", "decode_step". An annotation marks steps if
// a thread makes it again and again, and nearly all GPU work is launched during it, by any thread of the process:
// autograd launches the backward pass from its own. Of several nested annotations, it is the one that occurs least often.
const (
	fewestRounds  = 2 * fewest // with this many steps, kernels in the same place are not searched
	fewestSteps   = 12         // steps needed to look for changes: profilers record few of a training run
	mostOf        = 0.8        // least share of the rank's kernel and copy time that steps launch
	maxNames      = 10_000
	maxCandidates = 8       // per rank: those of the most host time
	maxRounds     = 100_000 // most steps of a name: an annotation that occurs more often marks a part of one
)

// A rangeKey identifies the annotations of one name on a thread of a rank. The numbered ones of PyTorch's profiler count as one name.
type rangeKey struct {
	rank, pid int32
	tid       int64
	name      trace.Sym // 0 if numbered
	numbered  bool
}

// nameOf returns the name of annotations.
func (c *Collector) nameOf(key rangeKey) string {
	if key.numbered {
		return "ProfilerStep"
	}
	return c.set.Syms.Name(key.name)
}

// A tally is how many annotations there are, from when to when, and their total time, ns.
type tally struct {
	n           int
	first, last trace.Time
	total       int64
}

// A candidate is annotations that may mark steps. Times are on the clock of the host.
type candidate struct {
	key   rangeKey
	spans []request.Interval // in order
}

// A round is what one step launched for a device: when the first of it began, when the last ended, and how long at least one ran, ns.
type round struct {
	first, last trace.Time
	busy        int64
	kernels     uint64 // sum of the hashes of their names: equal if the same kernels were launched
}

// add adds a kernel or copy. They come in order of their starts.
func (r *round) add(x *launched) {
	if r.last == 0 {
		r.first, r.last = x.start, x.start
	}
	r.busy += max(0, int64(x.end-max(x.start, r.last)))
	r.last = max(r.last, x.end)
	if x.kernel != 0 {
		r.kernels += order.Mix(uint64(x.kernel))
	}
}

// addRounds adds the steps of ranks that are not servers.
func (c *Collector) addRounds(t *Timeline) {
	unknown := map[int32]bool{} // ranks
	for i := range t.Devices {
		if d := &t.Devices[i]; !d.Stepped {
			unknown[d.RankIndex] = true
		}
	}
	candidates := c.candidates(unknown)
	if len(candidates) == 0 {
		return
	}
	walks := make([]roundWalk, len(c.set.Streams))
	parallel.Each(len(walks), func(i int) { walks[i].run(c.set.Streams[i], candidates) })
	for rank, list := range candidates {
		work, all := map[int32][]launched{}, int64(0)
		for i := range walks {
			of := walks[i].ranks.At(rank)
			all = distribution.AddTimes(all, of.time)
			for device, list := range of.work {
				work[device] = append(work[device], list...)
			}
		}
		for _, list := range work {
			slices.SortFunc(list, func(a, b launched) int { return cmp.Compare(a.start, b.start) })
		}
		for i := range list {
			rounds, inside := list[i].rounds(work)
			if all == 0 || float64(inside) < mostOf*float64(all) {
				continue
			}
			for k := range t.Devices {
				if d := &t.Devices[k]; d.RankIndex == rank {
					d.step, d.rounds = words.Clean(c.nameOf(list[i].key)), c.placeRounds(rank, rounds[d.Device])
				}
			}
			break
		}
	}
}

// placeRounds puts steps on the reference clock. It drops those that launched nothing, and those not
// entirely inside the requested window.
func (c *Collector) placeRounds(rank int32, rounds []round) (list []round) {
	ahead := trace.Time(c.set.ClockOffsetOf(rank))
	slices.SortStableFunc(rounds, func(a, b round) int { return cmp.Compare(a.first, b.first) })
	for _, r := range rounds {
		if r.last != 0 && r.first >= c.opt.From && (c.opt.To == 0 || r.last <= c.opt.To) {
			list = append(list, round{r.first - ahead, r.last - ahead, r.busy, r.kernels})
		}
	}
	return list
}

// keyOf returns the key of an annotation; step marks the numbered ones of PyTorch's profiler.
func keyOf(r *profile.Range, step bool) rangeKey {
	if step {
		return rangeKey{r.Rank, r.PID, r.TID, 0, true}
	}
	return rangeKey{r.Rank, r.PID, r.TID, r.Name, false}
}

// Ranges returns a function that counts the annotations of a stream.
func (c *Collector) Ranges(stream int) func(r *profile.Range, step bool) {
	tallies := map[rangeKey]*tally{}
	c.tallies[stream] = tallies
	return func(r *profile.Range, step bool) {
		key := keyOf(r, step)
		of := tallies[key]
		if of == nil {
			if len(tallies) == maxNames {
				return
			}
			of = &tally{first: r.Start, last: r.End}
			tallies[key] = of
		}
		of.join(&tally{1, r.Start, r.End, r.Dur()})
	}
}

// join adds the annotations of o.
func (t *tally) join(o *tally) {
	t.n, t.total = t.n+o.n, distribution.AddTimes(t.total, o.total)
	t.first, t.last = min(t.first, o.first), max(t.last, o.last)
}

// candidates returns the annotations that may mark steps of some ranks, the preferred ones first.
func (c *Collector) candidates(of map[int32]bool) map[int32][]candidate {
	tallies := map[rangeKey]*tally{}
	for _, stream := range c.tallies {
		for key, t := range stream {
			if all := tallies[key]; all != nil {
				all.join(t)
			} else if of[key.rank] {
				tallies[key] = t
			}
		}
	}
	c.tallies = nil
	list := map[int32][]candidate{}
	for key, of := range tallies {
		// Annotations that overlap add up to more than the time that they span.
		if of.n >= fewestSteps && of.n <= maxRounds && of.total <= int64(of.last-of.first) {
			list[key.rank] = append(list[key.rank], candidate{key: key})
		}
	}
	at := map[rangeKey]*candidate{}
	for rank, all := range list {
		last := func(a, b rangeKey) int {
			return cmp.Or(cmp.Compare(a.tid, b.tid), strings.Compare(c.nameOf(a), c.nameOf(b)))
		}
		slices.SortFunc(all, func(a, b candidate) int {
			return cmp.Or(cmp.Compare(tallies[b.key].total, tallies[a.key].total), last(a.key, b.key))
		})
		all = all[:min(len(all), maxCandidates)]
		slices.SortStableFunc(all, func(a, b candidate) int { return cmp.Compare(tallies[a.key].n, tallies[b.key].n) })
		for i := range all {
			at[all[i].key] = &all[i]
		}
		list[rank] = all
	}
	if len(at) == 0 {
		return nil
	}
	names := profilewalk.StepNames(c.set.Syms)
	for _, st := range c.set.Streams {
		st.Ranges(func(r *profile.Range) bool {
			if len(list[r.Rank]) == 0 || r.Open {
				return true
			}
			if of := at[keyOf(r, names.Of(r.Name) != nil)]; of != nil {
				of.spans = append(of.spans, request.Interval{From: r.Start, To: r.End})
			}
			return true
		})
	}
	for _, of := range at {
		slices.SortFunc(of.spans, func(a, b request.Interval) int { return cmp.Compare(a.From, b.From) })
	}
	return list
}

// rounds returns what each step launched, by device, and the total time of that, ns.
func (c *candidate) rounds(work map[int32][]launched) (rounds map[int32][]round, inside int64) {
	rounds = map[int32][]round{}
	for device, list := range work {
		of, near := make([]round, len(c.spans)), 0
		for i := range list {
			x := &list[i]
			if !c.within(near, x.launch) {
				near = sort.Search(len(c.spans), func(i int) bool { return c.spans[i].From > x.launch }) - 1
			}
			if near = max(0, near); c.within(near, x.launch) {
				of[near].add(x)
				inside = distribution.AddTimes(inside, int64(x.end-x.start))
			}
		}
		rounds[device] = of
	}
	return rounds, inside
}

// within reports whether a step is under way on the host at a time.
func (c *candidate) within(step int, at trace.Time) bool {
	return c.spans[step].From <= at && at < c.spans[step].To
}

// A launched is a kernel or copy: when it was launched, and when it ran.
type launched struct {
	launch, start, end trace.Time
	kernel             trace.Sym
}

// A roundWalk reads kernels and copies of some ranks in one stream, with their launches.
type roundWalk struct {
	ranks profilewalk.PerRank[roundRank]
}

type roundRank struct {
	launches profilewalk.Launches
	work     map[int32][]launched // by device
	time     int64                // ns, including work whose launch is unknown
}

func (w *roundWalk) run(stream profile.Stream, of map[int32][]candidate) {
	for rank := range of {
		w.ranks.At(rank).work = map[int32][]launched{}
	}
	join := profilewalk.Joiner{Copies: true, Call: w.addCall, Work: w.addKernel, Orphan: w.addOrphan}
	join.Run(stream, &profilewalk.Options{})
	for _, rank := range w.ranks.All() {
		rank.launches = profilewalk.Launches{}
	}
}

func (w *roundWalk) addCall(c *profile.Call) {
	if rank := w.ranks.Find(c.Rank); rank != nil {
		rank.launches.Add(c)
	}
}

// addKernel takes a kernel or copy, unless its launch is not known yet.
func (w *roundWalk) addKernel(k *profile.Kernel) bool {
	rank := w.ranks.Find(k.Rank)
	if rank == nil {
		return true
	}
	if k.Correlation == 0 {
		return false
	}
	l := rank.launches.Find(k.Correlation)
	if l == nil {
		return false
	}
	rank.time = distribution.AddTimes(rank.time, k.Dur())
	rank.work[k.Device] = append(rank.work[k.Device], launched{l.Start, k.Start, k.Start + trace.Time(k.Dur()), k.Name})
	return true
}

func (w *roundWalk) addOrphan(k *profile.Kernel) {
	if rank := w.ranks.Find(k.Rank); rank != nil {
		rank.time = distribution.AddTimes(rank.time, k.Dur())
	}
}

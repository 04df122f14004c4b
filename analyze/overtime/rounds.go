package overtime

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/metric"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/walk"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/changepoint"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// Programs that are no servers name their steps as they like: "train_step", "decode_step". An annotation is one of
// steps if a thread makes it again and again for nearly all of what was recorded. Of several, which lie in each other, it is
// the one with the fewest.
const (
	fewestRounds = 2 * fewest
	mostOf       = 0.8 // of what was recorded of the rank
	maxNames     = 10_000
)

// A rangeKey is annotations of one name on a thread of a rank. Those of PyTorch's profiler differ by number, and are one.
type rangeKey struct {
	rank, pid int32
	tid       int64
	name      trace.Sym
}

// A tally is how often, from when to when, and how long they were made, ns.
type tally struct {
	n           int
	first, last trace.Time
	total       int64
}

// addRounds adds the steps of ranks that are no servers.
func (c *Collector) addRounds(t *Timeline) {
	unknown := map[int32]bool{} // ranks
	for i := range t.Devices {
		if d := &t.Devices[i]; !d.Stepped {
			unknown[d.RankIndex] = true
		}
	}
	tallies := map[rangeKey]*tally{}
	c.eachRange(unknown, func(key rangeKey, r *profile.Range) {
		of := tallies[key]
		if of == nil {
			if len(tallies) == maxNames {
				return
			}
			of = &tally{first: r.Start, last: r.End}
			tallies[key] = of
		}
		of.n++
		of.total = distribution.AddTimes(of.total, r.Dur())
		of.first, of.last = min(of.first, r.Start), max(of.last, r.End)
	})
	chosen, cells, with := c.chooseRounds(tallies), map[int32][]Cell{}, map[int32]bool{}
	for rank := range chosen {
		with[rank], cells[rank] = true, make([]Cell, c.grid.N())
	}
	c.eachRange(with, func(key rangeKey, r *profile.Range) {
		if chosen[key.rank] == key {
			from, to := c.place(key.rank, r.Start, r.End)
			c.grid.Each(from, to, func(b int, length int64) { cells[key.rank][b].rounds += distribution.Fraction(length, r.Dur()) })
		}
	})
	for i := range t.Devices {
		d := &t.Devices[i]
		for b := range cells[d.RankIndex] {
			d.fine[b].add(&cells[d.RankIndex][b])
		}
		if key, ok := chosen[d.RankIndex]; ok {
			d.step = words.Clean(c.set.Syms.Name(key.name))
		}
	}
}

// eachRange calls yield with each annotation of some ranks that was closed.
func (c *Collector) eachRange(of map[int32]bool, yield func(rangeKey, *profile.Range)) {
	if len(of) == 0 {
		return
	}
	names, numbered := walk.StepNames{Syms: c.set.Syms}, c.set.Syms.Intern("ProfilerStep")
	for _, st := range c.set.Streams {
		st.Ranges(func(r *profile.Range) bool {
			if of[r.Rank] && !r.Open {
				key := rangeKey{r.Rank, r.PID, r.TID, r.Name}
				if names.Of(r.Name) != nil {
					key.name = numbered
				}
				yield(key, r)
			}
			return true
		})
	}
}

// chooseRounds returns the annotations of steps by rank.
func (c *Collector) chooseRounds(tallies map[rangeKey]*tally) map[int32]rangeKey {
	chosen := map[int32]rangeKey{}
	for key, of := range tallies {
		recorded := int64(0)
		for _, n := range c.recorded[key.rank] {
			recorded += n
		}
		// Those that overlap take longer than the time that they are in.
		if of.n < fewestRounds || float64(of.total) < mostOf*float64(recorded) || of.total > int64(of.last-of.first) {
			continue
		}
		before, ok := chosen[key.rank]
		if !ok || cmp.Or(cmp.Compare(of.n, tallies[before].n), cmp.Compare(tallies[before].total, of.total), cmp.Compare(key.tid, before.tid),
			strings.Compare(c.set.Syms.Name(key.name), c.set.Syms.Name(before.name))) < 0 {
			chosen[key.rank] = key
		}
	}
	return chosen
}

// roundsOf is how many steps there are in what changes are looked for in: kernels of a step may run a little later.
const roundsOf = 2

// ofSteps returns how long a device is busy for each step, in runs of buckets with some steps in each.
func (t *Timeline) ofSteps(d *Device) series {
	s := series{place: t.Name(d), rank: d.RankIndex}
	all, whole := Cell{}, 0
	for b := range d.fine {
		if d.fine[b].Recorded == t.fine.Bucket {
			all.add(&d.fine[b])
			whole++
		}
	}
	if d.step == "" || all.rounds == 0 {
		return s
	}
	s.metric = &observed{perStep: true, metric: &metric.Metric{Long: "GPU time per " + d.step, Unit: table.Duration, Better: metric.Less}}
	size := max(1, int(math.Ceil(roundsOf*float64(whole)/all.rounds)))
	for b := 0; b+size <= len(d.fine); b += size {
		var part Cell
		for i := range size {
			part.add(&d.fine[b+i])
		}
		if part.Recorded == int64(size)*t.fine.Bucket && part.rounds >= roundsOf/2 {
			s.buckets, s.values = append(s.buckets, b), append(s.values, float64(part.Busy)/part.rounds)
		}
	}
	s.size = size
	return s
}

// gradual returns how long steps take bit by bit more or less, from the beginning or from some time on. Its numbers are of the first
// and the last tenth of that.
func (t *Timeline) gradual(s *series, level float64) (c Change, ok bool) {
	list := make([]changepoint.Observation, len(s.values))
	for i, v := range s.values {
		list[i] = changepoint.Observation{From: float64(i), To: float64(i + 1), Value: v, Weight: 1}
	}
	x, _ := changepoint.Courses([][]changepoint.Observation{list})
	from := 0
	switch {
	case x.P > level || x.Shape != changepoint.Ramped && x.Shape != changepoint.Bent:
		return c, false
	case x.Shape == changepoint.Bent:
		from = int(x.At)
	}
	n := len(s.values)
	c = Change{What: s.metric.metric.Long, Where: []string{s.place}, ranks: []int32{s.rank}, metric: s.metric, gradual: true, P: min(1, x.P*alpha/level),
		Time: t.fine.Start(s.buckets[from]), First: t.fine.Start(s.buckets[max(from, int(x.First))]), Last: t.fine.Start(s.buckets[max(from, int(x.Last))]),
		Before: x.Level + x.Of(float64(from), float64(from+1)), After: x.Level + x.Of(float64(n-1), float64(n))}
	middle := (from + n) / 2
	before, after := t.whole(s, from, middle), t.whole(s, middle, n)
	t.compareWork(&c, before, after)
	// What it costs is half of the last difference, for all of the time.
	c.lost = t.lost(&c, after)
	c.lasts = float64(n-from) >= minLasting*float64(n) && t.isLong(&c, before) && t.isLong(&c, after)
	c.middle = t.fine.Start(s.buckets[middle])
	return c, s.metric.matters(c.Before, c.After)
}

// A kernelShare is how long kernels of a name run for each step before and after a change, ns, and how many there are.
type kernelShare struct {
	name          trace.Sym
	before, after float64
	n, later      float64
}

// addKernels says which kernels changes of steps are of, and whether there are as many: if not, there is more or less to do, or the host
// ran ahead of the device until its queue was full, so that annotations came faster than kernels.
func (c *Collector) addKernels(t *Timeline) {
	for i := range t.Changes {
		x := &t.Changes[i]
		if !x.metric.perStep {
			continue
		}
		rank, shares := x.ranks[0], map[trace.Sym]*kernelShare{}
		var all kernelShare
		for _, st := range c.set.Streams {
			st.Kernels(func(k *profile.Kernel) bool {
				from, _ := c.place(rank, k.Start, k.End)
				if k.Rank != rank || from < x.from || from >= x.to {
					return true
				}
				s := shares[k.Name]
				if s == nil {
					s = &kernelShare{name: k.Name}
					shares[k.Name] = s
				}
				for _, s := range []*kernelShare{s, &all} {
					if from < x.middle {
						s.before, s.n = s.before+float64(k.Dur())/x.rounds[0], s.n+1/x.rounds[0]
					} else {
						s.after, s.later = s.after+float64(k.Dur())/x.rounds[1], s.later+1/x.rounds[1]
					}
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
		for _, s := range list[:min(2, len(list))] {
			x.kernels = append(x.kernels, fmt.Sprintf("%s: %s per step %s, and %s %s", words.Clean(c.set.Syms.Name(s.name)), nearly(s.before), before, nearly(s.after), after))
		}
	}
}

// halves are what numbers of a change are compared of.
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

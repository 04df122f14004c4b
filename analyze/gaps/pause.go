package gaps

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/gpu"
	"github.com/sgtrace/sgtrace/analyze/host"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/changepoint"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/trace"
)

// A host that launches kernels one by one is late by about the same time before each: that is its
// cadence, and half of its delays are less than the median. In a pause it begins and ends nothing for
// far longer.
const (
	farLonger = 20        // times the median delay
	fewPauses = 1.0 / 4   // of all gaps: more are just how the host works
	leastGaps = 20        // gaps needed to know the cadence
	never     = 1<<63 - 1 // ns
)

// pauseFrom returns the ns from which on it is a pause if a thread begins and ends nothing while the
// device waits for it; never if the gaps show no cadence.
func (d *deviceGaps) pauseFrom() int64 {
	var late []int64
	for i := range d.late {
		if ns := d.lateBy(i); ns > 0 {
			late = append(late, ns)
		}
	}
	if len(late) < leastGaps {
		return never
	}
	from := max(farLonger*distribution.LowerMedian(late), waitsForOthers)
	long := order.Count(late, func(ns int64) bool { return ns >= from })
	if float64(long) > fewPauses*float64(len(late)) {
		return never
	}
	return from
}

// lateBy returns how much of a late gap, in ns, passed before the host began to launch, and is not
// explained by anything that it waited for.
func (d *deviceGaps) lateBy(i int) (ns int64) {
	g := &d.late[i]
	from := g.Gap.From
	for _, p := range d.partsOf(i) {
		if ownWork(p.reason) && from < g.launch {
			ns = distribution.AddTimes(ns, distribution.Between(from, min(p.to, g.launch)))
		}
		from = p.to
	}
	return ns
}

// ownWork reports whether a reason means that the host is late because of what it does itself.
func ownWork(r gpu.Reason) bool { return r == gpu.HostWork || r == gpu.AfterSync }

// mayPause reports whether a thread that stands still is pausing: it is in nothing that was recorded,
// or in something that says where it is, but not why it stays there. A Python function may be at work
// all the time, and is reported by its name.
func (c *cause) mayPause() bool { return c.standsStill() && c.at.did != host.InPython }

// standsStill reports whether nothing explains why the thread does not move on.
func (c *cause) standsStill() bool { return ownWork(c.reason) && silent(c.at.did) }

// silent reports whether an activity does not explain why a thread does not move on.
func silent(did host.Activity) bool {
	switch did {
	case host.NotRecorded, host.InRange, host.InPython, host.InOperator:
		return true
	}
	return false
}

// A pause is time in a gap of a device in which the thread that launched next began and ended
// nothing.
type pause struct {
	rank, device int32
	gap          trace.Time // when the gap began
	at           trace.Time // the same on the reference clock
	ns           int64
	in           trace.Sym // the function of Python that the thread was in; 0 is none
}

// joinPauses merges the pauses of all ranks, in order: one for each gap.
func (c *Collector) joinPauses(ranks []rankWork, of func(*rankWork) []pause) []pause {
	var all []pause
	for i := range ranks {
		for _, p := range of(&ranks[i]) {
			p.rank, p.device = int32(i), c.ranks[i][p.device].device
			p.at = p.gap - trace.Time(c.set.ClockOffsetOf(p.rank))
			all = append(all, p)
		}
	}
	slices.SortFunc(all, func(a, b pause) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.device, b.device), cmp.Compare(a.gap, b.gap), cmp.Compare(a.ns, b.ns))
	})
	joined := all[:0]
	for _, p := range all {
		if n := len(joined); n > 0 && joined[n-1].rank == p.rank && joined[n-1].device == p.device && joined[n-1].gap == p.gap {
			joined[n-1].ns = distribution.AddTimes(joined[n-1].ns, p.ns)
			continue
		}
		joined = append(joined, p)
	}
	return joined
}

// maxRanges is how many ranges of a name are kept per rank. If there are more, reports do not say in
// which of them hosts pause.
const maxRanges = 1 << 16

// rangeStarts are when ranges began, by name, at most maxRanges of each.
type rangeStarts struct {
	at    order.Paged[[]trace.Time]
	names []trace.Sym // that have any
}

func (s *rangeStarts) add(name trace.Sym, starts ...trace.Time) {
	of := s.at.At(int64(name))
	if *of == nil {
		s.names = append(s.names, name)
	}
	*of = append(*of, starts[:min(len(starts), maxRanges-len(*of))]...)
}

// A rangeOf identifies the ranges of a name on a rank; steps of a kind share one.
type rangeOf struct {
	rank int32
	name string
}

// rangesOf returns when the ranges of all ranks began.
func (c *Collector) rangesOf(ranks []rankWork) map[rangeOf][]trace.Time {
	all, names := map[rangeOf][]trace.Time{}, host.NewNames(c.set.Syms)
	for i := range ranks {
		ranges := &ranks[i].host.ranges
		for _, name := range ranges.names {
			of := rangeOf{int32(i), names.Text(host.RangeFrame, name)}
			all[of] = append(all[of], *ranges.at.At(int64(name))...)
		}
	}
	for _, starts := range all {
		slices.Sort(starts)
	}
	return all
}

// Paused returns for how long a device waited for a host that paused, in ns.
func (g *Gaps) Paused(rank, device int32) (ns int64) {
	for i := range g.pauses {
		if p := &g.pauses[i]; p.rank == rank && p.device == device {
			ns = distribution.AddTimes(ns, p.ns)
		}
	}
	return ns
}

// pausing is the suspect that the host pauses. Its time is 0 if it does not.
func (g *Gaps) pausing() suspect {
	s := suspect{rank: pauses, table: "gaps"}
	for i := range g.Causes {
		if c := &g.Causes[i]; c.Pause && c.counts() {
			s.time = distribution.AddTimes(s.time, c.Time)
			s.rows = append(s.rows, c)
		}
	}
	if len(g.pauses) == 0 || s.rows == nil {
		return suspect{}
	}
	s.text = fmt.Sprintf("is %s%s%s in which the launching thread recorded nothing: %s", words.Counted(len(g.pauses), "pause"), g.pauseRank(), g.pausePlace(s.rows[0]), g.pauseWords(g.pauses))
	return s
}

// pauseRank names the only one of several ranks that pauses: " of rank 2".
func (g *Gaps) pauseRank() string {
	first := g.pauses[0].rank
	if !g.several || slices.ContainsFunc(g.pauses, func(p pause) bool { return p.rank != first }) {
		return ""
	}
	return " of " + g.ranks[first]
}

// pausePlace says where most of the time of pauses is: " in decode_step", ", about one in each
// decode_step,", or ", one in every 10th decode_step,".
func (g *Gaps) pausePlace(c *Cause) string {
	where := c.Where()
	if c.Activity == host.InRange {
		switch every := g.pauseSteps(c.Range); {
		case every == 1:
			return ", about one in each " + where + ","
		case every > 1:
			return fmt.Sprintf(", one in every %d%s %s,", every, ordinal(every), where)
		}
	}
	switch {
	case where == "":
		return ""
	case strings.HasPrefix(where, "in "):
		return " " + where
	}
	return " in " + where
}

// pauseSteps returns n if hosts pause in every nth range of a name, and 0 if the intervals differ or
// there are few pauses. It is 1 if there are about as many pauses as ranges.
func (g *Gaps) pauseSteps(name string) (every int) {
	pauses, ranges := 0, 0
	for from, to := 0, 0; from < len(g.pauses); from = to {
		rank := g.pauses[from].rank
		for to = from; to < len(g.pauses) && g.pauses[to].rank == rank; to++ {
		}
		starts := g.ranges[rangeOf{rank, name}]
		if to-from < 3 || len(starts) >= maxRanges {
			return 0
		}
		pauses, ranges = pauses+to-from, ranges+len(starts)
		last := -1
		for i, p := range g.pauses[from:to] {
			at, _ := slices.BinarySearch(starts, p.gap+1)
			switch apart := at - last; {
			case i == 0:
			case every == 0 || every == apart:
				every = apart
			default:
				every = -1 // they differ
			}
			last = at
		}
	}
	const about = 0.2
	if part := distribution.Ratio(float64(pauses), float64(ranges)); part > 1-about && part < 1+about {
		return 1
	}
	return max(0, every)
}

// ordinal returns the ending of an ordinal number: "10th".
func ordinal(n int) string {
	switch {
	case n%100 >= 11 && n%100 <= 13:
	case n%10 == 1:
		return "st"
	case n%10 == 2:
		return "nd"
	case n%10 == 3:
		return "rd"
	}
	return "th"
}

// pauseWords says how long pauses are: "2.09 s at 16:39:42.708, the others at most 64.5 ms".
func (g *Gaps) pauseWords(of []pause) string {
	list := slices.Clone(of)
	slices.SortStableFunc(list, func(a, b pause) int { return cmp.Compare(b.ns, a.ns) })
	n, longest, total := len(list), &list[0], int64(0)
	for i := range list {
		total = distribution.AddTimes(total, list[i].ns)
	}
	switch {
	case n == 1:
		return longest.words(g)
	case 2*longest.ns > total || longest.ns > 3*list[1].ns:
		return fmt.Sprintf("%s, the others at most %s", longest.words(g), words.Nearly(list[1].ns))
	}
	text := words.Nearly(list[n/2].ns) + " each"
	if list[n-1].ns*10 < longest.ns*9 {
		text = fmt.Sprintf("median %s, longest %s", words.Nearly(list[n/2].ns), words.Nearly(longest.ns))
	}
	if every := pauseEvery(of); every > 0 {
		text += ", one every " + words.Nearly(every)
	}
	return text
}

// words says how long a pause is, and when: "2.09 s at 16:39:42.708".
func (p *pause) words(g *Gaps) string {
	text := words.Nearly(p.ns)
	if p.gap > gpu.Absolute {
		text += " at " + words.At(p.gap, words.ClockLayout)
	}
	if g.several && p.rank != nobody {
		text += " on " + g.ranks[p.rank]
	}
	return text
}

// manyPauses is how many pauses are too many to list with their times.
const manyPauses = 5

// pauseEvery returns how far apart pauses of the first device begin, in ns, where they come
// at equal intervals; 0 if not.
func pauseEvery(list []pause) int64 {
	first := &list[0]
	var times []float64
	for i := range list {
		if p := &list[i]; p.rank == first.rank && p.device == first.device {
			times = append(times, float64(distribution.Between(first.gap, p.gap)))
		}
	}
	const sure = 0.01
	period, chance := changepoint.Periodic(times)
	if chance > sure {
		return 0
	}
	return int64(period)
}

// pauseEvidence says when pauses began if the finding is about a few of them, and mentions the pauses
// if it is about something else.
func (g *Gaps) pauseEvidence(told *suspect, wait int64) finding.Evidence {
	s := g.pausing()
	switch {
	case s.time == 0:
	case told.rank == pauses:
		return beginAt(g.pauses)
	case told.rank == standstill:
		stops, _, _ := g.stops()
		return beginAt(stops)
	case distribution.Fraction(s.time, wait) >= muchOfLate:
		return finding.Sentence("%.0f %% of the wait for the host %s", 100*distribution.Fraction(s.time, wait), s.text)
	}
	return finding.Evidence{}
}

// beginAt says when pauses begin, if there are few.
func beginAt(pauses []pause) finding.Evidence {
	n := len(pauses)
	if n < 2 || n >= manyPauses || pauses[0].gap <= gpu.Absolute {
		return finding.Evidence{}
	}
	list := order.EachRow(pauses, func(p *pause) string { return words.At(p.gap, words.ClockLayout) })
	return finding.Sentence("pauses begin at %s", strings.Join(list, ", "))
}

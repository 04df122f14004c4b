package gpu

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// farApart is the pause between recordings, in ns, from which on they are different runs: profilers
// that are restarted for one incident are not that slow.
const farApart = int64(time.Hour)

// runs groups recordings: those of a run are less than farApart from each other.
func (r recordings) runs() []request.Interval {
	var out []request.Interval
	for _, span := range request.Union(r) {
		if last := len(out) - 1; last >= 0 && distribution.Between(out[last].To, span.From) < farApart {
			out[last].To = span.To
			continue
		}
		out = append(out, span)
	}
	return out
}

// divide makes a part of g for each run, with the devices that worked in it. Runs that
// recorded the same rank stay together: a rank has one account of its time.
func (g *GPUs) divide(set *profile.Set, walks []*gpuWalk, ranks []rankWork) {
	groups := groupRuns(g.Runs, ranks)
	if len(groups) < 2 {
		return
	}
	for _, runs := range groups {
		in := func(r recordings) bool { return slices.ContainsFunc(runs, r.beginIn) }
		of := func(rank int32) bool { return in(ranks[rank].aligned) }
		part := &GPUs{Runs: runs, classes: g.classes, Recorded: g.Recorded, GraphCapture: g.GraphCapture, several: g.several, perSecond: g.perSecond}
		part.GPUs = order.OnlyRows(g.GPUs, func(d *GPU) bool { return of(d.RankIndex) })
		part.Steps = order.OnlyRows(g.Steps, func(t *StepTime) bool { return of(t.rankIndex) })
		part.Cuts = order.OnlyRows(g.Cuts, func(c *Cut) bool {
			return order.CountRows(part.GPUs, func(d *GPU) bool { return d.Rank == c.Rank }) > 0
		})
		part.Graphs = order.OnlyRows(g.Graphs, func(u *GraphUse) bool { return of(u.rankIndex) })
		var own []*gpuWalk
		for i, w := range walks {
			if in(w.recorded(set)) {
				own, part.Files = append(own, w), append(part.Files, set.Files[min(i, len(set.Files)):min(i+1, len(set.Files))]...)
			}
		}
		part.Calls = sumCalls(own)
		if len(part.GPUs) > 0 {
			g.Parts = append(g.Parts, part)
		}
	}
}

// groupRuns puts runs together that recorded the same rank. Groups are in the order of their
// first runs.
func groupRuns(runs []request.Interval, ranks []rankWork) [][]request.Interval {
	group := make([]int, len(runs)) // of each run: the first run of its group
	for i := range group {
		group[i] = i
	}
	for i := range ranks {
		first := -1
		for k, run := range runs {
			if !slices.ContainsFunc(ranks[i].aligned, func(span request.Interval) bool { return isOf(span, run) }) {
				continue
			}
			if first < 0 {
				first = group[k]
			}
			to, from := min(first, group[k]), max(first, group[k])
			for j := range group {
				if group[j] == from {
					group[j] = to
				}
			}
			first = to
		}
	}
	var out [][]request.Interval
	for i := range runs {
		var members []request.Interval
		for k := range runs {
			if group[k] == i {
				members = append(members, runs[k])
			}
		}
		if members != nil {
			out = append(out, members)
		}
	}
	return out
}

// beginIn reports whether the first recording belongs to a run.
func (r recordings) beginIn(run request.Interval) bool { return len(r) > 0 && isOf(r[0], run) }

// isOf reports whether a recording belongs to a run.
func isOf(span request.Interval, run request.Interval) bool {
	return run.From <= span.From && span.From <= run.To
}

// recorded returns when the stream was recorded, over all ranks, on the reference clock.
func (w *gpuWalk) recorded(set *profile.Set) recordings {
	var all recordings
	for i, r := range w.ranks.All() {
		all = append(all, r.recorded.onReference(set, int32(i))...)
	}
	return request.Union(all)
}

// Divided reports whether there are several runs, of different ranks.
func (g *GPUs) Divided() bool { return len(g.Parts) > 1 }

// EachRun searches each run separately: the GPUs of a run at a desk say nothing about those of a server
// on another day. find returns costs as shares of the GPU time that it was given; EachRun returns them
// as shares of all GPU time.
func (g *GPUs) EachRun(find func(*GPUs) ([]finding.Finding, finding.Check)) (found []finding.Finding, check finding.Check) {
	if !g.Divided() {
		return find(g)
	}
	_, check = find(g)
	for _, part := range g.Parts {
		of, _ := find(part)
		for _, f := range of {
			when := part.when()
			f.Text = "in " + when + ", " + f.Text
			f.Metric.Name += " in " + when
			f.Since, f.Until = part.Runs[0].From, part.Runs[len(part.Runs)-1].To
			f.Cost *= distribution.Fraction(part.Length(), g.Length())
			found = append(found, f)
		}
	}
	return found, check
}

// A rankEnd is when the recordings of a rank with devices began and ended, on the reference clock.
type rankEnd struct {
	rank     string
	from, to trace.Time
}

// muchShorter is the share of the median recording by which a rank must end earlier to be reported.
const muchShorter = 0.2

// EndEarly returns the ranks whose recordings end long before those of most others, when the first of
// them ends, and how many ns before the median at most. It returns none if there are several runs.
func (g *GPUs) EndEarly() (ranks []string, first trace.Time, before int64) {
	if len(g.ends) < 3 || len(g.Runs) > 1 {
		return nil, 0, 0
	}
	ends := slices.SortedFunc(slices.Values(g.ends), func(a, b rankEnd) int { return cmp.Compare(a.to, b.to) })
	usual := ends[len(ends)/2]
	limit := int64(muchShorter * float64(distribution.Between(usual.from, usual.to)))
	for _, e := range ends[:len(ends)/2] {
		if early := distribution.Between(e.to, usual.to); early > limit && e.to > usual.from {
			ranks = append(ranks, e.rank)
			before = max(before, early)
		}
	}
	return ranks, ends[0].to, before
}

// Absolute is the first time that counts from 1970, and not from the start of a recording: 2001.
const Absolute = trace.Time(1e18)

// when says when the runs began: "the run of 2023-09-06 22:39:28".
func (g *GPUs) when() string {
	first := g.Runs[0].From
	text := "of " + words.At(first, time.DateTime)
	if first < Absolute {
		text = "that begins at " + words.Nearly(int64(first)) + " of its own clock"
	}
	if n := len(g.Runs); n > 1 {
		return fmt.Sprintf("%d runs of the same ranks, the first %s", n, text)
	}
	return "the run " + text
}

// recordings are the times in which a rank was recorded: one for each input, until request.Union joins them. A
// profiler that was started twice, or once for each stage, leaves several, and nothing tells what
// happened between them.
type recordings []request.Interval

// widen extends the only recording.
func (r *recordings) widen(from, to trace.Time) {
	if len(*r) == 0 {
		*r = append(*r, request.Interval{From: from, To: to})
		return
	}
	span := &(*r)[0]
	span.From, span.To = min(span.From, from), max(span.To, to)
}

// onReference returns the recordings of a rank on the reference clock. Those on a clock that does not
// count from 1970 stay as they are: nobody knows when it began.
func (r recordings) onReference(set *profile.Set, rank int32) recordings {
	ahead, out := trace.Time(set.ClockOffsetOf(rank)), slices.Clone(r)
	for i := range out {
		if out[i].From >= Absolute {
			out[i].From, out[i].To = out[i].From-ahead, out[i].To-ahead
		}
	}
	return out
}

// length returns how long all of them lasted, in ns.
func (r recordings) length() int64 {
	return distribution.SumTimes(order.Each(r, func(span request.Interval) int64 { return distribution.Between(span.From, span.To) }))
}

// end reports whether a recording ends at from or later, and the next one begins at to or earlier.
func (r recordings) end(from, to trace.Time) bool {
	i, _ := slices.BinarySearchFunc(r, from, func(span request.Interval, at trace.Time) int { return cmp.Compare(span.To, at) })
	return i+1 < len(r) && r[i+1].From <= to
}

package gaps

import (
	"cmp"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/host"
	"github.com/sgtrace/sgtrace/trace"
)

// A Window is a time on a rank, by the clock of its host; 0 is open.
type Window struct {
	Rank     int32
	From, To trace.Time
}

// Moved is the window on a clock that is ahead by so many ns.
func (w Window) Moved(ahead int64) Window {
	for _, t := range [...]*trace.Time{&w.From, &w.To} {
		if *t != 0 {
			*t += trace.Time(ahead)
		}
	}
	return w
}

// A Late is how long a rank's devices waited for the host in a window, and what the host did.
type Late struct {
	Time   int64  // ns
	Causes []Work // the longest time first
}

// A Work is a place in the code of a host, and how long devices waited while the host was there.
type Work struct {
	Where string // "" if it is not known
	Time  int64  // ns
}

// Late tells of each window how long devices waited for late launches, in the gaps that began in
// it, and where their hosts were. It reads what hosts did once more.
func (c *Collector) Late(windows []Window) []Late {
	byRank := make([][]int, len(c.ranks)) // windows
	for i, w := range windows {
		byRank[w.Rank] = append(byRank[w.Rank], i)
	}
	sums := make([]map[string]int64, len(windows)) // by place; only its own rank touches one
	for i := range sums {
		sums[i] = map[string]int64{}
	}
	c.Measure(Options{Brief: true, Each: func(rank int32, cause *Cause, gap trace.Time, ns int64) {
		for _, i := range byRank[rank] {
			if w := &windows[i]; (w.From == 0 || gap >= w.From) && (w.To == 0 || gap < w.To) {
				where := ""
				if cause.Did != host.OnDevice {
					where = cause.Where()
				}
				sums[i][where] = distribution.AddTimes(sums[i][where], ns)
			}
		}
	}})
	out := make([]Late, len(windows))
	for i, sum := range sums {
		out[i].Causes = listed(sum)
		for _, w := range out[i].Causes {
			out[i].Time = distribution.AddTimes(out[i].Time, w.Time)
		}
	}
	return out
}

// Busiest are the places where hosts were while devices waited for late launches, over all ranks.
func (g *Gaps) Busiest() []Work {
	sums := map[string]int64{}
	for i := range g.Causes {
		if c := &g.Causes[i]; c.Did != host.OnDevice && c.Where() != "" {
			sums[c.Where()] = distribution.AddTimes(sums[c.Where()], c.Time)
		}
	}
	return listed(sums)
}

// Sum joins the times at the same places.
func Sum(list []Work) []Work {
	sums := map[string]int64{}
	for _, w := range list {
		sums[w.Where] = distribution.AddTimes(sums[w.Where], w.Time)
	}
	return listed(sums)
}

// listed puts the longest time first.
func listed(sums map[string]int64) (list []Work) {
	for where, ns := range sums {
		list = append(list, Work{where, ns})
	}
	slices.SortFunc(list, func(a, b Work) int { return cmp.Or(cmp.Compare(b.Time, a.Time), strings.Compare(a.Where, b.Where)) })
	return list
}

package whatif

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/replay"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/changepoint"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// whyOff says why a replay is far from what was recorded, and about which time it can be asked.
func (r *Run) whyOff() string {
	if at := r.replacedAt(); at != 0 {
		return fmt.Sprintf("servers were restarted, first at %s, and may have other settings since then, which the replay takes to be the same all the time; ask about the time before with --to, or after with --from", words.At(at, time.TimeOnly))
	}
	at := r.otherwiseSince()
	if n, first := r.endless(); 10*n > len(r.recorded) {
		if at != 0 {
			first = min(first, at)
		}
		return fmt.Sprintf("%d requests have no end in the dump, and what servers computed for them is not known; ask about the time before %s with --to", n, words.At(first, time.TimeOnly))
	}
	if at == 0 {
		return "the servers work in a way that the replay does not know"
	}
	return fmt.Sprintf("by how much requests are changes at about %s: servers may have other settings since then, which the replay takes to be the same all the time; ask about the time before with --to", words.At(at, time.TimeOnly))
}

// endless returns how many requests have neither an end nor failed, and when the first of the last tenth of these came: others came earlier, and never
// end for reasons of their own.
func (r *Run) endless() (n int, first trace.Time) {
	var starts []trace.Time
	for i := range r.set.AllRequests() {
		if q := &r.set.Requests[i]; q.Metrics.E2E < 0 && q.Status != request.Failed && q.Status != request.Aborted {
			starts = append(starts, q.Start)
		}
	}
	if len(starts) == 0 {
		return 0, 0
	}
	slices.Sort(starts)
	return len(starts), starts[len(starts)/10]
}

// otherwiseSince returns since when the replay of requests is off by far more, or far less; 0 if it is off as much all the time.
func (r *Run) otherwiseSince() (at trace.Time) {
	const clearly = 2
	const surely = 0.001
	type pair struct {
		at  trace.Time
		off float64
	}
	var list []pair
	for i := range r.base[0] {
		is, played := &r.recorded[i], &r.base[0][i]
		off := 0.0
		for _, of := range [...]func(*replay.Latency) int64{replay.E2E, replay.TTFT} {
			if x, y := of(is), of(played); x > 0 && y > 0 && max(x-y, y-x) > minOff {
				off = max(off, math.Abs(math.Log(float64(y)/float64(x))))
			}
		}
		list = append(list, pair{r.set.Requests[r.Requests[is.Request].Index].Start, off})
	}
	slices.SortStableFunc(list, func(a, b pair) int { return cmp.Compare(a.at, b.at) })
	off := order.EachRow(list, func(p *pair) float64 { return p.off })
	middle := func(from, to int) float64 { return distribution.Percentile(slices.Clone(off[from:to]), 50) }
	most := 1.0 * clearly
	for _, c := range changepoint.Levels(off, changepoint.Options{Alpha: surely, Keep: func(from, k, to int) bool { return true }}) {
		before, after := max(maxOff, middle(c.From, c.At)), max(maxOff, middle(c.At, c.To))
		if by := max(before/after, after/before); by > most {
			at, most = list[c.At].at, by
		}
	}
	return at
}

// replacedAt returns when the first process started that replaced another, or 0 if none did.
func (r *Run) replacedAt() (at trace.Time) {
	began := make([]trace.Time, len(r.set.Procs))
	for i := range r.set.Threads {
		th := &r.set.Threads[i]
		began[th.Proc] = order.Earlier(began[th.Proc], th.Start)
	}
	type place struct {
		host, label string
		role        request.Role
		rank        trace.Rank
	}
	first := map[place]int{}
	for i := range r.set.Procs {
		p := &r.set.Procs[i]
		if !p.Schedules || p.PID == 0 || began[i] == 0 {
			continue
		}
		k, known := first[place{p.Host, p.Label, p.Role, p.Rank}]
		if known && r.set.Procs[k].PID != p.PID {
			at = order.Earlier(at, max(began[i], began[k]))
		}
		first[place{p.Host, p.Label, p.Role, p.Rank}] = i
	}
	return at
}

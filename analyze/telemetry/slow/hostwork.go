package slow

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/telemetry"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/changepoint"
	"github.com/sgtrace/sgtrace/trace"
)

// HostWork is the subkind of findings about schedulers that spend a larger share of their time between batches.
const HostWork = "time between batches"

// hostStages are the stages of SGLang's scheduler that neither launch a batch nor wait for one. They are values of
// the label "category" of scheduler_stage_seconds_total, which divides all of the loop's time (0.5.20 on,
// python/sglang/srt/observability/scheduler_stage_metrics.py). Not among them are run_batch and process_batch_result,
// where a slow GPU holds up the scheduler.
var hostStages = []string{"recv_requests", "process_input_requests", "get_next_batch_to_run", "process_queue", "sanity_check_cache", "other"}

// noticeable is the least increase, as a share of a scheduler's time, that is reported.
const noticeable = 0.03

// busyWith returns, by bucket, the seconds that a scheduler spent in some stages, and in all stages; nil if it does
// not report them. An idle loop spins through all stages, so buckets that are idle for more than a tenth of the time
// are left out.
func busyWith(l *telemetry.Logged, r *telemetry.Rank, stages ...string) (n, of []float64) {
	const most = 0.1
	of = l.CountedAt(r.Place, "scheduler_stage_seconds_total", "")
	if of == nil {
		return nil, nil
	}
	n = make([]float64, len(of))
	for _, s := range stages {
		for b, v := range l.CountedAt(r.Place, "scheduler_stage_seconds_total", "category="+s) {
			n[b] += v
		}
	}
	// The counter only exists once the loop has been idle.
	for b, idle := range l.CountedAt(r.Place, "scheduler_idle_seconds_total", "") {
		if idle > most*of[b] {
			n[b], of[b] = 0, 0
		}
	}
	return n, of
}

// explains reports whether the work of a scheduler between batches mostly explains why tokens take longer since a
// change. before and after are the shares of its time that the work takes. Each step takes one turn of the loop.
func explains(l *telemetry.Logged, r *telemetry.Rank, c changepoint.Change, before, after float64) bool {
	const most = 0.5
	x, y := tokenTimes(l, r, c)
	return !(after*y-before*x < most*(y-x))
}

// workBetween says which stages between batches take more of the scheduler's time since a change, and how much CPU
// time it uses.
func workBetween(l *telemetry.Logged, r *telemetry.Rank, c changepoint.Change) (list []finding.Evidence) {
	type part struct {
		stage         string
		before, after float64
	}
	var parts []part
	for _, s := range hostStages {
		n, of := busyWith(l, r, s)
		parts = append(parts, part{s, share(n, of, c.From, c.At), share(n, of, c.At, c.To)})
	}
	slices.SortStableFunc(parts, func(a, b part) int { return cmp.Compare(b.after-b.before, a.after-a.before) })
	var text []string
	for _, p := range parts[:2] {
		if p.after-p.before >= noticeable {
			text = append(text, fmt.Sprintf("%s %% in %s, %s %% before", words.InPercent(p.after), p.stage, words.InPercent(p.before)))
		}
	}
	if len(text) > 0 {
		list = append(list, finding.Sentence("it spends %s", strings.Join(text, "; ")))
	}
	if cpu, of := l.CountedAt(r.Place, "scheduler_process_cpu_seconds_total", ""), l.CountedAt(r.Place, "scheduler_stage_seconds_total", ""); cpu != nil {
		list = append(list, finding.Sentence("its process uses %s CPUs, %s before", words.ThreeDigits(share(cpu, of, c.At, c.To)), words.ThreeDigits(share(cpu, of, c.From, c.At))))
	}
	return list
}

// asMuchBetween says that a scheduler spends no more of its time between batches than before, in a period in which
// its tokens take longer; an until of 0 is the end.
func asMuchBetween(l *telemetry.Logged, r *telemetry.Rank, since, until trace.Time) []finding.Evidence {
	n, of := busyWith(l, r, hostStages...)
	if of == nil {
		return nil
	}
	at, end := l.Grid.Of(since), len(n)
	if until != 0 {
		end = min(end, l.Grid.Of(until))
	}
	before, after := share(n, of, 0, at), share(n, of, at, end)
	if !(after-before <= noticeable) {
		return nil
	}
	return []finding.Evidence{finding.Sentence("its scheduler spends %s %% of its time on work between batches, %s %% before: the batches themselves take longer", words.InPercent(after), words.InPercent(before))}
}

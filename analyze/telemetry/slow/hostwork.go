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

// HostWork is the subkind of findings about schedulers that spend more of their time between batches.
const HostWork = "time between batches"

// hostStages are the stages of SGLang's scheduler in which it neither launches a batch nor waits for one, by the
// label "category" of scheduler_stage_seconds_total, which splits all of the time of its loop (0.5.20 on,
// python/sglang/srt/observability/scheduler_stage_metrics.py): in run_batch and process_batch_result, a
// slow GPU holds it up.
var hostStages = []string{"recv_requests", "process_input_requests", "get_next_batch_to_run", "process_queue", "sanity_check_cache", "other"}

// noticeable is by which part of its time more a scheduler does something that is told.
const noticeable = 0.03

// busyWith returns, by bucket, the seconds that a scheduler spent in each of some stages, and those of all its
// stages; nil without them. A loop without a batch spins through all stages: buckets in which that is more than
// a tenth of the time are left out.
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
	// The counter is not there before a loop has no batch for the first time.
	for b, idle := range l.CountedAt(r.Place, "scheduler_idle_seconds_total", "") {
		if idle > most*of[b] {
			n[b], of[b] = 0, 0
		}
	}
	return n, of
}

// explains reports whether tokens take longer since a change mostly for what a scheduler does between batches, given
// the part of its time that it takes before and since then: a step takes one turn of its loop.
func explains(l *telemetry.Logged, r *telemetry.Rank, c changepoint.Change, before, after float64) bool {
	const most = 0.5
	x, y := tokenTimes(l, r, c)
	return !(after*y-before*x < most*(y-x))
}

// workBetween says what a scheduler does more between batches since a change, and whether it computes meanwhile.
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

// asMuchBetween says that a scheduler spends no more of its time between batches than before, since a time
// from which on its tokens take longer, until another one; 0 is the end.
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

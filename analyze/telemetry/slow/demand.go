package slow

import (
	"fmt"
	"math"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/telemetry"
	"github.com/sgtrace/sgtrace/analyze/telemetry/judge"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/changepoint"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// Demand is the subkind of findings that a server has more to do: more requests come, or longer prompts.
const Demand = "demand"

// Demands finds ranks to which more requests come from some point on, or that get longer prompts or give longer
// answers, if requests suffer from it.
func Demands(l *telemetry.Logged) ([]finding.Finding, finding.Check) {
	check := finding.Check{What: "logged arrivals, prompts, and answers", Of: "interval", Needed: 2 * judge.FewBuckets}
	var out []finding.Finding
	search := func(at place.Location, ranks []*telemetry.Rank, demands []telemetry.Demand) (told bool) {
		for _, d := range demands {
			list, n := grew(l, at, ranks, d)
			check.N = max(check.N, n)
			out, told = append(out, list...), told || len(list) > 0
		}
		return told
	}
	counted := map[int32]bool{} // servers that count what comes to all of their ranks
	for _, m := range l.Shared() {
		counted[m.Server] = search(meteredAt(l, m), l.RanksOf(m), l.Metered(m))
	}
	for i := range l.Ranks {
		r := &l.Ranks[i]
		told := counted[r.Server] || search(r.Where, []*telemetry.Rank{r}, l.Demands(r))
		if x, ok := risingQueue(l, r); ok && !told && x.asksMore() {
			out = append(out, x.overload(l, r))
		}
	}
	if check.N == 0 {
		check.Reason = "no log says which requests are taken in"
	}
	return judge.Alike(out), check
}

// cameTo returns the number of requests that some ranks take in, by bucket; nil if it is unknown.
func cameTo(ranks []*telemetry.Rank) (came []float64) {
	for _, r := range ranks {
		if !r.Has(series.NewSeqs) {
			continue
		}
		seqs, _ := r.TakenIn()
		if came == nil {
			came = make([]float64, len(seqs))
		}
		for b, n := range seqs {
			came[b] += n
		}
	}
	return came
}

// stayLonger returns the cost of requests that run for longer after a change in their answers, according to how many run, and the evidence.
func stayLonger(l *telemetry.Logged, ranks []*telemetry.Rank, c changepoint.Change) (cost float64, shows finding.Evidence) {
	running := added(l, ranks, series.Running)
	if running == nil {
		return 0, shows
	}
	before, after := judge.Mean(running[c.From:c.At]), judge.Mean(running[c.At:c.To])
	if !(after >= judge.MuchMore*before) {
		return 0, shows
	}
	for _, r := range ranks {
		cost += (1 - before/after) * l.Running(r, func(b int) bool { return b >= c.At && b < c.To })
	}
	return cost, finding.Sentence("%s requests run at a time, %s before", words.ThreeDigits(after), words.ThreeDigits(before))
}

// grew finds the periods in which the mean of a demand is higher than usual before. intervals is the number of
// intervals in which it is known.
func grew(l *telemetry.Logged, at place.Location, ranks []*telemetry.Rank, d telemetry.Demand) (out []finding.Finding, intervals int) {
	x := quotients(l, d.N, d.Of)
	if len(x.values) < 2*judge.FewBuckets {
		return nil, len(x.values)
	}
	changes := judge.Levels(x.values, func(from, k, to int) bool {
		before, after := x.level(from, k), x.level(k, to)
		return max(before, after) >= judge.MuchMore*min(before, after)
	})
	if len(changes) == 0 && d.Says == telemetry.AskedMore {
		counts := make([]float64, len(x.buckets))
		for k, b := range x.buckets {
			counts[k] = d.N[b]
		}
		if c, ok := episode(counts); ok {
			changes = append(changes, c)
		}
	}
	for _, s := range judge.Higher(changes, judge.MuchMore, x.levels, func(_, to int) bool { return to >= judge.FewBuckets }) {
		c, before, after := s.C, s.Before, s.After
		if running := added(l, ranks, series.Running); d.Answers && running != nil {
			taken := 0.0
			for _, b := range x.buckets[c.At:c.To] {
				taken += d.Of[b]
			}
			if taken < 3*running[x.buckets[c.At]] {
				continue // the answers are of requests that ran before
			}
		}
		cost, shows := suffer(l, ranks, c.Of(x.bucket), judge.MuchLonger)
		if own, stays := stayLonger(l, ranks, c.Of(x.bucket)); d.Answers && own > cost {
			cost, shows = own, append(shows, stays)
		}
		if shows == nil {
			continue // it has more to do, and keeps up
		}
		f := finding.Finding{Subkind: Demand, At: at, Since: l.Start(x.bucket(c.At)), Within: trace.Time(l.Grid.Bucket), P: finding.Chance(c.P), Cost: cost, Evidence: shows,
			Metric: finding.Metric{Name: d.Name, Before: before, After: after}}
		if math.IsNaN(c.P) {
			f.Confidence = finding.Likely
		}
		if c.To < len(x.values) {
			f.Until = l.Start(x.bucket(c.To))
		}
		f.Brief = fmt.Sprintf(d.Says, words.ThreeDigits(after), at.String(), words.ThreeDigits(before))
		f.Text = lasts(f.Since, f.Until) + f.Brief
		out = append(out, f)
	}
	return out, len(x.values)
}

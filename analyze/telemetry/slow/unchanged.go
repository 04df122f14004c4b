package slow

import (
	"fmt"
	"math"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/telemetry"
	"github.com/sgtrace/sgtrace/analyze/telemetry/judge"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/changepoint"
	"github.com/sgtrace/sgtrace/series"
)

// noMore is the part of what was done before that is no more: rates of intervals differ by some percent.
const noMore = 1.1

// longerForSame finds from when to when tokens of a rank take longer although as many come out. How many run is how many
// come times how long each stays: where no more come out, no more are asked for, and none waits, or no more come, a batch is larger because its
// tokens take longer, and not the other way round. Then the pace of before holds for larger batches, too.
func longerForSame(l *telemetry.Logged, r *telemetry.Rank) (out []finding.Finding) {
	generated := generatedBy(l, r)
	if generated == nil {
		return nil
	}
	times := &course{end: l.Grid.N()}
	for b, t := range stepTime(l, r) {
		if !math.IsNaN(t) && !math.IsNaN(generated[b]) {
			times.add(b, t)
		}
	}
	tokens := times.values
	if len(tokens) < 2*judge.FewBuckets {
		return nil
	}
	changes := judge.Levels(tokens, func(from, k, to int) bool {
		before, after := telemetry.Middle(tokens[from:k]), telemetry.Middle(tokens[k:to])
		return max(before, after) >= judge.MuchLonger*min(before, after)
	})
	if len(changes) == 0 {
		changes = judge.Peaks(tokens, judge.MuchMore)
	}
	ended := 0
	for _, c := range changes {
		if f, ok := longerIn(l, r, generated, times, ended, c); ok {
			out, ended = append(out, f), c.To
		}
	}
	return out
}

// longerIn tells that tokens take longer in a time, if they do for that, than from another one on before it.
func longerIn(l *telemetry.Logged, r *telemetry.Rank, generated []float64, times *course, ended int, c changepoint.Change) (f finding.Finding, ok bool) {
	tokens := times.values
	c.From = max(ended, min(c.From, c.At-judge.FewBuckets))
	from, at, to := times.bucket(c.From), times.bucket(c.At), times.bucket(c.To)
	x, y := ratesOf(l, r, generated, from, at), ratesOf(l, r, generated, at, to)
	if c.At-c.From < judge.FewBuckets || c.To-c.At < judge.FewBuckets || y.generated > noMore*x.generated || y.running < judge.MuchLonger*x.running || y.context > noMore*x.context {
		return f, false
	}
	if queue := r.Points[series.Queued]; queue == nil || judge.Mean(l.Curve(r, series.Queued)[at:to]) >= 1 && !comeNoMore(l, r, from, at, to) {
		return f, false // it has more to do than it can
	}
	if prompts := l.Counted(r.Server, "prompt_tokens_total"); prompts != nil && judge.Mean(prompts[at:to]) > noMore*judge.Mean(prompts[from:at]) {
		return f, false
	}
	ratio := beyondPace(r, int64(l.Start(at)), int64(l.Start(to)))
	if !(ratio >= judge.MuchLonger) {
		return f, false
	}
	before, took := telemetry.Middle(tokens[c.From:c.At]), telemetry.Middle(tokens[c.At:c.To])
	f = finding.Finding{At: r.Where, Since: l.Start(at), P: finding.Chance(c.P), Confidence: finding.Likely, Cost: (1 - before/took) * float64(to-at) / float64(l.Grid.N()) / float64(len(l.Ranks)),
		Metric: finding.Metric{Name: TimePerToken, Unit: table.Duration, Before: before * 1e9, After: took * 1e9}}
	if to < l.Grid.N() {
		f.Until = l.Start(to)
	}
	f.Brief = fmt.Sprintf("a token takes %s on %s, %s before", words.Nearly(int64(took*1e9)), r.Where.String(), words.Nearly(int64(before*1e9)))
	f.Text = fmt.Sprintf("%s%s, although no more come out: %s a second (%s before), for which %s requests run (%s before)", lasts(f.Since, f.Until), f.Brief,
		words.ThreeDigits(y.generated), words.ThreeDigits(x.generated), words.ThreeDigits(y.running), words.ThreeDigits(x.running))
	f.Evidence = append(f.Evidence, finding.Sentence("that is %s times as long as such a batch would take by what batches took before", words.ThreeDigits(ratio)))
	if r.Scraped && l.Counted(r.Server, "prompt_tokens_total") == nil {
		f.Evidence = append(f.Evidence, finding.Sentence("the server is slower, or computes longer prompts between its steps, which these metrics do not show"))
	}
	return f, true
}

// comeNoMore reports whether no more requests come to a rank, and no more tokens of their prompts, than before, as its lines or its scrapes tell.
func comeNoMore(l *telemetry.Logged, r *telemetry.Rank, from, at, to int) bool {
	list := l.Demands(r)
	if len(list) < 2 {
		return false
	}
	for _, d := range list[:2] {
		if !(share(d.N, d.Of, at, to) <= noMore*share(d.N, d.Of, from, at)) {
			return false
		}
	}
	return true
}

// beyondPace is how many times as long tokens take in a time as they would at the pace of before.
func beyondPace(r *telemetry.Rank, from, to int64) float64 {
	var before []*telemetry.Stretch
	var ratios []float64
	for i := range r.Stretches {
		if x := &r.Stretches[i]; int64(x.At) < from {
			before = append(before, x)
		}
	}
	p, ok := paceOf(before)
	if !ok {
		return math.NaN()
	}
	for i := range r.Stretches {
		if x := &r.Stretches[i]; int64(x.At) >= from && int64(x.At) < to {
			ratios = append(ratios, x.Token/p.takes(x))
		}
	}
	return telemetry.Middle(ratios)
}

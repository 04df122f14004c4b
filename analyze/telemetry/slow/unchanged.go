package slow

import (
	"fmt"
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/telemetry"
	"github.com/sgtrace/sgtrace/analyze/telemetry/judge"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/changepoint"
	"github.com/sgtrace/sgtrace/internal/significance"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/series"
)

// noMore is the ratio to the earlier rate up to which work counts as no more, because rates vary by some percent
// between intervals.
const noMore = 1.1

// longerForSame finds the periods in which tokens of a rank take longer although no more are generated. The number of
// running requests is the arrival rate times the time that each stays. So if no more tokens are generated, the demand
// is the same, and no requests wait or no more come, then batches are larger because tokens take longer, and not the
// other way around. The earlier pace then holds for the larger batches, too.
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

// longerIn makes the finding that tokens take longer in a period than before it, after ended, if the server is the
// reason.
func longerIn(l *telemetry.Logged, r *telemetry.Rank, generated []float64, times *course, ended int, c changepoint.Change) (f finding.Finding, ok bool) {
	tokens := times.values
	c.From = max(ended, min(c.From, c.At-judge.FewBuckets))
	from, at, to := times.bucket(c.From), times.bucket(c.At), times.bucket(c.To)
	x, y := ratesOf(l, r, generated, from, at), ratesOf(l, r, generated, at, to)
	if c.At-c.From < judge.FewBuckets || c.To-c.At < judge.FewBuckets || y.generated > noMore*x.generated || y.running < judge.MuchLonger*x.running || y.context > noMore*x.context {
		return f, false
	}
	if queue := r.Points[series.Queued]; queue == nil || judge.Mean(l.Curve(r, series.Queued)[at:to]) >= 1 && !comeNoMore(l, r, from, at, to) {
		return f, false // the demand exceeds what it can do
	}
	m, _ := l.MeterOf(r)
	if prompts := l.Counted(m, "prompt_tokens_total"); prompts != nil && judge.Mean(prompts[at:to]) > noMore*judge.Mean(prompts[from:at]) {
		return f, false
	}
	why, ok := unexplained(r, &x, &y, int64(l.Start(at)), int64(l.Start(to)))
	if !ok {
		return f, false
	}
	before, took := telemetry.Middle(tokens[c.From:c.At]), telemetry.Middle(tokens[c.At:c.To])
	f = finding.Finding{At: r.Where, Since: l.Start(at), P: finding.Chance(c.P), Confidence: finding.Likely, Cost: (1 - before/took) * l.Running(r, func(b int) bool { return b >= at && b < to }),
		Metric: finding.Metric{Name: TimePerToken, Unit: table.Duration, Before: before * 1e9, After: took * 1e9}}
	if to < l.Grid.N() {
		f.Until = l.Start(to)
	}
	f.Brief = fmt.Sprintf("a token takes %s on %s, %s before", words.Nearly(int64(took*1e9)), r.Where.String(), words.Nearly(int64(before*1e9)))
	f.Text = fmt.Sprintf("%s%s, although no more come out: %s a second (%s before), for which %s requests run (%s before)", lasts(f.Since, f.Until), f.Brief,
		words.ThreeDigits(y.generated), words.ThreeDigits(x.generated), words.ThreeDigits(y.running), words.ThreeDigits(x.running))
	f.Evidence = append(f.Evidence, why)
	if r.Scraped && l.Counted(m, "prompt_tokens_total") == nil {
		f.Evidence = append(f.Evidence, finding.Sentence("the server is slower, or computes longer prompts between its steps, which these metrics do not show"))
	}
	return f, true
}

// comeNoMore reports whether no more requests and no more prompt tokens come to a rank than before.
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

// unexplained says that tokens take longer than the load explains: longer than such batches took before or, if the
// batch size is recorded too rarely for that, longer than they would at the same rate of generation.
func unexplained(r *telemetry.Rank, before, after *rates, from, to int64) (why finding.Evidence, ok bool) {
	if ratio := beyondPace(r, from, to); ratio >= judge.MuchLonger {
		return finding.Sentence("that is %s times as long as such a batch would take by what batches took before", words.ThreeDigits(ratio)), true
	}
	why, times, ok := timesForAsMuch(before, after, r)
	return why, ok && times >= judge.MuchLonger
}

// timesForAsMuch returns how many times as long tokens take after a change at the same rate of generation, given
// ranks that show the highest rate. An additional request adds at most 1/most to a step, where most is the highest
// rate at other times, and the rest of a step does not depend on the batch. So a token takes at most
// rest/(1-rate/most), which grows as the rate approaches most.
func timesForAsMuch(before, after *rates, of ...*telemetry.Rank) (why finding.Evidence, times float64, ok bool) {
	most := highRate(of)
	if of[0].Where.Role == request.Prefill || after.generated > noMore*before.generated || after.prompts > noMore*before.prompts || after.context > noMore*before.context ||
		!(most >= noMore*max(before.generated, after.generated)) {
		return why, 0, false
	}
	times = after.running / after.generated / (before.running / before.generated) * min(1, (1-after.generated/most)/(1-before.generated/most))
	return finding.Sentence("it is not at its limit, as %s tokens a second came out at other times: its batches are larger because tokens take longer, and not the other way round", words.ThreeDigits(most)), times, true
}

// longerThanThere finds a rank whose tokens take longer than on its peers at the same time although no more are
// generated, if the batch size is recorded too rarely to compare batches.
func longerThanThere(l *telemetry.Logged, r *telemetry.Rank) (f finding.Finding, ok bool) {
	peers := peers(l, r)
	if len(peers) == 0 || judge.Mean(l.Curve(r, series.Queued)) >= 1 || !(meanToken(r) >= judge.MuchLonger*meanToken(peers...)) {
		return f, false
	}
	all := append([]*telemetry.Rank{r}, peers...)
	pieces, longest := longestThere(l, all)
	chance := min(1, float64(len(all))*significance.AtLeastOf(longest, pieces, 1/float64(len(all))))
	if pieces < judge.FewBuckets || chance > judge.Surely {
		return f, false
	}
	var each [4][]float64
	for _, o := range peers {
		x := ratesOf(l, o, generatedBy(l, o), 0, l.Grid.N())
		for k, v := range [...]float64{x.generated, x.prompts, x.running, x.context} {
			each[k] = append(each[k], v)
		}
	}
	own, others := ratesOf(l, r, generatedBy(l, r), 0, l.Grid.N()), rates{judge.Mean(each[0]), judge.Mean(each[1]), judge.Mean(each[2]), judge.Mean(each[3])}
	why, times, ok := timesForAsMuch(&others, &own, all...)
	if !ok || !(times >= judge.MuchLonger) {
		return f, false
	}
	took, usual := own.running/own.generated, others.running/others.generated
	f = finding.Finding{At: r.Where, P: finding.Chance(chance), Confidence: finding.Likely, Cost: (1 - usual/took) * l.Running(r, l.Between(l.From, 0)),
		Metric: finding.Metric{Name: TimePerToken, Unit: table.Duration, Before: usual * 1e9, After: took * 1e9}}
	f.Brief = fmt.Sprintf("a token takes %s on %s, %s on %s", words.Nearly(int64(took*1e9)), r.Where.String(), words.Nearly(int64(usual*1e9)), called(peers))
	f.Text = fmt.Sprintf("%s, although no more come out: %s a second (%s there), for which %s requests run (%s there)", f.Brief,
		words.ThreeDigits(own.generated), words.ThreeDigits(others.generated), words.ThreeDigits(own.running), words.ThreeDigits(others.running))
	f.Evidence = append(f.Evidence, why, finding.Sentence("it takes the longest there in %d of %d pieces of %d intervals of %s", longest, pieces, judge.FewLimited, words.Nearly(l.Grid.Bucket)))
	return f, true
}

// meanToken returns the mean time per token on some ranks, in s.
func meanToken(ranks ...*telemetry.Rank) float64 {
	sum, n := 0.0, 0
	for _, r := range ranks {
		sum, n = sum+r.Took(), n+len(r.Stretches)
	}
	return sum / float64(n)
}

// longestThere divides the time in which all ranks generate into pieces, and returns their number, and the number in
// which tokens take longest on the first rank.
func longestThere(l *telemetry.Logged, ranks []*telemetry.Rank) (pieces, longest int) {
	type sums struct{ running, generated float64 }
	var curves [][2][]float64
	for _, r := range ranks {
		generated := generatedBy(l, r)
		if generated == nil {
			return 0, 0
		}
		curves = append(curves, [2][]float64{l.Curve(r, series.Running), generated})
	}
	list, n := make([]sums, len(ranks)), 0
	for b := range l.Grid.N() {
		if slices.ContainsFunc(curves, func(c [2][]float64) bool { return !(c[0][b] >= 1 && c[1][b] > 0) }) {
			continue
		}
		for i, c := range curves {
			list[i].running, list[i].generated = list[i].running+c[0][b], list[i].generated+c[1][b]
		}
		if n++; n < judge.FewLimited {
			continue
		}
		token := func(x sums) float64 { return x.running / x.generated }
		if pieces++; !slices.ContainsFunc(list[1:], func(o sums) bool { return token(o) >= token(list[0]) }) {
			longest++
		}
		clear(list)
		n = 0
	}
	return pieces, longest
}

// highRate returns the highest rate of generation on any of some ranks, in tokens/s, except for the top few percent,
// which may be wrong; NaN without data.
func highRate(ranks []*telemetry.Rank) float64 {
	const high = 0.95
	var list []float64
	for _, r := range ranks {
		for i := range r.Stretches {
			list = append(list, r.Stretches[i].Running/r.Stretches[i].Token)
		}
	}
	if len(list) == 0 {
		return math.NaN()
	}
	slices.Sort(list)
	return list[int(high*float64(len(list)-1))]
}

// beyondPace returns how many times as long tokens take in a period as predicted by the pace before it.
func beyondPace(r *telemetry.Rank, from, to int64) float64 {
	var before []*telemetry.Stretch
	var ratios []float64
	for i := range r.Stretches {
		if x := &r.Stretches[i]; int64(x.At) < from {
			before = append(before, x)
		}
	}
	p, ok := telemetry.PaceOf(before)
	if !ok {
		return math.NaN()
	}
	for i := range r.Stretches {
		if x := &r.Stretches[i]; int64(x.At) >= from && int64(x.At) < to {
			ratios = append(ratios, x.Token/p.Takes(x))
		}
	}
	return telemetry.Middle(ratios)
}

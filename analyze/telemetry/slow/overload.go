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
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/internal/significance"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// A rising is a growing queue of a rank, and the rank's work meanwhile. The queue is demand that is not served: if
// the rank does no less than before, the demand is larger. If it does less of everything, in batches that are no
// smaller, the rank is slower.
type rising struct {
	from, top, to int     // buckets: when the queue begins to grow, is longest, and is gone
	short, long   float64 // length of the queue at from and at top
	p             float64
	before, after rates
	always        bool // it grows from the beginning; then before is the first half
}

// holds reports whether the queue is growing in a bucket, or not gone yet.
func (x *rising) holds(b int) bool { return b >= x.from && b < x.to }

// rates are the mean rates of work of a rank in some buckets, per second, and its mean running requests and context;
// NaN if unknown.
type rates struct{ generated, prompts, running, context float64 }

// noLess is the ratio to the earlier rate from which work counts as no less, because rates vary by some percent
// between intervals.
const noLess = 0.95

// nearly is the fraction of its greatest length at which a queue has stopped growing.
const nearly = 0.95

// risingQueue finds the largest growth of a rank's queue.
func risingQueue(l *telemetry.Logged, r *telemetry.Rank) (x rising, ok bool) {
	generated := generatedBy(l, r)
	if generated == nil || !r.Has(series.Queued) || r.Where.Role == request.Prefill {
		return x, false
	}
	queue := l.Curve(r, series.Queued)
	for _, n := range queue {
		x.long = max(x.long, telemetry.Zero(n))
	}
	x.top = max(0, slices.IndexFunc(queue, func(n float64) bool { return n >= nearly*x.long }))
	chord := func(b int) float64 {
		return telemetry.Zero(queue[0]) + (queue[x.top]-telemetry.Zero(queue[0]))*float64(b)/float64(max(1, x.top))
	}
	for b := range x.top { // where the queue is farthest below the straight line to its top
		if chord(b)-queue[b] > chord(x.from)-telemetry.Zero(queue[x.from]) {
			x.from = b
		}
	}
	if x.always = 2*queue[x.from] > chord(x.from); x.always {
		x.from = 0
	}
	for x.to = x.top; x.to < len(queue) && !(queue[x.to] <= x.long/10); x.to++ {
	}
	grew, n, last := 0, 0, queue[x.from]
	for _, v := range queue[x.from+min(1, x.top-x.from) : x.top+1] {
		if !math.IsNaN(v) {
			if n++; v > last {
				grew++
			}
			last = v
		}
	}
	x.short, x.long = queue[x.from], queue[x.top]
	if n < judge.FewLimited || !isMuchLonger(telemetry.Zero(x.short), x.long) {
		return x, false
	}
	if x.p = significance.AtLeastOf(grew, n, 0.5); x.p > judge.Surely/10 { // stricter, because queues often come and go
		return x, false
	}
	x.before = ratesOf(l, r, generated, 0, x.from)
	x.after = ratesOf(l, r, generated, x.from, x.top+1)
	if x.always = x.always || math.IsNaN(x.before.generated) || x.from < judge.FewLimited; x.always {
		half := (x.from + x.top + 1) / 2
		x.before, x.after = ratesOf(l, r, generated, x.from, half), ratesOf(l, r, generated, half, x.top+1)
	}
	return x, x.before.generated > 0 && x.after.generated > 0
}

// generatedBy returns the tokens per second that a rank generates, by bucket; nil if unknown.
func generatedBy(l *telemetry.Logged, r *telemetry.Rank) []float64 {
	if r.Has(series.Generation) {
		return l.Curve(r, series.Generation)
	}
	m, own := l.MeterOf(r)
	if !own {
		return nil
	}
	return l.Rates(m, "generation_tokens_total")
}

// ratesOf returns the rates in those of some buckets in which the rank had something to do.
func ratesOf(l *telemetry.Logged, r *telemetry.Rank, generated []float64, from, to int) (x rates) {
	running, kv, rate, tokens := l.Curve(r, series.Running), l.Curve(r, series.KVUsage), r.Points[series.PrefillRate], r.Points[series.NewTokens]
	var each [4][]float64
	for b := from; b < to; b++ {
		if !(running[b] >= 1) {
			continue
		}
		prompts := math.NaN()
		switch {
		case rate != nil:
			prompts = rate[b].Mean()
		case tokens != nil:
			prompts = tokens[b].Sum / (float64(l.Grid.Bucket) / 1e9)
		}
		for i, v := range [...]float64{generated[b], prompts, running[b], kv[b] / running[b]} {
			each[i] = append(each[i], v)
		}
	}
	return rates{judge.Mean(each[0]), judge.Mean(each[1]), judge.Mean(each[2]), judge.Mean(each[3])}
}

// asksMore reports whether the demand on a rank grew, or exceeds what it can do: it generates no less than before.
func (x *rising) asksMore() bool { return x.after.generated >= noLess*x.before.generated }

// doesLess reports whether a rank is slower: it generates much less, computes no more prompt tokens, and runs at
// least as many requests, which are no longer.
func (x *rising) doesLess() bool {
	a, b := &x.after, &x.before
	return !x.always && a.generated*judge.MuchLonger <= b.generated && a.prompts*noLess <= b.prompts && a.running >= noLess*b.running && !(a.context*noLess > b.context)
}

// overload makes the finding that the demand on a rank exceeds what it does.
func (x *rising) overload(l *telemetry.Logged, r *telemetry.Rank) finding.Finding {
	from, top := l.Start(x.from), l.Start(x.top)
	f := finding.Finding{Subkind: Demand, At: r.Where, Since: from, Within: trace.Time(l.Grid.Bucket), P: finding.Chance(x.p), Confidence: finding.Likely, Cost: l.Waiting(r, x.holds),
		Metric: finding.Metric{Name: l.Set.Metric(series.Queued).Name, Before: telemetry.Zero(x.short), After: x.long}}
	if x.to < l.Grid.N() {
		f.Until = l.Start(x.to)
	}
	f.Brief = fmt.Sprintf("%s gets more work than it completes", r.Where.String())
	f.Text = fmt.Sprintf("%s%s: %s requests wait at %s (%s at first), and it generates %s tokens a second, no fewer than before (%s)", since(from), f.Brief,
		words.ThreeDigits(x.long), words.TimeOfDay(top), words.ThreeDigits(telemetry.Zero(x.short)), words.ThreeDigits(x.after.generated), words.ThreeDigits(x.before.generated))
	if x.always {
		f.Text = fmt.Sprintf("from the start, %s: %s requests wait at %s (%s at first), while it generates as many tokens the whole time: %s a second", f.Brief,
			words.ThreeDigits(x.long), words.TimeOfDay(top), words.ThreeDigits(telemetry.Zero(x.short)), words.ThreeDigits(x.after.generated))
	}
	f.Text += x.elsewhere(l, r)
	if seconds := float64(top-from) / 1e9; seconds > 0 {
		f.Evidence = append(f.Evidence, finding.Sentence("its queue grows by %s requests a second: that much more comes in than it can handle", words.ThreeDigits((x.long-telemetry.Zero(x.short))/seconds)))
	}
	return f
}

// elsewhere says that the other ranks of the role have room while requests wait on this one, so that requests are
// spread unevenly. It returns "" if any of them has a queue, or reports nothing.
func (x *rising) elsewhere(l *telemetry.Logged, r *telemetry.Rank) string {
	var others []*telemetry.Rank
	most, run := 0.0, 0.0
	for i := range l.Ranks {
		o := &l.Ranks[i]
		if o == r || o.Where.Role != r.Where.Role {
			continue
		}
		if !o.Has(series.Queued) || !o.Has(series.Running) {
			return ""
		}
		queue, running := l.Curve(o, series.Queued)[x.from:x.to], l.Curve(o, series.Running)[x.from:x.to]
		if order.Count(queue, func(n float64) bool { return !math.IsNaN(n) }) < judge.FewLimited {
			return ""
		}
		others = append(others, o)
		for _, n := range queue {
			most = max(most, telemetry.Zero(n))
		}
		run = max(run, judge.Mean(running))
	}
	const room = 100 // ratio of the queue here to the longest of the others
	if len(others) == 0 || room*most > x.long || !(run*judge.MuchMore <= x.after.running) {
		return ""
	}
	wait := "nothing waits"
	if most >= 1 {
		wait = words.ThreeDigits(most) + " at most wait"
	}
	return fmt.Sprintf("; %s on %s, and %s requests run there at most (%s here): if they serve the same, requests are spread unevenly", wait, called(others), words.ThreeDigits(run), words.ThreeDigits(x.after.running))
}

// lessDone makes the finding that a rank does less than before although requests wait.
func (x *rising) lessDone(l *telemetry.Logged, r *telemetry.Rank) finding.Finding {
	a, b := &x.after, &x.before
	f := finding.Finding{At: r.Where, Since: l.Start(x.from), P: finding.Chance(x.p), Confidence: finding.Likely, Cost: l.Waiting(r, x.holds) + (1-a.generated/b.generated)*l.Running(r, x.holds),
		Metric: finding.Metric{Name: "generation", Unit: table.Number, Before: b.generated, After: a.generated}}
	if x.to < l.Grid.N() {
		f.Until = l.Start(x.to)
	}
	f.Brief = fmt.Sprintf("%s generates %s tokens a second, %s before, although requests wait", r.Where.String(), words.ThreeDigits(a.generated), words.ThreeDigits(b.generated))
	f.Text = since(f.Since) + f.Brief
	f.Evidence = append(f.Evidence, finding.Sentence("it computes no more prompt tokens (%s a second, %s before), and %s requests run, %s before", words.ThreeDigits(a.prompts), words.ThreeDigits(b.prompts), words.ThreeDigits(a.running), words.ThreeDigits(b.running)))
	return f
}

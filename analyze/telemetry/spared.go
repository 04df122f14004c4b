package telemetry

import (
	"math"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/changepoint"
	"github.com/sgtrace/sgtrace/series"
)

// GraphedSteps is the subkind of findings about decode steps that no longer run as a graph.
const GraphedSteps = "share of steps with graphs"

// values returns, by bucket, the sum of what is spared and what that is a part or a mean of; nil is not logged.
func (l *Logged) values(r *Rank, w *series.Worsening) (n, of []float64) {
	switch {
	case len(w.Beside) > 0:
		return l.besideOthers(r, w)
	case len(w.Of) == 0:
		return sums(r.points[w.Metric], 1)
	}
	if slices.ContainsFunc(w.Of, func(m series.MetricID) bool { return !r.has(m) }) {
		for _, m := range w.Percent {
			n, of = sums(r.points[m], 1./100)
		}
		return n, of
	}
	n, of = l.curve(r, w.Metric), make([]float64, l.Grid.N())
	for _, m := range w.Of {
		for b, v := range l.curve(r, m) {
			of[b] += v
		}
	}
	return n, of
}

// sums adds up samples by bucket, times a scale, and counts them.
func sums(points []point, scale float64) (n, of []float64) {
	for _, p := range points {
		n, of = append(n, p.sum*scale), append(of, float64(p.n))
	}
	return n, of
}

// besideOthers adds up the values of lines that say other metrics, too, and counts these lines.
func (l *Logged) besideOthers(r *Rank, w *series.Worsening) (n, of []float64) {
	if !r.has(w.Metric) {
		return nil, nil
	}
	n, of = make([]float64, l.Grid.N()), make([]float64, l.Grid.N())
	value := slices.Index(metricsOfLine[:], w.Metric)
	var x loggedLine
	for lines := l.linesOf(r.place, l.opt); lines.next(&x); {
		says := x.has(value) && !slices.ContainsFunc(w.Beside, func(m series.MetricID) bool { return !x.has(slices.Index(metricsOfLine[:], m)) })
		if b := l.Grid.Of(x.at); says && b >= 0 && b < len(n) {
			n[b] += x.values[value]
			of[b]++
		}
	}
	return n, of
}

// sentence says what a worsening is, of a place.
func sentence(w *series.Worsening, at string, before, after float64) string {
	number := words.ThreeDigits
	if w.Part {
		number = words.InPercent
	}
	return strings.NewReplacer("{at}", at, "{before}", number(before), "{after}", number(after), "{times}", words.ThreeDigits((1-after)/(1-before))).Replace(w.Says)
}

// Worsened finds ranks that are spared less work than before.
func (l *Logged) Worsened() ([]finding.Finding, finding.Check) {
	check := finding.Check{What: "logged cache hits and accepted drafts", Of: "interval", Needed: fewBuckets}
	var out []finding.Finding
	for k := range series.Worsenings {
		var list []finding.Finding
		for i := range l.Ranks {
			f, n, ok := l.worsened(&l.Ranks[i], &series.Worsenings[k])
			if check.N = max(check.N, n); ok {
				list = append(list, f)
			}
		}
		out = append(out, l.alike(list)...)
	}
	if check.N == 0 {
		check.Reason = "no log says how much is cached, accepted, or run as a graph"
	}
	return out, check
}

// worsened finds since when a rank is spared less; intervals is in how many it said how much.
func (l *Logged) worsened(r *Rank, w *series.Worsening) (f finding.Finding, intervals int, ok bool) {
	n, of := l.values(r, w)
	var values []float64
	var buckets []int
	for b := range of {
		if of[b] > 0 {
			values, buckets = append(values, n[b]/of[b]), append(buckets, b)
		}
	}
	if len(values) < fewBuckets {
		return f, len(values), false
	}
	bucket := func(k int) int {
		if k == len(buckets) {
			return l.Grid.N()
		}
		return buckets[k]
	}
	part := func(from, to int) float64 {
		sum, all := 0.0, 0.0
		for b := bucket(from); b < bucket(to); b++ {
			if of[b] > 0 {
				sum, all = sum+n[b], all+of[b]
			}
		}
		return sum / all
	}
	changes := changepoint.Levels(values, changepoint.Options{Alpha: surely, Keep: func(from, k, to int) bool {
		before, after := part(from, k), part(k, to)
		return w.Matters(before, after) || w.Matters(after, before) // that it is as before ends it
	}})
	if c, ok := slides(values); ok && w.Name == finding.CachedTokens && len(changes) == 0 {
		changes = append(changes, c)
	}
	unit := table.Number
	if w.Part {
		unit = table.Share
	}
	for _, c := range changes {
		before, after := part(c.From, c.At), part(c.At, c.To)
		if !w.Matters(before, after) {
			continue
		}
		if math.IsNaN(c.P) {
			before, after = part(0, c.At), values[len(values)-1]
		}
		f = finding.Finding{Subkind: w.Name, At: r.Where, Since: l.start(bucket(c.At)), P: finding.Chance(c.P), Metric: finding.Metric{Name: w.Name, Unit: unit, Before: before, After: after}}
		if c.To < len(values) {
			f.Until = l.start(bucket(c.To))
		}
		f.Brief = sentence(w, r.Where.String(), before, after)
		f.Text = since(f.Since) + f.Brief
		if f.Cost, f.Evidence = l.suffer([]*Rank{r}, c.Of(bucket), 1.1); f.Evidence == nil {
			f.Severity = finding.Info
			f.Evidence = []finding.Evidence{finding.Sentence("its tokens do not take longer, and no more requests wait")}
		}
		if w.Name == GraphedSteps {
			f.Evidence = append(f.Evidence, l.largestGraph(r)...)
		}
		return f, len(values), true
	}
	return f, len(values), false
}

// slides finds since when a share falls bit by bit to a much lower level, as that of the last thousand requests does, which
// vLLM logs: values that follow each other are of the same requests.
func slides(share []float64) (c changepoint.Change, ok bool) {
	missing := make([]float64, len(share))
	for i, v := range share {
		missing[i] = 1 - v
	}
	k, ok := parted(missing, muchMore)
	for k > 1 && missing[k-1] > missing[k-2] {
		k--
	}
	return changepoint.Change{At: max(1, k-1), To: len(share), P: math.NaN()}, ok && k >= fewBuckets
}

// largestGraph says whether the batches without a graph are those that are larger than any with one.
func (l *Logged) largestGraph(r *Rank) []finding.Evidence {
	with, without := 0.0, math.Inf(1)
	var x loggedLine
	for lines := l.linesOf(r.place, l.opt); lines.next(&x); {
		switch running := x.values[runningOf]; {
		case !x.has(rateOf) || !x.has(graphedOf) || !x.has(runningOf):
		case x.values[graphedOf] == 1:
			with = max(with, running)
		default:
			without = min(without, running)
		}
	}
	if with == 0 || without <= with {
		return nil
	}
	return []finding.Evidence{finding.Sentence("batches of up to %.0f requests run as a graph, those of %.0f and more do not: --cuda-graph-max-bs bounds for how many graphs are captured", with, without)}
}

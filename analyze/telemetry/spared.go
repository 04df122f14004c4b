package telemetry

import (
	"fmt"
	"math"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/changepoint"
	"github.com/sgtrace/sgtrace/series"
)

// GraphedSteps is the subkind of findings about decode steps that no longer run as a graph.
const GraphedSteps = "share of steps with graphs"

// A saving is something that spares a rank work: a part of what it would have to do without.
type saving struct {
	subkind string
	unit    table.Unit
	// parts returns, by bucket, what is spared and what that is a part of; nil is not logged.
	parts func(l *Logged, r *Rank) (n, of []float64)
	// matters reports whether a rank has much more to do, given the part before and after a change.
	matters func(before, after float64) bool
	// says tells what is so now, of a place.
	says func(at string, before, after float64) string
}

var savings = []saving{
	{finding.CachedTokens, table.Share, (*Logged).cachedTokens,
		func(before, after float64) bool { return before-after >= 0.05 && 1-after >= muchMore*(1-before) },
		func(at string, before, after float64) string {
			return fmt.Sprintf("%s %% of the tokens of prompts are cached on %s, %s %% before: of each prompt, %s times as many are computed",
				words.InPercent(after), at, words.InPercent(before), words.ThreeDigits((1-after)/(1-before)))
		}},
	{finding.StepYield, table.Number, (*Logged).acceptedTokens,
		func(before, after float64) bool { return before >= 1.2*after },
		func(at string, before, after float64) string {
			return fmt.Sprintf("%s tokens come out of a decode step of %s, %s before: fewer drafts are accepted", words.ThreeDigits(after), at, words.ThreeDigits(before))
		}},
	{GraphedSteps, table.Share, (*Logged).graphedSteps,
		func(before, after float64) bool { return before-after >= 0.5 },
		func(at string, before, after float64) string {
			return fmt.Sprintf("%s %% of the decode steps of %s run as a CUDA graph, %s %% before", words.InPercent(after), at, words.InPercent(before))
		}},
}

// cachedTokens are those of prompts that were found in the cache, of all of prompts, or the hit rate where
// that is all that a rank says.
func (l *Logged) cachedTokens(r *Rank) (n, of []float64) {
	if !r.has(series.CachedTokens) || !r.has(series.NewTokens) {
		return sums(r.points[series.HitRate], 1./100)
	}
	n, of = l.curve(r, series.CachedTokens), l.curve(r, series.NewTokens)
	for b := range of {
		of[b] += n[b]
	}
	return n, of
}

// acceptedTokens are those that came out of decode steps, of lines that say so of steps.
func (l *Logged) acceptedTokens(r *Rank) (n, of []float64) {
	return sums(r.points[series.AcceptLength], 1)
}

// sums adds up samples by bucket, times a scale, and counts them.
func sums(points []point, scale float64) (n, of []float64) {
	for _, p := range points {
		n, of = append(n, p.sum*scale), append(of, float64(p.n))
	}
	return n, of
}

// graphedSteps are lines of decode steps that ran as a graph, of all lines of decode steps that say so.
func (l *Logged) graphedSteps(r *Rank) (n, of []float64) {
	if !r.has(series.Graphed) {
		return nil, nil
	}
	n, of = make([]float64, l.Grid.N()), make([]float64, l.Grid.N())
	var x loggedLine
	for lines := l.linesOf(r.place, l.opt); lines.next(&x); {
		if b := l.Grid.Of(x.at); x.has(rateOf) && x.has(graphedOf) && b >= 0 && b < len(n) {
			n[b] += x.values[graphedOf]
			of[b]++
		}
	}
	return n, of
}

// Worsened finds ranks that are spared less work than before.
func (l *Logged) Worsened() ([]finding.Finding, finding.Check) {
	check := finding.Check{What: "logged cache hits and accepted drafts", Of: "interval", Needed: fewBuckets}
	var out []finding.Finding
	for k := range savings {
		var list []finding.Finding
		for i := range l.Ranks {
			f, n, ok := l.worsened(&l.Ranks[i], &savings[k])
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
func (l *Logged) worsened(r *Rank, s *saving) (f finding.Finding, intervals int, ok bool) {
	n, of := s.parts(l, r)
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
		return s.matters(before, after) || s.matters(after, before) // that it is as before ends it
	}})
	if c, ok := slides(values); ok && s.subkind == finding.CachedTokens && len(changes) == 0 {
		changes = append(changes, c)
	}
	for _, c := range changes {
		before, after := part(c.From, c.At), part(c.At, c.To)
		if !s.matters(before, after) {
			continue
		}
		if math.IsNaN(c.P) {
			before, after = part(0, c.At), values[len(values)-1]
		}
		f = finding.Finding{Subkind: s.subkind, At: r.Where, Since: l.start(bucket(c.At)), P: finding.Chance(c.P), Metric: finding.Metric{Name: s.subkind, Unit: s.unit, Before: before, After: after}}
		if c.To < len(values) {
			f.Until = l.start(bucket(c.To))
		}
		f.Brief = s.says(r.Where.String(), before, after)
		f.Text = since(f.Since) + f.Brief
		if f.Cost, f.Evidence = l.suffer([]*Rank{r}, c.Of(bucket), 1.1); f.Evidence == nil {
			f.Severity = finding.Info
			f.Evidence = []finding.Evidence{finding.Sentence("its tokens do not take longer, and no more requests wait")}
		}
		if s.subkind == GraphedSteps {
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

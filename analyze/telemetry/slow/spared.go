package slow

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/telemetry"
	"github.com/sgtrace/sgtrace/analyze/telemetry/judge"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/changepoint"
	"github.com/sgtrace/sgtrace/series"
)

// GraphedSteps is the subkind of findings about decode steps that no longer run as a graph.
const GraphedSteps = "share of steps with graphs"

// TransferSpeed is the subkind of findings about KV transfers that became slower.
const TransferSpeed = "speed of KV transfers"

// values returns, by bucket, the numerator and the denominator of the ratio that may worsen; nil if it is not logged.
func values(l *telemetry.Logged, r *telemetry.Rank, w *series.Worsening) (n, of []float64) {
	switch {
	case w.BetweenBatches:
		return busyWith(l, r, hostStages...)
	case w.Name == series.AbortedShare:
		return ownCount(l, r, countedAborts)
	case len(w.Beside) > 0 && r.Has(w.Metric):
		return besideOthers(l, r, w)
	case w.Name == GraphedSteps:
		return countedGraphs(l, r)
	case w.Metric == series.AcceptLength && !r.Has(w.Metric):
		return ownCount(l, r, countedDrafts)
	case len(w.Of) == 0:
		return telemetry.Sums(r.Points[w.Metric], 1)
	}
	if slices.ContainsFunc(w.Of, func(m series.MetricID) bool { return !r.Has(m) }) {
		for _, m := range w.Percent {
			n, of = telemetry.Sums(r.Points[m], 1./100)
		}
		if rate := r.Points[series.PrefillRate]; rate != nil { // vLLM repeats the rate of the last prompts in lines without any
			for b := range of {
				if rate[b].N > 0 && rate[b].Sum == 0 {
					n[b], of[b] = 0, 0
				}
			}
		}
		if w.Name == finding.CachedTokens && slices.Max(append(of, 0)) == 0 { // a hit rate of 0 says nothing
			return ownCount(l, r, countedCached)
		}
		return n, of
	}
	n, of = l.Curve(r, w.Metric), make([]float64, l.Grid.N())
	for _, m := range w.Of {
		for b, v := range l.Curve(r, m) {
			of[b] += v
		}
	}
	return n, of
}

// ownCount returns what counters of a rank's own requests say; nil if they count others, too.
func ownCount(l *telemetry.Logged, r *telemetry.Rank, counted func(*telemetry.Logged, telemetry.Meter) (n, of []float64)) (n, of []float64) {
	if m, own := l.MeterOf(r); own {
		return counted(l, m)
	}
	return nil, nil
}

// sharedCounts are counted for all ranks of a server that has no counters of each, by the name of the ratio.
var sharedCounts = map[string]func(*telemetry.Logged, telemetry.Meter) (n, of []float64){finding.CachedTokens: countedCached, series.AbortedShare: countedAborts}

// countedCached returns the prompt tokens that were found in a cache, and all prompt tokens.
func countedCached(l *telemetry.Logged, m telemetry.Meter) (n, of []float64) {
	for _, names := range [...][2]string{{"prefix_cache_hits_total", "prefix_cache_queries_total"}, {"gpu_prefix_cache_hits_total", "gpu_prefix_cache_queries_total"}, {"cached_tokens_total", "prompt_tokens_total"}} {
		if n, of = l.Counted(m, names[0]), l.Counted(m, names[1]); n != nil && of != nil {
			return n, of
		}
	}
	return nil, nil
}

// countedDrafts returns the tokens that steps with drafts yield, which is one more than they accept, and the number
// of these steps, from counters of vLLM.
func countedDrafts(l *telemetry.Logged, m telemetry.Meter) (n, of []float64) {
	n, of = l.Counted(m, "spec_decode_num_accepted_tokens_total"), l.Counted(m, "spec_decode_num_drafts_total")
	if n == nil || of == nil {
		return nil, nil
	}
	for b := range n {
		n[b] += of[b]
	}
	return n, of
}

// countedAborts returns the requests that were aborted, and all that ended.
func countedAborts(l *telemetry.Logged, m telemetry.Meter) (n, of []float64) {
	if n = l.Aborted(m); n == nil {
		return nil, nil
	}
	if of = l.Counted(m, "request_success_total"); of == nil {
		of = l.Counted(m, "num_requests_total")
	}
	for b := range of {
		of[b] = max(of[b], n[b])
	}
	return n, of
}

// countedGraphs returns the decode steps of a scheduler that ran as a CUDA graph, and all decode steps, from counters
// of SGLang.
func countedGraphs(l *telemetry.Logged, r *telemetry.Rank) (n, of []float64) {
	n, of = l.CountedAt(r.Place, "cuda_graph_passes_total", "mode=decode_cuda_graph"), l.CountedAt(r.Place, "cuda_graph_passes_total", "mode=decode_none")
	if n == nil || of == nil {
		return nil, nil // all or none, so it does not change
	}
	for b := range of {
		of[b] += n[b]
	}
	return n, of
}

// besideOthers returns the sum of a metric over the lines that also have other metrics, and the number of these
// lines.
func besideOthers(l *telemetry.Logged, r *telemetry.Rank, w *series.Worsening) (n, of []float64) {
	n, of = make([]float64, l.Grid.N()), make([]float64, l.Grid.N())
	value := slices.Index(telemetry.MetricsOfLine[:], w.Metric)
	var x telemetry.LoggedLine
	for lines := l.LinesOf(r.Place); lines.Next(&x); {
		says := x.Has(value) && !slices.ContainsFunc(w.Beside, func(m series.MetricID) bool { return !x.Has(slices.Index(telemetry.MetricsOfLine[:], m)) })
		if b := l.Grid.Of(x.At); says && b >= 0 && b < len(n) {
			n[b] += x.Values[value]
			of[b]++
		}
	}
	return n, of
}

// sentence describes a worsening at a place.
func sentence(w *series.Worsening, at string, before, after float64) string {
	number := words.ThreeDigits
	if w.Part {
		number = words.InPercent
	}
	return strings.NewReplacer("{at}", at, "{before}", number(before), "{after}", number(after), "{times}", words.ThreeDigits((1-after)/(1-before))).Replace(w.Says)
}

// Worsened finds ranks for which less work is saved than before, such as by caches or drafts.
func Worsened(l *telemetry.Logged) ([]finding.Finding, finding.Check) {
	check := finding.Check{What: "logged cache hits and accepted drafts", Of: "interval", Needed: judge.FewBuckets}
	var out []finding.Finding
	for k := range series.Worsenings {
		var list []finding.Finding
		w, counted := &series.Worsenings[k], map[int32]bool{} // servers that count for all of their ranks
		search := func(u unit, n, of []float64) (ok bool) {
			f, intervals, ok := u.worsened(l, w, n, of)
			if check.N = max(check.N, intervals); ok {
				list = append(list, f)
			}
			return ok
		}
		for _, m := range l.Shared() {
			if count := sharedCounts[w.Name]; count != nil {
				n, of := count(l, m)
				counted[m.Server] = n != nil && of != nil
				search(unit{meteredAt(l, m), l.RanksOf(m)}, n, of)
			}
		}
		for i := range l.Ranks {
			r := &l.Ranks[i]
			if counted[r.Server] {
				continue
			}
			n, of := values(l, r, w)
			if ok := search(unit{r.Where, []*telemetry.Rank{r}}, n, of); !ok && w.Metric == series.AcceptLength {
				if f, ok := rejected(l, r, w); ok {
					list = append(list, f)
				}
			}
		}
		out = append(out, judge.Alike(list)...)
	}
	if check.N == 0 {
		check.Reason = "no log says how much is cached, accepted, or run as a graph"
	}
	return out, check
}

// A unit is a rank, or the ranks of a server, whose work is counted together.
type unit struct {
	at    place.Location
	ranks []*telemetry.Rank
}

// worsened finds since when less work is saved, which is n of of, by bucket. intervals is the number of intervals with data.
func (u unit) worsened(l *telemetry.Logged, w *series.Worsening, n, of []float64) (f finding.Finding, intervals int, ok bool) {
	x := quotients(l, n, of)
	if len(x.values) < judge.FewBuckets {
		return f, len(x.values), false
	}
	for _, c := range x.losses(w) {
		if f, ok = u.lost(l, w, x, &c); ok {
			return f, len(x.values), true
		}
	}
	return f, len(x.values), false
}

// A loss is a change of a course for the worse.
type loss struct {
	changepoint.Change
	before, after float64
	levels        []float64 // levels of tenths of the time, if it falls all the time; else nil
}

// losses returns the changes of a course for the worse that matter.
func (x *course) losses(w *series.Worsening) (list []loss) {
	changes := changepoint.Levels(x.values, changepoint.Options{Alpha: judge.Surely, Keep: func(from, k, to int) bool {
		before, after := x.level(from, k), x.level(k, to)
		return w.Matters(before, after) || w.Matters(after, before) // a recovery ends the loss
	}})
	if c, ok := slides(x.values); ok && w.Name == finding.CachedTokens && len(changes) == 0 {
		changes = append(changes, c)
	}
	var levels []float64
	if len(changes) == 0 && !w.Part {
		var c changepoint.Change
		if c, levels = falls(x.values); levels != nil {
			changes = append(changes, c)
		}
	}
	for _, c := range changes {
		before, after := x.level(c.From, c.At), x.level(c.At, c.To)
		switch {
		case levels != nil:
			before, after = slices.Max(levels), levels[len(levels)-1]
		case math.IsNaN(c.P) && w.Matters(before, after):
			before, after = x.level(0, c.At), x.values[len(x.values)-1]
		}
		if w.Matters(before, after) {
			list = append(list, loss{c, before, after, levels})
		}
	}
	return list
}

// lost makes the finding of a loss. ok is false if it does not explain what requests suffer.
func (u unit) lost(l *telemetry.Logged, w *series.Worsening, x *course, c *loss) (f finding.Finding, ok bool) {
	number := table.Number
	if w.Part {
		number = table.Share
	}
	r := u.ranks[0]
	during := c.Of(x.bucket)
	f = finding.Finding{Subkind: w.Name, At: u.at, Since: l.Start(x.bucket(c.At)), P: finding.Chance(c.P), Metric: finding.Metric{Name: w.Name, Unit: number, Before: c.before, After: c.after}}
	if c.To < len(x.values) {
		f.Until = l.Start(x.bucket(c.To))
	}
	f.Brief = sentence(w, u.at.String(), c.before, c.after)
	f.Text = since(f.Since) + f.Brief
	if f.Cost, f.Evidence = suffer(l, u.ranks, during, 1.1); w.BetweenBatches && (f.Evidence == nil || !explains(l, r, during, c.before, c.after)) {
		return f, false
	} else if f.Evidence == nil && w.Name != TransferSpeed {
		f.Severity = finding.Info
		f.Evidence = []finding.Evidence{finding.Sentence("its tokens do not take longer, and no more requests wait")}
	}
	if w.Name == series.AbortedShare {
		f.Severity = finding.Warning
		running := 0.0
		for _, r := range u.ranks {
			running += l.Running(r, l.Between(f.Since, f.Until))
		}
		f.Cost = max(f.Cost, (c.after-c.before)*running)
		f.Evidence = append(f.Evidence, finding.Sentence("a request is aborted when its client disconnects before the answer, or when the server gives up on it: its counters do not say which"))
	}
	if w.Name == finding.CachedTokens && len(u.ranks) == 1 {
		if times := moreComes(l, r, during, c); times > (1-c.after)/(1-c.before) {
			f.Severity, f.Cost = finding.Info, 0
			f.Evidence = slices.Insert(f.Evidence, 0, finding.Sentence("%s times as many tokens of prompts come, which is most of what it computes more", words.ThreeDigits(times)))
		}
	}
	if c.levels != nil {
		var list []string
		for _, v := range c.levels {
			list = append(list, words.ThreeDigits(v))
		}
		f.Confidence, f.Text = finding.Likely, fmt.Sprintf("falling gradually since %s, %s", words.TimeOfDay(f.Since), f.Brief)
		f.Evidence = append(f.Evidence, finding.Sentence("in tenths of the time: %s", strings.Join(list, ", ")))
	}
	switch {
	case w.Name == GraphedSteps:
		f.Evidence = append(f.Evidence, largestGraph(l, r)...)
	case w.BetweenBatches:
		f.Evidence = append(workBetween(l, r, during), f.Evidence...)
		f.Show = [][]string{{"--timeline", "--table", "metrics.timeline"}}
	}
	return f, true
}

// moreComes returns the ratio of the prompt tokens that come after a change to those before, from the computed tokens
// and the cached share; NaN if no line has the computed tokens.
func moreComes(l *telemetry.Logged, r *telemetry.Rank, during changepoint.Change, c *loss) float64 {
	metric := series.PrefillRate
	if r.Has(series.NewTokens) {
		metric = series.NewTokens
	}
	computed := l.Curve(r, metric)
	return judge.Mean(computed[during.At:during.To]) / judge.Mean(computed[during.From:during.At]) * (1 - c.before) / (1 - c.after)
}

// slides finds since when a share falls gradually to a much lower level, such as the hit rate over the last thousand
// requests that vLLM logs: its consecutive values cover mostly the same requests.
func slides(share []float64) (c changepoint.Change, ok bool) {
	missing := make([]float64, len(share))
	for i, v := range share {
		missing[i] = 1 - v
	}
	k, ok := judge.Parted(missing, judge.MuchMore)
	for k > 1 && missing[k-1] > missing[k-2] {
		k--
	}
	return changepoint.Change{At: max(1, k-1), To: len(share), P: math.NaN()}, ok && k >= judge.FewBuckets
}

// falls finds since when values fall steadily until the end, and returns the levels of tenths of the time; nil if
// they do not. A test for steps does not find such slow changes, because consecutive values are similar. The last six
// levels are in falling order by chance with a probability of 1 in 720.
func falls(values []float64) (c changepoint.Change, levels []float64) {
	const pieces, falling, clearly = 10, 6, 1.05
	if len(values) < pieces*judge.FewBuckets/2 {
		return c, nil
	}
	for k := range pieces {
		levels = append(levels, telemetry.Middle(values[k*len(values)/pieces:(k+1)*len(values)/pieces]))
	}
	k := pieces - 1
	for k > 0 && levels[k-1] > levels[k] {
		k--
	}
	if pieces-k < falling || clearly*levels[pieces-1] > levels[0] {
		return c, nil
	}
	for clearly*levels[k] > levels[0] {
		k++ // the fall has only begun
	}
	return changepoint.Change{At: k * len(values) / pieces, To: len(values), P: math.NaN()}, levels
}

// largestGraph says whether all batches without a graph are larger than those with one.
func largestGraph(l *telemetry.Logged, r *telemetry.Rank) []finding.Evidence {
	with, without := 0.0, math.Inf(1)
	var x telemetry.LoggedLine
	for lines := l.LinesOf(r.Place); lines.Next(&x); {
		switch running := x.Values[telemetry.RunningOf]; {
		case !x.Has(telemetry.RateOf) || !x.Has(telemetry.GraphedOf) || !x.Has(telemetry.RunningOf):
		case x.Values[telemetry.GraphedOf] == 1:
			with = max(with, running)
		default:
			without = min(without, running)
		}
	}
	if with == 0 || without <= with {
		return nil
	}
	return []finding.Evidence{finding.Sentence("batches of up to %.0f requests run as a graph, those of %.0f and more do not: --cuda-graph-max-bs limits the sizes that are captured", with, without)}
}

package telemetry

import (
	"fmt"
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/changepoint"
	"github.com/sgtrace/sgtrace/series"
)

// Demand is the subkind of findings that more is asked of a server: more requests come, or longer prompts.
const Demand = "demand"

// What demands say, given the mean, the place, and the mean before.
const (
	askedMore     = "%s requests come a second on %s, %s before"
	longerPrompts = "a request brings %s tokens of prompt on %s, %s before"
	longerAnswers = "a request is answered with %s tokens on %s, %s before"
)

// A demand is what is asked of a rank by bucket: n of something, by what it is a mean over; 0 of that is not known.
type demand struct {
	n, of []float64
	name  string
	says  string // of the mean, given place and the mean before
	// answers: those of requests that were taken in before are among them.
	answers bool
}

// Demands finds ranks to which more requests come since some time, or that get longer prompts or give longer answers,
// where somebody suffers from it.
func (l *Logged) Demands() ([]finding.Finding, finding.Check) {
	check := finding.Check{What: "logged arrivals, prompts, and answers", Of: "interval", Needed: 2 * fewBuckets}
	var out []finding.Finding
	for i := range l.Ranks {
		r := &l.Ranks[i]
		for _, d := range l.demands(r) {
			f, n, ok := l.grew(r, d)
			if check.N = max(check.N, n); ok {
				out = append(out, f)
			}
		}
	}
	if check.N == 0 {
		check.Reason = "no log says which requests are taken in"
	}
	return l.alike(out), check
}

// demands are the requests that come a second, the prompt tokens of each, and the tokens of its answer.
func (l *Logged) demands(r *Rank) []demand {
	if !r.has(series.NewSeqs) || !r.has(series.NewTokens) {
		return l.demandsInMetrics(r)
	}
	seqs, tokens := r.takenIn()
	rate, queue := r.points[series.Generation], r.points[series.Queued]
	came, seconds, generated := make([]float64, len(seqs)), make([]float64, len(seqs)), make([]float64, len(seqs))
	waiting, bucket := 0.0, float64(l.Grid.Bucket)/1e9
	for b := range seqs {
		if rate != nil && rate[b].n > 0 {
			generated[b] = rate[b].mean() * bucket
		}
		if queue == nil || queue[b].n == 0 {
			continue // nobody knows whether none came, or the log is missing
		}
		came[b], waiting, seconds[b] = seqs[b]+queue[b].mean()-waiting, queue[b].mean(), bucket
	}
	return []demand{
		{came, seconds, "requests a second", askedMore, false},
		{tokens, seqs, "prompt tokens of a request", longerPrompts, false},
		{generated, seqs, "tokens of an answer", longerAnswers, true},
	}
}

// demandsInMetrics are those of a server of one rank, by its histograms and counters: what comes waits, or gets a first token.
func (l *Logged) demandsInMetrics(r *Rank) []demand {
	first, _, _ := l.scrapes(r.Server, series.TTFT)
	queue, prompts, answers := r.points[series.Queued], l.counted(r.Server, "prompt_tokens_total"), l.counted(r.Server, "generation_tokens_total")
	alone := !slices.ContainsFunc(l.Ranks, func(o Rank) bool { return o.Server == r.Server && o.place != r.place })
	if len(first) == 0 || queue == nil || prompts == nil || answers == nil || !alone {
		n, of := sums(r.points[series.PrefillRate], 1) // which lines of vLLM have
		return []demand{{n, of, "prompt tokens a second", "prompts of %s tokens a second are computed on %s, %s before", false}}
	}
	n := l.Grid.N()
	came, time, seqs, ended := make([]float64, n), make([]float64, n), make([]float64, n), make([]float64, n)
	for _, x := range first {
		if b, end := l.Grid.Of(x.from), l.Grid.Of(x.to); b >= 0 && end < n && queue[b].n > 0 && queue[end].n > 0 {
			came[b] += x.n + queue[end].mean() - queue[b].mean()
			time[b], seqs[b] = time[b]+float64(x.to-x.from)/1e9, seqs[b]+x.n
		}
	}
	done, _, _ := l.scrapes(r.Server, series.E2E)
	for _, x := range done {
		if b := l.Grid.Of(x.from); b >= 0 && b < n {
			ended[b] += x.n
		}
	}
	return []demand{
		{came, time, "requests a second", askedMore, false},
		{prompts, seqs, "prompt tokens of a request", longerPrompts, false},
		{answers, ended, "tokens of an answer", longerAnswers, true},
	}
}

// takenIn returns the requests that a rank takes in by bucket, and the tokens of their prompts. What its lines say counts
// some twice: the last request of a batch that is as large as batches get, as the rest of it is in the next one, and those
// that were thrown out of the KV cache, which bring the tokens along that they had.
func (l *Logged) takenIn(r *Rank) (seqs, tokens []float64) {
	seqs, tokens = l.curve(r, series.NewSeqs), l.curve(r, series.NewTokens)
	for b, n := range l.curve(r, series.CachedTokens) {
		tokens[b] += n
	}
	for b, n := range l.fullBatches(r) {
		seqs[b] = max(0, seqs[b]-n)
	}
	running, kv := r.points[series.Running], r.points[series.KVTokens]
	for i := range l.Set.Instants {
		e := &l.Set.Instants[i]
		p, b := &l.Set.Places[e.Place], l.Grid.Of(e.Time)
		if e.Kind != series.Retraction || p.Server != r.Server || p.Rank.DP != r.Where.Rank.DP || b < 0 || b >= len(seqs) {
			continue
		}
		seqs[b] -= float64(e.Count)
		if running != nil && kv != nil && running[b].sum > 0 && kv[b].n > 0 {
			tokens[b] -= float64(e.Count) * kv[b].mean() / running[b].mean()
		}
	}
	return seqs, tokens
}

// fullBatches counts the prefill batches that are as large as batches get; none if all are of one request and as large: then
// it is the prompts that are.
func (l *Logged) fullBatches(r *Rank) []float64 {
	counts := make([]float64, l.Grid.N())
	most, all := r.Most(series.NewTokens), 0.0
	var x loggedLine
	for lines := l.linesOf(r.place, l.opt); lines.next(&x); {
		if b := l.Grid.Of(x.at); x.values[newTokensOf] == most && b >= 0 && b < len(counts) {
			counts[b]++
			all++
		}
	}
	if _, n := r.total(series.NewTokens); r.Total(series.NewSeqs) == float64(n) && all >= 0.95*float64(n) {
		return nil
	}
	return counts
}

// cameTo adds up the requests that some ranks take in; nil where none says so.
func (l *Logged) cameTo(ranks []*Rank) (came []float64) {
	for _, r := range ranks {
		if !r.has(series.NewSeqs) {
			continue
		}
		seqs, _ := r.takenIn()
		if came == nil {
			came = make([]float64, len(seqs))
		}
		for b, n := range seqs {
			came[b] += n
		}
	}
	return came
}

// grew finds since when the mean of a demand is higher than it ever was before; intervals is how many there were.
func (l *Logged) grew(r *Rank, d demand) (f finding.Finding, intervals int, ok bool) {
	var values []float64
	var buckets []int
	for b := range d.of {
		if d.of[b] > 0 {
			values, buckets = append(values, d.n[b]/d.of[b]), append(buckets, b)
		}
	}
	if len(values) < 2*fewBuckets {
		return f, len(values), false
	}
	bucket := func(k int) int {
		if k == len(buckets) {
			return l.Grid.N()
		}
		return buckets[k]
	}
	level := func(from, to int) float64 {
		n, of := 0.0, 0.0
		for _, b := range buckets[from:to] {
			n, of = n+d.n[b], of+d.of[b]
		}
		return n / of
	}
	changes := changepoint.Levels(values, changepoint.Options{Alpha: surely, Keep: func(from, k, to int) bool {
		before, after := level(from, k), level(k, to)
		return max(before, after) >= muchMore*min(before, after)
	}})
	if len(changes) == 0 && d.says == askedMore {
		counts := make([]float64, len(buckets))
		for k, b := range buckets {
			counts[k] = d.n[b]
		}
		if c, ok := episode(counts); ok {
			changes = append(changes, c)
		}
	}
	for _, c := range changes {
		before, after := level(0, c.At), level(c.At, c.To)
		if c.At < fewBuckets || !(before > 0) || after < muchMore*max(before, level(c.From, c.At)) {
			continue
		}
		if running := r.points[series.Running]; d.answers && running != nil {
			taken := 0.0
			for _, b := range buckets[c.At:c.To] {
				taken += d.of[b]
			}
			if taken < 3*running[buckets[c.At]].mean() {
				continue // it answers those that ran before
			}
		}
		cost, shows := l.suffer([]*Rank{r}, c.Of(bucket), muchLonger)
		if shows == nil {
			continue // it is asked more, and does it
		}
		f = finding.Finding{Subkind: Demand, At: r.Where, Since: l.start(bucket(c.At)), P: finding.Chance(c.P), Cost: cost, Evidence: shows,
			Metric: finding.Metric{Name: d.name, Before: before, After: after}}
		if math.IsNaN(c.P) {
			f.Confidence = finding.Likely
		}
		if c.To < len(values) {
			f.Until = l.start(bucket(c.To))
		}
		f.Brief = fmt.Sprintf(d.says, words.ThreeDigits(after), r.Where.String(), words.ThreeDigits(before))
		f.Text = since(f.Since) + f.Brief
		if f.Until != 0 {
			f.Text = fmt.Sprintf("from %s to %s, %s", clock(f.Since), clock(f.Until), f.Brief)
		}
		return f, len(values), true
	}
	return f, len(values), false
}

package slow

import (
	"fmt"
	"math"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/telemetry"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// Demand is the subkind of findings that more is asked of a server: more requests come, or longer prompts.
const Demand = "demand"

// RequestRate is the metric of those that more requests come.
const RequestRate = "requests a second"

// What demands say, given the mean, the place, and the mean before.
const (
	askedMore     = "%s requests a second come to %s, %s before"
	longerPrompts = "a prompt has %s tokens on %s, %s before"
	longerAnswers = "an answer has %s tokens on %s, %s before"
)

// A demand is what is asked of a rank by bucket: n of something, by what it is a mean over; 0 of that is not known.
type demand struct {
	n, of []float64
	name  string
	says  string // of the mean, given place and the mean before
	// answers: those of requests that were taken in before are among them.
	answers bool
}

// Demands finds ranks to which more requests come from some point on, or that get longer prompts or give longer answers,
// where somebody suffers from it.
func Demands(l *telemetry.Logged) ([]finding.Finding, finding.Check) {
	check := finding.Check{What: "logged arrivals, prompts, and answers", Of: "interval", Needed: 2 * fewBuckets}
	var out []finding.Finding
	for i := range l.Ranks {
		r := &l.Ranks[i]
		told := false
		for _, d := range demands(l, r) {
			list, n := grew(l, r, d)
			check.N = max(check.N, n)
			out, told = append(out, list...), told || len(list) > 0
		}
		if x, ok := risingQueue(l, r); ok && !told && x.asksMore() {
			out = append(out, x.overload(l, r))
		}
	}
	if check.N == 0 {
		check.Reason = "no log says which requests are taken in"
	}
	return alike(out), check
}

// demands are the requests that come a second, the prompt tokens of each, and the tokens of its answer.
func demands(l *telemetry.Logged, r *telemetry.Rank) []demand {
	if !r.Has(series.NewSeqs) || !r.Has(series.NewTokens) {
		return demandsInMetrics(l, r)
	}
	seqs, tokens := r.TakenIn()
	rate, queue := r.Points[series.Generation], r.Points[series.Queued]
	came, seconds, generated := make([]float64, len(seqs)), make([]float64, len(seqs)), make([]float64, len(seqs))
	waiting, bucket := 0.0, float64(l.Grid.Bucket)/1e9
	for b := range seqs {
		if rate != nil && rate[b].N > 0 {
			generated[b] = rate[b].Mean() * bucket
		}
		if queue == nil || queue[b].N == 0 {
			continue // nobody knows whether none came, or the log is missing
		}
		came[b], waiting, seconds[b] = seqs[b]+queue[b].Mean()-waiting, queue[b].Mean(), bucket
	}
	return []demand{
		{came, seconds, RequestRate, askedMore, false},
		{tokens, seqs, PromptTokens, longerPrompts, false},
		{generated, seqs, AnswerTokens, longerAnswers, true},
	}
}

// demandsInMetrics are those of a server of one rank, by its histograms and counters: what comes waits, or gets a first token.
func demandsInMetrics(l *telemetry.Logged, r *telemetry.Rank) []demand {
	came, seconds := l.Arrivals(r)
	prompts, answers := l.Counted(r.Server, "prompt_tokens_total"), l.Counted(r.Server, "generation_tokens_total")
	if came == nil || prompts == nil || answers == nil || !isAlone(l, r) {
		n, of := sums(r.Points[series.PrefillRate], 1) // which lines of vLLM have
		return []demand{{n, of, "prompt tokens a second", "prompts of %s tokens a second are computed on %s, %s before", false}}
	}
	n := l.Grid.N()
	seqs, ended := l.ByBucket(l.Scrapes(r.Server, series.TTFT).List), make([]float64, n)
	for _, x := range l.Scrapes(r.Server, series.E2E).List {
		if b := l.Grid.Of(x.From); b >= 0 && b < n {
			ended[b] += x.N
		}
	}
	return []demand{
		{came, seconds, RequestRate, askedMore, false},
		{prompts, seqs, "prompt tokens of a request", longerPrompts, false},
		{answers, ended, "tokens of an answer", longerAnswers, true},
	}
}

// Metrics of findings about what requests ask for.
const (
	PromptTokens = "prompt tokens of a request"
	AnswerTokens = "tokens of an answer"
)

// cameTo adds up the requests that some ranks take in; nil where none says so.
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

// grew finds from when to when the mean of a demand is higher than it usually was before; intervals is how many there were.
func grew(l *telemetry.Logged, r *telemetry.Rank, d demand) (out []finding.Finding, intervals int) {
	x := quotients(l, d.n, d.of)
	if len(x.values) < 2*fewBuckets {
		return nil, len(x.values)
	}
	changes := levels(x.values, func(from, k, to int) bool {
		before, after := x.level(from, k), x.level(k, to)
		return max(before, after) >= muchMore*min(before, after)
	})
	if len(changes) == 0 && d.says == askedMore {
		counts := make([]float64, len(x.buckets))
		for k, b := range x.buckets {
			counts[k] = d.n[b]
		}
		if c, ok := episode(counts); ok {
			changes = append(changes, c)
		}
	}
	for _, s := range higher(changes, x.levels, func(_, to int) bool { return to >= fewBuckets }) {
		c, before, after := s.c, s.before, s.after
		if running := r.Points[series.Running]; d.answers && running != nil {
			taken := 0.0
			for _, b := range x.buckets[c.At:c.To] {
				taken += d.of[b]
			}
			if taken < 3*running[x.buckets[c.At]].Mean() {
				continue // it answers those that ran before
			}
		}
		cost, shows := suffer(l, []*telemetry.Rank{r}, c.Of(x.bucket), muchLonger)
		if shows == nil {
			continue // it is asked more, and does it
		}
		f := finding.Finding{Subkind: Demand, At: r.Where, Since: l.Start(x.bucket(c.At)), Within: trace.Time(l.Grid.Bucket), P: finding.Chance(c.P), Cost: cost * part(l, r), Evidence: shows,
			Metric: finding.Metric{Name: d.name, Before: before, After: after}}
		if math.IsNaN(c.P) {
			f.Confidence = finding.Likely
		}
		if c.To < len(x.values) {
			f.Until = l.Start(x.bucket(c.To))
		}
		f.Brief = fmt.Sprintf(d.says, words.ThreeDigits(after), r.Where.String(), words.ThreeDigits(before))
		f.Text = lasts(f.Since, f.Until) + f.Brief
		out = append(out, f)
	}
	return out, len(x.values)
}

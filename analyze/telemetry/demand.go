package telemetry

import (
	"slices"

	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// Texts of demands, with the mean, the place, and the mean before.
const (
	AskedMore     = "%s requests a second come to %s, %s before"
	longerPrompts = "a prompt has %s tokens on %s, %s before"
	longerAnswers = "an answer has %s tokens on %s, %s before"
)

// A Demand is what is asked of a rank, by bucket: an amount N, and Of, what its mean is over. Of is 0 where N is
// unknown.
type Demand struct {
	N, Of []float64
	Name  string
	Says  string // text with the mean, the place, and the mean before
	// Answers says that N includes requests that were taken in earlier.
	Answers bool
}

// Demands returns the requests per second, the prompt tokens per request, and the tokens per answer.
func (l *Logged) Demands(r *Rank) []Demand {
	if !r.Has(series.NewSeqs) || !r.Has(series.NewTokens) {
		if m, own := l.MeterOf(r); own {
			if list := l.Metered(m); list != nil {
				return list
			}
		}
		n, of := Sums(r.Points[series.PrefillRate], 1) // in lines of vLLM
		return []Demand{{n, of, ComputedTokens, "prompts of %s tokens a second are computed on %s, %s before", false}}
	}
	seqs, tokens := r.TakenIn()
	queue := r.Points[series.Queued]
	came, seconds := make([]float64, len(seqs)), make([]float64, len(seqs))
	waiting, bucket := 0.0, float64(l.Grid.Bucket)/1e9
	for b := range seqs {
		if queue == nil || queue[b].N == 0 {
			continue // either none came, or a part of the log is missing
		}
		came[b], waiting, seconds[b] = seqs[b]+queue[b].Mean()-waiting, queue[b].Mean(), bucket
	}
	return []Demand{
		{came, seconds, RequestRate, AskedMore, false},
		{tokens, seqs, PromptTokens, longerPrompts, false},
		{l.generated(r), seqs, AnswerTokens, longerAnswers, true},
	}
}

// generated returns the tokens that a rank generates, by bucket. A line says the throughput since the decode line
// before it, so it stands for that time: their mean would be that of busy times alone. It stands for a bucket at
// most, because lines may be missing.
func (l *Logged) generated(r *Rank) []float64 {
	tokens, last := make([]float64, l.Grid.N()), trace.Time(0)
	var x LoggedLine
	for lines := l.LinesOf(r.Place); lines.Next(&x); {
		if !x.Has(RateOf) {
			continue
		}
		if b := l.Grid.Of(x.At); last != 0 && b >= 0 && b < len(tokens) {
			tokens[b] += x.Values[RateOf] * float64(min(x.At-last, trace.Time(l.Grid.Bucket))) / 1e9
		}
		last = x.At
	}
	return tokens
}

// Metered returns the demands that a meter counts; nil if it does not count all.
func (l *Logged) Metered(m Meter) []Demand {
	came, seconds := l.arrivals(m)
	prompts, answers := l.Counted(m, "prompt_tokens_total"), l.Counted(m, "generation_tokens_total")
	if came == nil || prompts == nil || answers == nil {
		return nil
	}
	n := l.Grid.N()
	seqs, ended := l.ByBucket(l.Scrapes(m, series.TTFT).List), make([]float64, n)
	for _, x := range l.Scrapes(m, series.E2E).List {
		if b := l.Grid.Of(x.From); b >= 0 && b < n {
			ended[b] += x.N
		}
	}
	return []Demand{
		{came, seconds, RequestRate, AskedMore, false},
		{prompts, seqs, PromptTokens, longerPrompts, false},
		{answers, ended, AnswerTokens, longerAnswers, true},
	}
}

// Names of demands.
const (
	RequestRate  = "requests a second"
	PromptTokens = "prompt tokens of a request"
	AnswerTokens = "tokens of an answer"
	// ComputedTokens are prompt tokens that were not in a cache.
	ComputedTokens = "prompt tokens a second"
)

// IsAlone reports whether a rank is the only one of its server, so that the server's metrics are the rank's.
func (l *Logged) IsAlone(r *Rank) bool {
	return !slices.ContainsFunc(l.Ranks, func(o Rank) bool { return o.Server == r.Server && o.Place != r.Place })
}

// Sums returns the sums of samples by bucket, multiplied by scale, and the number of samples.
func Sums(points []Point, scale float64) (n, of []float64) {
	for _, p := range points {
		n, of = append(n, p.Sum*scale), append(of, float64(p.N))
	}
	return n, of
}

package telemetry

import (
	"slices"

	"github.com/sgtrace/sgtrace/series"
)

// takenIn returns the number of requests that a rank takes in, and the tokens of their prompts, by bucket. The lines
// of a rank count some requests twice: the last request of a batch of the largest size, whose rest is in the next
// batch, and retracted requests, which come back with the tokens that they had. These are subtracted.
func (l *Logged) takenIn(r *Rank) (seqs, tokens []float64) {
	seqs, tokens = l.Curve(r, series.NewSeqs), l.Curve(r, series.NewTokens)
	for b, n := range l.Curve(r, series.CachedTokens) {
		tokens[b] += n
	}
	for b, n := range l.fullBatches(r) {
		seqs[b] = max(0, seqs[b]-n)
	}
	running, kv := r.Points[series.Running], r.Points[series.KVTokens]
	for i := range l.Set.Instants {
		e := &l.Set.Instants[i]
		p, b := &l.Set.Places[e.Place], l.Grid.Of(e.Time)
		if e.Kind != series.Retraction || p.Server != r.Server || p.Rank.DP != r.Where.Rank.DP || b < 0 || b >= len(seqs) {
			continue
		}
		seqs[b] -= float64(e.Count)
		if running != nil && kv != nil && running[b].Sum > 0 && kv[b].N > 0 {
			tokens[b] -= float64(e.Count) * kv[b].Mean() / running[b].Mean()
		}
	}
	return seqs, tokens
}

// Arrivals returns the number of requests that come to a rank, and the seconds in which they come, by bucket; nil if
// its own requests are not counted.
func (l *Logged) Arrivals(r *Rank) (came, seconds []float64) {
	if m, own := l.MeterOf(r); own {
		return l.arrivals(m)
	}
	return nil, nil
}

// arrivals is Arrivals for a meter. It uses scrapes: a request that comes either waits, gets a first token, or is given up.
func (l *Logged) arrivals(m Meter) (came, seconds []float64) {
	first, queue := l.Scrapes(m, series.TTFT).List, make([]Point, l.Grid.N())
	ranks := l.RanksOf(m)
	for _, r := range ranks {
		for b, p := range r.Points[series.Queued] {
			if p.N > 0 {
				queue[b].N, queue[b].Sum = queue[b].N+1, queue[b].Sum+p.Mean()
			}
		}
	}
	told := func(b int) bool { return queue[b].N == len(ranks) }
	if len(first) == 0 || len(ranks) == 0 || !slices.ContainsFunc(queue, func(p Point) bool { return p.N == len(ranks) }) {
		return nil, nil
	}
	came, seconds = make([]float64, l.Grid.N()), make([]float64, l.Grid.N())
	for _, x := range first {
		if b, end := l.Grid.Of(x.From), l.Grid.Of(x.To); b >= 0 && end < len(came) && told(b) && told(end) {
			came[b] += x.N + queue[end].Sum - queue[b].Sum
			seconds[b] += float64(x.To-x.From) / 1e9
		}
	}
	for b, n := range l.Aborted(m) {
		came[b] += n
	}
	return came, seconds
}

// Aborted returns the number of requests of a meter that ended because their clients gave up, by bucket; nil if
// nothing counts them.
func (l *Logged) Aborted(m Meter) []float64 {
	return l.ByBucket(l.counter(m, func(x *series.Series) bool {
		name := bare(l.Set.Metric(x.Metric).Name)
		return name == "num_aborted_requests_total" || name == "request_success_total" && l.Set.HasLabel(x.Label, "finished_reason=abort")
	}))
}

// fullBatches counts the prefill batches of the largest size, by bucket. It returns nil if all batches have one
// request and that size: then the prompts have that size, and no batch was cut.
func (l *Logged) fullBatches(r *Rank) []float64 {
	counts := make([]float64, l.Grid.N())
	most, all := r.Most(series.NewTokens), 0.0
	var x LoggedLine
	for lines := l.LinesOf(r.Place); lines.Next(&x); {
		if b := l.Grid.Of(x.At); x.Values[NewTokensOf] == most && b >= 0 && b < len(counts) {
			counts[b]++
			all++
		}
	}
	if _, n := r.total(series.NewTokens); r.Total(series.NewSeqs) == float64(n) && all >= 0.95*float64(n) {
		return nil
	}
	return counts
}

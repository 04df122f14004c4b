package telemetry

import (
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// The time that requests spend on servers follows from their number: by Little's law, the total time of all requests
// is the integral of how many run and wait. So logs and metrics show how that time is divided, without the latency of
// any single request.

// Running returns the share of the total time of requests that they spend running on a rank, in buckets for which
// holds is true.
func (l *Logged) Running(r *Rank, holds func(b int) bool) float64 {
	return l.TimeIn(r, holds, series.Running)
}

// Waiting returns the share that they spend waiting for a rank.
func (l *Logged) Waiting(r *Rank, holds func(b int) bool) float64 {
	return l.TimeIn(r, holds, series.Queued, series.Preallocated)
}

// Between matches buckets that overlap a period; a to of 0 is the end.
func (l *Logged) Between(from, to trace.Time) func(b int) bool {
	return func(b int) bool { return l.Grid.Start(b+1) > from && (to == 0 || l.Grid.Start(b) < to) }
}

// TimeIn returns the share that they spend in the states that some metrics count.
func (l *Logged) TimeIn(r *Rank, holds func(b int) bool, metrics ...series.MetricID) float64 {
	return l.PartOf(l.requests(r, holds, metrics...) * float64(l.Grid.Bucket) / 1e9)
}

// PartOf returns the share of the total time of requests that some request seconds are; 0 if the number of requests
// is unknown.
func (l *Logged) PartOf(seconds float64) float64 {
	all := l.stays() * float64(l.Grid.Bucket) / 1e9
	if all == 0 {
		return 0
	}
	return min(1, seconds/all)
}

// requests returns the mean number of requests that some metrics count on a rank, summed over buckets for which holds
// is true.
func (l *Logged) requests(r *Rank, holds func(b int) bool, metrics ...series.MetricID) (sum float64) {
	for _, m := range metrics {
		for b, p := range r.Points[m] {
			if p.N > 0 && holds(b) {
				sum += p.Mean()
			}
		}
	}
	return sum
}

// allRequests returns the number of requests on all ranks, summed over buckets. If decode servers report the requests
// that they wait for, these already include those on prefill servers, which are then left out.
func (l *Logged) allRequests() (sum float64) {
	var once bool
	for i := range l.Ranks {
		r := &l.Ranks[i]
		once = once || r.Where.Role == request.Decode && (r.Has(series.Preallocated) || r.Has(series.Receiving))
	}
	always := func(int) bool { return true }
	for i := range l.Ranks {
		if r := &l.Ranks[i]; !once || r.Where.Role != request.Prefill {
			sum += l.requests(r, always, series.Running, series.Queued, series.Preallocated, series.Receiving, series.Bootstrapping, series.Sending)
		}
	}
	return sum
}

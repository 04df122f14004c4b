package telemetry

import (
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// How long requests are on servers follows from how many there are: by Little's law, the time of all requests is the sum of how many run
// and wait at each moment. So logs and metrics tell which part of it is where, without the latency of a single one.

// Running is the part of the time of all requests in which they run on a rank in those buckets in which something holds.
func (l *Logged) Running(r *Rank, holds func(b int) bool) float64 {
	return l.TimeIn(r, holds, series.Running)
}

// Waiting is that in which they wait for it.
func (l *Logged) Waiting(r *Rank, holds func(b int) bool) float64 {
	return l.TimeIn(r, holds, series.Queued, series.Preallocated)
}

// Between is for the buckets that have a part between two times; 0 is the end.
func (l *Logged) Between(from, to trace.Time) func(b int) bool {
	return func(b int) bool { return l.Grid.Start(b+1) > from && (to == 0 || l.Grid.Start(b) < to) }
}

// TimeIn is that which they spend in what some metrics count.
func (l *Logged) TimeIn(r *Rank, holds func(b int) bool, metrics ...series.MetricID) float64 {
	return l.PartOf(l.requests(r, holds, metrics...) * float64(l.Grid.Bucket) / 1e9)
}

// PartOf is the part of the time of all requests that some seconds of them are; 0 where nothing tells how many there were.
func (l *Logged) PartOf(seconds float64) float64 {
	all := l.stays() * float64(l.Grid.Bucket) / 1e9
	if all == 0 {
		return 0
	}
	return min(1, seconds/all)
}

// requests adds up how many requests some metrics count on a rank, by bucket.
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

// allRequests adds up how many requests are on all ranks. A decode server counts a request from when its prefill server gets it, if it tells of
// those that it waits for.
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

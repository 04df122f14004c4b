package load

import (
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// Doubts are about requests with missing spans, for which it is unknown when they arrived, whether two
// of them are one, or where they were sent. Load changed only if it did whichever way that was. Call
// [Doubts.Sort] after the last one was added.
type Doubts struct {
	Arrivals []trace.Time
	routes   [request.Other + 1][]trace.Time // by role
}

// DoubtfulArrival reports whether it is unknown when a request of a set arrived, or whether it is half of
// another request. Tokenizing is the first thing that happens to a request, so it dates one that never ended.
func DoubtfulArrival(set *request.Set, r *request.Request) bool {
	switch {
	case r.Complete():
		return false
	case r.Flags&request.Unjoined != 0:
		return true
	}
	return r.Flags&request.MissingRoot != 0 && !tokenized(set, r)
}

// tokenized reports whether the dump has the span in which the prompt of a request was tokenized.
func tokenized(set *request.Set, r *request.Request) bool {
	for _, p := range set.PartsOf(r) {
		for _, t := range set.ThreadsOf(&set.Parts[p]) {
			if set.LastStage(t, request.Tokenizing) != nil {
				return true
			}
		}
	}
	return false
}

// Add notes what is doubtful about a request of a set. routed reports whether it is known where a part went.
func (d *Doubts) Add(set *request.Set, r *request.Request, routed func(*request.Part) bool) {
	if DoubtfulArrival(set, r) {
		d.Arrivals = memory.Append(d.Arrivals, r.Start)
	}
	var has [request.Other + 1]bool
	for _, p := range set.PartsOf(r) {
		part := &set.Parts[p]
		has[part.Role] = true
		if part.Serves() && !routed(part) {
			d.routes[part.Role] = memory.Append(d.routes[part.Role], part.Start)
		}
	}
	switch { // the other half went somewhere, too
	case r.Complete():
	case has[request.Prefill] && !has[request.Decode]:
		d.routes[request.Decode] = memory.Append(d.routes[request.Decode], r.Start)
	case has[request.Decode] && !has[request.Prefill]:
		d.routes[request.Prefill] = memory.Append(d.routes[request.Prefill], r.Start)
	}
}

// Sort sorts the times.
func (d *Doubts) Sort() {
	slices.Sort(d.Arrivals)
	for role := range d.routes {
		slices.Sort(d.routes[role])
	}
}

// CountWithin counts the times in [from, to).
func CountWithin(times []trace.Time, from, to trace.Time) float64 {
	i, _ := slices.BinarySearch(times, from)
	k, _ := slices.BinarySearch(times, to)
	return float64(k - i)
}

// LeastFactor returns the least factor by which a number changed that was between before[0] and
// before[1], and is between after[0] and after[1]; 1 if it may not have changed.
func LeastFactor(before, after [2]float64) float64 {
	switch {
	case after[0] > before[1]:
		return after[0] / max(before[1], math.SmallestNonzeroFloat64)
	case after[1] < before[0]:
		return before[0] / max(after[1], math.SmallestNonzeroFloat64)
	}
	return 1
}

// RateOf returns bounds of the arrivals per second in [from, to), of which n are known.
func (d *Doubts) RateOf(n int, from, to trace.Time) [2]float64 {
	seconds := float64(to-from) / 1e9
	return [2]float64{distribution.Ratio(float64(n), seconds), distribution.Ratio(float64(n)+CountWithin(d.Arrivals, from, to), seconds)}
}

// ShareOf returns bounds of a rank's share of the arrivals of a role in [from, to). n of these are known, own of them on the rank.
func (d *Doubts) ShareOf(role request.Role, own, n int, from, to trace.Time) [2]float64 {
	unknown := CountWithin(d.routes[role], from, to)
	all := float64(n) + unknown
	return [2]float64{distribution.Ratio(float64(own), all), distribution.Ratio(float64(own)+unknown, all)}
}

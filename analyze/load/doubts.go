package load

import (
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// Doubts are about requests of which spans are missing, so that nobody knows when they
// arrived, whether two of them are one, or where they were sent: load changed only if it did whatever they were.
// [Doubts.Sort] follows the last one.
type Doubts struct {
	Arrivals []trace.Time
	routes   [request.Other + 1][]trace.Time // by role
}

// DoubtfulArrival reports whether nobody knows when a request arrived, or whether it is
// the half of another one.
func DoubtfulArrival(r *request.Request) bool {
	return !r.Complete() && r.Flags&(request.MissingRoot|request.Unjoined) != 0
}

// Add notes what is doubtful about a request of a set; routed reports whether one knows where a part went.
func (d *Doubts) Add(set *request.Set, r *request.Request, routed func(*request.Part) bool) {
	if DoubtfulArrival(r) {
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

// Sort puts them in order.
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

// LeastFactor returns by how much a number changes at least that lies between low and high
// before and after; 1 if it may be the same.
func LeastFactor(before, after [2]float64) float64 {
	switch {
	case after[0] > before[1]:
		return after[0] / max(before[1], math.SmallestNonzeroFloat64)
	case after[1] < before[0]:
		return before[0] / max(after[1], math.SmallestNonzeroFloat64)
	}
	return 1
}

// RateOf bounds the arrivals per second of n known ones in [from, to).
func (d *Doubts) RateOf(n int, from, to trace.Time) [2]float64 {
	seconds := float64(to-from) / 1e9
	return [2]float64{distribution.Ratio(float64(n), seconds), distribution.Ratio(float64(n)+CountWithin(d.Arrivals, from, to), seconds)}
}

// ShareOf bounds the share of a rank that has own of n known ones of a role in [from, to).
func (d *Doubts) ShareOf(role request.Role, own, n int, from, to trace.Time) [2]float64 {
	unknown := CountWithin(d.routes[role], from, to)
	all := float64(n) + unknown
	return [2]float64{distribution.Ratio(float64(own), all), distribution.Ratio(float64(own)+unknown, all)}
}

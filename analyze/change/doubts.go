package change

import (
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// doubts are about requests of which spans are missing, so that nobody knows when they
// arrived, whether two of them are one, or where they were sent. Load changed only if it
// did whatever these requests were.
type doubts struct {
	arrivals []trace.Time
	routes   [request.Other + 1][]trace.Time // by role
}

// arrivalDoubtful reports whether nobody knows when a request arrived, or whether it is
// the half of another one.
func arrivalDoubtful(r *request.Request) bool {
	return !r.Complete() && r.Flags&(request.MissingRoot|request.Unjoined) != 0
}

// add notes what is doubtful about a request.
func (d *doubts) add(w *observer, r *request.Request) {
	if arrivalDoubtful(r) {
		d.arrivals = memory.Append(d.arrivals, r.Start)
	}
	var has [request.Other + 1]bool
	for _, p := range w.set.PartsOf(r) {
		part := &w.set.Parts[p]
		has[part.Role] = true
		if part.Serves() && w.ranks.Route(part) == request.None {
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

func (d *doubts) sort() {
	slices.Sort(d.arrivals)
	for role := range d.routes {
		slices.Sort(d.routes[role])
	}
}

// within counts the times in [from, to).
func within(times []trace.Time, from, to trace.Time) float64 {
	i, _ := slices.BinarySearch(times, from)
	k, _ := slices.BinarySearch(times, to)
	return float64(k - i)
}

// leastFactor returns by how much a number changes at least that lies between low and high
// before and after; 1 if it may be the same.
func leastFactor(before, after [2]float64) float64 {
	switch {
	case after[0] > before[1]:
		return factor(before[1], after[0])
	case after[1] < before[0]:
		return factor(before[0], after[1])
	}
	return 1
}

// rateOf bounds the arrivals per second of n known ones in [from, to).
func (d *doubts) rateOf(n int, from, to trace.Time) [2]float64 {
	seconds := float64(to-from) / 1e9
	return [2]float64{distribution.Ratio(float64(n), seconds), distribution.Ratio(float64(n)+within(d.arrivals, from, to), seconds)}
}

// shareOf bounds the share of a rank that has own of n known ones of a role in [from, to).
func (d *doubts) shareOf(role request.Role, own, n int, from, to trace.Time) [2]float64 {
	unknown := within(d.routes[role], from, to)
	all := float64(n) + unknown
	return [2]float64{distribution.Ratio(float64(own), all), distribution.Ratio(float64(own)+unknown, all)}
}

// sharesDiffer reports whether two shares are far enough apart to matter.
func sharesDiffer(before, after [2]float64) bool {
	away := max(after[0]-before[1], before[0]-after[1])
	between := leastFactor([2]float64{odds(before[0]), odds(before[1])}, [2]float64{odds(after[0]), odds(after[1])})
	return between >= minOddsFactor && !math.IsNaN(away) && away >= minShare
}

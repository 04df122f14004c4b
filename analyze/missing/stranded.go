package missing

import (
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// A group that is idle when it hangs has nothing in flight. What is sent to it later is on
// no rank and has no end, as what waits in a queue; but others that came after it have been
// answered, and the group should have got a share of these.
const (
	leastStranded = 3    // requests
	overtakenBy   = 5    // answered requests that came later
	byChance      = 1e-4 // that a group which goes on gets no request for so long
)

// An arrival is a part that was sent to a group.
type arrival struct {
	feeder   int // proc of its tokenizer
	start    trace.Time
	group    *group // nil is unknown
	answered bool
	request  int
}

// arrive notes a part, and its group if that is known.
func (w *listener) arrive(p *request.Part, g *group) {
	w.arrivals = append(w.arrivals, arrival{p.Proc, p.Start, g, p.Root != request.None, p.Request})
}

// stranded returns the requests that came through the tokenizers of a group since it did
// something for the last time, are on no rank, and have been overtaken; nil if the group
// may simply have got none.
func (w *listener) stranded(g *group) []int {
	feeders := map[int]bool{}
	for _, a := range w.arrivals {
		if a.group == g {
			feeders[a.feeder] = true
		}
	}
	var waiting []arrival
	var answered []trace.Time
	own, others := 0, 0
	for _, a := range w.arrivals {
		switch {
		case !feeders[a.feeder]:
		case a.start <= g.last && a.group == g:
			own++
		case a.start <= g.last && a.group != nil:
			others++
		case a.start <= g.last:
		case a.answered:
			answered = append(answered, a.start)
		case a.group == nil && w.Set.Requests[a.request].Status == request.Unfinished:
			waiting = append(waiting, a)
		}
	}
	share := float64(own) / float64(max(1, own+others))
	if len(answered) < overtakenBy || math.Pow(1-share, float64(len(answered)))*float64(len(w.groups)) > byChance {
		return nil
	}
	slices.Sort(answered)
	waiting = slices.DeleteFunc(waiting, func(a arrival) bool { return a.start >= answered[len(answered)-overtakenBy] })
	if len(waiting) < leastStranded {
		return nil
	}
	var requests []int
	for _, a := range waiting {
		requests = append(requests, a.request)
	}
	slices.Sort(requests)
	return slices.Compact(requests)
}

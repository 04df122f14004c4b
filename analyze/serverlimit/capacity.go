package serverlimit

import (
	"slices"

	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// WouldSuffice reports whether nobody had waited at a limit of some kind if the servers at a place
// had worked like the others of their role. What waits is what came less what was served: either only
// they have waiting requests, and the others serve as many without; or where others
// have some, too, as they get what these cannot take, all of them at the rate of those others serve
// what came. If more came than that, requests wait whoever is slow.
func (l *Limits) WouldSuffice(slow *place.Location, kind string) bool {
	var own, others []*Limit
	for i := range l.List {
		switch x := &l.List[i]; {
		case x.Location.Role != slow.Role || x.Kind.String() != kind:
		case x.Location.Overlaps(slow):
			own = append(own, x)
		default:
			others = append(others, x)
		}
	}
	if len(own) == 0 || len(others) == 0 {
		return len(own) > 0
	}
	during := request.Interval{From: own[0].From, To: own[0].To}
	came, servers := 0, 0
	for _, v := range l.servers {
		if v.location.Role == slow.Role {
			n, _ := v.flow(l.set, during)
			came, servers = came+n, servers+1
		}
	}
	served := 0
	for _, v := range l.servers {
		if slices.ContainsFunc(others, func(x *Limit) bool { return x.Location == v.location }) {
			_, n := v.flow(l.set, during)
			served += n
		}
	}
	return came*len(others) <= served*servers
}

// MostlyBefore reports whether half or more of what requests of a role wait at limits of some kind is of those that came
// before a time.
func (l *Limits) MostlyBefore(role request.Role, kind string, at trace.Time) bool {
	before, all := int64(0), int64(0)
	for i := range l.List {
		x := &l.List[i]
		if x.Location.Role != role || x.Kind.String() != kind {
			continue
		}
		for r, ns := range x.waits {
			all += ns
			if l.set.Requests[r].Start < at {
				before += ns
			}
		}
	}
	return 2*before >= all
}

// flow counts the requests that came to a server in a time, and those that it was done with.
func (v *server) flow(s *request.Set, during request.Interval) (came, served int) {
	for _, i := range v.served {
		r := &s.Requests[i]
		if r.Start >= during.From && r.Start < during.To {
			came++
		}
		if v.location.Role != request.Prefill && r.End >= during.From && r.End < during.To {
			served++
		}
	}
	if v.location.Role == request.Prefill {
		for _, h := range v.intervals[prefilling] {
			if h.time.To >= during.From && h.time.To < during.To {
				served++
			}
		}
	}
	return came, served
}

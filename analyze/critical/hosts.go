package critical

import (
	"cmp"
	"slices"
	"sort"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/collective"
	"github.com/sgtrace/sgtrace/analyze/gaps"
	"github.com/sgtrace/sgtrace/analyze/gpu"
	"github.com/sgtrace/sgtrace/analyze/replay"
	"github.com/sgtrace/sgtrace/internal/parallel"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// Hosts says for which ranks others waited in collectives, and what the hosts of these ranks
// did, from profiles of the ranks that served the requests.
type Hosts struct {
	stalls [][]stall // by engine of the waiting ranks; sorted, without overlaps
}

// A stall is a time in which ranks waited for a late one.
type stall struct {
	from, until trace.Time
	late, next  rankInterval // of the late rank, and of the last but one
	place       int32        // the late rank, for [replay.Run.PlaceName]
	activity    string       // what its host was in; [computing] if its devices were busy
}

// A rankInterval is the time of a rank from one collective to the next.
type rankInterval struct {
	rank       int32
	from, till trace.Time // from is 0 if there was no collective before
}

// computing describes a rank whose devices were busy: its host is not to blame.
const computing = "(computes longer)"

// ReadHosts reads the collectives of profiled ranks that the run has, too, and what hosts did
// while devices waited for them. It returns nil without profiles.
func ReadHosts(r *replay.Run, set *profile.Set) *Hosts {
	h := &Hosts{}
	if set == nil || len(set.Ranks) == 0 {
		return nil
	}
	places, engines := make([]int, len(set.Ranks)), make([]int, len(set.Ranks))
	for i, name := range set.Ranks {
		host := ""
		if i < len(set.Placements) {
			host = set.Placements[i].Host
		}
		if places[i], engines[i] = r.PlaceOf(name, host), replay.None; places[i] != replay.None {
			engines[i] = r.EngineOf(places[i])
		}
	}
	h.stalls = make([][]stall, len(r.Engines))
	left := make([]trace.Time, len(set.Ranks))
	n := 0
	for s := range collective.Stalls(set) {
		last, next := &s.Match.Arrivals[s.Last], &s.Match.Arrivals[s.Next]
		x := stall{from: last.Start - trace.Time(s.Ns), until: last.Start, place: int32(places[last.Rank]),
			late: rankInterval{last.Rank, left[last.Rank], last.Start}, next: rankInterval{next.Rank, left[next.Rank], next.Start}, activity: computing}
		for i := range s.Match.Arrivals {
			if a := &s.Match.Arrivals[i]; i != s.Last && engines[a.Rank] != replay.None && x.place != replay.None {
				n += h.add(engines[a.Rank], x)
			}
		}
		for _, a := range s.Match.Arrivals {
			left[a.Rank] = max(a.End, a.Start)
		}
	}
	if n == 0 {
		h.stalls = nil
		return h
	}
	h.blame(set)
	for _, list := range h.stalls {
		slices.SortFunc(list, func(x, y stall) int { return cmp.Or(cmp.Compare(x.from, y.from), cmp.Compare(x.until, y.until)) })
		at := trace.Time(0)
		for i := range list {
			list[i].from = max(list[i].from, at)
			at = max(at, list[i].until)
		}
	}
	return h
}

// missing says why profiles don't explain any of the parts; "" if they do, or if there are none.
func (h *Hosts) missing(parts []Part) string {
	switch {
	case h == nil || slices.ContainsFunc(parts, func(p Part) bool { return p.Host != "" }):
		return ""
	case h.stalls == nil:
		return "the profiles have no collective in which a rank of these servers came last: that takes all ranks of a server"
	}
	return "no collective in the profiles is in a step of these requests: they were recorded at another time"
}

// add adds a stall of the ranks of an engine. It returns 1, or 0 if the stall was there already.
func (h *Hosts) add(engine int, s stall) (n int) {
	list := h.stalls[engine]
	if n := len(list); n > 0 && list[n-1] == s {
		return 0
	}
	h.stalls[engine] = append(list, s)
	return 1
}

// A wait is a part of a gap in which a rank's devices waited for something that their host did.
type wait struct {
	at       trace.Time // start of the gap, on the common clock
	ns       int64
	activity string
}

// blame sets, for each stall, what the host of the late rank did, if its devices waited for
// that longer than those of the last rank but one, by at least half of the stall.
func (h *Hosts) blame(set *profile.Set) {
	collector := gaps.Collect(set)
	gpu.Measure(set, gpu.Options{Gaps: collector.Add})
	waits := make([][]wait, len(set.Ranks))
	collector.Measure(gaps.Options{Brief: true, Each: func(rank int32, c *gaps.Cause, gap trace.Time, ns int64) {
		waits[rank] = append(waits[rank], wait{gap - trace.Time(set.ClockOffsetOf(rank)), ns, c.Where()})
	}})
	for _, list := range waits {
		slices.SortFunc(list, func(x, y wait) int { return cmp.Or(cmp.Compare(x.at, y.at), strings.Compare(x.activity, y.activity)) })
	}
	parallel.Each(len(h.stalls), func(e int) {
		for i := range h.stalls[e] {
			h.stalls[e][i].explain(waits)
		}
	})
}

// explain sets what the host of the late rank did. Both ranks left the previous collective
// together, so the late one is late by how much longer it waits for its host.
func (s *stall) explain(waits [][]wait) {
	if s.late.from == 0 || s.next.from == 0 {
		s.activity = ""
		return
	}
	more := map[string]int64{}
	sum := s.late.add(more, waits, 1) - s.next.add(more, waits, -1)
	if 2*sum < int64(s.until-s.from) {
		return
	}
	most := int64(0)
	for activity, ns := range more {
		if ns > most || ns == most && most > 0 && activity < s.activity {
			s.activity, most = activity, ns
		}
	}
}

// add adds to `to`, by activity, how long the rank's devices waited for their host, times sign. It returns the sum.
func (x *rankInterval) add(to map[string]int64, waits [][]wait, sign int64) (sum int64) {
	const slack = 1000 // a gap begins with the end of the collective
	list := waits[x.rank]
	for k := sort.Search(len(list), func(i int) bool { return list[i].at >= x.from-slack }); k < len(list) && list[k].at < x.till; k++ {
		to[list[k].activity] += sign * list[k].ns
		sum += list[k].ns
	}
	return sum
}

// A segment is one segment of a path, with what the host of the late rank did.
type segment struct {
	replay.Segment
	activity string // "" if unknown
}

// path returns the path of a request. What its own steps waited for in collectives become segments
// at the end of each step; their order within the step is unknown, and doesn't matter. h may be nil.
func (h *Hosts) path(r *replay.Run, q int) (list []segment) {
	at := r.Requests[q].Arrival
	var known []lateness // the known activities during the late rank's segment that follows
	path := r.Path(q)
	for i := range path {
		x := &path[i]
		begin := at
		at = x.Until
		if h == nil || h.stalls == nil || x.Why != replay.Decoding && x.Why != replay.Prefilling || x.Place == replay.None {
			list = appendKnown(list, x, begin, known)
			known = nil
			continue
		}
		var late []lateness
		if i+1 < len(path) && path[i+1].Why == replay.LateRank { // spans already show some of the time
			late = h.within(x.Place, begin, path[i+1].Until)
			known = take(late, path[i+1].Place, int64(path[i+1].Until-x.Until))
		} else {
			late = h.within(x.Place, begin, x.Until)
		}
		left := int64(x.Until - begin)
		for k := range late {
			late[k].ns = min(late[k].ns, left)
			left -= late[k].ns
		}
		own := segment{Segment: *x}
		if own.Until = begin + trace.Time(left); left > 0 {
			list = append(list, own)
		}
		end := own.Until
		for _, l := range late {
			if end += trace.Time(l.ns); l.ns > 0 {
				list = append(list, segment{replay.Segment{Why: replay.Collective, Until: end, Place: l.place, From: replay.None, Other: replay.None}, l.activity})
			}
		}
	}
	return list
}

// lateness is how long a rank kept others waiting, while its host did something.
type lateness struct {
	place    int
	activity string
	ns       int64
}

// within returns which ranks an engine waited for in some time, the longest wait first.
func (h *Hosts) within(engine int, from, until trace.Time) (list []lateness) {
	stalls := h.stalls[engine]
	for k := sort.Search(len(stalls), func(i int) bool { return stalls[i].until > from }); k < len(stalls) && stalls[k].from < until; k++ {
		s := &stalls[k]
		ns := int64(min(s.until, until) - max(s.from, from))
		if ns <= 0 {
			continue
		}
		at := slices.IndexFunc(list, func(l lateness) bool { return l.place == int(s.place) && l.activity == s.activity })
		if at < 0 {
			at = len(list)
			list = append(list, lateness{int(s.place), s.activity, 0})
		}
		list[at].ns += ns
	}
	slices.SortStableFunc(list, func(a, b lateness) int { return cmp.Compare(b.ns, a.ns) })
	return list
}

// take removes up to ns of the lateness of the rank at place from list, and returns what it removed.
func take(list []lateness, place int, ns int64) (known []lateness) {
	for i := range list {
		if l := &list[i]; l.place == place && ns > 0 {
			part := min(ns, l.ns)
			known = append(known, lateness{place, l.activity, part})
			l.ns -= part
			ns -= part
		}
	}
	return known
}

// appendKnown appends a segment, split by known activities of hosts; begin is its beginning.
func appendKnown(list []segment, x *replay.Segment, begin trace.Time, known []lateness) []segment {
	for _, l := range known {
		if begin += trace.Time(l.ns); l.ns > 0 {
			part := *x
			part.Until = begin
			list = append(list, segment{part, l.activity})
		}
	}
	if begin < x.Until {
		list = append(list, segment{*x, ""})
	}
	return list
}

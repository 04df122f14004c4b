package clocks

import (
	"cmp"
	"slices"

	"github.com/sgtrace/sgtrace/convert/inputs"
	"github.com/sgtrace/sgtrace/convert/ranks"
	"github.com/sgtrace/sgtrace/internal/align"
	"github.com/sgtrace/sgtrace/internal/align/matching"
	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/internal/parallel"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// ReadCollectives reads the collectives of inputs whose rows are walked, of which
// nothing is known so far. Those of a process that a PyTorch trace has too stay that trace's, which
// tells more about them.
func (m *Clocks) ReadCollectives() {
	if len(m.Tracks) == 1 && m.Tracks[0].Captures[0].File.Meta.Backend == "" {
		return // nobody to meet, and no sizes
	}
	type process struct {
		source *inputs.Indexed
		pid    int64
	}
	byProcess := map[process]*inputs.Recording{}
	for _, r := range m.Tracks {
		if slices.ContainsFunc(r.Captures, func(c *ranks.Capture) bool { return !c.IsBeside() }) {
			continue
		}
		for _, c := range r.Captures {
			byProcess[process{c.File.Source, c.File.Meta.PID}] = c.File
		}
	}
	parallel.Each(len(m.Sources), func(i int) {
		x := m.Sources[i]
		if x.Rows == nil {
			return
		}
		opt := m.Options(profile.Filter{IndexOnly: true, CollectivesOnly: true}, 0)
		opt.Diags, opt.Args = &trace.Diags{}, nil // what is wrong with the file was reported when it was opened
		profiles, err := x.Stream(opt)
		if err != nil {
			return
		}
		for _, p := range profiles {
			if f := byProcess[process{x, p.Meta.PID}]; f != nil {
				f.Rows, f.Collectives = p.Rows, p.Collectives
			}
		}
	})
}

// SyncPoints returns the collectives that were matched, as far as their ranks are
// wanted, on the reference clock, by their first arrival. Those that the clocks
// contradict are left out.
func (m *Clocks) SyncPoints() []profile.SyncPoint {
	index := map[*ranks.Track]int32{}
	for i, r := range m.Tracks {
		index[r] = int32(i)
	}
	rejected := map[int]bool{}
	for _, i := range m.Solution.Rejected {
		rejected[i] = true
	}
	size := 0
	for _, match := range m.Matches {
		size += len(match.Members)
	}
	arrivals := memory.Make[profile.Arrival](size)[:0]
	clocks := make([]int, 0, len(m.Tracks)) // of the members at hand
	out := make([]profile.SyncPoint, 0, len(m.Matches))
	for i, match := range m.Matches {
		if rejected[i] || match.Kind == matching.KindSend {
			continue
		}
		from := len(arrivals)
		x := profile.SyncPoint{Sync: match.Kind == matching.KindSync || match.Kind == matching.KindMeet, Apart: match.Kind == matching.KindMeet, In: -1, Out: -1, GroupSize: -1}
		clocks = clocks[:0]
		for _, member := range match.Members {
			rank, wanted := index[m.AlignOf[member.Rank]]
			if !wanted {
				continue
			}
			c := m.Calls[member.Rank][member.Index]
			clock := m.HostClocks[c.Capture.Clock]
			p := c.Collective()
			arrivals = append(arrivals, profile.Arrival{Rank: rank,
				Start: trace.Time(clock.Fit.ToReference(int64(p.Time))), End: trace.Time(clock.Fit.ToReference(int64(p.Time) + p.Dur))})
			x.In, x.Out, x.GroupSize = max(x.In, p.In), max(x.Out, p.Out), max(x.GroupSize, p.GroupSize)
			x.Op, x.Dtype, x.Group = cmp.Or(x.Op, p.Op), cmp.Or(x.Dtype, p.Dtype), cmp.Or(x.Group, p.Group)
			x.Name, x.Step = cmp.Or(x.Name, p.Name), cmp.Or(x.Step, p.Step)
			clocks = append(clocks, c.Capture.Clock)
		}
		if x.Arrivals = arrivals[from:len(arrivals):len(arrivals)]; len(x.Arrivals) < 2 {
			arrivals = arrivals[:from]
			continue
		}
		x.Bound = m.apart(clocks, int64(x.Arrivals[0].Start))
		slices.SortFunc(x.Arrivals, func(a, b profile.Arrival) int { return cmp.Compare(a.Rank, b.Rank) })
		out = append(out, x)
	}
	return byFirstArrival(out)
}

// byFirstArrival sorts sync points; those that begin at the same time stay in their order. What
// is sorted is small, as sync points are not.
func byFirstArrival(points []profile.SyncPoint) []profile.SyncPoint {
	type place struct {
		first trace.Time
		index int
	}
	order := make([]place, len(points))
	for i := range points {
		order[i] = place{firstArrival(&points[i]), i}
	}
	slices.SortFunc(order, func(a, b place) int { return cmp.Or(cmp.Compare(a.first, b.first), cmp.Compare(a.index, b.index)) })
	sorted := make([]profile.SyncPoint, len(points))
	for i, p := range order {
		sorted[i] = points[p.index]
	}
	return sorted
}

// Ahead returns how far the clock of each wanted rank is ahead of the reference, in the
// middle of what was recorded of it, ns.
func (m *Clocks) Ahead() []int64 {
	ahead := make([]int64, len(m.Tracks))
	for i, r := range m.Tracks {
		middle := int64(0)
		for k, c := range r.Captures {
			if at := int64(c.First) + (int64(c.Last)-int64(c.First))/2; k == 0 || at < middle {
				middle = at
			}
		}
		ahead[i] = middle - m.HostClocks[r.Clock].Fit.ToReference(middle)
	}
	return ahead
}

// ForgetMatches gives up which collectives are the same, and those of inputs whose rows are
// walked: SyncPoints and Parts have told all that reports want of it.
func (m *Clocks) ForgetMatches() {
	m.alignRanks, m.AlignOf, m.Calls, m.Matches = nil, nil, nil, nil
	for _, r := range m.Tracks {
		for _, c := range r.Captures {
			if c.File.Source.Rows != nil {
				c.File.Collectives = nil
			}
		}
	}
}

// Parts returns what wanted ranks did in collectives, by rank and start. It is to be called
// beside [Clocks.SyncPoints].
func (m *Clocks) Parts() []profile.Part {
	index := map[*ranks.Track]int32{}
	for i, r := range m.Tracks {
		index[r] = int32(i)
	}
	first := make([]int, len(m.Calls)) // of each rank, in parts; -1 is not wanted
	size := 0
	for _, calls := range m.Calls {
		size += len(calls)
	}
	parts := make([]profile.Part, 0, size)
	for i, calls := range m.Calls {
		rank, wanted := index[m.AlignOf[i]]
		if first[i] = len(parts); !wanted {
			first[i] = -1
			continue
		}
		for _, c := range calls {
			parts = append(parts, profile.Part{Collective: c.Collective(), Rank: rank})
		}
	}
	next := 0 // of the rejected
	for i, match := range m.Matches {
		refused := next < len(m.Solution.Rejected) && m.Solution.Rejected[next] == i
		if refused {
			next++
		}
		members := slices.DeleteFunc(slices.Clone(match.Members), func(x matching.Member) bool { return first[x.Rank] < 0 })
		for _, x := range members {
			p := &parts[first[x.Rank]+int(x.Index)]
			p.Met, p.Refused = len(members) > 1 && !refused, refused
		}
	}
	slices.SortStableFunc(parts, func(a, b profile.Part) int { return cmp.Compare(a.Rank, b.Rank) })
	return parts
}

func firstArrival(x *profile.SyncPoint) trace.Time {
	first := x.Arrivals[0].Start
	for _, a := range x.Arrivals {
		first = min(first, a.Start)
	}
	return first
}

// apart returns how far some clocks may be off each other about the time t of the
// reference: the sum of the two largest bounds, align.Unknown if one is not known.
func (m *Clocks) apart(clocks []int, t int64) int64 {
	slices.Sort(clocks)
	clocks = slices.Compact(clocks)
	if len(clocks) < 2 {
		return 0
	}
	first, second := int64(0), int64(0)
	component := m.HostClocks[clocks[0]].Fit.Component
	for _, i := range clocks {
		fit := &m.HostClocks[i].Fit
		b := fit.BoundAt(t)
		if b == align.Unknown || fit.Component != component {
			return align.Unknown
		}
		if b > first {
			first, second = b, first
		} else {
			second = max(second, b)
		}
	}
	return first + second
}

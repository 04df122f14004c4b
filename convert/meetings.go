package convert

import (
	"cmp"
	"slices"

	"github.com/sgtrace/sgtrace/internal/align"
	"github.com/sgtrace/sgtrace/internal/parallel"
	"github.com/sgtrace/sgtrace/nsysexport"
	"github.com/sgtrace/sgtrace/nsysexport/rows"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// readCollectives reads the collectives of Nsight Systems exports, of which outlines
// know nothing. Those of a process that a PyTorch trace has too stay that trace's, which
// tells more about them.
func (m *Merge) readCollectives(opt *ReadOptions) {
	if len(m.ranks) < 2 {
		return // nobody to meet
	}
	byProcess := map[place]*recording{}
	for _, r := range m.ranks {
		if slices.ContainsFunc(r.captures, func(c *capture) bool { return !c.isExport() }) {
			continue
		}
		for _, c := range r.captures {
			byProcess[c.place()] = c.file
		}
	}
	sources := opt.outlines.exports
	parallel.Each(len(sources), func(i int) {
		name := sources[i].Name
		// What is wrong with the file was reported when it was opened.
		profiles, err := nsysexport.ReadProfiles(name, rows.Options{Syms: m.dump.Syms, Diags: &trace.Diags{}},
			&profile.Filter{IndexOnly: true})
		if err != nil {
			return
		}
		for _, p := range profiles {
			if f := byProcess[place{name: name, pid: p.Meta.PID}]; f != nil {
				f.Rows, f.Collectives = p.Rows, p.Collectives
			}
		}
	})
}

// meetings returns the collectives that were matched, as far as their ranks are
// wanted, on the reference clock, by their first arrival. Those that the clocks
// contradict are left out.
func (m *Merge) meetings() []profile.Meeting {
	index := map[*rankTrack]int32{}
	for i, r := range m.ranks {
		index[r] = int32(i)
	}
	rejected := map[int]bool{}
	for _, i := range m.solution.Rejected {
		rejected[i] = true
	}
	size := 0
	for _, match := range m.matches {
		size += len(match.Members)
	}
	arrivals := make([]profile.Arrival, 0, size)
	clocks := make([]int, 0, len(m.ranks)) // of the members at hand
	var out []profile.Meeting
	for i, match := range m.matches {
		if rejected[i] || match.Kind == align.KindSend {
			continue
		}
		from := len(arrivals)
		x := profile.Meeting{Sync: match.Kind == align.KindSync, In: -1, Out: -1, GroupSize: -1}
		clocks = clocks[:0]
		for _, member := range match.Members {
			rank, wanted := index[m.alignOf[member.Rank]]
			if !wanted {
				continue
			}
			c := m.calls[member.Rank][member.Index]
			clock := m.clocks[c.capture.clock]
			p := c.collective()
			arrivals = append(arrivals, profile.Arrival{Rank: rank,
				Start: trace.Time(clock.fit.ToReference(int64(p.Time))), End: trace.Time(clock.fit.ToReference(int64(p.Time) + p.Dur))})
			x.In, x.Out, x.GroupSize = max(x.In, p.In), max(x.Out, p.Out), max(x.GroupSize, p.GroupSize)
			x.Op, x.Dtype, x.Group = cmp.Or(x.Op, p.Op), cmp.Or(x.Dtype, p.Dtype), cmp.Or(x.Group, p.Group)
			x.Name = cmp.Or(x.Name, p.Name)
			clocks = append(clocks, c.capture.clock)
		}
		if x.Arrivals = arrivals[from:len(arrivals):len(arrivals)]; len(x.Arrivals) < 2 {
			arrivals = arrivals[:from]
			continue
		}
		x.Bound = m.apart(clocks, int64(x.Arrivals[0].Start))
		slices.SortFunc(x.Arrivals, func(a, b profile.Arrival) int { return cmp.Compare(a.Rank, b.Rank) })
		out = append(out, x)
	}
	slices.SortStableFunc(out, func(a, b profile.Meeting) int { return cmp.Compare(firstArrival(&a), firstArrival(&b)) })
	return out
}

func firstArrival(x *profile.Meeting) trace.Time {
	first := x.Arrivals[0].Start
	for _, a := range x.Arrivals {
		first = min(first, a.Start)
	}
	return first
}

// apart returns how far some clocks may be off each other about the time t of the
// reference: the sum of the two largest bounds, align.Unknown if one is not known.
func (m *Merge) apart(clocks []int, t int64) int64 {
	slices.Sort(clocks)
	clocks = slices.Compact(clocks)
	if len(clocks) < 2 {
		return 0
	}
	first, second := int64(0), int64(0)
	component := m.clocks[clocks[0]].fit.Component
	for _, i := range clocks {
		fit := &m.clocks[i].fit
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

package drawing

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/sgtrace/sgtrace/convert/drawing/counters"
	"github.com/sgtrace/sgtrace/convert/inputs"
	"github.com/sgtrace/sgtrace/convert/ranks"
	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
	"github.com/sgtrace/sgtrace/trace/naming"
)

const (
	// manyRows is the largest number of rows shown individually: if there are more, rows of ranks get a
	// group of their own, and servers are combined by role.
	manyRows = 8
)

// loadView is the group that shows the load over time.
type loadView struct {
	b    *trace.Builder
	top  trace.TrackID
	rows int32
}

// drawLoad adds the load group: arrivals, first tokens, and queued and running requests of each server, and
// how busy the devices of each rank were. Either l or m may be nil.
func drawLoad(b *trace.Builder, l *layout, m *merging) {
	v := &loadView{b: b}
	if l != nil {
		v.drawServers(l)
	}
	if m != nil && m.in.KeepsKinds() {
		v.drawBusy(m)
	}
}

// group returns the track of the group, which is created with its first row.
func (v *loadView) group() trace.TrackID {
	if v.top == 0 {
		v.top = v.b.Track(trace.Track{Name: v.b.Intern(profile.Load), Order: loadOrder, Rank: trace.NoRank,
			Desc: v.b.Intern("how much there was to do, and how busy devices were")})
	}
	return v.top
}

// draw adds a row with the values, rounded to tenths, and ends it with 0.
func (v *loadView) draw(s *counters.Pieces, parent trace.TrackID, name, unit, desc string) {
	track := v.b.Track(trace.Track{Parent: parent, Kind: trace.KindCounter, Name: v.b.Intern(name), Order: v.rows, Rank: trace.NoRank,
		Unit: v.b.Intern(unit), Desc: v.b.Intern(desc)})
	v.rows++
	last := math.NaN()
	for i, value := range s.Values {
		value = math.Round(10*value) / 10
		if !math.IsNaN(value) && value != last {
			v.b.Sample(trace.Sample{Time: s.Extent.From + trace.Time(i)*s.Width, Value: value, Track: track})
			last = value
		}
	}
	if last != 0 && !slices.ContainsFunc(s.Values, math.IsNaN) {
		v.b.Sample(trace.Sample{Time: s.Extent.To, Value: 0, Track: track})
	}
}

// A serverLoad is the load of a server, which is all ranks that share one queue, or of all servers of a
// role.
type serverLoad struct {
	place  naming.Place
	order  int // of its first proc
	starts []trace.Time
	firsts []firstToken
	levels levels
}

// A firstToken is the time of a first token, and its TTFT in ns.
type firstToken struct {
	at   trace.Time
	took int64
}

// drawServers adds four rows for each server, or for each role if there are too many servers.
func (v *loadView) drawServers(l *layout) {
	e, servers := l.during, l.loads
	l.loads = nil // releases the times of all requests
	for _, s := range servers {
		of := naming.Separator + l.set.Names.Rank(s.place)
		arrivals := counters.NewPieces(e, counters.RatePieces(len(s.starts)), 0)
		for _, t := range s.starts {
			arrivals.Values[arrivals.At(t)] += float64(time.Second) / float64(arrivals.Width)
		}
		v.draw(&arrivals, v.group(), "arrivals"+of, "requests/s", "requests that reached this server, in each "+arrivals.Text())
		if len(s.firsts) > 0 {
			firsts := tokensPieces(e, s.firsts)
			v.draw(&firsts, v.group(), "TTFT p90"+of, "ms", "time to the first token, of the requests that got theirs in each "+firsts.Text())
		}
		for _, level := range []struct {
			name, desc string
			steps      []change
		}{
			{"queued", "most requests in a waiting stage at once, in each ", s.levels.queued},
			{"running", "most requests in a prefill or decode stage at once, in each ", s.levels.running},
		} {
			if len(level.steps) > 0 {
				most := levelPieces(e, level.steps)
				v.draw(&most, v.group(), level.name+of, "requests", level.desc+most.Text())
			}
		}
	}
}

// collectLoads collects the load of each server, or of each role if there are too many servers.
func (l *layout) collectLoads() {
	if l.loads = l.serverLoads(true); len(l.loads) > manyRows {
		l.loads = l.serverLoads(false)
	}
	for _, s := range l.loads {
		s.levels.sort()
	}
}

// serverLoads collects loads in display order: for each server if single, or else for each role. Ranks that
// share the work of a server report the same requests; the lead rank counts.
func (l *layout) serverLoads(single bool) []*serverLoad {
	loads := map[naming.Place]*serverLoad{}
	for r := range l.set.AllRequests() {
		for _, p := range l.set.PartsOf(&l.set.Requests[r]) {
			part := &l.set.Parts[p]
			t := l.set.Lead(part)
			if t == request.None || !slices.Contains(request.ServingRoles, part.Role) || !l.extent.Has(part.Start) {
				continue
			}
			proc := l.set.Threads[t].Proc
			place := naming.Place{Role: part.Role.String(), Rank: trace.NoRank}
			if single {
				place = l.set.Place(proc)
				place.Rank = trace.Rank{DP: place.Rank.DP, TP: -1, PP: -1, EP: -1, Global: -1}
			}
			s := order.Memo(loads, place, func() *serverLoad { return &serverLoad{place: place, order: proc} })
			s.order = min(s.order, proc)
			s.add(l, part, t)
		}
	}
	return slices.SortedFunc(maps.Values(loads), func(a, b *serverLoad) int { return cmp.Compare(a.order, b.order) })
}

// add adds a part of a request, whose lead thread is t.
func (s *serverLoad) add(l *layout, part *request.Part, t int) {
	s.starts = memory.Append(s.starts, part.Start)
	if part.TTFT != request.Unknown && l.extent.Has(part.Start+trace.Time(part.TTFT)) {
		s.firsts = memory.Append(s.firsts, firstToken{part.Start + trace.Time(part.TTFT), part.TTFT})
	}
	s.levels.add(l, t)
}

// tokensPieces returns the p90 of TTFT in each piece, in ms.
func tokensPieces(e inputs.Extent, firsts []firstToken) counters.Pieces {
	e.To = max(e.To, slices.MaxFunc(firsts, func(a, b firstToken) int { return cmp.Compare(a.at, b.at) }).at)
	s := counters.NewPieces(e, counters.RatePieces(len(firsts)), math.NaN())
	took := make([][]int64, len(s.Values))
	for _, f := range firsts {
		took[s.At(f.at)] = append(took[s.At(f.at)], f.took)
	}
	for i, list := range took {
		if slices.Sort(list); len(list) > 0 {
			s.Values[i] = float64(request.NearestRank(list, 90)) / 1e6
		}
	}
	return s
}

// levelPieces returns the highest level in each piece; steps must be sorted.
func levelPieces(e inputs.Extent, steps []change) counters.Pieces {
	s := counters.NewPieces(e, counters.MostPieces, 0)
	level, done := int64(0), 0 // pieces up to done have the level at their start
	for len(steps) > 0 {
		at := steps[0].at
		i := s.At(at)
		for ; done < i; done++ {
			s.Values[done+1] = float64(level)
		}
		if at == s.Extent.From+trace.Time(i)*s.Width {
			s.Values[i] = 0 // the level before this piece ends exactly here
		}
		for len(steps) > 0 && steps[0].at == at {
			level, steps = level+steps[0].value, steps[1:]
		}
		s.Values[i] = max(s.Values[i], float64(level))
	}
	return s
}

// drawBusy adds a row for each rank: the share of time in which its devices were busy.
func (v *loadView) drawBusy(m *merging) {
	type rankBusy struct {
		name string
		busy []inputs.Extent
	}
	var all []rankBusy
	e := inputs.Extent{From: math.MaxInt64}
	for _, r := range m.of.Tracks {
		var busy []inputs.Extent
		for _, c := range r.Captures {
			busy = append(busy, m.busyOf(c)...)
		}
		if busy = union(busy); len(busy) > 0 {
			e = inputs.Extent{From: min(e.From, busy[0].From), To: max(e.To, busy[len(busy)-1].To)}
			all = append(all, rankBusy{r.Name, busy})
		}
	}
	if len(all) == 0 {
		return
	}
	parent, mean := v.group(), counters.NewPieces(e, counters.MostPieces, 0)
	desc := "part of the time for which a device did something, in each " + mean.Text()
	if len(all) > manyRows {
		parent = v.b.Track(trace.Track{Parent: v.group(), Name: v.b.Intern("GPU busy by rank"), Order: math.MaxInt32, Rank: trace.NoRank, Desc: v.b.Intern(desc)})
	}
	for _, r := range all {
		s := busyPieces(e, r.busy)
		for i, value := range s.Values {
			mean.Values[i] += value / float64(len(all))
		}
		v.draw(&s, parent, "GPU busy"+naming.Separator+r.name, "%", desc)
	}
	if len(all) > manyRows {
		v.draw(&mean, v.group(), fmt.Sprintf("GPU busy%smean of %d ranks", naming.Separator, len(all)), "%", desc)
	}
}

// busyPieces returns how much of each piece is busy, in percent.
func busyPieces(e inputs.Extent, busy []inputs.Extent) counters.Pieces {
	s := counters.NewPieces(e, counters.MostPieces, 0)
	for _, b := range busy {
		for from := b.From; from < b.To; {
			i := s.At(from)
			to := min(b.To, s.Extent.From+trace.Time(i+1)*s.Width)
			s.Values[i] += 100 * float64(to-from) / float64(s.Width)
			from = to
		}
	}
	return s
}

// busyOf returns when the devices of a capture were busy, on the common clock: lane by lane, sorted within
// each lane.
func (m *merging) busyOf(c *ranks.Capture) (busy []inputs.Extent) {
	for l := range streamsOf(c) {
		for _, lane := range l.Lanes {
			own := len(busy)
			for _, e := range lane {
				if event := &c.File.Events[e]; m.classes.role(event) != noRole && event.Dur > 0 {
					busy = appendExtent(busy, own, inputs.Extent{From: c.Time(event.Time), To: c.Time(event.End())})
				}
			}
		}
	}
	return busy
}

// union returns the sorted union of extents. It reorders its argument.
func union(extents []inputs.Extent) []inputs.Extent {
	before := func(a, b inputs.Extent) int { return cmp.Compare(a.From, b.From) }
	if !slices.IsSortedFunc(extents, before) {
		slices.SortFunc(extents, before)
	}
	out := extents[:0]
	for _, x := range extents {
		out = appendExtent(out, 0, x)
	}
	return out
}

// appendExtent appends x, which starts no earlier than list[from:]; if it touches the last of those, it
// extends that one instead.
func appendExtent(list []inputs.Extent, from int, x inputs.Extent) []inputs.Extent {
	if k := len(list) - 1; k >= from && x.From <= list[k].To {
		list[k].To = max(list[k].To, x.To)
		return list
	}
	return append(list, x)
}

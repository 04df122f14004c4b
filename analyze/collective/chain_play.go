package collective

import (
	"math/rand/v2"
	"slices"
	"sort"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// A Change gives one rank the level of its peers.
type Change struct {
	Rank         int        // -1 changes nothing
	Since, Until trace.Time // when; 0 is open
	// Seed draws by how much it is earlier or later than the median of its peers, as one of them is
	// at a collective nearby.
	Seed uint64
	// HostsFollow lets hosts be early whenever their devices are. Else a host is early only if it waited.
	HostsFollow bool
}

// StepTimes are how long ranks took from collective to collective, by kind of step that asked for
// them: summed up over the ranks, in ns, without pauses.
type StepTimes [profile.StepDecode + 1]int64

// Total returns the sum over all kinds.
func (t *StepTimes) Total() (sum int64) {
	for _, ns := range t {
		sum = distribution.AddTimes(sum, ns)
	}
	return sum
}

// A player plays the chain.
type player struct {
	*Chain
	change *Change
	rng    *rand.Rand
	ranks  []playing
	took   []int64 // at the point at hand: from the last collective to this one, recorded
	now    []trace.Time
	levels []float64 // of peers at a point: what each takes, as part of the median
	recent []float64 // levels of the last points
	next   int       // of recent
}

// A playing is a rank while the chain is played.
type playing struct {
	known     bool
	end       trace.Time // of its last collective, as recorded
	at        trace.Time // the same, as played
	ends      []trace.Time
	early     []int64 // by how much ends came earlier
	wait, hit int     // of the waits of its host, and of ends
	host      int64   // by how much its host is early, ns
}

// window is how many collectives nearby tell how far ranks are from the median.
const window = 64

// Play plays the chain, and returns how long the ranks of the component of a rank took as recorded
// and as played. Ranks are those, by index.
func (r *Chain) Play(c *Change) (recorded, played StepTimes, ranks []int) {
	p := &player{Chain: r, change: c, rng: rand.New(rand.NewPCG(c.Seed, 39)), ranks: make([]playing, len(r.names))}
	component := r.componentOf(c.Rank)
	for i := range r.points {
		if x := &r.points[i]; x.component == component {
			p.meet(x, &recorded, &played)
		}
	}
	for i := range p.ranks {
		if p.ranks[i].known {
			ranks = append(ranks, i)
		}
	}
	return recorded, played, ranks
}

// componentOf returns the component in which a rank meets others; that of the first point of none.
func (r *Chain) componentOf(rank int) int32 {
	for i := range r.arrivals {
		if int(r.arrivals[i].rank) == rank {
			at := sort.Search(len(r.points), func(k int) bool { return int(r.points[k].arrivals[1]) > i })
			return r.points[at].component
		}
	}
	return r.points[0].component
}

// meet plays a collective.
func (p *player) meet(x *point, recorded, played *StepTimes) {
	list := p.at(x)
	p.took, p.now = p.took[:0], p.now[:0]
	least, idle := int64(-1), true
	for i := range list {
		s := &p.ranks[list[i].rank]
		took := int64(-1)
		if s.known {
			took = max(0, int64(list[i].start-s.end))
			if least < 0 || took < least {
				least = took
			}
		}
		idle = idle && (took < 0 || took >= pause)
		p.took = append(p.took, took)
	}
	for i := range list {
		p.now = append(p.now, p.come(&list[i], p.took[i], least, idle))
	}
	if !idle {
		p.level(list)
	}
	p.leave(x, list, idle, recorded, played)
}

// come returns when a rank comes to a collective. Its device does when it has done what it had to, which
// is what the fastest rank takes where its host was late; its host does when it is there.
func (p *player) come(a *arrival, took, least int64, idle bool) trace.Time {
	s := &p.ranks[a.rank]
	if took < 0 || idle {
		return a.start
	}
	if a.launch == 0 || p.change.HostsFollow {
		return s.at + trace.Time(took)
	}
	early := p.hostEarly(s, a)
	if a.launch > s.end {
		return max(s.at+trace.Time(min(took, least)), a.start-trace.Time(early))
	}
	return max(s.at+trace.Time(took), a.launch-trace.Time(early))
}

// hostEarly returns by how much a host is early when it asks for a collective. A host that waits for its
// device gains as much as the device, and no more than it waited and had before. One that finds the
// device done was behind it, by the time since.
func (p *player) hostEarly(s *playing, a *arrival) int64 {
	waits := p.hosts[a.rank].waits
	for ; s.wait < len(waits) && waits[s.wait].end <= a.launch; s.wait++ {
		w := waits[s.wait]
		for s.hit < len(s.ends) && s.ends[s.hit] <= w.end {
			s.hit++
		}
		if s.hit == 0 {
			continue
		}
		device := s.early[s.hit-1]
		behind := max(0, int64(w.start-s.ends[s.hit-1]))
		s.host = max(0, min(s.host+int64(w.end-w.start), device+behind))
	}
	return s.host
}

// level gives the changed rank the level of its peers.
func (p *player) level(list []arrival) {
	at := slices.IndexFunc(list, func(a arrival) bool { return int(a.rank) == p.change.Rank })
	if at < 0 || p.took[at] < 0 {
		return
	}
	p.levels = p.levels[:0]
	for i := range list {
		if i != at && p.took[i] >= 0 {
			p.levels = append(p.levels, float64(p.now[i]-p.ranks[list[i].rank].at))
		}
	}
	if len(p.levels) == 0 {
		return
	}
	median := distribution.LowerMedian(p.levels)
	factor := p.draw(median)
	if c := p.change; c.Since != 0 && list[at].start < c.Since || c.Until != 0 && list[at].start > c.Until {
		return
	}
	own := &p.ranks[list[at].rank]
	p.now[at] = own.at + trace.Time(median*factor)
	if launch := list[at].launch; launch != 0 { // its host asks for it no later than that, and goes on from there
		own.host = max(own.host, int64(launch-p.now[at]))
	}
}

// draw returns what a peer took at a collective nearby, as part of the median there, and keeps what they
// take here.
func (p *player) draw(median float64) float64 {
	for _, v := range p.levels {
		if median <= 0 {
			break
		}
		if len(p.recent) < window {
			p.recent = append(p.recent, v/median)
			continue
		}
		p.recent[p.next%window] = v / median
		p.next++
	}
	if p.change.Seed == 0 || len(p.recent) == 0 {
		return 1
	}
	return p.recent[p.rng.IntN(len(p.recent))]
}

// leave lets ranks go on when the last one has come and the data is through. Where each leaves when
// it has its own part, it takes as long after the last one as it did.
func (p *player) leave(x *point, list []arrival, idle bool, recorded, played *StepTimes) {
	last, lastRecorded, end := trace.Time(0), trace.Time(0), trace.Time(0)
	for i := range list {
		end = max(end, list[i].end)
	}
	for i := range list {
		own := trace.Time(0) // all leave together: when one does is what its clock says
		if !x.apart {
			own = end - list[i].end
		}
		last = max(last, p.now[i]+own)
		lastRecorded = max(lastRecorded, list[i].start+own)
	}
	for i := range list {
		a, s := &list[i], &p.ranks[list[i].rank]
		at := last + a.end - lastRecorded
		if x.apart && a.end < lastRecorded { // it did not wait for the last one
			at = p.now[i] + a.end - a.start
		}
		if s.known && !idle {
			recorded[x.step] = distribution.AddTimes(recorded[x.step], int64(a.end-s.end))
			played[x.step] = distribution.AddTimes(played[x.step], int64(at-s.at))
		}
		s.known, s.end, s.at = true, a.end, at
		s.ends, s.early = append(s.ends, a.end), append(s.early, int64(a.end-at))
	}
}

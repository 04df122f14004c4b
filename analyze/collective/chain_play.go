package collective

import (
	"math/rand/v2"
	"slices"
	"sort"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// A Change makes one rank as fast as its peers.
type Change struct {
	Rank         int        // -1: no change
	Since, Until trace.Time // bounds of the change; 0 is open
	// Seed, unless 0, makes the rank vary around the median of its peers like one of them at a nearby collective.
	Seed uint64
	// HostsFollow lets hosts be early whenever their devices are. Otherwise, a host is early only if it waited.
	HostsFollow bool
}

// StepTimes are how long ranks took from collective to collective, in ns, summed over ranks
// without pauses, by the kind of step that asked for the collective.
type StepTimes [profile.StepDecode + 1]int64

// Total returns the sum over all kinds.
func (t *StepTimes) Total() (sum int64) {
	for _, ns := range t {
		sum = distribution.AddTimes(sum, ns)
	}
	return sum
}

// A player replays a chain.
type player struct {
	*Chain
	change *Change
	rng    *rand.Rand
	ranks  []playing
	took   []int64 // at the current point, by arrival: recorded time since the rank's last collective
	now    []trace.Time
	levels []float64 // at the current point: time of each peer since its last collective
	recent []float64 // levels relative to their median, at recent points
	next   int       // index of the next one in recent
}

// A playing is the state of a rank during the replay.
type playing struct {
	known     bool
	end       trace.Time // end of its last collective, as recorded
	at        trace.Time // the same, as played
	ends      []trace.Time
	early     []int64 // how much earlier each of ends is when played
	wait, hit int     // next indexes into its host's waits, and into ends
	host      int64   // how early its host is, ns
}

// window is the number of values of peers at recent collectives that show how ranks vary around the median.
const window = 64

// Play replays the component of the changed rank. It returns how long the component's ranks
// took as recorded and as played, and the indexes of these ranks.
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

// componentOf returns the component of a rank; that of the first point if the rank meets nobody.
func (r *Chain) componentOf(rank int) int32 {
	for i := range r.arrivals {
		if int(r.arrivals[i].rank) == rank {
			at := sort.Search(len(r.points), func(k int) bool { return int(r.points[k].arrivals[1]) > i })
			return r.points[at].component
		}
	}
	return r.points[0].component
}

// meet replays a collective.
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

// come returns when a rank comes to a collective. Its device is ready when its work is done, for which it is
// assumed to need no longer than the fastest rank if its host launched late. Its host is ready when it launches.
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

// hostEarly returns how early a host is when it launches a collective. A host that waits for its
// device gains as much as the device does, but no more than it waited plus what it had gained
// before. If it found the device done, it was behind by the time since then, and can gain that, too.
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

// level makes the changed rank as fast as its peers.
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
	if launch := list[at].launch; launch != 0 { // its host launches no later than that, and goes on from there
		own.host = max(own.host, int64(launch-p.now[at]))
	}
}

// draw returns a factor on the median: 1, or, with a seed, that of a random peer at a recent
// collective. It records the peers' factors here.
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

// leave lets ranks go on when the last one has come and the data is through. If each rank
// leaves with its own part, it does so as long after the last arrival as recorded.
func (p *player) leave(x *point, list []arrival, idle bool, recorded, played *StepTimes) {
	last, lastRecorded, end := trace.Time(0), trace.Time(0), trace.Time(0)
	for i := range list {
		end = max(end, list[i].end)
	}
	for i := range list {
		own := trace.Time(0) // all leave together: differences between ends are clock errors
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

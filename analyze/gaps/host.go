package gaps

import (
	"slices"

	"github.com/sgtrace/sgtrace/analyze/host"
	"github.com/sgtrace/sgtrace/analyze/walk"
	"github.com/sgtrace/sgtrace/profile"
)

// A thread is what a thread of a rank did in late gaps.
type thread struct {
	id      host.ThreadID
	number  int32        // among those of the rank
	read    host.Frames  // until all are there
	frames  []host.Frame // in order, from then on
	seen    observed
	queries []query
	sweep   sweep // of the device at hand, with those of the other threads
	others  others
}

// A rankHost is what the threads of a rank did.
type rankHost struct {
	threads []*thread
	index   map[host.ThreadID]*thread
	last    *thread // that was asked for
	has     host.Recorded
	saw     host.Seen
	// withRuns are the threads of which it is known when they had a core.
	withRuns map[host.ThreadID]bool
	late     spans
	near     int // of late
	// launches are the calls that launched what ended gaps.
	launches []lateLaunch
	nearGap  []int // of each device, where the last call was looked for
}

// rankHosts are what a stream has of the threads of its ranks.
type rankHosts struct {
	late  []spans // by rank
	ranks walk.PerRank[rankHost]
}

func (h *rankHosts) of(rank int32) *rankHost {
	of := h.ranks.At(rank)
	of.late = h.late[rank]
	return of
}

// A lateLaunch is a call that launched what ended a gap of a device. by is the number of its
// thread.
type lateLaunch struct{ device, gap, by int32 }

func (h *rankHost) thread(id host.ThreadID) *thread {
	if h.last != nil && h.last.id == id {
		return h.last
	}
	t := h.index[id]
	if t == nil {
		if h.index == nil {
			h.index = map[host.ThreadID]*thread{}
		}
		t = &thread{id: id, number: int32(len(h.threads))}
		h.index[id] = t
		h.threads = append(h.threads, t)
	}
	h.last = t
	return t
}

// add keeps what a thread did if it overlaps a late gap, and reports whether it does.
func (h *rankHost) add(f host.Frame, id host.ThreadID) bool {
	h.has[f.Kind] = true
	if !h.during(f.From, f.To) {
		return false
	}
	h.thread(id).read.Add(f)
	return true
}

// readHosts reads what the threads of all ranks did in a stream.
func (c *Collector) readHosts(s profile.Stream, late []spans) *rankHosts {
	hosts := &rankHosts{late: late}
	pageable := pageableCopies(s)
	host.Read(s, func(kind host.Kind, e *profile.Event, tid int64) {
		h, id, f := hosts.of(e.Rank), host.ThreadID{PID: e.PID, TID: tid}, host.FrameOf(kind, e)
		if kind == host.CallFrame && pageable[correlated{e.Rank, e.Correlation}] {
			f.Kind = host.PageableFrame
		}
		if h.add(f, id) && kind == host.CallFrame {
			h.launched(c.ranks[e.Rank], e, h.thread(id).number)
		}
	})
	return hosts
}

// A correlated is a call of a rank, with all that it launched.
type correlated struct {
	rank        int32
	correlation int64
}

// pageableCopies returns the copies of pageable memory.
func pageableCopies(s profile.Stream) map[correlated]bool {
	all := map[correlated]bool{}
	for c := range s.Copies {
		if c.Kind.Pageable() && c.Correlation != 0 {
			all[correlated{c.Rank, c.Correlation}] = true
		}
	}
	return all
}

// launched finds the gaps that a call ended: those in which it began, if it is the launch
// that package gpu saw there.
func (h *rankHost) launched(devices []*deviceGaps, call *profile.Event, by int32) {
	for i, d := range devices {
		if i == len(h.nearGap) {
			h.nearGap = append(h.nearGap, 0)
		}
		at, found := d.lateAt(call.Start, h.nearGap[i])
		h.nearGap[i] = at
		if found && d.late[at].launch == call.Start && d.late[at].launched == call.Dur() {
			h.launches = append(h.launches, lateLaunch{int32(i), int32(at), by})
		}
	}
}

// joinHosts brings together what the streams have of each rank.
func joinHosts(streams []*rankHosts, ranks [][]*deviceGaps) []rankHost {
	hosts := make([]rankHost, len(ranks))
	for _, of := range streams {
		for rank, h := range of.ranks.All() {
			to := &hosts[rank]
			to.has.Join(&h.has)
			to.saw.Join(&h.saw)
			numbers := make([]int32, len(h.threads)) // in to
			for i, t := range h.threads {
				joined := to.thread(t.id)
				joined.read.Join(&t.read)
				joined.seen.join(&t.seen)
				numbers[i] = joined.number
			}
			for _, l := range h.launches {
				ranks[rank][l.device].late[l.gap].thread = numbers[l.by]
			}
			h.launches = nil
		}
	}
	for rank := range hosts {
		hosts[rank].sort(ranks[rank])
	}
	return hosts
}

// sort orders the threads, whatever the order of the streams was.
func (h *rankHost) sort(devices []*deviceGaps) {
	slices.SortFunc(h.threads, func(a, b *thread) int { return a.id.Compare(b.id) })
	numbers := make([]int32, len(h.threads))
	for i, t := range h.threads {
		numbers[t.number] = int32(i)
	}
	for i, t := range h.threads {
		t.number = int32(i)
	}
	for _, d := range devices {
		for i := range d.late {
			if g := &d.late[i]; g.thread != unknownThread {
				g.thread = numbers[g.thread]
			}
		}
	}
}

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
	saw     host.Seen
	// withRuns are the threads of which it is known when they had a core.
	withRuns map[host.ThreadID]bool
	late     spans
	near     int // of late
}

// rankHosts are what a stream has of the threads of its ranks.
type rankHosts struct {
	late  []spans // by rank
	has   host.Recorded
	ranks walk.PerRank[rankHost]
}

func (h *rankHosts) of(rank int32) *rankHost {
	of := h.ranks.At(rank)
	of.late = h.late[rank]
	return of
}

func (h *rankHost) thread(id host.ThreadID) *thread {
	if h.last != nil && h.last.id == id {
		return h.last
	}
	t := h.index[id]
	if t == nil {
		if h.index == nil {
			h.index = map[host.ThreadID]*thread{}
		}
		t = &thread{id: id}
		h.index[id] = t
		h.threads = append(h.threads, t)
	}
	h.last = t
	return t
}

// readHosts reads what the threads of all ranks did in late gaps, in a stream. Those are in the
// window of opt.
func readHosts(s profile.Stream, late []spans, opt *Options) *rankHosts {
	hosts := &rankHosts{late: late}
	if opt.From != 0 || opt.To != 0 {
		hosts.has = host.KindsOf(s)
	}
	pageable := pageableCopies(s)
	host.Read(profile.Within(s, opt.From, opt.To), func(kind host.Kind, e *profile.Event, tid int64) {
		hosts.has[kind] = true
		h, f := hosts.of(e.Rank), host.FrameOf(kind, e)
		if !h.during(f.From, f.To) {
			return
		}
		if kind == host.CallFrame && pageable[correlated{e.Rank, e.Correlation}] {
			f.Kind = host.PageableFrame
		}
		h.thread(host.ThreadID{PID: e.PID, TID: tid}).read.Add(f)
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

// joinHosts brings together what the streams have of each rank.
func joinHosts(streams []*rankHosts, ranks int) []rankHost {
	hosts := make([]rankHost, ranks)
	for _, of := range streams {
		for rank, h := range of.ranks.All() {
			to := &hosts[rank]
			to.saw.Join(&h.saw)
			for _, t := range h.threads {
				joined := to.thread(t.id)
				joined.read.Join(&t.read)
				joined.seen.join(&t.seen)
			}
		}
	}
	return hosts
}

// settle orders the threads, whatever the order of the streams was, and what each did.
func (h *rankHost) settle() {
	slices.SortFunc(h.threads, func(a, b *thread) int { return a.id.Compare(b.id) })
	for _, t := range h.threads {
		all := t.read.Settle()
		t.frames = all.Next(make([]host.Frame, all.Len()))
		t.seen.settle()
	}
}

// findLaunches finds the threads that ended gaps: the call that launched what did so began in
// the gap, and package gpu saw it there.
func (h *rankHost) findLaunches(devices []*deviceGaps) {
	for k, t := range h.threads {
		near := make([]int, len(devices)) // where the last call was looked for
		for i := range t.frames {
			f := &t.frames[i]
			if f.Kind != host.CallFrame && f.Kind != host.PageableFrame {
				continue
			}
			for n, d := range devices {
				at, found := d.lateAt(f.From, near[n])
				near[n] = at
				if found && d.late[at].launch == f.From && max(d.late[at].launched, 1) == int64(f.To-f.From) {
					d.late[at].thread = int32(k)
				}
			}
		}
	}
}

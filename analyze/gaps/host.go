package gaps

import (
	"cmp"
	"slices"

	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// A threadID tells the threads of a rank apart.
type threadID struct {
	pid int32
	tid int64
}

// A frameKind is what a frame of a thread is. The order is that of frames that begin and end
// together, from the outside in.
type frameKind uint8

const (
	rangeFrame frameKind = iota
	pythonFrame
	operatorFrame
	systemFrame
	callFrame
)

// A frame is what a thread did between two instants.
type frame struct {
	from, to trace.Time // to is later than from
	name     trace.Sym
	kind     frameKind
}

// A thread is what a thread of a rank did in late gaps.
type thread struct {
	id      threadID
	frames  []frame // sorted once all are there
	queries []query
	sweep   sweep // of the device at hand, with those of the other threads
	others  others
}

// settle puts the frames in order: the outer one of two first.
func (t *thread) settle() {
	byStart := func(a, b frame) int {
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(b.to, a.to), cmp.Compare(a.kind, b.kind))
	}
	if !slices.IsSortedFunc(t.frames, byStart) {
		slices.SortStableFunc(t.frames, byStart)
	}
}

// A host is what the threads of a rank did.
type host struct {
	threads []*thread
	index   map[threadID]*thread
	last    *thread // that was asked for
	has     [callFrame + 1]bool
	late    spans
	near    int // of late
	// launches are the calls that launched what ended gaps.
	launches []lateLaunch
}

// A lateLaunch is a call that launched what ended a gap of a device.
type lateLaunch struct {
	device, gap int
	by          threadID
}

func (h *host) thread(id threadID) *thread {
	if h.last != nil && h.last.id == id {
		return h.last
	}
	t := h.index[id]
	if t == nil {
		if h.index == nil {
			h.index = map[threadID]*thread{}
		}
		t = &thread{id: id}
		h.index[id] = t
		h.threads = append(h.threads, t)
	}
	h.last = t
	return t
}

// add keeps what a thread did if it overlaps a late gap, and reports whether it does.
func (h *host) add(kind frameKind, e *profile.Event, tid int64) bool {
	h.has[kind] = true
	end := max(e.End, e.Start+1)
	h.near = h.late.after(e.Start, h.near)
	if h.near == len(h.late) || h.late[h.near].From >= end {
		return false
	}
	t := h.thread(threadID{e.PID, tid})
	t.frames = append(t.frames, frame{e.Start, end, e.Name, kind})
	return true
}

// readHosts reads what the threads of all ranks did in a stream.
func (c *Collector) readHosts(s profile.Stream, late []spans) []host {
	hosts := make([]host, len(c.ranks))
	for i := range hosts {
		hosts[i].late = late[i]
	}
	s.Calls(func(call *profile.Call) bool {
		h := &hosts[call.Rank]
		if h.add(callFrame, &call.Event, call.TID) {
			h.launched(c.ranks[call.Rank], call)
		}
		return true
	})
	s.Ranges(func(r *profile.Range) bool {
		if r.Style == profile.PushPop && !r.Open {
			hosts[r.Rank].add(rangeFrame, &r.Event, r.TID)
		}
		return true
	})
	kinds := [...]frameKind{profile.OperatorFrame: operatorFrame, profile.PythonFrame: pythonFrame, profile.SystemFrame: systemFrame}
	s.Frames(func(f *profile.Frame) bool {
		hosts[f.Rank].add(kinds[f.Kind], &f.Event, f.TID)
		return true
	})
	return hosts
}

// launched finds the gaps that a call ended: those in which it began, if it is the launch
// that package gpu saw there.
func (h *host) launched(devices []*deviceGaps, c *profile.Call) {
	for i, d := range devices {
		at, found := slices.BinarySearchFunc(d.late, c.Start, func(g lateGap, t trace.Time) int {
			if g.To < t {
				return -1
			}
			if g.From >= t {
				return 1
			}
			return 0
		})
		if found && d.late[at].launch == c.Start && d.late[at].launched == c.Dur() {
			h.launches = append(h.launches, lateLaunch{i, at, threadID{c.PID, c.TID}})
		}
	}
}

// joinHosts brings together what the streams have of each rank.
func joinHosts(streams [][]host, ranks [][]*deviceGaps) []host {
	hosts := make([]host, len(ranks))
	for _, of := range streams {
		for rank := range of {
			h, to := &of[rank], &hosts[rank]
			for kind, has := range h.has {
				to.has[kind] = to.has[kind] || has
			}
			for _, t := range h.threads {
				joined := to.thread(t.id)
				if joined.frames == nil {
					joined.frames = t.frames
				} else {
					joined.frames = append(joined.frames, t.frames...)
				}
				t.frames = nil
			}
			to.launches = append(to.launches, h.launches...)
		}
	}
	for rank := range hosts {
		h := &hosts[rank]
		slices.SortFunc(h.threads, func(a, b *thread) int {
			return cmp.Or(cmp.Compare(a.id.pid, b.id.pid), cmp.Compare(a.id.tid, b.id.tid))
		})
		number := map[threadID]int32{}
		for i, t := range h.threads {
			number[t.id] = int32(i)
		}
		for _, l := range h.launches {
			ranks[rank][l.device].late[l.gap].thread = number[l.by]
		}
		h.launches = nil
	}
	return hosts
}

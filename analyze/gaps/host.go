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
	pageableFrame // a call that launched a copy of pageable memory
	numFrameKinds
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
	runs    []run   // of frames, as they were read
	queries []query
	sweep   sweep // of the device at hand, with those of the other threads
	others  others
}

// A run is where frames begin that one walk over a stream passed, mostly in order.
type run struct {
	from int
	walk int
}

// add adds a frame of a walk.
func (t *thread) add(f frame, walk int) {
	if n := len(t.runs); n == 0 || t.runs[n-1].walk != walk {
		t.runs = append(t.runs, run{len(t.frames), walk})
	}
	t.frames = append(t.frames, f)
}

// join adds the frames of the same thread in another stream.
func (t *thread) join(o *thread) {
	if t.frames == nil {
		t.frames, t.runs = o.frames, o.runs
	} else {
		for _, r := range o.runs {
			t.runs = append(t.runs, run{len(t.frames) + r.from, r.walk})
		}
		t.frames = append(t.frames, o.frames...)
	}
	o.frames, o.runs = nil, nil
}

// compareFrames orders frames by their start, the outer one of two first.
func compareFrames(a, b frame) int {
	return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(b.to, a.to), cmp.Compare(a.kind, b.kind))
}

// settle puts the frames in order: it merges the runs.
func (t *thread) settle() {
	var settled []frame
	end := len(t.frames)
	for _, r := range slices.Backward(t.runs) {
		frames := t.frames[r.from:end]
		end = r.from
		if !slices.IsSortedFunc(frames, compareFrames) {
			slices.SortStableFunc(frames, compareFrames)
		}
		settled = merge(frames, settled)
	}
	t.frames, t.runs = settled, nil
}

// merge merges two lists in order. What is equal comes from the first one first.
func merge(a, b []frame) []frame {
	if len(b) == 0 {
		return a
	}
	merged := make([]frame, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		if compareFrames(a[0], b[0]) <= 0 {
			merged, a = append(merged, a[0]), a[1:]
		} else {
			merged, b = append(merged, b[0]), b[1:]
		}
	}
	return append(append(merged, a...), b...)
}

// A host is what the threads of a rank did.
type host struct {
	threads []*thread
	index   map[threadID]*thread
	last    *thread // that was asked for
	has     [numFrameKinds]bool
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

// add keeps what a thread did if it overlaps a late gap, and reports whether it does. walk
// numbers the walks over a stream.
func (h *host) add(kind frameKind, e *profile.Event, tid int64, walk int) bool {
	h.has[kind] = true
	end := max(e.End, e.Start+1)
	h.near = h.late.after(e.Start, h.near)
	if h.near == len(h.late) || h.late[h.near].From >= end {
		return false
	}
	h.thread(threadID{e.PID, tid}).add(frame{e.Start, end, e.Name, kind}, walk)
	return true
}

// readHosts reads what the threads of all ranks did in a stream.
func (c *Collector) readHosts(s profile.Stream, late []spans) []host {
	hosts := make([]host, len(c.ranks))
	for i := range hosts {
		hosts[i].late = late[i]
	}
	pageable := pageableCopies(s, len(hosts))
	s.Calls(func(call *profile.Call) bool {
		h := &hosts[call.Rank]
		kind := callFrame
		if call.Correlation != 0 && pageable[call.Rank][call.Correlation] {
			kind = pageableFrame
		}
		if h.add(kind, &call.Event, call.TID, 0) {
			h.launched(c.ranks[call.Rank], call)
		}
		return true
	})
	s.Ranges(func(r *profile.Range) bool {
		if r.Style == profile.PushPop && !r.Open {
			hosts[r.Rank].add(rangeFrame, &r.Event, r.TID, 1)
		}
		return true
	})
	kinds := [...]frameKind{profile.OperatorFrame: operatorFrame, profile.PythonFrame: pythonFrame, profile.SystemFrame: systemFrame}
	s.Frames(func(f *profile.Frame) bool {
		hosts[f.Rank].add(kinds[f.Kind], &f.Event, f.TID, 2)
		return true
	})
	return hosts
}

// pageableCopies returns the correlations of copies of pageable memory, by rank.
func pageableCopies(s profile.Stream, ranks int) []map[int64]bool {
	all := make([]map[int64]bool, ranks)
	for c := range s.Copies {
		if !c.Kind.Pageable() {
			continue
		}
		if all[c.Rank] == nil {
			all[c.Rank] = map[int64]bool{}
		}
		all[c.Rank][c.Correlation] = true
	}
	return all
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
				to.thread(t.id).join(t)
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

package ranks

import (
	"fmt"
	"slices"
	"sync"

	"github.com/sgtrace/sgtrace/convert/inputs"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// WithoutDuplicates returns the rows of an input, without those that recordings by another profiler also
// have, so that nothing is counted twice. Which recordings are of one process was decided before: see pair.
//
// With attribute, work will be attributed to the ranges around its call, which only the export may have:
// then kernels and calls stay, and only ranges are deduplicated.
func (m *Assignment) WithoutDuplicates(x *inputs.Source, st profile.Stream, attribute bool) profile.Stream {
	u := &deduplicated{Stream: st, wholeWork: attribute, syms: m.syms, of: map[int32]*duplicateRank{}}
	for i, r := range m.Tracks {
		var pairs []*pair
		for _, p := range m.pairs {
			if p.export.File.Source == x && slices.Contains(r.Captures, p.trace) {
				pairs = append(pairs, p)
			}
		}
		if t := newDuplicateRank(pairs, profile.BareNames(m.syms)); len(t.traces) > 0 {
			u.of[int32(i)] = t
		}
	}
	if len(u.of) == 0 {
		return st
	}
	u.report = func(same, seen int) {
		if same > 0 {
			m.diags.Add(trace.RecordedTwice.Of(x.Input.Name, "it", "other traces of the same processes", fmt.Sprintf(": %d of %d kernels and copies are in both", same, seen)))
		}
	}
	return u
}

// deduplicated is a stream without the rows that traces have.
type deduplicated struct {
	profile.Stream
	syms *trace.Symbols
	of   map[int32]*duplicateRank // by rank
	// wholeWork leaves out only ranges.
	wholeWork bool
	once      sync.Once
	report    func(same, seen int)
	// found is called for each event that is left out, with the trace and the event there, or elsewhere if
	// the trace has it in another form. It may be nil.
	found func(e *profile.Event, trace int, event int32)
}

// A duplicateRank is a rank that two profilers recorded.
type duplicateRank struct {
	traces []duplicateTrace
	calls  map[int64]duplicateCall // calls of work that is also in a trace, by correlation ID in the export
}

// A duplicateCall is a call in a trace that launched work that the export also has.
type duplicateCall struct {
	trace int
	event int32
	name  trace.Sym // bare name
}

// A duplicateTrace is a PyTorch trace of a process that is also in the export.
type duplicateTrace struct {
	*pair
	work, all, ranges heldEvents // work: kernels and copies; all: also calls; ranges: annotations
	launches          *profile.Join
}

// heldEvents are some events of a trace; which has their indexes.
type heldEvents struct {
	moments
	which []int32
}

// newDuplicateRank returns the traces of pairs, which are all of one process.
func newDuplicateRank(pairs []*pair, names *trace.PerName[trace.Sym]) *duplicateRank {
	t := &duplicateRank{calls: map[int64]duplicateCall{}}
	for _, p := range pairs {
		if p.duplicates == nil {
			continue
		}
		held := func(first, last profile.SliceKind) (h heldEvents) {
			h.moments, h.which = momentsOf(p.trace.File.Profile, p.trace.Part, first, last, names)
			return h
		}
		t.traces = append(t.traces, duplicateTrace{p, held(profile.KernelSlice, profile.CopySlice), held(profile.KernelSlice, profile.CallSlice),
			held(profile.RangeSlice, profile.RangeSlice), p.trace.File.JoinLaunches(func(r *profile.Row) bool { return r.Part == p.trace.Part })})
	}
	return t
}

// compare finds out which work is in both, and which calls of the traces launched it.
func (u *deduplicated) compare() {
	search := u.search(func(t *duplicateTrace) *heldEvents { return &t.work })
	same, seen := 0, 0
	visit := func(e *profile.Event) {
		t := u.of[e.Rank]
		if t == nil {
			return
		}
		seen++
		if k, event, ok := search.find(e); ok {
			same++
			t.noteCall(e, k, event, search.names)
		}
	}
	for k := range u.Stream.Kernels {
		if !u.isWhole(k) {
			visit(&k.Event)
		}
	}
	for c := range u.Stream.Copies {
		visit(&c.Event)
	}
	u.report(same, seen)
}

// noteCall records the call that launched an event of trace k, which is e in the export.
func (t *duplicateRank) noteCall(e *profile.Event, k int, event int32, names *trace.PerName[trace.Sym]) {
	f := t.traces[k].trace.File
	if call := t.traces[k].launches.Of(f.Events[event].Correlation); e.Correlation != 0 && call >= 0 {
		t.calls[e.Correlation] = duplicateCall{k, call, names.Of(f.Events[call].Name)}
	}
}

// isWhole reports whether a kernel represents a whole graph.
func (u *deduplicated) isWhole(k *profile.Kernel) bool {
	return k.Graph || profile.IsWholeGraph(u.syms.Name(k.Name))
}

// search starts a walk that looks for events of the traces.
func (u *deduplicated) search(held func(*duplicateTrace) *heldEvents) *duplicateSearch {
	s := &duplicateSearch{names: profile.BareNames(u.syms), of: map[int32][]foundIn{}}
	for rank, t := range u.of {
		for i := range t.traces {
			h := held(&t.traces[i])
			s.of[rank] = append(s.of[rank], foundIn{t.traces[i].duplicates.forEvents(h.moments).begin(), h})
		}
	}
	return s
}

// A duplicateSearch is one walk over an export. Several may run concurrently, so each has its own names.
type duplicateSearch struct {
	names *trace.PerName[trace.Sym]
	of    map[int32][]foundIn
}

type foundIn struct {
	*search
	held *heldEvents
}

// find returns the trace that has an event, and its index there.
func (s *duplicateSearch) find(e *profile.Event) (trace int, event int32, ok bool) {
	for k, x := range s.of[e.Rank] {
		if at, ok := x.search.find(s.names.Of(e.Name), e.Start, e.Dur()); ok {
			return k, x.held.which[at], true
		}
	}
	return 0, 0, false
}

// leaves returns ok, whether a row is also in a trace, and calls found if it is.
func (u *deduplicated) leaves(e *profile.Event, trace int, event int32, ok bool) bool {
	if ok && u.found != nil {
		u.found(e, trace, event)
	}
	return ok
}

func (u *deduplicated) Kernels(yield func(*profile.Kernel) bool) {
	if u.wholeWork {
		u.Stream.Kernels(yield)
		return
	}
	u.once.Do(u.compare)
	search := u.search(func(t *duplicateTrace) *heldEvents { return &t.work })
	u.Stream.Kernels(func(k *profile.Kernel) bool {
		if u.isWhole(k) {
			return u.leaves(&k.Event, 0, elsewhere, search.covers(&k.Event)) || yield(k)
		}
		in, event, ok := search.find(&k.Event)
		return u.leaves(&k.Event, in, event, ok) || yield(k)
	})
}

// covers reports whether a trace has kernels during a graph that the export recorded only as a whole.
func (s *duplicateSearch) covers(e *profile.Event) bool {
	return slices.ContainsFunc(s.of[e.Rank], func(x foundIn) bool {
		at, _ := slices.BinarySearch(x.held.Start, x.heldTime(e.Start))
		return at < x.held.len() && x.held.Start[at] <= x.heldTime(e.End)
	})
}

func (u *deduplicated) Copies(yield func(*profile.Copy) bool) {
	if u.wholeWork {
		u.Stream.Copies(yield)
		return
	}
	u.once.Do(u.compare)
	search := u.search(func(t *duplicateTrace) *heldEvents { return &t.work })
	u.Stream.Copies(func(c *profile.Copy) bool {
		in, event, ok := search.find(&c.Event)
		return u.leaves(&c.Event, in, event, ok) || yield(c)
	})
}

// Calls leaves out calls that are equal to one in a trace, and calls that launched work that is in both, if a call of
// the same name launched it in the trace: profilers don't agree to the nanosecond on the duration of a call.
func (u *deduplicated) Calls(yield func(*profile.Call) bool) {
	if u.wholeWork {
		u.Stream.Calls(yield)
		return
	}
	u.once.Do(u.compare)
	search := u.search(func(t *duplicateTrace) *heldEvents { return &t.all })
	u.Stream.Calls(func(c *profile.Call) bool {
		in, event, ok := search.find(&c.Event)
		if t := u.of[c.Rank]; !ok && t != nil {
			var same duplicateCall
			if same, ok = t.calls[c.Correlation]; ok {
				in, event, ok = same.trace, same.event, same.name == search.names.Of(c.Name)
			}
		}
		return u.leaves(&c.Event, in, event, ok) || yield(c)
	})
}

// Ranges leaves out annotations that both have. Annotations at other times are different ones.
func (u *deduplicated) Ranges(yield func(*profile.Range) bool) {
	u.once.Do(u.compare)
	search := u.search(func(t *duplicateTrace) *heldEvents { return &t.ranges })
	u.Stream.Ranges(func(r *profile.Range) bool {
		in, event, ok := search.find(&r.Event)
		return u.leaves(&r.Event, in, event, ok) || yield(r)
	})
}

// recognize finds out which events of the export are also in the traces.
func (a *absorption) recognize() {
	n := a.from
	a.duplicates = make([]int32, len(n.Events))
	for i := range n.Events {
		a.duplicates[i] = isNew
		if kind := n.Events[i].Place.Kind(); kind >= profile.KernelSlice && kind <= profile.CallSlice {
			a.seen++
		}
	}
	t := newDuplicateRank(a.pairs, profile.BareNames(a.syms))
	if len(t.traces) == 0 {
		return
	}
	u := &deduplicated{syms: a.syms, of: map[int32]*duplicateRank{0: t}, report: func(int, int) {}}
	u.Stream = n.Stream(a.syms, nil, func(string) (rank, pid int32) { return 0, int32(n.Meta.PID) })
	u.found = func(e *profile.Event, in int, event int32) {
		if a.same++; t.traces[in].pair != a.pairs[0] {
			event = elsewhere
		}
		a.duplicates[e.At] = event
	}
	u.Kernels(func(*profile.Kernel) bool { return true })
	u.Copies(func(*profile.Copy) bool { return true })
	u.Calls(func(*profile.Call) bool { return true })
}

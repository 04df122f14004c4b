package ranks

import (
	"fmt"
	"slices"
	"sync"

	"github.com/sgtrace/sgtrace/convert/inputs"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// WithoutDuplicates returns the rows of an input recorded beside others without what these have too,
// so that nothing is counted twice. Which are of one process was decided before: see
// pair.
//
// With attribute, work is to be attributed to the ranges around its call, which only
// the export may have: then kernels and calls stay, and ranges are counted once.
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

// deduplicated is a stream without what others have.
type deduplicated struct {
	profile.Stream
	syms *trace.Symbols
	of   map[int32]*duplicateRank // by rank
	// wholeWork tells to leave out ranges only.
	wholeWork bool
	once      sync.Once
	report    func(same, seen int)
	// found gets each event that is left out, and which of the traces has which event for it:
	// elsewhere if it says the same in another way. nil is nobody.
	found func(e *profile.Event, trace int, event int32)
}

// A duplicateRank is a rank that was recorded twice.
type duplicateRank struct {
	traces []duplicateTrace
	calls  map[int64]duplicateCall // of work that is in a trace, too, by its correlation in the export
}

// A duplicateCall is the call of a trace that launched something that the export has, too.
type duplicateCall struct {
	trace int
	event int32
	name  trace.Sym // bare
}

// A duplicateTrace is a PyTorch trace of a process that the export has as well.
type duplicateTrace struct {
	*pair
	work, all, ranges heldEvents // kernels and copies; these and calls; annotations
	launches          *profile.Join
}

// heldEvents are some events of a trace.
type heldEvents struct {
	moments
	which []int32
}

// newDuplicateRank returns the traces of one process in pairs.
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

// noteCall notes the call of an event of trace k, which the export has as e.
func (t *duplicateRank) noteCall(e *profile.Event, k int, event int32, names *trace.PerName[trace.Sym]) {
	f := t.traces[k].trace.File
	if call := t.traces[k].launches.Of(f.Events[event].Correlation); e.Correlation != 0 && call >= 0 {
		t.calls[e.Correlation] = duplicateCall{k, call, names.Of(f.Events[call].Name)}
	}
}

// isWhole reports whether a kernel stands for a whole graph.
func (u *deduplicated) isWhole(k *profile.Kernel) bool {
	return k.Graph || profile.IsWholeGraph(u.syms.Name(k.Name))
}

// search begins a walk for what the traces have.
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

// A duplicateSearch is one walk over an export. Several may be under way at once, so that
// each has names of its own.
type duplicateSearch struct {
	names *trace.PerName[trace.Sym]
	of    map[int32][]foundIn
}

type foundIn struct {
	*search
	held *heldEvents
}

// find returns the trace that has an event, and which event it is there.
func (s *duplicateSearch) find(e *profile.Event) (trace int, event int32, ok bool) {
	for k, x := range s.of[e.Rank] {
		if at, ok := x.search.find(s.names.Of(e.Name), e.Start, e.Dur()); ok {
			return k, x.held.which[at], true
		}
	}
	return 0, 0, false
}

// leaves reports whether a row is in a trace, too, and passes it on if it is.
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

// covers reports whether a trace has kernels while a graph runs of which the export
// knows the whole only.
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

// Calls leaves out calls that have equals, and others that launched what is in both, as a trace
// says, too: profilers do not agree to the nanosecond about how long a call took.
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

// Ranges leaves out annotations that both have. Such with times of their own are
// different ones.
func (u *deduplicated) Ranges(yield func(*profile.Range) bool) {
	u.once.Do(u.compare)
	search := u.search(func(t *duplicateTrace) *heldEvents { return &t.ranges })
	u.Stream.Ranges(func(r *profile.Range) bool {
		in, event, ok := search.find(&r.Event)
		return u.leaves(&r.Event, in, event, ok) || yield(r)
	})
}

// recognize finds out which events of the export the traces have, too.
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

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
func (m *Assignment) WithoutDuplicates(x *inputs.Indexed, st profile.Stream, attribute bool) profile.Stream {
	u := &deduplicated{Stream: st, wholeWork: attribute, syms: m.syms, of: map[int32]*duplicateRank{}}
	names := profile.NewBareNames(m.syms)
	for i, r := range m.Tracks {
		t := &duplicateRank{correlations: map[int64]bool{}}
		for _, p := range m.pairs {
			if p.export.File.Source != x || p.duplicates == nil || !slices.Contains(r.Captures, p.trace) {
				continue
			}
			f, part := p.trace.File, p.trace.Part
			work, _ := momentsOf(f.Profile, part, profile.KernelSlice, profile.CopySlice, names)
			all, _ := momentsOf(f.Profile, part, profile.KernelSlice, profile.CallSlice, names)
			ranges, _ := momentsOf(f.Profile, part, profile.RangeSlice, profile.RangeSlice, names)
			t.traces = append(t.traces, duplicateTrace{p.duplicates, work, all, ranges})
		}
		if len(t.traces) > 0 {
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
}

// A duplicateRank is a rank that was recorded twice.
type duplicateRank struct {
	traces       []duplicateTrace
	correlations map[int64]bool // of what is in a trace, too
}

// A duplicateTrace is a PyTorch trace of a process that the export has as well.
type duplicateTrace struct {
	duplicates *comparison
	work, all  moments // kernels and copies; these and calls
	ranges     moments
}

// work calls f for kernels and copies of ranks that were recorded twice.
func (u *deduplicated) work(f func(t *duplicateRank, e *profile.Event)) {
	visit := func(e *profile.Event) bool {
		if t := u.of[e.Rank]; t != nil {
			f(t, e)
		}
		return true
	}
	u.Stream.Kernels(func(k *profile.Kernel) bool { return k.Graph || visit(&k.Event) })
	u.Stream.Copies(func(c *profile.Copy) bool { return visit(&c.Event) })
}

// compare finds out which work is in both.
func (u *deduplicated) compare() {
	search := u.search(func(t *duplicateTrace) moments { return t.work })
	same, seen := 0, 0
	u.work(func(t *duplicateRank, e *profile.Event) {
		seen++
		if search.has(e) {
			same++
			t.correlations[e.Correlation] = true
		}
	})
	for _, t := range u.of {
		delete(t.correlations, 0)
	}
	u.report(same, seen)
}

// search begins a walk for what the traces have.
func (u *deduplicated) search(held func(*duplicateTrace) moments) *duplicateSearch {
	s := &duplicateSearch{names: profile.NewBareNames(u.syms), of: map[int32][]*search{}}
	for rank, t := range u.of {
		for i := range t.traces {
			s.of[rank] = append(s.of[rank], t.traces[i].duplicates.forEvents(held(&t.traces[i])).begin())
		}
	}
	return s
}

// A duplicateSearch is one walk over an export. Several may be under way at once, so that
// each has names of its own.
type duplicateSearch struct {
	names *profile.BareNames
	of    map[int32][]*search
}

func (s *duplicateSearch) has(e *profile.Event) bool {
	return slices.ContainsFunc(s.of[e.Rank], func(x *search) bool { return x.has(s.names.Of(e.Name), e.Start, e.Dur()) })
}

func (u *deduplicated) Kernels(yield func(*profile.Kernel) bool) {
	if u.wholeWork {
		u.Stream.Kernels(yield)
		return
	}
	u.once.Do(u.compare)
	search := u.search(func(t *duplicateTrace) moments { return t.work })
	u.Stream.Kernels(func(k *profile.Kernel) bool {
		if k.Graph && search.covers(u.of[k.Rank], &k.Event) || !k.Graph && search.has(&k.Event) {
			return true
		}
		return yield(k)
	})
}

// covers reports whether a trace has kernels while a graph runs of which the export
// knows the whole only.
func (s *duplicateSearch) covers(t *duplicateRank, e *profile.Event) bool {
	for i, x := range s.of[e.Rank] {
		starts := t.traces[i].work.Start
		at, _ := slices.BinarySearch(starts, x.heldTime(e.Start))
		if at < len(starts) && starts[at] <= x.heldTime(e.End) {
			return true
		}
	}
	return false
}

func (u *deduplicated) Copies(yield func(*profile.Copy) bool) {
	if u.wholeWork {
		u.Stream.Copies(yield)
		return
	}
	u.once.Do(u.compare)
	search := u.search(func(t *duplicateTrace) moments { return t.work })
	u.Stream.Copies(func(c *profile.Copy) bool { return search.has(&c.Event) || yield(c) })
}

// Calls leaves out calls whose work is in both, and others that have equals: profilers
// do not agree to the nanosecond about how long a call took.
func (u *deduplicated) Calls(yield func(*profile.Call) bool) {
	if u.wholeWork {
		u.Stream.Calls(yield)
		return
	}
	u.once.Do(u.compare)
	search := u.search(func(t *duplicateTrace) moments { return t.all })
	u.Stream.Calls(func(c *profile.Call) bool {
		t := u.of[c.Rank]
		if t != nil && (t.correlations[c.Correlation] || search.has(&c.Event)) {
			return true
		}
		return yield(c)
	})
}

// Ranges leaves out annotations that both have. Such with times of their own are
// different ones.
func (u *deduplicated) Ranges(yield func(*profile.Range) bool) {
	u.once.Do(u.compare)
	search := u.search(func(t *duplicateTrace) moments { return t.ranges })
	u.Stream.Ranges(func(r *profile.Range) bool { return search.has(&r.Event) || yield(r) })
}

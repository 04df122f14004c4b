package ranks

import (
	"cmp"
	"slices"

	"github.com/sgtrace/sgtrace/convert/inputs"
	"github.com/sgtrace/sgtrace/internal/parallel"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// A pair is two recordings of one process by two profilers, one of which was recorded
// beside the other: an Nsight Systems export beside a PyTorch trace. That two profilers
// saw the same is decided here, once; a timeline draws what both have once, see
// absorption, and reports count it once, see WithoutDuplicates.
type pair struct {
	trace, export *Capture // export is the one beside
	// duplicates recognizes what both recorded, and relates their clocks; nil where the
	// export has nothing of a GPU, and its times are taken as they are.
	duplicates *comparison
	shift      Shift // the export's clock, relative to that of the trace
	hits       int   // what a device did that both have
}

// IsBeside reports whether a capture was recorded beside another profiler.
func (c *Capture) IsBeside() bool { return c.File.Source.Format.Beside }

// nearUnix is how far apart clocks may be that both claim to show Unix time, in ns.
const nearUnix = 1_000_000_000

// near is how far apart the clocks of two captures may be, in ns; 0 is any distance.
func (c *Capture) near(o *Capture) int64 {
	if c.File.Meta.Origin == profile.OriginUnix && o.File.Meta.Origin == profile.OriginUnix {
		return nearUnix
	}
	return 0
}

// findPairs finds out which traces and exports are of one process: what they know of
// it must not differ, and what they recorded of its GPU has to be the same where both
// recorded something.
//
// Rows that are walked need less: what names and headers tell is enough there to take two
// recordings for one process.
func (m *Assignment) findPairs(captures []*Capture, in *inputs.Loaded) []*pair {
	f := pairFinder{names: profile.BareNames(m.syms), held: map[*Capture]moments{}}
	traces := slices.DeleteFunc(slices.Clone(captures), (*Capture).IsBeside)
	if in.Walks() {
		m.walkFingerprints(captures, traces, in.Sources)
	}
	var pairs []*pair
	for _, n := range captures {
		if !n.IsBeside() || n.File.Meta.PID == 0 && !in.Walks() {
			continue
		}
		var own moments
		var found []candidatePair
		var sure []*Capture
		for _, t := range traces {
			if !t.mayBe(n) {
				continue
			}
			if own.Start == nil {
				own = workOf(n.File.Profile, n.Part, f.names)
			}
			if p, ok := f.try(t, n, own); ok {
				found = append(found, p)
			}
			if in.Walks() && t.isSurely(n) {
				sure = append(sure, t)
			}
		}
		chosen := f.choose(found)
		for _, t := range sure {
			if !slices.ContainsFunc(chosen, func(p *pair) bool { return p.trace == t }) {
				chosen = append(chosen, &pair{trace: t, export: n})
			}
		}
		pairs = append(pairs, chosen...)
	}
	for _, p := range pairs {
		if p.duplicates != nil {
			p.duplicates = p.duplicates.forEvents(moments{}) // the shift is all that is needed
		}
	}
	for _, f := range m.Files {
		f.Fingerprint = nil
	}
	return pairs
}

// walkFingerprints finds out what devices did in the recordings beside of which rows are
// walked, and which may be of the same process as one of the traces.
func (m *Assignment) walkFingerprints(captures, traces []*Capture, sources []*inputs.Source) {
	wanted := map[*inputs.Source]bool{}
	for _, n := range captures {
		if x := n.File.Source; n.IsBeside() && x.Content.Rows != nil && !wanted[x] {
			wanted[x] = slices.ContainsFunc(traces, func(t *Capture) bool { return t.mayBe(n) })
		}
	}
	parallel.Each(len(sources), func(i int) {
		x := sources[i]
		if !wanted[x] {
			return
		}
		var files []*inputs.ProcessProfile
		index := map[int32]int32{} // of processes in files
		for _, f := range m.Files {
			if f.Source == x {
				index[int32(f.Meta.PID)] = int32(len(files))
				files = append(files, f)
			}
		}
		rows := x.Content.Rows(func(pid int32) int32 {
			if at, ok := index[pid]; ok {
				return at
			}
			return -1
		})
		add := func(e *profile.Event) bool {
			f := files[e.Rank]
			f.Fingerprint = append(f.Fingerprint, profile.Fingerprint{Time: e.Start, Dur: e.Dur(), Name: e.Name})
			return true
		}
		rows.Kernels(func(k *profile.Kernel) bool { return add(&k.Event) })
		rows.Copies(func(c *profile.Copy) bool { return add(&c.Event) })
	})
}

// mayBe reports whether a trace may be of the same process as an export.
func (c *Capture) mayBe(export *Capture) bool {
	const apart = 10_000_000_000 // ns, of clocks that both claim to show Unix time
	if !c.agrees(export) || c.known.NotRank {
		return false
	}
	if c.File.Meta.Origin != export.File.Meta.Origin || c.File.Meta.Origin == profile.OriginUnknown {
		return true
	}
	return c.First <= export.Last+apart && export.First <= c.Last+apart
}

// isSurely reports whether the facts about the process of a trace and of an export are
// reason enough to take them for one.
func (c *Capture) isSurely(export *Capture) bool {
	if c.pid() != 0 && c.pid() == export.pid() {
		return true
	}
	shared := c.known.Rank != trace.NoRank && export.known.Rank != trace.NoRank && export.known.From != fromGPU && export.known.From != fromPID
	return shared && c.overlaps(export)
}

// pairFinder compares what captures hold.
type pairFinder struct {
	names *trace.PerName[trace.Sym]
	held  map[*Capture]moments
}

// candidatePair is a pair that is possible.
type candidatePair struct {
	pair
	share float64 // of what both could have recorded, what both did
}

// try compares a trace with what the GPU did in an export.
func (f *pairFinder) try(t, n *Capture, own moments) (candidatePair, bool) {
	c := candidatePair{pair: pair{trace: t, export: n}}
	if own.len() == 0 {
		// Nothing can be compared; in time they have to meet.
		both := t.File.Meta.Origin == profile.OriginUnix && n.File.Meta.Origin == profile.OriginUnix
		return c, both && t.isSurely(n) && t.overlaps(n)
	}
	held, ok := f.held[t]
	if !ok {
		held = workOf(t.File.Profile, t.Part, f.names)
		f.held[t] = held
	}
	duplicates := newComparison(held, t.near(n))
	for i := range own.Start {
		duplicates.observe(own.Name[i], own.Start[i], own.Dur[i])
	}
	if c.shift, ok = duplicates.settle(); !ok {
		return c, false
	}
	c.duplicates = duplicates
	search, inside := duplicates.begin(), 0
	first, last := held.Start[0], held.Start[held.len()-1]
	for i := range own.Start {
		if at := search.heldTime(own.Start[i]); at >= first && at <= last {
			inside++
		}
		if search.has(own.Name[i], own.Start[i], own.Dur[i]) {
			c.hits++
		}
	}
	// What the trace has during the export.
	from, to := search.heldTime(own.Start[0]), search.heldTime(own.Start[own.len()-1])
	a, _ := slices.BinarySearch(held.Start, from)
	b, _ := slices.BinarySearch(held.Start, to+1)
	c.share = float64(c.hits) / float64(max(1, min(inside, b-a)))
	const same = 0.5
	return c, c.share >= same
}

// choose returns the traces that an export is of: the one that it has most in common
// with, and those of the same process, one after the other.
func (f *pairFinder) choose(found []candidatePair) []*pair {
	if len(found) == 0 {
		return nil
	}
	slices.SortStableFunc(found, func(a, b candidatePair) int {
		return cmp.Or(cmp.Compare(b.share, a.share), cmp.Compare(b.hits, a.hits))
	})
	best := found[0]
	if best.duplicates == nil && len(found) > 1 {
		return nil // several that fit by name only
	}
	// Ranks that run in lockstep have much in common where times are microseconds.
	const clearly = 1.2
	var pairs []*pair
	for i := range found {
		c := &found[i]
		switch same := c.trace.pid() == best.trace.pid() && c.trace.agrees(best.trace); {
		case i == 0 || same && !c.trace.overlaps(best.trace):
			pairs = append(pairs, &c.pair)
		case best.share < clearly*c.share && !best.trace.agrees(c.trace) && best.duplicates != nil:
			return nil
		}
	}
	return pairs
}

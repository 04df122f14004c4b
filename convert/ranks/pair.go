package ranks

import (
	"cmp"
	"slices"

	"github.com/sgtrace/sgtrace/convert/inputs"
	"github.com/sgtrace/sgtrace/internal/parallel"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// A pair is two concurrent recordings of one process by two profilers: a PyTorch trace and an Nsight
// Systems export. Whether two profilers recorded the same process is decided here, once. Timelines draw
// what both recorded once, see absorption, and reports count it once, see WithoutDuplicates.
type pair struct {
	trace, export *Capture // export is the one recorded beside the trace
	// duplicates recognizes events that both recorded, and relates their clocks. It is nil if the export
	// has no GPU work, and its times are then used as they are.
	duplicates *comparison
	shift      Shift // the export's clock relative to the trace's
	hits       int   // number of device events that both recorded
}

// IsBeside reports whether a capture's format is recorded beside another profiler.
func (c *Capture) IsBeside() bool { return c.File.Source.Format.Beside }

// nearUnix is how far apart, in ns, clocks may be that both claim to show Unix time.
const nearUnix = 1_000_000_000

// near returns how far apart the clocks of two captures may be, in ns; 0 is any distance.
func (c *Capture) near(o *Capture) int64 {
	if c.File.Meta.Origin == profile.OriginUnix && o.File.Meta.Origin == profile.OriginUnix {
		return nearUnix
	}
	return 0
}

// findPairs finds the traces and exports of the same process: their facts must not conflict, and their GPU
// work must match if both recorded any.
//
// For rows that are walked, matching names and headers are enough.
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
			p.duplicates = p.duplicates.forEvents(moments{}) // only the shift is still needed
		}
	}
	for _, f := range m.Files {
		f.Fingerprint = nil
	}
	return pairs
}

// walkFingerprints collects the device work of exports that are walked and may be of the same process as a
// trace.
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
		index := map[int32]int32{} // pid to index in files
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
	const apart = 10_000_000_000 // ns between recordings whose clocks both claim to show Unix time
	if !c.agrees(export) || c.known.NotRank {
		return false
	}
	if c.File.Meta.Origin != export.File.Meta.Origin || c.File.Meta.Origin == profile.OriginUnknown {
		return true
	}
	return c.First <= export.Last+apart && export.First <= c.Last+apart
}

// isSurely reports whether the facts alone are enough to take a trace and an export for one process.
func (c *Capture) isSurely(export *Capture) bool {
	if c.pid() != 0 && c.pid() == export.pid() {
		return true
	}
	shared := c.known.Rank != trace.NoRank && export.known.Rank != trace.NoRank && export.known.From != fromGPU && export.known.From != fromPID
	return shared && c.overlaps(export)
}

// pairFinder compares the contents of captures.
type pairFinder struct {
	names *trace.PerName[trace.Sym]
	held  map[*Capture]moments
}

// candidatePair is a possible pair.
type candidatePair struct {
	pair
	share float64 // share of the events that both could have recorded that both did record
}

// try compares a trace with the GPU work of an export.
func (f *pairFinder) try(t, n *Capture, own moments) (candidatePair, bool) {
	c := candidatePair{pair: pair{trace: t, export: n}}
	if own.len() == 0 {
		// There is nothing to compare; the recordings must at least overlap.
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
	// The trace's work during the export.
	from, to := search.heldTime(own.Start[0]), search.heldTime(own.Start[own.len()-1])
	a, _ := slices.BinarySearch(held.Start, from)
	b, _ := slices.BinarySearch(held.Start, to+1)
	c.share = float64(c.hits) / float64(max(1, min(inside, b-a)))
	const same = 0.5
	return c, c.share >= same
}

// choose returns the traces that match an export: the one with the most in common, and other traces of the
// same process that don't overlap it.
func (f *pairFinder) choose(found []candidatePair) []*pair {
	if len(found) == 0 {
		return nil
	}
	slices.SortStableFunc(found, func(a, b candidatePair) int {
		return cmp.Or(cmp.Compare(b.share, a.share), cmp.Compare(b.hits, a.hits))
	})
	best := found[0]
	if best.duplicates == nil && len(found) > 1 {
		return nil // several match, but only by name
	}
	// Ranks that run in lockstep have much in common if times are in microseconds.
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

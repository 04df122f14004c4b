package convert

import (
	"cmp"
	"slices"

	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// A pair is a PyTorch trace and an Nsight Systems export of the same process.
type pair struct {
	trace, export place
	// twins recognises what both recorded, and relates their clocks; nil where the
	// export has nothing of a GPU, and its times are taken as they are.
	twins *profile.Twins
	shift profile.Shift // the export's clock, relative to that of the trace
	hits  int           // what a device did that both have
}

// place says which capture is meant, in whatever way the files are read.
type place struct {
	name, part string
	pid        int64
}

func (c *capture) place() place {
	p := place{name: c.file.Name, part: c.part}
	if c.isExport() {
		p.pid = c.file.Meta.PID
	}
	return p
}

// isExport tells whether a capture is a process of an Nsight Systems export.
func (c *capture) isExport() bool { return c.file.isExport() }

// isExport tells whether a recording is from an Nsight Systems export.
func (f *recording) isExport() bool { return f.source.isExport() }

// nearUnix is how far apart clocks may be that both claim to show Unix time, in ns.
const nearUnix = 1_000_000_000

// findPairs finds out which traces and exports are of one process: what they know of
// it must not differ, and what they recorded of its GPU has to be the same where both
// recorded something.
func (m *Ranks) findPairs(captures []*capture) []*pair {
	f := pairFinder{m: m, names: profile.NewBareNames(m.dump.Syms), held: map[*capture]profile.Moments{}}
	traces := slices.DeleteFunc(slices.Clone(captures), (*capture).isExport)
	var pairs []*pair
	for _, n := range captures {
		if !n.isExport() || n.file.Meta.PID == 0 {
			continue
		}
		own, _ := n.file.MomentsOf(n.part, profile.WorkCategories, f.names)
		var found []candidatePair
		for _, t := range traces {
			if !t.mayBe(n) {
				continue
			}
			if p, ok := f.try(t, n, own); ok {
				found = append(found, p)
			}
		}
		pairs = append(pairs, f.choose(found)...)
	}
	for _, p := range pairs {
		if p.twins != nil {
			p.twins = p.twins.For(profile.Moments{}) // the shift is all that is needed
		}
	}
	return pairs
}

// mayBe tells whether a trace may be of the same process as an export.
func (c *capture) mayBe(export *capture) bool {
	const apart = 10_000_000_000 // ns, of clocks that both claim to show Unix time
	if !c.agrees(export) || c.known.NotRank {
		return false
	}
	if c.file.Meta.Origin != export.file.Meta.Origin || c.file.Meta.Origin == profile.OriginUnknown {
		return true
	}
	return c.first <= export.last+apart && export.first <= c.last+apart
}

// isSurely tells whether what is known of the process of a trace and of an export is
// reason enough to take them for one.
func (c *capture) isSurely(export *capture) bool {
	if c.pid() != 0 && c.pid() == export.pid() {
		return true
	}
	shared := c.known.Rank != trace.NoRank && export.known.Rank != trace.NoRank && export.known.From != fromGPU && export.known.From != fromPID
	return shared && c.overlaps(export)
}

// pairFinder compares what captures hold.
type pairFinder struct {
	m     *Ranks
	names *profile.BareNames
	held  map[*capture]profile.Moments
}

// candidatePair is a pair that is possible.
type candidatePair struct {
	pair
	t     *capture
	share float64 // of what both could have recorded, what both did
}

// try compares a trace with what the GPU did in an export.
func (f *pairFinder) try(t, n *capture, own profile.Moments) (candidatePair, bool) {
	c := candidatePair{pair: pair{trace: t.place(), export: n.place()}, t: t}
	if own.Len() == 0 {
		// Nothing can be compared; in time they have to meet.
		both := t.file.Meta.Origin == profile.OriginUnix && n.file.Meta.Origin == profile.OriginUnix
		return c, both && t.isSurely(n) && t.overlaps(n)
	}
	held, ok := f.held[t]
	if !ok {
		held, _ = t.file.MomentsOf(t.part, profile.WorkCategories, f.names)
		f.held[t] = held
	}
	near := int64(0)
	if t.file.Meta.Origin == profile.OriginUnix && n.file.Meta.Origin == profile.OriginUnix {
		near = nearUnix
	}
	twins := profile.NewTwins(held, near)
	for i := range own.Start {
		twins.Observe(own.Name[i], own.Start[i], own.Dur[i])
	}
	if c.shift, ok = twins.Settle(); !ok {
		return c, false
	}
	c.twins = twins
	search, inside := twins.Search(), 0
	first, last := held.Start[0], held.Start[held.Len()-1]
	for i := range own.Start {
		if at := search.Held(own.Start[i]); at >= first && at <= last {
			inside++
		}
		if search.Has(own.Name[i], own.Start[i], own.Dur[i]) {
			c.hits++
		}
	}
	// What the trace has during the export.
	from, to := search.Held(own.Start[0]), search.Held(own.Start[own.Len()-1])
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
	if best.twins == nil && len(found) > 1 {
		return nil // several that fit by name only
	}
	// Ranks that run in lockstep have much in common where times are microseconds.
	const clearly = 1.2
	var pairs []*pair
	for i := range found {
		c := &found[i]
		switch same := c.t.pid() == best.t.pid() && c.t.agrees(best.t); {
		case i == 0 || same && !c.t.overlaps(best.t):
			pairs = append(pairs, &c.pair)
		case best.share < clearly*c.share && !best.t.agrees(c.t) && best.twins != nil:
			return nil
		}
	}
	return pairs
}

// pairedBefore finds pairs where a filter leaves out what they are recognised by: what
// the GPU did is read once more.
func (m *Ranks) pairedBefore(traces []candidate, opt *ReadOptions) {
	if !opt.both || opt.Filter.KeepsWork() || opt.outlines != nil {
		return
	}
	if slices.ContainsFunc(traces, func(c candidate) bool { return c.stream != nil }) {
		return // can be read once only; ranks still tell what is of one process
	}
	again := newRanks(&Inputs{dump: m.dump, diags: &trace.Diags{}})
	own := *opt
	own.Meter, own.Filter = nil, profile.Filter{Cats: profile.WorkCategories, Args: profile.ArgsNone}
	again.readTorch(traces, &own)
	captures, _ := again.resolveCaptures(&own)
	m.pairs, m.paired = again.findPairs(inOrder(captures, again.leaveOutCopies(captures))), true
}

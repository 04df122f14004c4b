package allocations

import (
	"cmp"
	"math"
	"slices"
	"sort"

	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/profile/recorder"
	"github.com/sgtrace/sgtrace/trace"
)

// A Growth is memory of a device that rises to the end of a recording, as places allocate blocks
// again and again that nobody frees.
type Growth struct {
	Rank   string
	Number int32
	Sites  []Site // the one that keeps most first
	// From is when the first block was kept, Last the end of the recording; 0 is unknown. Always is that
	// it was so from the beginning of the recording on.
	From, Last trace.Time
	Always     bool
	Bytes      int64 // of all sites
	// Before was in use when the first block was kept, Rest is the least that all others had in the first
	// and in the last quarter of the time since.
	Before int64
	Rest   [2]int64
	Use    recorder.Usage // at the end
}

// A Site is a place that allocates what is kept.
type Site struct {
	Where trace.Sym
	Kept  []int // indexes of lives
	Bytes int64
}

// What is kept by one forward pass of a model looks like a leak of as many steps as there are layers: activations that wait
// for the backward pass, in a recording that ends before it. So it takes more, either of these:
const (
	// blocks in several times as many rounds as any model has layers (126 in the largest known), or
	manyKept = 256
	// some rounds, and in each of them most of the places whose blocks come and go do so several times:
	// layers are within the rounds.
	fewestKept = 20
	nested     = 8
)

// smallestSegment is the least that the allocator gets from the device, in bytes: what grew by less took nothing of it yet.
const smallestSegment = 2 << 20

// grows returns the growth of a device; nil is none. Native are places that are no line of a program.
func grows(d *recorder.Device, r *recorder.Replay, native map[trace.Sym]bool) *Growth {
	lives := d.Lives()
	byPlace := map[trace.Sym][]int{} // all blocks of it
	for i := range lives {
		byPlace[lives[i].Where] = append(byPlace[lives[i].Where], i)
	}
	delete(byPlace, 0) // nobody knows how many places that is
	g := &Growth{Use: recorder.Usage{Allocated: r.End.Allocated, Reserved: r.End.Reserved}}
	growing := map[trace.Sym]bool{}
	for where, of := range byPlace {
		if native[where] {
			continue
		}
		if kept := keeps(lives, of, len(d.Entries)); kept != nil && !mirrors(d, lives, kept) && goesOn(lives, byPlace, lives[kept[0]].From, len(d.Entries)) && inRounds(lives, byPlace, kept, len(d.Entries)) {
			s := Site{Where: where, Kept: kept}
			for _, i := range kept {
				s.Bytes += lives[i].Size
			}
			g.Bytes += s.Bytes
			g.Sites = append(g.Sites, s)
			growing[where] = true
		}
	}
	if len(g.Sites) == 0 {
		return nil
	}
	slices.SortFunc(g.Sites, func(a, b Site) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Kept[0], b.Kept[0]))
	})
	from := lives[g.Sites[0].Kept[0]].From
	g.From, g.Last = d.Entries[from].Time, d.Entries[len(d.Entries)-1].Time
	g.Always = from <= 2*(len(d.Entries)-from)/len(g.Sites[0].Kept) // two rounds
	g.Before = d.At(r.Start, []int{from - 1})[0].Allocated
	g.Rest = rests(d, r, lives, growing, from)
	if rise := g.Rest[1] - g.Rest[0]; max(rise, -rise) > g.Bytes/2 || !g.matters() {
		return nil
	}
	return g
}

// matters reports whether the device would be full some day: PyTorch took as much again as it has within a day. Without times,
// it takes a hundredth of that at once.
func (g *Growth) matters() bool {
	const day = 24 * 3600e9
	if left := g.untilTwice(); !math.IsNaN(left) {
		return g.Bytes >= smallestSegment && left <= day
	}
	return g.Bytes >= max(smallestSegment, g.Use.Reserved/100)
}

// untilTwice returns how long growth takes at its rate until it is as much as PyTorch has of the device, in ns; NaN is unknown.
func (g *Growth) untilTwice() float64 {
	if g.From == 0 || g.Last <= g.From {
		return math.NaN()
	}
	return float64(g.Use.Reserved) / float64(g.Bytes) * float64(g.Last-g.From)
}

// keeps returns the blocks of a place that are kept, from when on they are at an even rate through to the end; nil where they
// are not, or where others of that place are freed as they come. Time is counted in entries, as a pause is no work.
func keeps(lives []recorder.Life, of []int, end int) []int {
	kept := order.Only(of, func(i int) bool { return lives[i].Kept })
	kept = evenly(lives, kept, end)
	if kept == nil {
		return nil
	}
	type event struct{ at, by int }
	var events []event
	for _, i := range of {
		events = append(events, event{lives[i].From, 1})
		if lives[i].To < end {
			events = append(events, event{lives[i].To, -1})
		}
	}
	slices.SortFunc(events, func(a, b event) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.by, b.by)) })
	// A list that is emptied from time to time is long at some moment, too, and a cache of the newest has as many at any time.
	count, most, fell, before := 0, 0, 0, 0
	for _, e := range events {
		if e.at < lives[kept[0]].From {
			before = count + e.by
		}
		count += e.by
		most = max(most, count)
		fell = max(fell, most-count)
	}
	if few := len(kept) / 4; fell > few || count-before < len(kept)-few {
		return nil
	}
	return kept
}

// evenly returns the last of some blocks, a half at least, that came at an even rate through to the end: each quarter of the
// entries from the first one on has half of its share at least, and no pause is between that warming up would explain. If most
// came before, growth slows down. It returns nil if they are too few.
func evenly(lives []recorder.Life, kept []int, end int) []int {
	from := func(i int) int { return lives[kept[i]].From }
	first := len(kept) / 2
	for ; first > 0; first-- {
		const pause = 8 // times the mean distance behind it; one in e^8 is as long if all are random
		if (from(first)-from(first-1))*(len(kept)-first) > pause*(end-from(first)) {
			break
		}
	}
	for ; first <= len(kept)/2 && len(kept)-first >= fewestKept; first++ {
		even, last := true, first
		for q := 1; q <= 4; q++ {
			until := from(first) + q*(end-from(first))/4
			next := first + sort.Search(len(kept)-first, func(i int) bool { return from(first+i) >= until })
			even = even && 8*(next-last) >= len(kept)-first
			last = next
		}
		if even {
			return kept[first:]
		}
	}
	return nil
}

// mirrors reports whether nearly all that is kept has the size of a block of its own that was there before, in three sizes or
// more. It is for parameters then: gradients, the state of an optimizer, or a copy of them.
func mirrors(d *recorder.Device, lives []recorder.Life, kept []int) bool {
	from, before := lives[kept[0]].From, map[int64]int{} // how many, by size
	known := map[uint64]bool{}                           // addresses at the end of blocks that entries allocated
	for i := range lives {
		if l := &lives[i]; l.From < from && l.To >= from {
			before[l.Size]++
		}
		if l := &lives[i]; l.To == len(d.Entries) {
			known[l.Address] = true
		}
	}
	for i := range d.Segments {
		for _, b := range d.Segments[i].Blocks {
			if b.State != recorder.Inactive && !known[b.Address] {
				before[b.Requested]++
			}
		}
	}
	matched, sizes := 0, map[int64]bool{}
	for _, i := range kept {
		if size := lives[i].Size; before[size] > 0 {
			before[size]--
			matched++
			sizes[size] = true
		}
	}
	return 10*matched >= 9*len(kept) && len(sizes) >= 3
}

// goesOn reports whether what was done before an entry is done after it, too: of the blocks that came and went before, half are of
// places where they still do, at a quarter of the rate. Else what is kept is of another phase: the first step of an optimizer
// allocates for each parameter what it keeps, and the recording may end there.
func goesOn(lives []recorder.Life, byPlace map[trace.Sym][]int, from, end int) bool {
	all, still := 0, 0
	for _, of := range byPlace {
		before, after := 0, 0
		for _, i := range of {
			if to := lives[i].To; to < from {
				before++
			} else if to < end {
				after++
			}
		}
		all += before
		if 4*after*from >= before*(end-from) {
			still += before
		}
	}
	return 2*still >= all
}

// inRounds reports whether work is repeated between blocks that are kept: blocks of other places come and go, over several
// more rounds than a model has layers, or with layers in each round.
func inRounds(lives []recorder.Life, byPlace map[trace.Sym][]int, kept []int, end int) bool {
	rounds, from := len(kept), lives[kept[0]].From
	repeated, within := 0, 0
	for _, of := range byPlace {
		gone := 0
		for _, i := range of {
			if l := &lives[i]; l.From >= from && l.To < end {
				gone++
			}
		}
		if 2*gone >= rounds {
			repeated++
		}
		if gone >= nested*rounds {
			within++
		}
	}
	return repeated > 0 && (rounds >= manyKept || 2*within > repeated)
}

// rests returns the least that all but growing places had in the first and in the last quarter of the entries behind one.
func rests(d *recorder.Device, r *recorder.Replay, lives []recorder.Life, growing map[trace.Sym]bool, from int) [2]int64 {
	least := [4]int64{math.MaxInt64, math.MaxInt64, math.MaxInt64, math.MaxInt64}
	changes := map[int]int64{} // by entry, bytes of growing places
	for i := range lives {
		if l := &lives[i]; growing[l.Where] {
			changes[l.From] += l.Size
			changes[l.To] -= l.Size
		}
	}
	theirs := int64(0)
	d.Walk(r.Start, func(i int, u recorder.Usage) {
		theirs += changes[i]
		if i >= from {
			q := 4 * (i - from) / (len(d.Entries) - from)
			least[q] = min(least[q], u.Allocated-theirs)
		}
	})
	return [2]int64{least[0], least[3]}
}

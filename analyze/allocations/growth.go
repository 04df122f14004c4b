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

// A Growth is memory of a device that rises to the end of a recording, because places allocate
// blocks again and again that nobody frees.
type Growth struct {
	Rank   string
	Number int32
	Sites  []Site // by decreasing bytes
	// From is when the first kept block was allocated, Last the end of the recording; 0 if
	// unknown. Always reports that growth goes on from the beginning of the recording.
	From, Last trace.Time
	Always     bool
	Bytes      int64 // of all sites
	// Before was in use when the first kept block was allocated. Rest is the least that all other
	// places had in the first and in the last quarter of the time since.
	Before int64
	Rest   [2]int64
	Use    recorder.Usage // at the end
}

// A Site is a place in the code that allocates what is kept.
type Site struct {
	Where trace.Sym
	Kept  []int // indexes of lives
	Bytes int64
}

// What one forward pass of a model keeps looks like a leak of as many steps as the model has layers: activations
// that wait for the backward pass, in a recording that ends before it. So a growth takes one of two things:
const (
	// blocks in twice as many rounds as any model has layers (126 in the largest known one); or
	manyKept = 256
	// fewer rounds, if most of the places whose blocks come and go do so several times in each
	// round: then the layers are within the rounds.
	fewestKept = 20
	nested     = 8
)

// smallestSegment is the least that the allocator takes from a device, in bytes: growth below that has taken nothing from it yet.
const smallestSegment = 2 << 20

// grows returns the growth of a device, or nil. native has the places that are not lines of a program.
func grows(d *recorder.Device, r *recorder.Replay, native map[trace.Sym]bool) *Growth {
	lives := d.Lives()
	byPlace := map[trace.Sym][]int{} // all blocks allocated there
	for i := range lives {
		byPlace[lives[i].Where] = append(byPlace[lives[i].Where], i)
	}
	delete(byPlace, 0) // blocks without a stack may be from any number of places
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
	g.Always = from <= 2*(len(d.Entries)-from)/len(g.Sites[0].Kept) // within two rounds of the beginning
	g.Before = d.At(r.Start, []int{from - 1})[0].Allocated
	g.Rest = rests(d, r, lives, growing, from)
	if rise := g.Rest[1] - g.Rest[0]; max(rise, -rise) > g.Bytes/2 || !g.matters() {
		return nil
	}
	return g
}

// matters reports whether the device would be full some day: at this rate, PyTorch would need as
// much memory again as it has within a day. Without times, growth must be a hundredth of that.
func (g *Growth) matters() bool {
	const day = 24 * 3600e9
	if left := g.untilTwice(); !math.IsNaN(left) {
		return g.Bytes >= smallestSegment && left <= day
	}
	return g.Bytes >= max(smallestSegment, g.Use.Reserved/100)
}

// untilTwice returns how long it takes for growth to reach the size of all memory that PyTorch
// has of the device, in ns; NaN if unknown.
func (g *Growth) untilTwice() float64 {
	if g.From == 0 || g.Last <= g.From {
		return math.NaN()
	}
	return float64(g.Use.Reserved) / float64(g.Bytes) * float64(g.Last-g.From)
}

// keeps returns the last kept blocks of a place, those that come at an even rate to the end. It returns nil if there are
// none, or if other blocks of the place are freed as they come. Time is counted in entries, as no work is done in pauses.
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
	// A list that is emptied from time to time is also long at some moment, and a cache of the
	// newest items always has the same number.
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

// evenly returns the last of some blocks, at least half of them, that came at an even rate to the end: each
// quarter of the entries since the first one has at least half of its share, and no pause is so long that a
// warm-up must come before it. If most blocks came before, growth slows down. It returns nil if there are too few.
func evenly(lives []recorder.Life, kept []int, end int) []int {
	from := func(i int) int { return lives[kept[i]].From }
	first := len(kept) / 2
	for ; first > 0; first-- {
		const pause = 8 // multiple of the mean distance after it; if blocks are random, one pause in e^8 is as long
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

// mirrors reports whether nearly every kept block has the size of a different block that was there before,
// in at least three sizes. Then it belongs to a parameter: a gradient, optimizer state, or a copy.
func mirrors(d *recorder.Device, lives []recorder.Life, kept []int) bool {
	from, before := lives[kept[0]].From, map[int64]int{} // number of blocks by size
	known := map[uint64]bool{}                           // addresses of blocks that entries allocated and that are there at the end
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

// goesOn reports whether the work before an entry continues after it: of the blocks that came and went before, at least
// half are from places where they still do so, at a quarter of the rate or more. Otherwise what is kept belongs to a new
// phase: the first step of an optimizer allocates what it keeps for each parameter, and the recording may end there.
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

// inRounds reports whether work is repeated between kept blocks: blocks of other places come
// and go, in at least manyKept rounds, or with layers within each round.
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

// rests returns the least that all but the growing places had in the first and in the last quarter of the entries from `from` on.
func rests(d *recorder.Device, r *recorder.Replay, lives []recorder.Life, growing map[trace.Sym]bool, from int) [2]int64 {
	least := [4]int64{math.MaxInt64, math.MaxInt64, math.MaxInt64, math.MaxInt64}
	changes := map[int]int64{} // by entry: change in the bytes of growing places
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

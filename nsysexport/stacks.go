package nsysexport

import (
	"iter"
	"slices"

	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/nsysexport/rows"
	"github.com/sgtrace/sgtrace/profile"
)

// chains are the stacks of one kind by their numbers, which nsys counts.
type chains struct {
	pages map[int64]*chainPage // by the upper bits of the number
	// last is the page that was asked for last, of numbers that begin with these bits.
	last     *chainPage
	lastBits int64
}

// A chainPage has stacks of numbers that follow each other.
type chainPage [1 << chainPageBits]profile.StackID

const (
	chainPageBits = 5
	// unread is in place of a stack that is needed and was not read yet.
	unread profile.StackID = -1
)

// page returns the page of a number, nil if nothing on it is known.
func (c *chains) page(number int64) *chainPage {
	bits := number >> chainPageBits
	if c.last == nil || bits != c.lastBits {
		c.last, c.lastBits = c.pages[bits], bits
	}
	return c.last
}

func (c *chains) set(number int64, id profile.StackID) {
	p := c.page(number)
	if p == nil {
		if c.pages == nil {
			c.pages = map[int64]*chainPage{}
		}
		p = new(chainPage)
		c.pages[c.lastBits], c.last = p, p
	}
	p[number&(1<<chainPageBits-1)] = id
}

// need notes that a stack is to be read.
func (c *chains) need(number int64) { c.set(number, unread) }

// needed reports whether a stack is to be read. Its frames may come in pieces, of which the last
// one counts.
func (c *chains) needed(number int64) bool {
	p := c.page(number)
	return p != nil && p[number&(1<<chainPageBits-1)] != 0
}

// stackOf returns the stack of a number, the empty one if it is not recorded.
func (c *chains) stackOf(number int64) profile.StackID {
	p := c.page(number)
	if p == nil {
		return 0
	}
	return max(0, p[number&(1<<chainPageBits-1)])
}

// A chainReader reads the stacks of a kind into a set of stacks.
type chainReader struct {
	chains *chains
	stacks *profile.Stacks
	stack  []rows.ChainFrame // at hand, the innermost function first
	recent [1 << 10]recentStack
}

// A recentStack is one that was read, with its frames: most stacks are the same as one of the
// last ones.
type recentStack struct {
	frames []rows.ChainFrame
	id     profile.StackID
}

// readChains reads stacks of a kind: those that are needed, or all.
func readChains(src *rows.Source, kind rows.ChainKind, all bool, c *chains, into *profile.Stacks) {
	r := &chainReader{chains: c, stacks: into}
	needed := c.needed
	if all {
		needed = nil
	}
	src.Chains(kind, needed, func(f *rows.ChainFrame) bool {
		if len(r.stack) > 0 && r.stack[0].Chain != f.Chain {
			r.end()
		}
		r.stack = append(r.stack, *f)
		return true
	})
	r.end()
}

// end keeps the stack at hand.
func (r *chainReader) end() {
	if len(r.stack) == 0 {
		return
	}
	byDepth := func(a, b rows.ChainFrame) int { return int(a.Depth) - int(b.Depth) }
	if !slices.IsSortedFunc(r.stack, byDepth) {
		slices.SortStableFunc(r.stack, byDepth)
	}
	r.chains.set(r.stack[0].Chain, r.push())
	r.stack = r.stack[:0]
}

// push returns the stack at hand.
func (r *chainReader) push() profile.StackID {
	sum := uint64(0)
	for i := range r.stack {
		sum = order.Mix(sum + uint64(r.stack[i].Function)<<32 + uint64(r.stack[i].Module))
	}
	known := &r.recent[sum%uint64(len(r.recent))]
	alike := func(a, b rows.ChainFrame) bool { return a.Function == b.Function && a.Module == b.Module }
	if !slices.EqualFunc(known.frames, r.stack, alike) {
		known.frames, known.id = append(known.frames[:0], r.stack...), 0
		for _, f := range slices.Backward(r.stack) {
			known.id = r.stacks.Push(profile.StackFrame{Caller: known.id, Function: f.Function, Module: f.Module})
		}
	}
	return known.id
}

// Backtraces yields the calls of which there are stacks: into CUDA, then into the operating
// system. Stacks are the largest tables of an export, so the calls are read first, and held, and
// then only the stacks of those that are wanted.
func (st stream) Backtraces(wanted func(*profile.Sample) bool) iter.Seq[*profile.Sample] {
	return func(yield func(*profile.Sample) bool) {
		w := st.walk()
		var calls [2]chainedCalls
		stacks := &profile.Stacks{}
		for i, kind := range []rows.ChainKind{rows.CUDAChains, rows.OSChains} {
			if st.src.HasChains(kind) {
				calls[i].read(w, kind, wanted)
				readChains(st.src.Source, kind, false, &calls[i].chains, stacks)
			}
		}
		out := profile.Sample{CPU: -1, Stacks: stacks}
		for i := range calls {
			if !calls[i].pass(w, &out, yield) {
				return
			}
		}
	}
}

package nsysexport

import (
	"encoding/binary"
	"iter"
	"slices"

	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/nsysexport/rows"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// chains are the stacks of one kind, by nsys's numbers.
type chains struct{ order.Paged[profile.StackID] }

// unread marks a stack that is needed but not read yet.
const unread profile.StackID = -1

// need requests that a stack be read.
func (c *chains) need(number int64) { *c.At(number) = unread }

// needed reports whether a stack is to be read. Its frames may come in several pieces; the last one counts.
func (c *chains) needed(number int64) bool { return c.Get(number) != 0 }

// stackOf returns the stack with a number, empty if it was not recorded.
func (c *chains) stackOf(number int64) profile.StackID { return max(0, c.Get(number)) }

// A chainReader reads the stacks of a kind into a set of stacks.
type chainReader struct {
	chains *chains
	stacks *profile.Stacks
	stack  []rows.ChainFrame // current stack, innermost function first
	recent [1 << 10]recentStack
}

// A recentStack is a stack that was read, with its frames: most stacks equal one of the last few.
type recentStack struct {
	frames []rows.ChainFrame
	id     profile.StackID
}

// readChains reads the stacks of a kind: those that are needed, or all.
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

// end finishes the current stack.
func (r *chainReader) end() {
	if len(r.stack) == 0 {
		return
	}
	byDepth := func(a, b rows.ChainFrame) int { return int(a.Depth) - int(b.Depth) }
	if !slices.IsSortedFunc(r.stack, byDepth) {
		slices.SortStableFunc(r.stack, byDepth)
	}
	*r.chains.At(r.stack[0].Chain) = r.push()
	r.stack = r.stack[:0]
}

// push adds the current stack to the set.
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

// Backtraces yields the calls with stacks: into CUDA, then into the operating system. Stacks are the largest
// tables of an export, so it reads and holds the calls first, and then reads only the stacks of wanted calls.
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

// chainedCalls are the calls with stacks of a kind, and these stacks. Calls are packed into some ten bytes
// each, as differences from the previous one.
type chainedCalls struct {
	chains chains
	chunks [][]byte
	last   rows.ChainedCall
}

const (
	callChunk = 1 << 16
	// maxPackedCall is the largest size of a call: six integers.
	maxPackedCall = 6 * binary.MaxVarintLen64
)

// read reads the wanted calls, or all if wanted is nil, and requests their stacks.
func (c *chainedCalls) read(w *walk, kind rows.ChainKind, wanted func(*profile.Sample) bool) {
	names := trace.Renamed(w.src.Options.Syms, rows.APIName)
	out := profile.Sample{CPU: -1}
	w.src.ChainedCalls(kind, func(x *rows.ChainedCall) bool {
		name := names.Of(x.Name)
		if !w.event(&out.Event, x.PID, x.Start, x.End, 0, name) {
			return true
		}
		if out.TID = int64(x.TID); wanted == nil || wanted(&out) {
			x.Name = name
			c.add(x)
			c.chains.need(x.Chain)
		}
		return true
	})
}

func (c *chainedCalls) add(x *rows.ChainedCall) {
	n := len(c.chunks)
	if n == 0 || len(c.chunks[n-1]) > callChunk-maxPackedCall {
		c.chunks = append(c.chunks, make([]byte, 0, callChunk))
		n++
	}
	b := binary.AppendVarint(c.chunks[n-1], int64(x.Start-c.last.Start))
	b = binary.AppendVarint(b, int64(x.End-x.Start))
	b = binary.AppendVarint(b, int64(x.PID)-int64(c.last.PID))
	b = binary.AppendVarint(b, int64(x.TID)-int64(c.last.TID))
	b = binary.AppendUvarint(b, uint64(x.Name))
	c.chunks[n-1] = binary.AppendVarint(b, x.Chain-c.last.Chain)
	c.last = *x
}

// pass yields the calls that turned out to have a stack, and frees them. It returns false if yield does.
func (c *chainedCalls) pass(w *walk, out *profile.Sample, yield func(*profile.Sample) bool) bool {
	r := memory.Unpack(c.chunks)
	var x rows.ChainedCall
	for r.More() {
		x.Start += trace.Time(r.Signed())
		x.End = x.Start + trace.Time(r.Signed())
		x.PID += int32(r.Signed())
		x.TID += int32(r.Signed())
		x.Name = trace.Sym(r.Unsigned())
		x.Chain += r.Signed()
		if out.Stack = c.chains.stackOf(x.Chain); out.Stack == 0 {
			continue
		}
		w.event(&out.Event, x.PID, x.Start, x.End, 0, x.Name)
		if out.TID = int64(x.TID); !yield(out) {
			return false
		}
	}
	return true
}

package nsysexport

import (
	"slices"

	"github.com/sgtrace/sgtrace/nsysexport/rows"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// chains are the stacks of one kind, by their numbers.
type chains struct {
	stacks profile.Stacks
	// dense has those that nsys numbers, which counts; others are in sparse.
	dense  []profile.StackID
	sparse map[int64]profile.StackID
}

// readChains reads all stacks of a kind.
func readChains(src *rows.Source, kind rows.ChainKind) *chains {
	c := &chains{sparse: map[int64]profile.StackID{}}
	var stack []rows.ChainFrame // the innermost function first
	end := func() {
		if len(stack) == 0 {
			return
		}
		byDepth := func(a, b rows.ChainFrame) int { return int(a.Depth) - int(b.Depth) }
		if !slices.IsSortedFunc(stack, byDepth) {
			slices.SortStableFunc(stack, byDepth)
		}
		var id profile.StackID
		for _, f := range slices.Backward(stack) {
			id = c.stacks.Push(profile.StackFrame{Caller: id, Function: f.Function, Module: f.Module})
		}
		c.set(stack[0].Chain, id)
		stack = stack[:0]
	}
	src.Chains(kind, func(f *rows.ChainFrame) bool {
		if len(stack) > 0 && stack[0].Chain != f.Chain {
			end()
		}
		stack = append(stack, *f)
		return true
	})
	end()
	return c
}

func (c *chains) set(number int64, id profile.StackID) {
	const leap = 1 << 10 // numbers that nothing has
	if number < 0 || number > int64(len(c.dense)+leap) {
		c.sparse[number] = id
		return
	}
	for int64(len(c.dense)) <= number {
		c.dense = append(c.dense, 0)
	}
	c.dense[number] = id
}

// of returns the stack of a number, the empty one if it is not recorded.
func (c *chains) of(number int64) profile.StackID {
	if number >= 0 && number < int64(len(c.dense)) && c.dense[number] != 0 {
		return c.dense[number]
	}
	return c.sparse[number]
}

// Samples yields the samples of threads that have a stack.
func (st stream) Samples(yield func(*profile.Sample) bool) {
	if !st.src.HasChains(rows.SampleChains) {
		return
	}
	w, c := st.walk(), readChains(st.src, rows.SampleChains)
	out := profile.Sample{Stacks: &c.stacks}
	st.src.StackSamples(func(x *rows.StackSample) bool {
		out.Stack = c.of(x.Chain)
		if out.Stack == 0 {
			return true
		}
		e, ok := w.event(x.PID, x.Time, x.Time, 0, c.stacks.Frame(out.Stack).Function)
		if !ok {
			return true
		}
		out.Event, out.TID, out.CPU = e, int64(x.TID), x.CPU
		return yield(&out)
	})
}

// Backtraces yields the calls of which there are stacks: into CUDA, then into the operating
// system.
func (st stream) Backtraces(yield func(*profile.Sample) bool) {
	w, more := st.walk(), true
	names := map[trace.Sym]trace.Sym{} // without versions
	for _, kind := range []rows.ChainKind{rows.CUDAChains, rows.OSChains} {
		if !more || !st.src.HasChains(kind) {
			continue
		}
		c := readChains(st.src, kind)
		out := profile.Sample{CPU: -1, Stacks: &c.stacks}
		st.src.ChainedCalls(kind, func(x *rows.ChainedCall) bool {
			name, known := names[x.Name]
			if !known {
				name = st.src.Options.Syms.Intern(rows.APIName(st.src.Options.Syms.Name(x.Name)))
				names[x.Name] = name
			}
			out.Stack = c.of(x.Chain)
			e, ok := w.event(x.PID, x.Start, x.End, 0, name)
			if !ok || out.Stack == 0 {
				return true
			}
			out.Event, out.TID = e, int64(x.TID)
			more = yield(&out)
			return more
		})
	}
}

// Runs yields when threads had cores.
func (st stream) Runs(yield func(*profile.Run) bool) {
	w := st.walk()
	var out profile.Run
	st.src.Runs(func(x *rows.Run) bool {
		e, ok := w.event(x.PID, x.Start, x.End, 0, 0)
		if !ok {
			return true
		}
		out = profile.Run{Event: e, TID: int64(x.TID), CPU: x.CPU}
		return yield(&out)
	})
}

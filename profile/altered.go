package profile

import (
	"iter"

	"github.com/sgtrace/sgtrace/trace"
)

// WithObserved returns a stream of the events of st, and of what was observed meanwhile,
// the nodes of graphs included.
func WithObserved(st, observed Stream) Stream { return withObserved{st, observed} }

type withObserved struct {
	Stream
	observed Stream
}

func (b withObserved) Samples(yield func(*Sample) bool) { b.observed.Samples(yield) }
func (b withObserved) Backtraces(wanted func(*Sample) bool) iter.Seq[*Sample] {
	return b.observed.Backtraces(wanted)
}
func (b withObserved) Runs(yield func(*Run) bool)             { b.observed.Runs(yield) }
func (b withObserved) GraphNodes(yield func(*GraphNode) bool) { GraphNodes(b.observed)(yield) }

// NodeRanges are those of what was observed: a timeline holds NVTX ranges as slices of no kind.
func (b withObserved) NodeRanges(yield func(*Range) bool) { b.observed.Ranges(yield) }
func (b withObserved) CounterValues(yield func(*CounterValue) bool) {
	b.observed.CounterValues(yield)
}

// Unversioned returns a stream that calls calls as PyTorch does, without the version of CUDA in
// which their signature changed: nsys stats leaves short ones out only.
func Unversioned(st Stream, syms *trace.Symbols) Stream { return unversioned{st, syms} }

type unversioned struct {
	Stream
	syms *trace.Symbols
}

func (u unversioned) Calls(yield func(*Call) bool) {
	names := trace.Renamed(u.syms, CallName)
	u.Stream.Calls(func(c *Call) bool {
		c.Name = names.Of(c.Name)
		return yield(c)
	})
}

package profile

import (
	"iter"

	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/trace"
)

// A Join finds rows of a table by their correlation id.
type Join struct {
	rows order.Paged[int32] // by id: index of the row, plus one
}

// NewJoin returns the join of n rows, whose ids of returns; rows with id 0 are omitted. Among rows with the
// same id, the last one counts.
func NewJoin(n int, of func(i int) int64) *Join {
	j := &Join{}
	for i := range n {
		if id := of(i); id != 0 {
			*j.rows.At(id) = int32(i) + 1
		}
	}
	return j
}

// JoinLaunches returns the join of the launches among the events on the given rows.
func (p *Profile) JoinLaunches(on func(r *Row) bool) *Join {
	rows := order.EachRow(p.Rows, on)
	return NewJoin(len(p.Events), func(i int) int64 {
		if e := &p.Events[i]; e.IsLaunch() && rows[e.Place.Row()] {
			return e.Correlation
		}
		return 0
	})
}

// Of returns the index of the row with the given id, -1 if there is none.
func (j *Join) Of(correlation int64) int32 { return j.rows.Get(correlation) - 1 }

// A GraphNode is a node of a CUDA graph, and the call that created it, which begins at Start.
type GraphNode struct {
	Event
	TID int64
	// Node is its number, as in [Kernel.Node]. Original is that of the node that it was copied from when the graph
	// was instantiated; 0 is none.
	Node, Original int64
}

// GraphNodes yields the nodes of graphs that were created while a stream was recorded, in no particular order.
// Only exports of Nsight Systems have them.
func GraphNodes(s Stream) iter.Seq[*GraphNode] {
	return func(yield func(*GraphNode) bool) {
		if n, ok := s.(interface {
			GraphNodes(yield func(*GraphNode) bool)
		}); ok {
			n.GraphNodes(yield)
		}
	}
}

// NodeRanges yields the ranges of a stream that may contain the creation of graph nodes.
func NodeRanges(s Stream) iter.Seq[*Range] {
	if n, ok := s.(interface {
		NodeRanges(yield func(*Range) bool)
	}); ok {
		return n.NodeRanges
	}
	return s.Ranges
}

// NodeAnnotations are the names that a program gave the nodes of its CUDA graphs while it captured them.
type NodeAnnotations struct {
	File string
	Rank int32 // in its world; -1 is unknown
	// Names are by number of the node in the executable graph, as in [Kernel.Node].
	Names map[int64]string
}

// A LaunchShape is the configuration of a kernel launch. 0 is not recorded.
type LaunchShape struct {
	Blocks    int64 // of the grid
	Threads   int32 // of a block
	Registers int32 // of a thread
	Shared    int32 // bytes of shared memory of a block
}

// LaunchArguments are the arguments of kernels, and of the calls that launch them, that name the kernel, its
// configuration, and its node in a graph.
var LaunchArguments = []string{launchedKernel, "grid", "block", registersArgument, sharedArgument, NodeArgument}

// NodeArgument is the argument of kernels with their node in a graph.
const NodeArgument = "graph node id"

const (
	launchedKernel    = "kernel" // of calls into HIP
	registersArgument = "registers per thread"
	sharedArgument    = "shared memory"
)

// threadCalls are the calls whose grid sizes count threads, and not blocks.
var threadCalls = []string{"hipExtModuleLaunchKernel", "hipHccModuleLaunchKernel"}

// inBlocks converts a shape whose grid size counts threads.
func (s LaunchShape) inBlocks() LaunchShape {
	if s.Threads > 0 {
		s.Blocks = (s.Blocks + int64(s.Threads) - 1) / int64(s.Threads)
	}
	return s
}

// launchArgs reads the arguments of launches.
type launchArgs struct {
	args                                              *trace.Args
	kernel, grid, block, registers, shared, graphNode trace.Sym
}

func newLaunchArgs(syms *trace.Symbols, args *trace.Args) launchArgs {
	find := func(name string) trace.Sym {
		sym, _ := syms.Lookup(name)
		return sym
	}
	return launchArgs{args, find(launchedKernel), find("grid"), find("block"), find(registersArgument), find(sharedArgument), find(NodeArgument)}
}

// A launched is the information in the arguments of a launch.
type launched struct {
	shape LaunchShape
	name  []byte // name of the kernel; nil is unknown
	node  int64
}

func (l *launchArgs) shapeOf(id trace.ArgsID) (out launched) {
	if id == 0 {
		return out
	}
	for a := range l.args.All(id) {
		switch {
		case a.Key == 0:
		case a.Key == l.kernel && a.Kind == trace.ArgString:
			out.name = a.Bytes()
		case a.Key == l.grid && a.Kind == trace.ArgArray:
			out.shape.Blocks = product(a)
		case a.Key == l.block && a.Kind == trace.ArgArray:
			out.shape.Threads = int32(min(product(a), 1<<16))
		case a.Kind != trace.ArgInt && a.Kind != trace.ArgUint:
		case a.Key == l.registers:
			out.shape.Registers = int32(a.Int())
		case a.Key == l.shared:
			out.shape.Shared = int32(a.Int())
		case a.Key == l.graphNode:
			out.node = a.Int()
		}
	}
	return out
}

// product multiplies the numbers of a list; 0 if it is not a list of numbers.
func product(list trace.Arg) int64 {
	n := int64(1)
	for e := range list.Elems {
		if e.Kind != trace.ArgInt || e.Int() <= 0 || n > 1<<40 {
			return 0
		}
		n *= e.Int()
	}
	return n
}

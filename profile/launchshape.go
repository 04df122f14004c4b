package profile

import (
	"github.com/sgtrace/sgtrace/trace"
)

// A LaunchShape is how a kernel is launched. What is 0 was not recorded.
type LaunchShape struct {
	Blocks    int64 // of the grid
	Threads   int32 // of a block
	Registers int32 // of a thread
	Shared    int32 // bytes of shared memory of a block
}

// LaunchArguments are the arguments of kernels, and of the calls that launch them, which tell
// what is launched, how, and which node of a graph it is.
var LaunchArguments = []string{launchedKernel, "grid", "block", registersArgument, sharedArgument, NodeArgument}

// NodeArgument is the argument of kernels that tells which node of a graph they are.
const NodeArgument = "graph node id"

const (
	launchedKernel    = "kernel" // of calls into HIP
	registersArgument = "registers per thread"
	sharedArgument    = "shared memory"
)

// threadCalls are the calls that give the sizes of grids in threads, and not in blocks.
var threadCalls = []string{"hipExtModuleLaunchKernel", "hipHccModuleLaunchKernel"}

// inBlocks returns the shape where the size of the grid is given in threads.
func (s LaunchShape) inBlocks() LaunchShape {
	if s.Threads > 0 {
		s.Blocks = (s.Blocks + int64(s.Threads) - 1) / int64(s.Threads)
	}
	return s
}

// launchArgs read the arguments of launches.
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

// A launched is what arguments say of a launch.
type launched struct {
	shape LaunchShape
	name  []byte // of the kernel; nil is unknown
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

// product multiplies the numbers of a list; 0 if it is none.
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

package rows

import (
	"path"

	"github.com/sgtrace/sgtrace/trace"
)

// A ChainKind says what stacks were recorded of.
type ChainKind uint8

const (
	SampleChains ChainKind = iota // threads that were interrupted
	CUDAChains                    // calls into CUDA
	OSChains                      // calls into the operating system
	numChains
)

// A ChainFrame is one function of a stack. Frames of a stack follow each other, the innermost
// one first.
type ChainFrame struct {
	Chain    int64 // number of the stack, among those of its kind
	Depth    int32 // 0 is the innermost
	Function trace.Sym
	Module   trace.Sym // path of a program or a library; 0 is unknown
}

const (
	chainID = iota
	chainSymbol
	chainModule
	chainDepth
	chainUnresolved
)

var chainColumns = []column{
	chainID:         {name: "id", need: true},
	chainSymbol:     {name: "symbol", need: true},
	chainModule:     {name: "module"},
	chainDepth:      {name: "stackDepth", need: true},
	chainUnresolved: {name: "unresolved"},
}

var chainTables = [numChains]tableSpec{
	SampleChains: {names: []string{"SAMPLING_CALLCHAINS"}, columns: chainColumns},
	CUDAChains:   {names: []string{"CUDA_CALLCHAINS"}, columns: chainColumns},
	OSChains:     {names: []string{"OSRT_CALLCHAINS"}, columns: chainColumns},
}

// Chains yields the functions of the stacks of a kind with numbers that are wanted; nil is all.
func (s *Source) Chains(kind ChainKind, wanted func(number int64) bool, yield func(*ChainFrame) bool) {
	nameless := trace.Renamed(s.Options.Syms, namelessIn) // by module
	spec := chainTables[kind]
	if wanted != nil {
		spec.when = &condition{chainID, func(c *cursor) bool { return wanted(c.int(chainID)) }}
	}
	var f ChainFrame
	s.scan(&spec, func(c *cursor) bool {
		f = ChainFrame{Chain: c.int(chainID), Depth: int32(c.int(chainDepth)), Module: c.name(chainModule)}
		if c.int(chainUnresolved) == 0 {
			f.Function = c.name(chainSymbol)
			return yield(&f)
		}
		// The name is an address, another one at each place of the function.
		f.Function = nameless.Of(f.Module)
		return yield(&f)
	})
}

// namelessIn returns the name of nameless functions of a module: "[libcuda.so.1]".
func namelessIn(module string) string {
	if module == "" || module[0] == '[' {
		return "[Unknown]"
	}
	return "[" + path.Base(module) + "]"
}

// A StackSample is a thread that was interrupted, to see what it ran.
type StackSample struct {
	Time     trace.Time
	PID, TID int32
	CPU      int32 // -1 is unknown
	Chain    int64 // of [SampleChains]
}

const (
	stackTime = iota
	stackID
	stackCPU
	stackTID
	stackCycles
)

var stackTable = tableSpec{
	names: []string{"COMPOSITE_EVENTS"},
	columns: []column{
		stackTime:   {name: "start", need: true},
		stackID:     {name: "id", need: true},
		stackCPU:    {name: "cpu", none: -1},
		stackTID:    {name: "globalTid", none: noID},
		stackCycles: {name: "cpuCycles", none: 1},
	},
}

// StackSamples yields the samples of threads.
func (s *Source) StackSamples(yield func(*StackSample) bool) {
	var x StackSample
	s.scan(&stackTable, func(c *cursor) bool {
		if c.int(stackCycles) == 0 {
			return true // tells of a change of state
		}
		id := c.int(stackTID)
		x = StackSample{c.time(stackTime), pidOf(id), tidOf(id), int32(c.int(stackCPU)), c.int(stackID)}
		return yield(&x)
	})
}

// StackSampleRows returns how many samples there are at most
func (s *Source) StackSampleRows() int64 { return s.count(&stackTable) }

// A ChainedCall is a call of which the stack was recorded.
type ChainedCall struct {
	Start, End trace.Time
	PID, TID   int32
	Name       trace.Sym // as in the file
	Chain      int64
}

const (
	chainedStart = iota
	chainedEnd
	chainedTID
	chainedName
	chainedID
)

// chained returns how calls are read with the numbers of their stacks.
func chained(calls *tableSpec) *tableSpec {
	return &tableSpec{names: calls.names, quiet: true, columns: []column{
		chainedStart: {name: "start", need: true},
		chainedEnd:   {name: "end", need: true},
		chainedTID:   {name: "globalTid", none: noID},
		chainedName:  {name: "nameId", need: true},
		chainedID:    {name: "callchainId"},
	}}
}

// callsOf are the calls of which there are stacks.
var callsOf = [numChains][]*tableSpec{
	CUDAChains: {chained(&apiTable), chained(&driverTable)},
	OSChains:   {chained(&osTable)},
}

// ChainedCalls yields the calls that have stacks of a kind.
func (s *Source) ChainedCalls(kind ChainKind, yield func(*ChainedCall) bool) {
	var x ChainedCall
	for _, spec := range callsOf[kind] {
		more := s.scan(spec, func(c *cursor) bool {
			chain := c.int(chainedID)
			if chain == 0 {
				return true
			}
			id := c.int(chainedTID)
			x = ChainedCall{c.time(chainedStart), c.time(chainedEnd), pidOf(id), tidOf(id), c.name(chainedName), chain}
			return yield(&x)
		})
		if !more {
			return
		}
	}
}

// HasChains reports whether there are stacks of a kind.
func (s *Source) HasChains(kind ChainKind) bool { return s.count(&chainTables[kind]) > 0 }

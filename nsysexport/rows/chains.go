package rows

import (
	"path"

	"github.com/sgtrace/sgtrace/trace"
)

// A ChainKind is the kind of event whose stack was recorded.
type ChainKind uint8

const (
	SampleChains ChainKind = iota // interrupted threads
	CUDAChains                    // calls into CUDA
	OSChains                      // calls into the operating system
	numChains
)

// A ChainFrame is one function of a stack. The frames of a stack are consecutive, innermost first.
type ChainFrame struct {
	Chain    int64 // number of the stack within its kind
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

// Chains yields the frames of the wanted stacks of a kind; a nil wanted means all.
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
		// The name is an address, which differs from place to place within the function.
		f.Function = nameless.Of(f.Module)
		return yield(&f)
	})
}

// namelessIn returns the name for a module's nameless functions: "[libcuda.so.1]".
func namelessIn(module string) string {
	if module == "" || module[0] == '[' {
		return "[Unknown]"
	}
	return "[" + path.Base(module) + "]"
}

// A StackSample is an interrupt of a thread, which shows what it was running.
type StackSample struct {
	Time     trace.Time
	PID, TID int32
	CPU      int32 // -1 is unknown
	Chain    int64 // number among [SampleChains]
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
			return true // a change of state, not a sample
		}
		id := c.int(stackTID)
		x = StackSample{c.time(stackTime), pidOf(id), tidOf(id), int32(c.int(stackCPU)), c.int(stackID)}
		return yield(&x)
	})
}

// StackSampleRows returns an upper bound of the number of samples.
func (s *Source) StackSampleRows() int64 { return s.count(&stackTable) }

// A ChainedCall is a call whose stack was recorded.
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

// chained returns the spec of a table of calls with the numbers of their stacks.
func chained(calls *tableSpec) *tableSpec {
	return &tableSpec{names: calls.names, quiet: true, columns: []column{
		chainedStart: {name: "start", need: true},
		chainedEnd:   {name: "end", need: true},
		chainedTID:   {name: "globalTid", none: noID},
		chainedName:  {name: "nameId", need: true},
		chainedID:    {name: "callchainId"},
	}}
}

// callsOf are the tables of calls with stacks, by kind.
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

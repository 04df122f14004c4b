package rows

import (
	"math"
	"sync"

	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/nsysexport/storage"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// Place is the place on the GPUs where an operation ran.
type Place struct {
	PID     int32  // -1 is unknown
	Device  int32  // in the process's numbering, see [Meta.Devices]; -1 is unknown
	Context uint32 // CUDA context
	Stream  uint32
	// Correlation joins the operation to the calls of the same process that requested it ([Call]); 0 is none. All
	// kernels of a CUDA graph have that of its launch.
	Correlation uint32
}

// A Kernel is a run of a kernel. 56 bytes.
type Kernel struct {
	Start, End trace.Time
	Node       uint64 // graph node; 0 if the kernel was not in a graph, or its node is unknown
	Place
	Name   trace.Sym // with namespaces, template and call parameters
	Launch LaunchID  // index in [Source.Launches]; 0 is unknown
	Grid   profile.Grid
}

// LaunchID is an index of [Source.Launches].
type LaunchID uint32

// A Launch is the configuration of a kernel launch. Each distinct one is stored once.
type Launch struct {
	Grid, Block   [3]uint32
	Registers     uint32 // per thread
	StaticShared  uint32 // bytes
	DynamicShared uint32 // bytes
}

// Numbers of the columns for the place of an operation. They are the first ones in all tables of operations.
const (
	opStart = iota
	opEnd
	opPID
	opDevice
	opContext
	opStream
	opCorrelation
	opColumns
)

// operation returns the columns of a table of operations.
func operation(more ...column) []column {
	return append([]column{
		opStart:       {name: "start", need: true},
		opEnd:         {name: "end", need: true},
		opPID:         {name: "globalPid", or: "globalTid", none: noID},
		opDevice:      {name: "deviceId", none: -1},
		opContext:     {name: "contextId"},
		opStream:      {name: "streamId"},
		opCorrelation: {name: "correlationId"},
	}, more...)
}

// place sets p to where the operation ran.
func (c *cursor) place(p *Place) {
	p.PID, p.Device, p.Context = pidOf(c.int(opPID)), int32(c.int(opDevice)), uint32(c.int(opContext))
	p.Stream, p.Correlation = uint32(c.int(opStream)), uint32(c.int(opCorrelation))
	if p.Device < 0 && c.devices != nil {
		p.Device, _ = c.devices.find(contextID{p.PID, p.Context})
	}
}

const (
	kerName = opColumns + iota
	kerNode
	kerGridX
	kerGridY
	kerGridZ
	kerBlockX
	kerBlockY
	kerBlockZ
	kerRegisters
	kerStatic
	kerDynamic
)

var kernelTable = tableSpec{
	names: []string{"CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL"},
	columns: operation(
		column{name: "demangledName", or: "shortName"},
		column{name: "graphNodeId"},
		column{name: "gridX"}, column{name: "gridY"}, column{name: "gridZ"},
		column{name: "blockX"}, column{name: "blockY"}, column{name: "blockZ"},
		column{name: "registersPerThread", detail: true},
		column{name: "staticSharedMemory", detail: true},
		column{name: "dynamicSharedMemory", detail: true},
	),
}

// Kernels yields the kernels.
func (w *Window) Kernels(yield func(*Kernel) bool) { w.kernels(w.bounded(&kernelTable), yield) }

// KernelsCalled yields the kernels with wanted names. Of other kernels, it reads only the names, and the times,
// for use by a later [Window].
func (s *Source) KernelsCalled(wanted func(name trace.Sym) bool, yield func(*Kernel) bool) {
	spec := kernelTable
	spec.within = &storage.Window{From: math.MinInt64, To: math.MaxInt64, Number: storage.NoColumn}
	spec.when = &condition{kerName, func(c *cursor) bool { return wanted(c.name(kerName)) }}
	s.kernels(&spec, yield)
}

func (s *Source) kernels(spec *tableSpec, yield func(*Kernel) bool) {
	var k Kernel
	known := map[Launch]LaunchID{}
	last, lastID := Launch{}, LaunchID(0)
	s.scan(spec, func(c *cursor) bool {
		k.Name = c.name(kerName)
		k.Start, k.End, k.Node = c.time(opStart), c.time(opEnd), uint64(c.int(kerNode))
		c.place(&k.Place)
		k.Grid = profile.GridOf(c.int(kerGridX)*c.int(kerGridY)*c.int(kerGridZ), c.int(kerBlockX)*c.int(kerBlockY)*c.int(kerBlockZ))
		if !s.Options.Brief {
			if l := c.launch(); l != last {
				id := order.Memo(known, l, func() LaunchID { return s.launches.id(l) })
				last, lastID = l, id
			}
			k.Launch = lastID
		}
		return yield(&k)
	})
}

func (c *cursor) launch() Launch {
	u := func(column int) uint32 { return uint32(c.int(column)) }
	return Launch{
		Grid:      [3]uint32{u(kerGridX), u(kerGridY), u(kerGridZ)},
		Block:     [3]uint32{u(kerBlockX), u(kerBlockY), u(kerBlockZ)},
		Registers: u(kerRegisters), StaticShared: u(kerStatic), DynamicShared: u(kerDynamic),
	}
}

// launches numbers distinct launches.
type launches struct {
	mu    sync.Mutex
	list  []Launch // the first one is unknown
	index map[Launch]LaunchID
}

func newLaunches() launches {
	return launches{list: []Launch{{}}, index: map[Launch]LaunchID{{}: 0}}
}

func (l *launches) id(launch Launch) LaunchID {
	l.mu.Lock()
	defer l.mu.Unlock()
	return order.At(l.index, &l.list, launch, func() Launch { return launch })
}

// Launches returns the launches of the kernels that were yielded so far.
func (s *Source) Launches() []Launch {
	s.launches.mu.Lock()
	defer s.launches.mu.Unlock()
	return s.launches.list[:len(s.launches.list):len(s.launches.list)]
}

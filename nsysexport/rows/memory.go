package rows

import (
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// Direction is the direction of a copy. Numbers are those of CUPTI.
type Direction uint8

// String returns the direction as in [profile.CopyOperation]: "HtoD".
func (d Direction) String() string {
	if int(d) < len(directions) {
		return directions[d]
	}
	return directions[0]
}

var directions = [...]string{"Unknown", "HtoD", "DtoH", "HtoA", "AtoH", "AtoA", "AtoD", "DtoA", "DtoD", "HtoH", "PtoP",
	"Unified HtoD", "Unified DtoH", "Unified DtoD"}

// unknownMemory is the number for unknown memory. Smaller ones are in the order of [profile.Memory].
const unknownMemory = 7

// memory returns the kind of memory in a column.
func (c *cursor) memory(column int) profile.Memory {
	if n := c.int(column); 0 <= n && n < unknownMemory {
		return profile.PageableMemory + profile.Memory(n)
	}
	return profile.UnknownMemory
}

// A Memcpy is a copy. 48 bytes.
type Memcpy struct {
	Start, End trace.Time
	Bytes      uint64
	Place
	Direction Direction
	Kind      profile.CopyKind
}

const (
	memBytes = opColumns + iota
	memKind
	memSrc
	memDst
)

var memcpyTable = tableSpec{
	names: []string{"CUPTI_ACTIVITY_KIND_MEMCPY"},
	columns: operation(
		column{name: "bytes"},
		column{name: "copyKind"},
		column{name: "srcKind", none: unknownMemory},
		column{name: "dstKind", none: unknownMemory},
	),
}

// Memcpys yields the copies.
func (w *Window) Memcpys(yield func(*Memcpy) bool) {
	var m Memcpy
	w.scan(w.bounded(&memcpyTable), func(c *cursor) bool {
		m = Memcpy{
			Start: c.time(opStart), End: c.time(opEnd),
			Bytes: uint64(c.int(memBytes)), Direction: Direction(c.int(memKind)),
			Kind: profile.CopyKind{From: c.memory(memSrc), To: c.memory(memDst)},
		}
		c.place(&m.Place)
		return yield(&m)
	})
}

// A Memset fills memory with a value. 48 bytes.
type Memset struct {
	Start, End trace.Time
	Bytes      uint64
	Place
	Kind profile.Memory
}

const (
	setBytes = opColumns + iota
	setKind
)

var memsetTable = tableSpec{
	names: []string{"CUPTI_ACTIVITY_KIND_MEMSET"},
	columns: operation(
		column{name: "bytes"},
		column{name: "memKind", none: unknownMemory},
	),
}

// Memsets yields the fills.
func (w *Window) Memsets(yield func(*Memset) bool) {
	var m Memset
	w.scan(w.bounded(&memsetTable), func(c *cursor) bool {
		m = Memset{
			Start: c.time(opStart), End: c.time(opEnd),
			Bytes: uint64(c.int(setBytes)), Kind: c.memory(setKind),
		}
		c.place(&m.Place)
		return yield(&m)
	})
}

// A MemoryEvent is an allocation or a release of GPU memory. 32 bytes.
type MemoryEvent struct {
	Time   trace.Time
	Bytes  int64 // change of the memory in use; negative if memory is freed
	PID    int32 // -1 is unknown
	Device int32 // in the process's numbering; -1 is unknown
	Kind   profile.Memory
}

const (
	useTime = iota
	usePID
	useDevice
	useBytes
	useKind
	useOperation
)

var memoryTable = tableSpec{
	names: []string{"CUDA_GPU_MEMORY_USAGE_EVENTS"},
	columns: []column{
		useTime:      {name: "start", or: "timestamp", need: true},
		usePID:       {name: "globalPid", or: "globalTid", none: noID},
		useDevice:    {name: "deviceId", none: -1},
		useBytes:     {name: "bytes", need: true},
		useKind:      {name: "memKind", none: unknownMemory},
		useOperation: {name: "memoryOperationType", need: true},
	},
}

// MemoryEvents yields allocations and releases.
func (s *Source) MemoryEvents(yield func(*MemoryEvent) bool) {
	const freed = 1
	var m MemoryEvent
	s.scan(&memoryTable, func(c *cursor) bool {
		m = MemoryEvent{
			Time: c.time(useTime), Bytes: c.int(useBytes),
			PID: pidOf(c.int(usePID)), Device: int32(c.int(useDevice)), Kind: c.memory(useKind),
		}
		if c.int(useOperation) == freed {
			m.Bytes = -m.Bytes
		}
		return yield(&m)
	})
}

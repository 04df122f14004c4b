package rows

import "github.com/sgtrace/sgtrace/trace"

// CopyKind is the direction of a copy. Numbers are those of CUPTI.
type CopyKind uint8

// String returns the direction in NVIDIA's words: "Host-to-Device".
func (k CopyKind) String() string { return label(copyKinds[:], uint8(k)) }

var copyKinds = [...]string{
	"Unknown", "Host-to-Device", "Device-to-Host", "Host-to-Array", "Array-to-Host", "Array-to-Array",
	"Array-to-Device", "Device-to-Array", "Device-to-Device", "Host-to-Host", "Peer-to-Peer",
	"Unified Host-to-Device", "Unified Device-to-Host", "Unified Device-to-Device",
}

// MemoryKind is what kind of memory something is in. Numbers are those of CUPTI.
type MemoryKind uint8

// String returns the kind in NVIDIA's words: "Pinned".
func (k MemoryKind) String() string { return label(memoryKinds[:], uint8(k)) }

var memoryKinds = [...]string{
	"Pageable", "Pinned", "Device", "Array", "Managed", "Device Static", "Managed Static", "Unknown",
}

// UnknownMemory is the kind of memory of which nothing is known.
const UnknownMemory MemoryKind = 7

func label(of []string, n uint8) string {
	if int(n) < len(of) {
		return of[n]
	}
	return "Unknown"
}

// A Memcpy is a copy. 48 bytes.
type Memcpy struct {
	Start, End trace.Time
	Bytes      uint64
	Place
	Kind     CopyKind
	Src, Dst MemoryKind
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
		column{name: "srcKind", none: int64(UnknownMemory)},
		column{name: "dstKind", none: int64(UnknownMemory)},
	),
}

// Memcpys yields the copies.
func (s *Source) Memcpys(yield func(*Memcpy) bool) { s.memcpys(&memcpyTable, yield) }

func (s *Source) memcpys(spec *tableSpec, yield func(*Memcpy) bool) {
	var m Memcpy
	s.scan(spec, func(c *cursor) bool {
		m = Memcpy{
			Start: c.time(opStart), End: c.time(opEnd),
			Bytes: uint64(c.int(memBytes)), Kind: CopyKind(c.int(memKind)),
			Src: MemoryKind(c.int(memSrc)), Dst: MemoryKind(c.int(memDst)),
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
	Kind MemoryKind
}

const (
	setBytes = opColumns + iota
	setKind
)

var memsetTable = tableSpec{
	names: []string{"CUPTI_ACTIVITY_KIND_MEMSET"},
	columns: operation(
		column{name: "bytes"},
		column{name: "memKind", none: int64(UnknownMemory)},
	),
}

// Memsets yields the fills.
func (s *Source) Memsets(yield func(*Memset) bool) { s.memsets(&memsetTable, yield) }

func (s *Source) memsets(spec *tableSpec, yield func(*Memset) bool) {
	var m Memset
	s.scan(spec, func(c *cursor) bool {
		m = Memset{
			Start: c.time(opStart), End: c.time(opEnd),
			Bytes: uint64(c.int(setBytes)), Kind: MemoryKind(c.int(setKind)),
		}
		c.place(&m.Place)
		return yield(&m)
	})
}

// A MemoryEvent is an allocation of GPU memory, or its end. 32 bytes.
type MemoryEvent struct {
	Time   trace.Time
	Bytes  int64 // what it adds to the memory in use; negative where memory is freed
	PID    int32 // -1 is unknown
	Device int32 // as the process counts; -1 is unknown
	Kind   MemoryKind
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
		useKind:      {name: "memKind", none: int64(UnknownMemory)},
		useOperation: {name: "memoryOperationType", need: true},
	},
}

// MemoryEvents yields allocations and what ends them.
func (s *Source) MemoryEvents(yield func(*MemoryEvent) bool) {
	const freed = 1
	var m MemoryEvent
	s.scan(&memoryTable, func(c *cursor) bool {
		m = MemoryEvent{
			Time: c.time(useTime), Bytes: c.int(useBytes),
			PID: pidOf(c.int(usePID)), Device: int32(c.int(useDevice)), Kind: MemoryKind(c.int(useKind)),
		}
		if c.int(useOperation) == freed {
			m.Bytes = -m.Bytes
		}
		return yield(&m)
	})
}

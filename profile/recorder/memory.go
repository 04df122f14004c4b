package recorder

import (
	"cmp"
	"slices"
	"sync"

	"github.com/sgtrace/sgtrace/trace"
)

// Memory is the memory of several processes. Readers of several inputs may add to it concurrently.
type Memory struct {
	Syms *trace.Symbols

	mu   sync.Mutex
	list []*Snapshot
}

// NewMemory returns an empty set.
func NewMemory(syms *trace.Symbols) *Memory { return &Memory{Syms: syms} }

// Empty reports whether there are no snapshots.
func (s *Memory) Empty() bool { return len(s.Snapshots()) == 0 }

// Add adds a snapshot, replacing one of the same file.
func (s *Memory) Add(x *Snapshot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = slices.DeleteFunc(s.list, func(o *Snapshot) bool { return o.File == x.File })
	s.list = append(s.list, x)
}

// Name sets the rank of the snapshot from a file, if there is one.
func (s *Memory) Name(file, rank string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, x := range s.list {
		if x.File == file {
			x.Rank = rank
		}
	}
}

// Snapshots returns all snapshots, sorted by file.
func (s *Memory) Snapshots() []*Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.SortedFunc(slices.Values(s.list), func(a, b *Snapshot) int { return cmp.Compare(a.File, b.File) })
}

// A Snapshot is the memory of one process.
type Snapshot struct {
	File    string
	Rank    string // as in reports; "" is not determined yet
	Devices []*Device
	// Native are the call sites in C++ alone, such as threads of a backward pass, without a line of a program.
	Native map[trace.Sym]bool
}

// A Device is a device on which the process had memory.
type Device struct {
	Number   int32
	Segments []Segment // complete, at the moment of the snapshot
	Entries  []Entry   // before the snapshot, in order; older ones may be missing, as they are kept in a ring
}

// A Segment is a piece of device memory that the allocator holds.
type Segment struct {
	Size   int64 // bytes
	Pool   bool  // of a CUDA graph or a MemPool
	Blocks []Block
}

// A Block is a part of a segment.
type Block struct {
	Address         uint64
	Size, Requested int64     // bytes; Requested is at most Size
	Where           trace.Sym // call site of the allocation; 0 is unknown
	State           BlockState
}

// BlockState is whether a block is in use.
type BlockState uint8

const (
	Inactive BlockState = iota
	Active
	Pending // was freed, but a stream may still use it
)

// Action is the kind of an entry.
type Action uint8

const (
	Other         Action = iota
	Alloc                // a block was allocated
	FreeRequested        // a block was given back
	FreeCompleted        // no stream uses it any longer
	SegmentAlloc         // the allocator got device memory (cudaMalloc)
	SegmentFree          // the allocator gave device memory back
	SegmentMap           // the same for parts of expandable segments
	SegmentUnmap
	OutOfMemory // the device had no more; Address is how many bytes were free
)

// Actions are PyTorch's names for actions.
var Actions = map[string]Action{"alloc": Alloc, "free_requested": FreeRequested, "free_completed": FreeCompleted, "segment_alloc": SegmentAlloc,
	"segment_free": SegmentFree, "segment_map": SegmentMap, "segment_unmap": SegmentUnmap, "oom": OutOfMemory}

// An Entry is an action of the allocator.
type Entry struct {
	Address uint64
	Size    int64      // bytes, as requested
	Time    trace.Time // 0 is unknown: PyTorch before 2.2
	Where   trace.Sym  // innermost function outside of PyTorch; 0 is unknown
	Action  Action
}

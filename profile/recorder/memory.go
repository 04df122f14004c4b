package recorder

import (
	"cmp"
	"slices"
	"sync"

	"github.com/sgtrace/sgtrace/trace"
)

// Memory is what several processes had. Readers of several inputs may add to it at once.
type Memory struct {
	Syms *trace.Symbols

	mu   sync.Mutex
	list []*Snapshot
}

// NewMemory returns an empty set.
func NewMemory(syms *trace.Symbols) *Memory { return &Memory{Syms: syms} }

// Empty reports whether there is nothing in it.
func (s *Memory) Empty() bool { return len(s.Snapshots()) == 0 }

// Add adds a snapshot, in the place of one of the same file.
func (s *Memory) Add(x *Snapshot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = slices.DeleteFunc(s.list, func(o *Snapshot) bool { return o.File == x.File })
	s.list = append(s.list, x)
}

// Name says which rank the snapshot of a file is of, if there is one.
func (s *Memory) Name(file, rank string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, x := range s.list {
		if x.File == file {
			x.Rank = rank
		}
	}
}

// Snapshots returns all, by file.
func (s *Memory) Snapshots() []*Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.SortedFunc(slices.Values(s.list), func(a, b *Snapshot) int { return cmp.Compare(a.File, b.File) })
}

// A Snapshot is what one process had.
type Snapshot struct {
	File    string
	Rank    string // as reports name it; "" is not decided yet
	Devices []*Device
	// Native are places of C++ alone, such as threads of a backward pass: no line of a program.
	Native map[trace.Sym]bool
}

// A Device is one that the process had memory of.
type Device struct {
	Number   int32
	Segments []Segment // at the moment of the snapshot, complete
	Entries  []Entry   // before it, in order; those that the ring did not hold are missing
}

// A Segment is memory that the allocator has of the device.
type Segment struct {
	Size   int64 // bytes
	Pool   bool  // of a CUDA graph or a MemPool
	Blocks []Block
}

// A Block is a part of a segment.
type Block struct {
	Address         uint64
	Size, Requested int64     // bytes; what was asked for is at most the size
	Where           trace.Sym // allocated it; 0 is unknown
	State           BlockState
}

// BlockState is whether somebody uses a block.
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
	Alloc                // somebody got a block
	FreeRequested        // somebody gave it back
	FreeCompleted        // no stream uses it any longer
	SegmentAlloc         // the allocator got memory of the device (cudaMalloc)
	SegmentFree          // gave it back
	SegmentMap           // the same of parts of expandable segments
	SegmentUnmap
	OutOfMemory // the device had no more; Address is how much it had
)

// Actions are PyTorch's names of them.
var Actions = map[string]Action{"alloc": Alloc, "free_requested": FreeRequested, "free_completed": FreeCompleted, "segment_alloc": SegmentAlloc,
	"segment_free": SegmentFree, "segment_map": SegmentMap, "segment_unmap": SegmentUnmap, "oom": OutOfMemory}

// An Entry is something that the allocator did.
type Entry struct {
	Address uint64
	Size    int64      // bytes, as asked for
	Time    trace.Time // 0 is unknown: PyTorch before 2.2
	Where   trace.Sym  // the innermost function that is not PyTorch's; 0 is unknown
	Action  Action
}

package nsysexport

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"github.com/sgtrace/sgtrace/trace"
)

// A Comm is the part that a process has in a communicator of NCCL, as the calls
// say that create one. It is the best source of ranks that an export has; it takes
// payloads, which recent versions of nsys export only with --include-json=true or
// --include-blobs=true.
type Comm struct {
	ID     uint64 // the same in all processes of the communicator; 0 is unknown
	PID    int32
	Rank   int32
	Size   int32 // ranks; -1 is unknown
	Device int32 // CUDA device as the process counts; -1 is unknown
}

// What NCCL calls the fields of its payloads.
const (
	ncclDomain = "NCCL"
	ncclComm   = "NCCL communicator ID"
	ncclRank   = "Rank"
	ncclSize   = "No. of ranks"
	ncclDevice = "CUDA device"
)

// comms collects communicators. The zero value is empty.
type comms struct {
	mu   sync.Mutex
	seen map[Comm]bool
}

// Comms returns the communicators that the ranges yielded so far tell about.
func (s *Source) Comms() []Comm {
	s.comms.mu.Lock()
	defer s.comms.mu.Unlock()
	var all []Comm
	for c := range s.comms.seen {
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b Comm) int {
		return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.PID, b.PID),
			cmp.Compare(a.Device, b.Device), cmp.Compare(a.Size, b.Size))
	})
	return all
}

// comm looks for a communicator in the arguments of a range of NCCL.
func (p *payloads) comm(r *Range) {
	if len(p.list) == 0 || !strings.HasPrefix(p.src.opt.Syms.Name(r.Domain), ncclDomain) {
		return
	}
	c := Comm{PID: r.PID, Rank: -1, Size: -1, Device: -1}
	for a := range p.list.All() {
		if a.Kind != trace.ArgInt && a.Kind != trace.ArgUint {
			continue
		}
		switch p.src.opt.Syms.Name(a.Key) {
		case ncclComm:
			c.ID = a.Uint()
		case ncclRank:
			c.Rank = int32(a.Int())
		case ncclSize:
			c.Size = int32(a.Int())
		case ncclDevice:
			c.Device = int32(a.Int())
		}
	}
	if c.Rank < 0 {
		return
	}
	p.src.comms.mu.Lock()
	defer p.src.comms.mu.Unlock()
	if p.src.comms.seen == nil {
		p.src.comms.seen = map[Comm]bool{}
	}
	p.src.comms.seen[c] = true
}

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
	ncclBytes  = "Message size [bytes]"
)

// Names of calls of NCCL that bundle others, which run when the bundle ends.
const (
	ncclGroupStart = "ncclGroupStart"
	ncclGroupEnd   = "ncclGroupEnd"
)

// ncclCall is a call into NCCL, which records a range around each.
type ncclCall struct {
	start, end trace.Time
	comm       uint64 // 0 is unknown
	bytes      int64  // of the message; -1 is unknown
	tid        int32
	name       trace.Sym // "ncclAllReduce"
	// seq counts the collectives of a communicator since it was created; -1 is
	// unknown: the recording began later.
	seq int64
}

// ncclOnce reads what NCCL recorded, once.
type ncclOnce struct {
	once  sync.Once
	comms []Comm
	calls map[int32][]ncclCall // by pid, then ordered by thread and start
}

// Comms returns the communicators that NCCL tells about, by id and rank.
func (s *Source) Comms() []Comm {
	s.readNCCL()
	return s.nccl.comms
}

// ncclCalls returns the calls of a process into NCCL, ordered by thread and start.
func (s *Source) ncclCalls(pid int32) []ncclCall {
	s.readNCCL()
	return s.nccl.calls[pid]
}

// hasNCCL tells whether there are calls into NCCL.
func (s *Source) hasNCCL() bool {
	s.readNCCL()
	return len(s.nccl.calls) > 0
}

// ncclUsers returns the processes that name a domain of NCCL, even if they call nothing.
func (s *Source) ncclUsers() map[int32]bool {
	users := map[int32]bool{}
	if s.schema.find(nvtxTable.names[0]) != "" {
		for at, name := range s.nvtxNames().domains {
			users[at.pid] = users[at.pid] || s.isNCCL(name)
		}
	}
	return users
}

// readNCCL reads the ranges of NCCL.
func (s *Source) readNCCL() {
	s.nccl.once.Do(func() {
		if s.schema.find(nvtxTable.names[0]) == "" {
			return
		}
		names, any := s.nvtxNames(), false
		for _, domain := range names.domains {
			any = any || s.isNCCL(domain)
		}
		if !any {
			return
		}
		r := ncclReader{src: s, names: names, calls: map[int32][]ncclCall{}, seen: map[Comm]bool{}}
		r.payloads.init(s, names)
		r.payloads.quiet = true
		spec := nvtxTable
		spec.quiet = true // another scan reports damage
		spec.columns = slices.Clone(spec.columns)
		for i := nvtxColor; i <= nvtxFloat; i++ {
			spec.columns[i] = column{}
		}
		for i := nvtxJSON; i <= nvtxBinary; i++ {
			spec.columns[i].detail = false
		}
		s.scan(&spec, r.row)
		s.nccl.calls, s.nccl.comms = r.calls, r.comms()
		for pid, calls := range r.calls {
			number(calls, r.created[pid])
		}
	})
}

func (s *Source) isNCCL(domain trace.Sym) bool {
	return strings.HasPrefix(s.opt.Syms.Name(domain), ncclDomain)
}

// ncclReader collects what NCCL recorded.
type ncclReader struct {
	src      *Source
	names    *nvtxNames
	payloads payloads
	calls    map[int32][]ncclCall
	seen     map[Comm]bool
	// created has the communicators of each process whose creation was recorded.
	created map[int32]map[uint64]bool
}

func (r *ncclReader) row(c *cursor) bool {
	if kind := c.int(nvtxType); kind != eventPushPop && kind != eventStartEnd {
		return true
	}
	id, domain := c.int(nvtxTID), c.int(nvtxDomain)
	pid := pidOf(id)
	if domain == 0 || !r.src.isNCCL(r.names.domains[scope{pid, domain, 0}]) {
		return true
	}
	call := ncclCall{start: c.time(nvtxStart), end: c.time(nvtxEnd), bytes: -1, tid: tidOf(id), name: c.nvtxText(), seq: -1}
	r.payloads.decode(c, domain)
	comm := Comm{PID: pid, Rank: -1, Size: -1, Device: -1}
	for a := range r.payloads.list.All() {
		if a.Kind != trace.ArgInt && a.Kind != trace.ArgUint {
			continue
		}
		switch r.src.opt.Syms.Name(a.Key) {
		case ncclComm:
			call.comm, comm.ID = a.Uint(), a.Uint()
		case ncclBytes:
			call.bytes = a.Int()
		case ncclRank:
			comm.Rank = int32(a.Int())
		case ncclSize:
			comm.Size = int32(a.Int())
		case ncclDevice:
			comm.Device = int32(a.Int())
		}
	}
	if comm.Rank >= 0 {
		r.create(comm)
	}
	r.calls[pid] = append(r.calls[pid], call)
	return true
}

func (r *ncclReader) create(comm Comm) {
	r.seen[comm] = true
	if r.created == nil {
		r.created = map[int32]map[uint64]bool{}
	}
	if r.created[comm.PID] == nil {
		r.created[comm.PID] = map[uint64]bool{}
	}
	r.created[comm.PID][comm.ID] = true
}

func (r *ncclReader) comms() []Comm {
	var all []Comm
	for c := range r.seen {
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b Comm) int {
		return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.PID, b.PID),
			cmp.Compare(a.Device, b.Device), cmp.Compare(a.Size, b.Size))
	})
	return all
}

// number orders the calls of a process by thread and start, and counts those that
// send something on communicators whose creation was recorded.
func number(calls []ncclCall, created map[uint64]bool) {
	slices.SortStableFunc(calls, func(a, b ncclCall) int { return cmp.Compare(a.start, b.start) })
	next := map[uint64]int64{}
	for i := range calls {
		if c := &calls[i]; c.bytes >= 0 && created[c.comm] {
			c.seq = next[c.comm]
			next[c.comm]++
		}
	}
	slices.SortStableFunc(calls, func(a, b ncclCall) int { return cmp.Or(cmp.Compare(a.tid, b.tid), cmp.Compare(a.start, b.start)) })
}

// ncclAt returns the call that asked for what a thread launched at some time: the
// innermost one around it, or where that ends a bundle, the only one in the bundle.
// It is nil if there is none.
func (s *Source) ncclAt(calls []ncclCall, tid int32, at trace.Time) *ncclCall {
	// The first call of the thread that starts later.
	i, _ := slices.BinarySearchFunc(calls, at, func(c ncclCall, at trace.Time) int {
		if c.tid < tid || c.tid == tid && c.start <= at {
			return -1
		}
		return 1
	})
	const deepest = 8 // calls of NCCL nest no deeper
	for k := i - 1; k >= max(0, i-deepest) && calls[k].tid == tid; k-- {
		switch c := &calls[k]; {
		case c.end < at:
		case s.opt.Syms.Name(c.name) == ncclGroupEnd:
			return s.bundled(calls[:k], tid)
		default:
			return c
		}
	}
	return nil
}

// bundled returns the only call since the last one that began a bundle.
func (s *Source) bundled(calls []ncclCall, tid int32) *ncclCall {
	var found *ncclCall
	for k := len(calls) - 1; k >= 0 && calls[k].tid == tid; k-- {
		switch c := &calls[k]; {
		case s.opt.Syms.Name(c.name) == ncclGroupStart:
			return found
		case found != nil:
			return nil
		default:
			found = c
		}
	}
	return nil
}

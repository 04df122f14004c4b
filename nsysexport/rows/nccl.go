package rows

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/sgtrace/sgtrace/trace"
)

// A Comm is a process's membership in a communicator of NCCL, from the calls that create one. It is the best
// source of ranks in an export, but needs payloads, which recent versions of nsys export only with
// --include-json=true or --include-blobs=true.
type Comm struct {
	ID     uint64 // the same in all processes of the communicator; 0 is unknown
	PID    int32
	Rank   int32
	Size   int32 // ranks; -1 is unknown
	Device int32 // CUDA device as the process counts; -1 is unknown
}

// NCCL's names for the fields of its payloads.
const (
	ncclDomain = "NCCL"
	ncclComm   = "NCCL communicator ID"
	ncclRank   = "Rank"
	ncclSize   = "No. of ranks"
	ncclDevice = "CUDA device"
	ncclBytes  = "Message size [bytes]"
)

// Names of the NCCL calls that begin and end a group of calls, which run when the group ends.
const (
	ncclGroupStart = "ncclGroupStart"
	ncclGroupEnd   = "ncclGroupEnd"
)

// NCCLCall is a call into NCCL, which records a range around each of its calls.
type NCCLCall struct {
	Start, End trace.Time
	Comm       uint64 // 0 is unknown
	Bytes      int64  // message size; -1 is unknown
	TID        int32
	Name       trace.Sym // "ncclAllReduce"
	// Seq is the number of the collective since the communicator was created; -1 if unknown, because the recording
	// began later.
	Seq int64
}

// ncclOnce reads NCCL's records once.
type ncclOnce struct {
	once  sync.Once
	comms []Comm
	calls map[int32][]NCCLCall // by pid, then ordered by thread and start
}

// Comms returns the communicators in NCCL's records, ordered by id and rank.
func (s *Source) Comms() []Comm {
	s.ReadNCCL()
	return s.nccl.comms
}

// NCCLCalls returns the calls of a process into NCCL, ordered by thread and start.
func (s *Source) NCCLCalls(pid int32) []NCCLCall {
	s.ReadNCCL()
	return s.nccl.calls[pid]
}

// HasNCCL reports whether there are calls into NCCL.
func (s *Source) HasNCCL() bool {
	s.ReadNCCL()
	return len(s.nccl.calls) > 0
}

// NCCLUsers returns the processes that name a domain of NCCL, even without calls.
func (s *Source) NCCLUsers() map[int32]bool {
	users := map[int32]bool{}
	if s.find(nvtxTable.names[0]) != "" {
		for at, name := range s.nvtxNames().domains {
			users[at.pid] = users[at.pid] || s.isNCCL(name)
		}
	}
	return users
}

// ReadNCCL reads the ranges of NCCL.
func (s *Source) ReadNCCL() {
	s.nccl.once.Do(func() {
		if s.find(nvtxTable.names[0]) == "" {
			return
		}
		names, any := s.nvtxNames(), false
		for _, domain := range names.domains {
			any = any || s.isNCCL(domain)
		}
		if !any {
			return
		}
		r := ncclReader{src: s, names: names, calls: map[int32][]NCCLCall{}, seen: map[Comm]bool{}}
		r.payloads.init(s, names)
		r.payloads.quiet = true
		spec := nvtxTable
		spec.quiet = true // another scan reports damage
		spec.columns = slices.Clone(spec.columns)
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
	return strings.HasPrefix(s.Options.Syms.Name(domain), ncclDomain)
}

// ncclReader collects NCCL's records.
type ncclReader struct {
	src      *Source
	names    *nvtxNames
	payloads payloads
	calls    map[int32][]NCCLCall
	seen     map[Comm]bool
	// created holds the communicators of each process whose creation was recorded.
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
	call := NCCLCall{Start: c.time(nvtxStart), End: c.time(nvtxEnd), Bytes: -1, TID: tidOf(id), Name: c.nvtxText(), Seq: -1}
	r.payloads.decode(c, domain)
	comm := Comm{PID: pid, Rank: -1, Size: -1, Device: -1}
	for a := range r.payloads.list.All {
		if a.Kind != trace.ArgInt && a.Kind != trace.ArgUint {
			continue
		}
		switch r.src.Options.Syms.Name(a.Key) {
		case ncclComm:
			call.Comm, comm.ID = a.Uint(), a.Uint()
		case ncclBytes:
			call.Bytes = a.Int()
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
	return slices.SortedFunc(maps.Keys(r.seen), func(a, b Comm) int {
		return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.PID, b.PID),
			cmp.Compare(a.Device, b.Device), cmp.Compare(a.Size, b.Size))
	})
}

// number sorts the calls of a process by thread and start, and numbers those that communicate on communicators
// whose creation was recorded.
func number(calls []NCCLCall, created map[uint64]bool) {
	slices.SortStableFunc(calls, func(a, b NCCLCall) int { return cmp.Compare(a.Start, b.Start) })
	next := map[uint64]int64{}
	for i := range calls {
		if c := &calls[i]; c.Bytes >= 0 && created[c.Comm] {
			c.Seq = next[c.Comm]
			next[c.Comm]++
		}
	}
	slices.SortStableFunc(calls, func(a, b NCCLCall) int { return cmp.Or(cmp.Compare(a.TID, b.TID), cmp.Compare(a.Start, b.Start)) })
}

// NCCLAt returns the NCCL call behind a launch by a thread at some time: the innermost call around that time,
// or if that ends a group, the only call in the group. It returns nil if there is none.
func (s *Source) NCCLAt(calls []NCCLCall, tid int32, at trace.Time) *NCCLCall {
	// Find the first call of the thread that starts later.
	i, _ := slices.BinarySearchFunc(calls, at, func(c NCCLCall, at trace.Time) int {
		if c.TID < tid || c.TID == tid && c.Start <= at {
			return -1
		}
		return 1
	})
	const deepest = 8 // NCCL's calls nest no deeper
	for k := i - 1; k >= max(0, i-deepest) && calls[k].TID == tid; k-- {
		switch c := &calls[k]; {
		case c.End < at:
		case s.Options.Syms.Name(c.Name) == ncclGroupEnd:
			return s.bundled(calls[:k], tid)
		default:
			return c
		}
	}
	return nil
}

// bundled returns the only call since the start of the last group; nil if there are several.
func (s *Source) bundled(calls []NCCLCall, tid int32) *NCCLCall {
	var found *NCCLCall
	for k := len(calls) - 1; k >= 0 && calls[k].TID == tid; k-- {
		switch c := &calls[k]; {
		case s.Options.Syms.Name(c.Name) == ncclGroupStart:
			return found
		case found != nil:
			return nil
		default:
			found = c
		}
	}
	return nil
}

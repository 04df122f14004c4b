package matching

import (
	"strings"

	"github.com/sgtrace/sgtrace/profile/kernelname"
)

// Kind says what a collective guarantees about when its ranks leave it.
type Kind uint8

const (
	KindUnknown Kind = iota // matched, but not used for clocks
	KindSync                // no rank ends before the last one has started, and all end together
	KindMeet                // no rank ends before the last one has started, but each ends with its own part
	KindRooted              // the root may leave early, or leaves last
	KindSend                // point to point: the sending side
	KindRecv                // point to point: a receive ends after the send has started
)

// kinds maps the name of a collective, in lower case and without underscores, to its kind. The
// first match wins: longer words come before their prefixes.
var kinds = []struct {
	scope  string // part of the name's namespaces
	prefix string // beginning of the name
	part   string // part of the name
	kind   Kind
}{
	// With low latency, a dispatch may only post its data, and a combine only wait for its own: neither waits for all others.
	{scope: "internodell::", kind: KindRooted}, {part: "lowlatency", kind: KindRooted},
	// DeepEP's intranode and internode: each rank learns from each other rank what it will send,
	// and leaves once it has that. MORI's and TensorRT-LLM's wait for a signal from each rank.
	{scope: "node::", prefix: "dispatch", kind: KindMeet}, {scope: "node::", prefix: "combine", kind: KindMeet},
	{scope: "node::", prefix: "notifydispatch", kind: KindMeet}, {scope: "node::", prefix: "cachednotify", kind: KindMeet},
	{prefix: "epdispatch", kind: KindMeet}, {prefix: "epcombine", kind: KindMeet},
	{prefix: "moea2adispatch", kind: KindMeet}, {prefix: "moea2acombine", kind: KindMeet},
	{prefix: "dispatch", kind: KindRooted}, {prefix: "combine", kind: KindRooted},

	{prefix: "broadcast", kind: KindRooted},
	{prefix: "sendrecv", kind: KindRooted}, // one kernel for both directions: which one is unknown
	{prefix: "send", kind: KindSend}, {prefix: "isend", kind: KindSend}, {prefix: "recv", kind: KindRecv}, {prefix: "irecv", kind: KindRecv},

	// Kernel names have words before these: multimem_one_shot_all_reduce_kernel,
	// twoShotAllReduceKernel, reduce_scatter_cross_device_store.
	{part: "allreduce", kind: KindSync}, {part: "crossdevicereduce", kind: KindSync}, {part: "quickreduce", kind: KindSync},
	{part: "allgather", kind: KindSync}, {part: "reducescatter", kind: KindSync},
	{part: "alltoall", kind: KindSync}, {part: "all2all", kind: KindSync}, {part: "barrier", kind: KindSync},
	{prefix: "reduce", kind: KindRooted}, {prefix: "gather", kind: KindRooted}, {prefix: "scatter", kind: KindRooted},
}

// kindOf classifies the name of a collective ("allreduce", "_allgather_base") or of its kernel
// ("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(...)", "void sglang::cross_device_reduce_1stage<...>(...)").
// "Generic" kernels of NCCL can be anything, and are unknown.
func kindOf(name string) Kind {
	kernel := kernelname.Parse(name)
	scope, word := plain(kernel.Scope), plain(kernel.Bare)
	for _, p := range []string{"nccl:", "nccldevkernel", "ncclkernel", "ncclsymkdevkernel", "ncclsymdevkernel", "rccl", "nccl", "gloo:", "coalesced"} {
		word = strings.TrimPrefix(word, p)
	}
	for _, k := range kinds {
		if strings.Contains(scope, k.scope) && strings.HasPrefix(word, k.prefix) && strings.Contains(word, k.part) {
			return k.kind
		}
	}
	return KindUnknown
}

// plain returns a name as kinds spells it.
func plain(name string) string { return strings.ReplaceAll(strings.ToLower(name), "_", "") }

// uneven reports whether ranks may contribute different numbers of elements to op.
func uneven(op string) bool {
	op = plain(op)
	return strings.HasPrefix(op, "alltoall") || strings.HasSuffix(op, "v") || strings.HasPrefix(op, "send") ||
		strings.HasPrefix(op, "recv") || strings.Contains(op, "gather") || strings.Contains(op, "scatter")
}

// CommID and CallID are numbers assigned by [Names]; 0 means none.
type (
	CommID uint32
	CallID uint32
)

// A Comm is a communicator: the ranks that a collective runs on. Its texts are as the producer
// wrote them, and equal on all its ranks.
type Comm struct {
	Group string // "Process Group Name", or any name that its ranks share, such as the coordinates of a TP group
	Ranks string // "Process Group Ranks"; "" if unknown
	Size  int32  // 0 if unknown
}

// A Call is what a collective does. Either Op or Family is known.
type Call struct {
	Op, Dtype string
	In, Out   int64  // elements
	Family    string // normalized kernel name; all that is known without metadata, as in replays of CUDA graphs
	Stream    string // role of the stream, if ranks agree about it
}

// Names assigns numbers to communicators and calls, so that a Collective is small. One Names
// serves all ranks. The zero value is ready to use. It is not safe for concurrent use.
type Names struct {
	comms map[Comm]CommID
	calls map[Call]CallID
	info  []CallInfo // by CallID
	texts map[string]uint32
	seqs  map[Call]uint32
}

// CallInfo is what matching needs to know of a call.
type CallInfo struct {
	Kind Kind
	op   uint32 // equal on all ranks of a collective; 0 if unknown
	Seq  uint32 // equal on all ranks of a collective, and more selective than op
	lane uint32 // identifies (family, stream), for calls without op
}

// Comm returns the number of c; 0 for the zero Comm.
func (n *Names) Comm(c Comm) CommID {
	if c == (Comm{}) {
		return 0
	}
	id, ok := n.comms[c]
	if !ok {
		if n.comms == nil {
			n.comms = map[Comm]CommID{}
		}
		id = CommID(len(n.comms) + 1)
		n.comms[c] = id
	}
	return id
}

// Call returns the number of c; 0 for the zero Call.
func (n *Names) Call(c Call) CallID {
	if c == (Call{}) {
		return 0
	}
	if id, ok := n.calls[c]; ok {
		return id
	}
	if n.calls == nil {
		n.calls, n.seqs, n.texts = map[Call]CallID{}, map[Call]uint32{}, map[string]uint32{}
		n.info = make([]CallInfo, 1)
	}
	id := CallID(len(n.info))
	n.calls[c] = id
	info := CallInfo{Kind: kindOf(c.Op)}
	if c.Op == "" {
		info.Kind = kindOf(c.Family)
		info.lane = n.text(c.Family + "\x00" + c.Stream)
	} else {
		info.op = n.text(c.Op)
	}
	if info.Kind == KindSend || info.Kind == KindRecv {
		info.op = n.text("send or recv")
	}
	token := c
	token.Stream = ""
	if c.Op != "" {
		token.Family = "" // ranks may use different kernels for the same call
		if uneven(c.Op) {
			token.In, token.Out = 0, 0
		}
	}
	info.Seq = n.seqs[token]
	if info.Seq == 0 {
		info.Seq = uint32(len(n.seqs) + 1)
		n.seqs[token] = info.Seq
	}
	n.info = append(n.info, info)
	return id
}

// Of returns the info of a call; the zero CallInfo if n has not numbered the call.
func (n *Names) Of(id CallID) CallInfo {
	if n == nil || int(id) >= len(n.info) {
		return CallInfo{}
	}
	return n.info[id]
}

func (n *Names) text(s string) uint32 {
	id := n.texts[s]
	if id == 0 {
		id = uint32(len(n.texts) + 1)
		n.texts[s] = id
	}
	return id
}

// A Collective is one rank's part in a collective.
type Collective struct {
	Start, End int64 // ns, local clock
	// CommsID is equal on all ranks of a collective, and different from those of all other collectives of the job; 0 if
	// unknown. (It is a hash of the group, Seq, and more: two servers of the same shape have equal ones, hence Rank.Job.)
	CommsID uint64
	Seq     int64 // number of the collective in its communicator; -1 if unknown
	Comm    CommID
	Call    CallID
	// Step is a number that all ranks give to the same step ("ProfilerStep#12"); -1 if unknown.
	Step int32
}

// Farthest is how far a time may be from zero, in ns (126 years), so that the difference of two times does not overflow.
const Farthest = 4_000_000_000_000_000_000

// Timed reports whether the times of c are usable. Collectives without usable times can be
// matched by their ids, but serve no other purpose.
func (c *Collective) Timed() bool {
	return c.Start >= -Farthest && c.Start <= c.End && c.End <= Farthest
}

// A Rank is the collectives of one process, in the order in which they ran on its stream.
type Rank struct {
	Clock int // the clock of all its times
	// Job distinguishes servers that don't communicate by collectives, or not at the same time:
	// only ranks of the same job are matched.
	Job int
	// Global is the number of the rank in its job; -1 if unknown. Two inputs with the same number cannot be in the same collective.
	Global int32
	// Pair means that the job has this rank and one other, and no more: whatever one enters, the other does, too.
	Pair  bool
	Calls Calls
}

// Calls are the collectives of a rank. All ranks together may have very many, so whoever has them chooses how to store them.
type Calls interface {
	Len() int
	At(i int) Collective
	HasCommsIDs() bool // reports whether any has one
}

// Level is the key by which a collective was matched, best first.
type Level uint8

const (
	ByCommsID Level = iota // Comms Id
	BySeq                  // communicator and sequence number
	ByOrdinal              // communicator, then the order of calls
	ByFamily               // without metadata: the order of kernels of one family
	ByTime                 // without a consistent order: by end, on related clocks
	Levels                 // number of levels
)

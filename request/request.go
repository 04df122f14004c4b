package request

import (
	"strings"

	"github.com/sgtrace/sgtrace/trace"
)

// None is an index that refers to nothing.
const None = -1

// Unknown is a duration or a count that the dump does not tell.
const Unknown = -1

// Role is what a server does for a request.
type Role uint8

const (
	Unified Role = iota
	Prefill
	Decode
	Router  // gateway or load balancer in front of the servers
	Sender  // Mooncake's transfer of the KV cache out of a prefill rank
	Encoder // multimodal encoder
	Other
)

// String returns the word that reports and selections use.
func (r Role) String() string {
	return [...]string{"unified", "prefill", "decode", "router", "sender", "encoder", "other"}[r]
}

// ParseRole is the inverse of String.
func ParseRole(s string) (Role, bool) {
	for r := Unified; r <= Other; r++ {
		if r.String() == s {
			return r, true
		}
	}
	return 0, false
}

// A Proc is one thread of one server process, as a row of the timeline: a
// scheduler rank, a tokenizer, a transfer worker.
type Proc struct {
	Host     string // full host id, or its name; "" is unknown
	Label    string // "Scheduler", "Prefill Scheduler", "mooncake transfer worker 0", "smg"
	Role     Role
	Rank     trace.Rank
	PID      int64  // native thread ID, the process id for main threads; 0 is unknown
	Instance string // service.instance.id, new at every start of a process; "" is unknown
	Service  string
	// Schedules tells that it is a scheduler: its stages follow the batches of a rank.
	Schedules bool
}

// A Thread is the share that one Proc had in a part. It holds no pointers, so that the threads
// of a large input can lie in a file: its stages are [Set.StagesOf], and why it was aborted or
// failed is [Set.ReasonOf].
type Thread struct {
	Row  int // its own row; None when that is missing
	Part int // index into Set.Parts
	Proc int // index into Set.Procs
	// Start is when its own row begins, or its first stage if that is missing or its
	// times cannot be right; End likewise.
	Start, End trace.Time
	// stages is how many of the rows right below its own are its first-level stages: the first
	// ones. Below 0 it is the complement of an index into Set.stages.
	stages int32
	reason trace.Sym // 0 if it was not aborted and did not fail
	// Status is Aborted or Failed if the thread says so, else Finished.
	Status Status
}

// A Part is what one server did for a request. It holds no pointers, as a [Thread]: its threads
// are [Set.ThreadsOf].
type Part struct {
	Root    int // row of the whole part; None when it is missing
	threads list
	lead    int32 // see [Set.Lead]; 0 is not known yet
	RID     Text  // as the server cut it
	FullID  Text  // gen_ai.request.id
	Room    Text  // bootstrap room as hex digits "0x..."; none is ""
	Role    Role
	Request int       // index into Set.Requests
	Proc    int       // whose row the root belongs to; None is unknown
	Gateway int       // outermost row of a gateway around the root; None
	Trace   [2]uint64 // id of its trace, as a number of 128 bits, the high ones first
	Start   trace.Time
	End     trace.Time // of the root; of the last thread when the root is missing

	TTFT             int64 // ns from the root's start, as the server reports it; Unknown
	E2E              int64 // ns as the server reports it; Unknown
	PromptTokens     int64
	CompletionTokens int64
	CachedTokens     int64
	Retractions      int32     // that a record of it counts; of spans, see [Set.Retractions]
	FinishReason     trace.Sym // "stop", "length", "abort"; "" is unknown
	Model            trace.Sym
}

// Status is how a request ended.
type Status uint8

const (
	Finished   Status = iota
	Aborted           // by the client or by the server, running or queued
	Failed            // an error
	Unfinished        // the dump does not show its end
)

// String returns the word that reports print.
func (s Status) String() string {
	return [...]string{"finished", "aborted", "failed", "unfinished"}[s]
}

// QueueFull is how the reason of requests begins that a server did not take in because it
// had no room. All others that were aborted, their clients gave up.
const QueueFull = "The request queue is full"

// TurnedAway reports whether a server had no room for a request.
func (s *Set) TurnedAway(r *Request) bool {
	return r.Status == Aborted && strings.HasPrefix(s.Syms.Name(r.Reason), QueueFull)
}

// ParseStatus is the inverse of String.
func ParseStatus(s string) (Status, bool) {
	for status := Finished; status <= Unfinished; status++ {
		if status.String() == s {
			return status, true
		}
	}
	return 0, false
}

// Flags mark what is doubtful about a request.
type Flags uint16

const (
	RIDCollision  Flags = 1 << iota // other requests have the same rid
	RoomCollision                   // the room does not tell the parts apart; they were not joined
	Unjoined                        // a prefill or decode part without its other half
	MissingRoot                     // a request span is missing
	MissingThread                   // stages whose thread span is missing
	DerivedTTFT                     // the server reports no TTFT; it was taken from stages
	SharedGateway                   // the gateway's span also covers other requests
	MissingRows                     // spans of it are missing, so that its times may not add up
	MissingSteps                    // spans of its steps, or of ranks beside the leading one, are missing: its times add up all the same
)

// A Request is all parts of one request. It holds no pointers, as a [Thread]: its parts are
// [Set.PartsOf].
type Request struct {
	RID       Text // the user's id where known, else the first part's rid
	GatewayID Text // that the gateway gave it; none is ""
	Room      Text
	Reason    trace.Sym
	parts     list
	Gateway   int // outermost row of the gateway, None if there is none
	Start     trace.Time
	End       trace.Time
	Status    Status
	Flags     Flags
	Metrics   Metrics
}

// Metrics are the durations of a request in ns and its counts; Unknown (-1)
// where the dump does not tell. Definitions are in docs/METRICS.md.
type Metrics struct {
	TTFT int64 // until the first token, as the answering server sees it
	// UserTTFT is the same from the start of the outermost span: TTFT where there is no gateway.
	UserTTFT    int64
	E2E         int64 // the outermost span: gateway, else the answering server's
	Queue       int64 // in the waiting queues of the prefill (or unified) and the decode server
	Prefill     int64 // prefill_forward
	Decode      int64 // from the first to the last decode step
	Transfer    int64 // waiting for the KV cache to arrive, on the decode server; sending it where that is missing
	Unaccounted int64 // time of E2E that no stage covers

	PromptTokens     int64
	CompletionTokens int64
	CachedTokens     int64
	Retractions      int64
	// Verified is how often drafted tokens were verified, and Accepted how many tokens came of
	// that; 0 where the dump does not tell.
	Verified, Accepted int64

	TPOT int64 // (time on the answering server - TTFT) / (tokens - 1), both by that server's clock
	ITL  ITL
}

// ITL sums up the gaps between consecutive tokens of a request, in ns.
type ITL struct {
	N                        int
	Mean, P50, P90, P99, Max int64
}

// A Missing is a row that is not in the input, although others show that it was written:
// they lie in it, follow from it, or come before and after it in a count.
type Missing struct {
	Time trace.Time // at about which it ended
	Proc int32      // who wrote it; None is unknown
}

// Complete reports whether nothing shows that rows of r are missing, so that its times
// add up. What its end or the beginning of the input cuts off is missing, too.
func (r *Request) Complete() bool { return r.Flags&MissingRows == 0 }

// HasAllSteps reports whether nothing shows that any row of r is missing.
func (r *Request) HasAllSteps() bool { return r.Flags&(MissingRows|MissingSteps) == 0 }

// flagWords are the words that reports print.
var flagWords = []struct {
	flag Flags
	word string
}{
	{RIDCollision, "rid-collision"},
	{RoomCollision, "room-collision"},
	{Unjoined, "unjoined"},
	{MissingRoot, "missing-root"},
	{MissingThread, "missing-thread"},
	{DerivedTTFT, "derived-ttft"},
	{SharedGateway, "shared-gateway"},
	{MissingRows, "missing-spans"},
	{MissingSteps, "missing-steps"},
}

// AllFlags is everything that can be doubtful.
const AllFlags = RIDCollision | RoomCollision | Unjoined | MissingRoot | MissingThread | DerivedTTFT | SharedGateway | MissingRows | MissingSteps

// Words returns the words of f that reports print.
func (f Flags) Words() []string {
	var words []string
	for _, w := range flagWords {
		if f&w.flag != 0 {
			words = append(words, w.word)
		}
	}
	return words
}

// String lists the words of f.
func (f Flags) String() string { return strings.Join(f.Words(), ",") }

// ServingRoles are the roles whose servers compute, in the order of a request's
// way through them.
var ServingRoles = []Role{Encoder, Prefill, Unified, Decode}

// Serves reports whether a part is the work of a server that computes, and not a
// router or the sending of a KV cache.
func (p *Part) Serves() bool {
	switch p.Role {
	case Encoder, Prefill, Unified, Decode:
		return true
	}
	return false
}

// ServingParts yields the parts of servers that compute, request by request.
func (s *Set) ServingParts(yield func(*Part) bool) {
	for r := range s.AllRequests() {
		for _, p := range s.PartsOf(&s.Requests[r]) {
			if part := &s.Parts[p]; part.Serves() && !yield(part) {
				return
			}
		}
	}
}

// RolesOf lists the roles of a request's parts, each once: "prefill+decode".
func (s *Set) RolesOf(r *Request) string {
	var roles []string
	var seen [Other + 1]bool
	for _, p := range s.PartsOf(r) {
		role := s.Parts[p].Role
		if !seen[role] && role != Sender {
			seen[role] = true
			roles = append(roles, role.String())
		}
	}
	return strings.Join(roles, "+")
}

// ModelOf returns the name of the model that answered r, "" if it is unknown.
func (s *Set) ModelOf(r *Request) string { return s.Syms.Name(s.Parts[s.Answering(r)].Model) }

// PrefillTokens returns how many tokens of the prompt were computed; Unknown if that is
// not known.
func (m *Metrics) PrefillTokens() int64 {
	if m.PromptTokens < 0 {
		return Unknown
	}
	return max(0, m.PromptTokens-max(0, m.CachedTokens))
}

// DecodeTokens returns how many tokens were generated after the first one.
func (m *Metrics) DecodeTokens() int64 {
	if m.CompletionTokens < 1 {
		return Unknown
	}
	return m.CompletionTokens - 1
}

// StepYield returns how many tokens came out in how many steps of decoding: of those that
// verify drafts where the dump tells of them, else of all. 0 steps are unknown.
func (m *Metrics) StepYield() (tokens, steps int64) {
	switch {
	case m.Verified > 0:
		return m.Accepted, m.Verified
	case m.ITL.N > 0 && m.Retractions == 0 && m.DecodeTokens() > 0:
		return m.DecodeTokens(), int64(m.ITL.N)
	}
	return 0, 0
}

// SameBatch is how far the prefills of one batch begin apart at most, in ns: a
// scheduler stamps one request after the other.
const SameBatch = 100_000

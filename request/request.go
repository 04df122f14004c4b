package request

import (
	"strings"

	"github.com/sgtrace/sgtrace/trace"
)

// None is an index that refers to nothing.
const None = -1

// Unknown is a duration or a count that is not in the dump.
const Unknown = -1

// Role is what a server does for a request.
type Role uint8

const (
	Unified Role = iota
	Prefill
	Decode
	Router  // gateway or load balancer in front of the servers
	Sender  // Mooncake's transfer of the KV cache from a prefill rank
	Encoder // multimodal encoder
	Other
)

// String returns the word used in reports and selections.
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

// A Proc is one thread of one server process, which is a row of the timeline: a scheduler rank, a
// tokenizer, a transfer worker.
type Proc struct {
	Host     string // full host ID, or its name; "" is unknown
	Label    string // "Scheduler", "Prefill Scheduler", "mooncake transfer worker 0", "smg"
	Role     Role
	Rank     trace.Rank
	PID      int64  // native thread ID, which for main threads is the process ID; 0 is unknown
	Instance string // service.instance.id, new at every process start; "" is unknown
	Service  string
	// Schedules says that it is a scheduler: its stages follow the batches of a rank.
	Schedules bool
}

// A Thread is what one Proc did for a part. It holds no pointers, so that the threads of a large input can
// be stored in a file: its stages are [Set.StagesOf], and [Set.ReasonOf] says why it was aborted or failed.
type Thread struct {
	Row  int // its own row; None if missing
	Part int // index into Set.Parts
	Proc int // index into Set.Procs
	// Start and End are those of its own row, or of its stages if that row is missing or implausible.
	Start, End trace.Time
	// stages is the number of first-level stages if they are the first rows below its own. If negative, it
	// is the complement of an index into Set.stages.
	stages int32
	reason trace.Sym // 0 if it was neither aborted nor failed
	// Status is Aborted or Failed if the thread says so, otherwise Finished.
	Status Status
}

// A Part is what one server did for a request. Like a [Thread], it holds no pointers: its threads are
// [Set.ThreadsOf].
type Part struct {
	Root    int // row of the whole part; None if missing
	threads list
	lead    int32 // see [Set.Lead]; 0 is not determined yet
	RID     Text  // as shortened by the server
	FullID  Text  // gen_ai.request.id
	Room    Text  // bootstrap room in hex, "0x..."; "" if none
	Role    Role
	Request int       // index into Set.Requests
	Proc    int       // proc of the root's row; None is unknown
	Gateway int       // outermost gateway row around the root, or None
	Trace   [2]uint64 // 128-bit trace ID, high half first
	Start   trace.Time
	End     trace.Time // end of the root, or of the last thread if the root is missing

	TTFT             int64 // ns from the root's start, as reported by the server; or Unknown
	E2E              int64 // ns, as reported by the server; or Unknown
	PromptTokens     int64
	CompletionTokens int64
	CachedTokens     int64
	Retractions      int32     // as counted in a record; for spans, see [Set.Retractions]
	FinishReason     trace.Sym // "stop", "length", "abort"; "" is unknown
	Model            trace.Sym
}

// Status is how a request ended.
type Status uint8

const (
	Finished   Status = iota
	Aborted           // by the client or by the server, running or queued
	Failed            // an error
	Unfinished        // its end is not in the dump
)

// String returns the word used in reports.
func (s Status) String() string {
	return [...]string{"finished", "aborted", "failed", "unfinished"}[s]
}

// QueueFull begins the reason of requests that a server rejected because its queue was full. All other
// aborted requests were given up by their clients.
const QueueFull = "The request queue is full"

// TurnedAway reports whether a server rejected a request because its queue was full.
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
	RoomCollision                   // the room is ambiguous; the parts were not joined
	Unjoined                        // a prefill or decode part without its other half
	MissingRoot                     // a request span is missing
	MissingThread                   // there are stages whose thread span is missing
	DerivedTTFT                     // the server reports no TTFT; it was derived from stages
	SharedGateway                   // the gateway's span also covers other requests
	MissingRows                     // spans are missing, so its times may not add up
	MissingSteps                    // spans of its steps, or of ranks other than the lead, are missing; its times still add up
)

// A Request is all parts of one request. Like a [Thread], it holds no pointers: its parts are
// [Set.PartsOf].
type Request struct {
	RID       Text // the user's ID if known, otherwise a server's rid
	GatewayID Text // assigned by the gateway; "" if none
	Room      Text
	Reason    trace.Sym
	parts     list
	Gateway   int // outermost gateway row, or None
	Start     trace.Time
	End       trace.Time
	Status    Status
	Flags     Flags
	Metrics   Metrics
}

// Metrics are the durations of a request in ns, and its counts; Unknown (-1) if they are not in the dump.
// Definitions are in docs/METRICS.md.
type Metrics struct {
	TTFT int64 // to the first token, as seen by the answering server
	// UserTTFT is TTFT from the start of the outermost span; equal to TTFT without a gateway.
	UserTTFT    int64
	E2E         int64 // of the outermost span: the gateway's, or else the answering server's
	Queue       int64 // in the queues of the prefill (or unified) and the decode server
	Prefill     int64 // prefill_forward
	Decode      int64 // from the first to the last decode step
	Transfer    int64 // waiting for the KV cache on the decode server, or else sending it
	Unaccounted int64 // part of E2E that no stage covers
	// Outside is the part of E2E outside the answering server's span: in a client, a gateway, or a router, and on the way. Unknown if no other span is around that.
	Outside int64

	PromptTokens     int64
	CompletionTokens int64
	CachedTokens     int64
	Retractions      int64
	// Verified is the number of verifications of drafted tokens, and Accepted the number of tokens they
	// yielded; 0 if they are not in the dump.
	Verified, Accepted int64

	TPOT int64 // (time on the answering server - TTFT) / (tokens - 1), on that server's clock
	ITL  ITL
}

// ITL summarizes the gaps between consecutive tokens of a request, in ns.
type ITL struct {
	N                        int
	Mean, P50, P90, P99, Max int64
}

// A Missing is a row that is not in the input although other rows prove that it was written: they are
// inside it, follow from it, or surround it in a numbered sequence.
type Missing struct {
	Time trace.Time // approximate end
	Proc int32      // its writer; None is unknown
}

// Complete reports whether nothing shows that rows of r are missing, so that its times add up. Rows cut off
// at the beginning or end of the input are missing, too.
func (r *Request) Complete() bool { return r.Flags&MissingRows == 0 }

// HasAllSteps reports whether nothing shows that any row of r is missing.
func (r *Request) HasAllSteps() bool { return r.Flags&(MissingRows|MissingSteps) == 0 }

// flagWords are the words used in reports.
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

// AllFlags is the union of all flags.
const AllFlags = RIDCollision | RoomCollision | Unjoined | MissingRoot | MissingThread | DerivedTTFT | SharedGateway | MissingRows | MissingSteps

// Words returns the words for f in reports.
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

// ServingRoles are the roles whose servers compute, in the order in which a request passes them.
var ServingRoles = []Role{Encoder, Prefill, Unified, Decode}

// Serves reports whether a part is the work of a server that computes, rather than of a router or of
// sending a KV cache.
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

// RolesOf returns the roles of a request's parts, each once: "prefill+decode".
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

// PrefillTokens returns how many prompt tokens were computed, or Unknown.
func (m *Metrics) PrefillTokens() int64 {
	if m.PromptTokens < 0 {
		return Unknown
	}
	return max(0, m.PromptTokens-max(0, m.CachedTokens))
}

// DecodeTokens returns how many tokens were generated after the first one, or Unknown.
func (m *Metrics) DecodeTokens() int64 {
	if m.CompletionTokens < 1 {
		return Unknown
	}
	return m.CompletionTokens - 1
}

// StepYield returns how many tokens decoding yielded in how many steps: in steps that verify drafts if the
// dump has them, otherwise in all steps. 0 steps means unknown.
func (m *Metrics) StepYield() (tokens, steps int64) {
	switch {
	case m.Verified > 0:
		return m.Accepted, m.Verified
	case m.ITL.N > 0 && m.Retractions == 0 && m.DecodeTokens() > 0:
		return m.DecodeTokens(), int64(m.ITL.N)
	}
	return 0, 0
}

// SameBatch is how far apart the prefills of one batch may start, in ns: a scheduler stamps its requests
// one after another.
const SameBatch = 100_000

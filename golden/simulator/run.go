package simulator

import (
	"math"
)

// Run records everything that happened: the input of every writer and of [Run.Truth]. It knows no file format. Times are
// true Unix nanoseconds, and zero means "never".
type Run struct {
	Config    Config
	Hosts     []Host
	Instances []Instance
	Processes []Process
	Requests  []*Request // in order of arrival
	Steps     []Step     // in order of launch
	Onset     int64      // start of the incident
}

// Role is the part of a request that some servers handle.
type Role string

const (
	RoleRouter  Role = "router"
	RoleUnified Role = "unified"
	RolePrefill Role = "prefill"
	RoleDecode  Role = "decode"
)

// Host is a machine with a clock of its own.
type Host struct {
	Name    string
	ID      string // content of /etc/machine-id
	Address string
	Clock   Clock
}

// Instance is one server: a tokenizer, perhaps a DP controller, and a scheduler for every rank. All of them are on its
// first host, except schedulers that do not fit there. The fields are indices, of a host and of processes.
type Instance struct {
	Role       Role
	Host       int
	Size       Parallel
	Tokenizer  int
	controller int   // -1 with one DP rank
	Schedulers []int // by DP rank, then PP, then TP
}

// Ranks returns the number of schedulers of the instance.
func (i *Instance) Ranks() int { return i.Size.TP * i.Size.PP * i.Size.DP }

// replica returns the number of ranks in one DP rank of the instance.
func (i *Instance) replica() int { return i.Size.TP * i.Size.PP }

// Process is one operating system process. Two hosts may have equal pids.
type Process struct {
	Host  int
	Role  Role
	Label string // name of the thread in SGLang
	Rank  RankID
	PID   int
}

// RankID is a rank; missing parts are -1.
type RankID struct{ TP, PP, DP int }

var NoRank = RankID{-1, -1, -1}

// Request is one user request.
type Request struct {
	ID          string // the gateway's, or empty
	Room        uint64 // bootstrap room of a PD request, or 0
	Arrival     int64  // at the gateway, or at the first tokenizer without one
	End         int64
	Prompt      int    // tokens
	output      int    // tokens that it would produce if left alone
	MaxTokens   int    // requested by the client
	stop        string // finish reason if left alone
	Temperature float64
	Tenant      string  // the sender, or empty
	Cached      int     // tokens of the prompt in the cache
	Halves      []*Half // unified; or prefill, then decode
	Outcome     Outcome // empty if it hangs
	Sent        int64   // gateway: both halves dispatched
	Headers     int64   // gateway: response headers of both halves received

	cancelAfter  int   // the client cancels after this many tokens; 0 is never
	patience     int64 // the client leaves after this time; 0 is never
	left         int64 // when it left
	held         bool  // for Config.TenantDelay
	slowTransfer bool
	failTransfer bool
}

// answering returns the half whose tokens the user sees.
func (q *Request) answering() *Half { return q.Halves[len(q.Halves)-1] }

// Outcome is how a request ended for its user.
type Outcome string

const (
	Finished       Outcome = "finished"
	ClientCanceled Outcome = "client_canceled" // between two tokens
	ClientGone     Outcome = "client_gone"     // before the first token, still queued
	QueueFull      Outcome = "queue_full"
	TransferFailed Outcome = "transfer_failed"
)

// outcomes lists all outcomes in the order of reports.
var outcomes = []Outcome{Finished, ClientCanceled, ClientGone, QueueFull, TransferFailed}

// Half is the part of one instance in a request: all of it, its prefill, or its decode. It becomes one SGLang root span.
type Half struct {
	Instance int
	dp       int
	ID       string // full request id
	RID      string // the part after the last "_" of it

	// The tokenizer process, and the end of the root.
	Received, tokenized, dispatching, Dispatched, End int64
	// The DP controller: when it took the request from the wire, and sent it on.
	controlled, forwarded int64

	ranks       []visit // of the DP rank, by PP, then TP
	turns       []turn
	retractions []retraction

	FirstToken int64  // at the tokenizer; for a prefill half its response
	Tokens     int    // tokens produced
	Finish     string // finish reason: stop, length, abort; empty if unknown
	Ending     Ending
}

// Ending is how the scheduler threads of a half were closed.
type Ending uint8

const (
	EndedNormally       Ending = iota
	EndedQueueFull             // refused on arrival
	EndedDropped               // forgotten, closed by the garbage collector
	EndedTransferFailed        // the KV transfer raised
)

// visit is when one rank noticed the events of a half outside of a batch.
type visit struct {
	begin         int64 // taken from the wire
	received      int64
	queued        int64 // in the bootstrap queue (prefill) or the prealloc queue (decode)
	bootstrapped  int64 // decode: KV memory reserved, in the transfer queue
	waiting       int64 // in the waiting queue
	transferStart int64 // prefill
	transferEnd   int64 // prefill
	finished      int64
}

// turn is one action of a scheduler on a half.
type turn struct {
	kind turnKind
	at   int32 // index of a step, or for a retraction of half.retractions
}

type turnKind uint8

const (
	turnChunk    turnKind = iota // prefill of a chunk with more to come
	turnPrefill                  // prefill of the whole prompt, or of its last chunk
	turnPrebuilt                 // decode half: the transferred KV joins the batch
	turnDecode                   // one token
	turnRetract                  // retracted because there was no KV memory
)

// retraction has one time per rank in each field.
type retraction struct {
	at       []int64 // of the retraction
	resumed  []int64 // decode half: memory found again
	requeued []int64 // decode half: KV reloaded, waiting again
}

// Step is one forward pass of one microbatch on all ranks of a DP rank.
type Step struct {
	Instance, DP int
	microbatch   int // of the pipeline
	Mode         ForwardMode
	Requests     int
	Tokens       int        // computed in this step
	Ranks        []RankStep // by PP, then TP
	slow         bool       // a participating straggler may be slow: see Occasion
}

type ForwardMode string

const (
	ModePrefill  ForwardMode = "prefill"
	ModeDecode   ForwardMode = "decode"
	ModePrebuilt ForwardMode = "prebuilt"
)

// RankStep is a step on one rank.
type RankStep struct {
	Formed    int64 // requests picked
	Scheduled int64 // the rank starts to work on them
	Computed  int64 // its part of the forward pass is done
	done      int64 // the rank knows the tokens
}

// Clock relates the time that a host shows to true time:
//
//	shown = t + skew + drift/1e6·(t − since)
//
// The zero value shows true time.
type Clock struct {
	skew  int64   // ns that it is ahead at the time since
	drift float64 // ppm: µs that it gains per second
	since int64
}

// At returns what c shows at a true time.
func (c *Clock) At(t int64) int64 {
	return t + c.skew + int64(math.Round(c.drift*float64(t-c.since)/1e6))
}

// Length returns the length of a period of true time on c.
func (c *Clock) Length(from, to int64) int64 { return c.At(to) - c.At(from) }

// Undo returns the true time at which c shows t, up to a nanosecond.
func (c *Clock) Undo(t int64) int64 {
	local := t - c.since - c.skew
	return c.since + local - int64(c.drift*float64(local)/(1e6+c.drift))
}

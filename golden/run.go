package golden

// Run is what happened: the input of every writer and of [Run.Truth]. It knows
// no file format. Times are true Unix nanoseconds, and zero means "never".
type Run struct {
	config    Config
	hosts     []host
	instances []instance
	processes []process
	requests  []*request // in order of arrival
	steps     []step     // in order of launch
	onset     int64      // start of the incident
}

// role is what a part of the deployment does for a request.
type role string

const (
	roleRouter  role = "router"
	roleUnified role = "unified"
	rolePrefill role = "prefill"
	roleDecode  role = "decode"
)

// host is a machine with a clock of its own.
type host struct {
	name    string
	id      string // content of /etc/machine-id
	address string
	clock   clock
}

// instance is one server: a tokenizer, perhaps a DP controller, and a scheduler
// for every rank. All but schedulers that found no room are on its first host.
// The fields are indices, of a host and of processes.
type instance struct {
	role       role
	host       int
	size       Parallel
	tokenizer  int
	controller int   // -1 with one DP rank
	schedulers []int // by DP rank, then PP, then TP
}

// ranks returns how many schedulers the instance has.
func (i *instance) ranks() int { return i.size.TP * i.size.PP * i.size.DP }

// replica returns how many ranks one DP rank of the instance has.
func (i *instance) replica() int { return i.size.TP * i.size.PP }

// process is one operating system process. Two hosts may have equal pids.
type process struct {
	host  int
	role  role
	label string // as SGLang names the thread
	rank  rankID
	pid   int
}

// rankID is a rank; a part that the process does not have is -1.
type rankID struct{ tp, pp, dp int }

var noRank = rankID{-1, -1, -1}

// request is one user request.
type request struct {
	id          string // the gateway's, or empty
	room        uint64 // bootstrap room of a PD request, or 0
	arrival     int64  // at the gateway, or at the first tokenizer without one
	end         int64
	prompt      int    // tokens
	output      int    // tokens that it would produce if left alone
	maxTokens   int    // as the client asked
	stop        string // finish reason if left alone
	temperature float64
	halves      []*half // unified; or prefill, then decode
	outcome     outcome
	sent        int64 // gateway: both halves dispatched
	headers     int64 // gateway: response headers of both halves received

	cancelAfter  int   // the client cancels after so many tokens; 0 never
	patience     int64 // the client leaves after so long; 0 never
	left         int64 // when it did
	slowTransfer bool
	failTransfer bool
}

// answering returns the half whose tokens the user sees.
func (q *request) answering() *half { return q.halves[len(q.halves)-1] }

// outcome is how a request ended for its user.
type outcome string

const (
	finished       outcome = "finished"
	clientCanceled outcome = "client_canceled" // between two tokens
	clientGone     outcome = "client_gone"     // before the first token, still queued
	queueFull      outcome = "queue_full"
	transferFailed outcome = "transfer_failed"
)

// outcomes lists all of them in the order of reports.
var outcomes = []outcome{finished, clientCanceled, clientGone, queueFull, transferFailed}

// half is what one instance does for a request: all of it, its prefill or its
// decode. It becomes one SGLang root span.
type half struct {
	instance int
	dp       int
	id       string // full request id
	rid      string // what follows the last "_" of it

	// The tokenizer process, and the end of the root.
	received, tokenized, dispatching, dispatched, end int64
	// The DP controller: the request taken from the wire, and sent on.
	controlled, forwarded int64

	ranks       []visit // of the DP rank, by PP, then TP
	turns       []turn
	retractions []retraction

	firstToken int64  // at the tokenizer; for a prefill half its response
	tokens     int    // tokens produced
	finish     string // finish reason: stop, length, abort; empty if never told
	ending     ending
}

// ending is how the scheduler threads of a half were closed.
type ending uint8

const (
	endedNormally       ending = iota
	endedQueueFull             // refused on arrival
	endedDropped               // forgotten, closed by the garbage collector
	endedTransferFailed        // the KV transfer raised
)

// visit is when one rank noticed what happened to a half outside of a batch.
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

// turn is one thing that a scheduler did with a half.
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
	turnRetract                  // thrown out for lack of KV memory
)

// retraction has one time per rank in each field.
type retraction struct {
	at       []int64 // thrown out
	resumed  []int64 // decode half: memory found again
	requeued []int64 // decode half: KV reloaded, waiting again
}

// step is one forward pass of one microbatch on all ranks of a DP rank.
type step struct {
	instance, dp int
	microbatch   int // of the pipeline
	mode         mode
	requests     int
	tokens       int        // computed in this step
	ranks        []rankStep // by PP, then TP
}

type mode string

const (
	modePrefill  mode = "prefill"
	modeDecode   mode = "decode"
	modePrebuilt mode = "prebuilt"
)

// rankStep is a step on one rank.
type rankStep struct {
	formed    int64 // requests picked
	scheduled int64 // the rank starts to work on them
	computed  int64 // its part of the forward pass is done
	done      int64 // the tokens are known to it
}

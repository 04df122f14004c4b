package cluster

// Run records everything that happened. Times are true nanoseconds of the Unix epoch; zero means "never".
type Run struct {
	Config     Config
	Start, End int64 // of the dump
	Hosts      []Host
	Processes  []Process
	Servers    []Server
	Requests   []*Request // in order of arrival
	Xids       []Xid
}

// Host is a machine with a clock of its own. The first one is the gateway's.
type Host struct {
	ID, Address string
	Clock       Clock
}

// Clock is the offset of a host's clock; from Stepped on, Step is added.
type Clock struct{ Skew, Step, Stepped int64 }

// At returns what c shows at a true time.
func (c *Clock) At(t int64) int64 {
	if c.Stepped != 0 && t >= c.Stepped {
		t += c.Step
	}
	return t + c.Skew
}

// Role is the part of a request that a server handles.
type Role string

const (
	Unified Role = ""
	Prefill Role = "prefill"
	Decode  Role = "decode"
)

// Process is one operating system process.
type Process struct {
	Host, TP, DP, PID int // TP is -1 if it is not a scheduler; DP is -1 if there is none
	Label             string
	Killed            int64 // it exports nothing from then on
}

// Server is one server and its lives: each restart begins a new one. If a server has several DP ranks, each of them is a
// Server, with the same host and tokenizer.
type Server struct {
	Pool, Host int
	DP         int // -1 if it is the only one
	Role       Role
	Lives      []Life
	Batches    []Batch   // as in its log
	Said       []LogLine // other lines of its log
	// Node is its machine, and GPU the first of its GPUs there.
	Node, GPU int
	Slowed    []SlowGPU
}

// LogLine is a line that a server logs, at a true time.
type LogLine struct {
	At   int64
	Text string
}

// SlowGPU is a GPU of a server with a lower clock for some time: To 0 is to the end.
type SlowGPU struct {
	GPU      int // on its node
	From, To int64
	Factor   float64 // by which its steps take longer
	Reason   uint64  // as in DCGM
}

// Xid is an error about a GPU that the driver of a node reports.
type Xid struct {
	At         int64
	Node, GPU  int
	Code       int
	Text, Name string // the message, and the process that hit it
}

// Life is a server's processes from a start to an end.
type Life struct {
	Tokenizer  int   // index of a process
	Schedulers []int // by TP rank
	From, To   int64
	Hung       int64 // since when its scheduler hangs
}

// Request is one request of a user, or a health check.
type Request struct {
	Number                 int // in the seed: the same request with other faults
	ID                     string
	Pool                   int
	Arrival, Sent, End     int64
	Prompt, Cached, Output int
	MaxTokens              int
	Stop                   string // finish reason if left alone
	Tenant                 string
	Room                   uint64
	Health                 bool
	Extra                  bool // caused by a fault: a retry, or a tenant's flood
	Outcome                Outcome
	Halves                 []*Half // unified; or prefill, then decode
	draws                  draws
}

// Outcome is how a request ended for its user.
type Outcome string

const (
	Finished Outcome = "finished"
	GaveUp   Outcome = "gave up" // the client did
	Broken   Outcome = "broken"  // the server died
	Open     Outcome = ""        // it never ended
)

// Half is the share of one server in a request. It becomes one root span.
type Half struct {
	Server, Life int
	RID          string

	Received, Tokenized, Dispatching, Dispatched int64 // by the tokenizer
	Begin, Queued                                int64 // by the scheduler
	Reserved                                     int64 // decode: the prefill half may begin
	Waiting                                      int64 // in the queue for a batch
	Formed                                       int64 // first batch
	Chunks                                       []int64
	Prefilled                                    int64
	Prebuilt                                     int64 // decode: it has joined the batch
	TransferStart, TransferEnd                   int64
	Scheduled                                    int64   // its first decode step began
	Tokens                                       []int64 // ends of decode steps
	Batches                                      []int   // number of requests in these, and in the prefill before them
	Ended, End                                   int64   // by the scheduler, by the tokenizer
	FirstToken                                   int64
	Produced                                     int
	Retracted                                    []int64 // times of its retractions
	Finish, Reason                               string  // gen_ai's; and the error of the scheduler's threads
}

// answering returns the half whose tokens the user sees.
func (q *Request) answering() *Half { return q.Halves[len(q.Halves)-1] }

// fronts returns the servers that log: the first of several DP ranks stands for all.
func (r *Run) fronts() (list []int) {
	for i := range r.Servers {
		if r.Servers[i].DP <= 0 {
			list = append(list, i)
		}
	}
	return list
}

// ranks returns the DP ranks of a server, or the server itself if it has only one.
func (r *Run) ranks(front int) (list []int) {
	for i := range r.Servers {
		if r.Servers[i].Host == r.Servers[front].Host {
			list = append(list, i)
		}
	}
	return list
}

// pod returns the Kubernetes name of a server.
func (r *Run) pod(server int) string { return "sgl-" + r.Name(server) }

// Name returns the name of a server in reports: the first eight digits of its host.
func (r *Run) Name(server int) string { return r.Hosts[r.Servers[server].Host].ID[:8] }

package series

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/trace"
	"github.com/sgtrace/sgtrace/trace/naming"
)

// A Set has the data of all inputs. The zero value is not ready: see [New].
type Set struct {
	Syms    *trace.Symbols
	Diags   *trace.Diags
	Sources []Source
	Servers []Server
	Places  []Place
	List    []Series
	// Instants are sorted by time once the set is finished.
	Instants []Instant
	Runs     []Run // of load generators, as in their files

	named   []Metric // metrics that only their producers know; their IDs follow Metrics
	columns []column // the samples of each series in List

	serverOf map[Server]int32
	placeOf  map[Place]int32
	seriesOf map[Series]int32
	metricOf map[string]MetricID
}

// New returns an empty set.
func New(syms *trace.Symbols, diags *trace.Diags) *Set {
	return &Set{Syms: syms, Diags: diags, serverOf: map[Server]int32{}, placeOf: map[Place]int32{}, seriesOf: map[Series]int32{}, metricOf: map[string]MetricID{}}
}

// A Source is an input.
type Source struct {
	Name     string
	Encoding string // "SGLang log", "Prometheus range"
	// Lines is the number of lines in a file that has lines, Read the number from which something was kept,
	// and Other the number that report trouble in unknown words; all other lines have nothing of interest.
	Lines, Read, Other int
	FirstOther         int  // the first line counted by Other; 0 is none
	OnlyRecords        bool // has only records of requests
	Unnamed            bool // of metrics: no label names their server, which is named after the file
	Undated            bool // stamps have no date: the last one is assumed to be the last such time before the file was written
	Bytes              int64
	Samples            int
	Zone               Zone
	// First and Last are the first and last stamp; 0 without any.
	First, Last trace.Time
	part        span
	places      []uint64 // bit set of indexes into Set.Places
}

// About yields the places that an input has data about, as indexes into Set.Places.
func (s *Source) About() iter.Seq[int] {
	return func(yield func(int) bool) {
		for i := range 64 * len(s.places) {
			if s.places[i/64]>>(i%64)&1 != 0 && !yield(i) {
				return
			}
		}
	}
}

// IsLog reports whether a source is a log, a list of events, or a dump of requests; otherwise it has metrics.
func (s *Source) IsLog() bool {
	return slices.ContainsFunc([]string{" log", " events", " dump"}, func(kind string) bool { return strings.HasSuffix(s.Encoding, kind) })
}

// Logs returns how many inputs are logs of servers or routers, which report failures and ends of requests.
// Records of requests do not, and metrics, kernels, and orchestrators report other things.
func (s *Set) Logs() (n int) {
	for i := range s.Sources {
		switch x := &s.Sources[i]; {
		case x.Encoding == "server log" && !x.OnlyRecords, x.Encoding == "router log", x.Encoding == "request log":
			n++
		}
	}
	return n
}

// A span is the range of an input's events in Instants.
type span struct{ instant, instants int }

// A Server is a server, or a host if Name is "".
type Server struct {
	Host string // "" is unknown
	Name string // distinguishes the servers of a host: the pod, or the file of its log
	Role string // "prefill", "decode", "unified", "router"; "" is unknown
	// Engine is "SGLang", "vLLM", or "TensorRT-LLM"; "" is unknown.
	Engine string
	// Address is where it listens, "10.0.0.9:30000"; "" is unknown.
	Address string
	EP      int32 // number of GPUs that share the experts, as reported; 0 is unknown
}

// On reports whether a server runs on a host, as far as names show.
func (s *Server) On(host string) bool {
	at, _, _ := strings.Cut(s.Address, ":")
	return host != "" && (s.Host == host || at == host)
}

// NoGPU is the GPU of a place that is not a GPU.
const NoGPU = -1

// A Place is what a series is about: a rank of a server, or a GPU of a host.
type Place struct {
	Server int32 // index into Set.Servers
	Rank   trace.Rank
	GPU    int32  // index on its host, or NoGPU
	UUID   string // of the GPU; "" is unknown
	User   string // the pod that has the GPU; "" is unknown
}

// A Series is the values of a metric at a place.
type Series struct {
	Metric MetricID
	Place  int32   // index into Set.Places
	Most   float64 // upper bound of a Bucket; otherwise 0
	// Label is what else distinguishes the producer's series, "stage=prefill_forward"; 0 is nothing.
	Label trace.Sym
}

// A Sample is a value of a series.
type Sample struct {
	Time  trace.Time // Unix ns
	Value float64
	mark  uint32 // the line, and the resolution of the time
}

// Growth returns how much a counter grew between two of its values: if it fell, it was reset to 0 in between.
func Growth(before, after float64) float64 {
	if after < before {
		return after
	}
	return after - before
}

const lineBits = 24

// Line returns the last bits of the line number, which distinguishes samples on different log lines with
// the same time. It is 0 if there are no lines.
func (s Sample) Line() uint32 { return s.mark & (1<<lineBits - 1) }

// Within returns how much later than Time the sample may have been taken, in ns: a stamp in whole seconds
// is the start of its second.
func (s Sample) Within() int64 {
	if s.mark>>lineBits == 0 {
		return 0
	}
	ns := int64(100)
	for range s.mark >> lineBits {
		ns *= 10
	}
	return ns
}

// InstantKind is the kind of an event.
type InstantKind uint8

const (
	Note           InstantKind = iota // worth knowing
	Ready                             // a server is up
	Starting                          // a step of a server's start
	Stopping                          // a server was told to shut down
	Retraction                        // requests were removed from the batch because the KV cache was full; Count of them
	OutOfMemory                       // a device ran out of memory
	PeerLost                          // a server lost the other side of its transfers
	TransferFailed                    // the KV cache of a request did not arrive
	Timeout                           // a watchdog saw that something does not return
	Unhealthy                         // a health check failed
	Exception                         // a traceback
	Crash                             // a process ended
	Hardware                          // a driver or kernel reports an error of a device
	Cluster                           // a report of an orchestrator
	ClientGone                        // a client went away
	Unrouted                          // a router considers a server unhealthy, or removes it
	Routed                            // a router sends to a server, or does so again
	Refusal                           // a router has no server for a request, or its queue is full
	Traceback                         // an exception that need not be fatal
	Halt                              // a scheduler does something during which no batch can run
	Communication                     // a collectives library reports a failure
	Complaint                         // a line that its program calls an error, in unknown words; Count of them
)

// String returns the word used in tables.
func (k InstantKind) String() string {
	return [...]string{"note", "ready", "start", "stop", "retraction", "out of memory", "peer lost", "transfer failed", "timeout", "unhealthy", "exception",
		"crash", "hardware", "cluster", "client gone", "unrouted", "routed", "refusal", "traceback", "halt", "communication", "complaint"}[k]
}

// An Instant is something that happened.
type Instant struct {
	Time   trace.Time // Unix ns; 0 is unknown
	Within uint32     // as in a Sample
	Kind   InstantKind
	Place  int32     // index into Set.Places
	Source uint32    // index into Set.Sources
	Line   uint32    // in its file; 0 if it has no lines
	Count  int32     // number of requests or repetitions; at least 1
	Text   trace.Sym // one line, without prompts or keys
	Stack  trace.Sym // frames, innermost first, separated by newlines; 0 is none
}

// Warns begins the text of a Complaint that its program calls a warning.
const Warns = "a warning: "

// Sleeps and Wakes are the texts of Notes about an engine that releases its memory until it is needed again.
const Sleeps, Wakes = "sleeps: gave its memory back", "woke up: has its memory again"

// OutOfRouter begins the text of an Unrouted from a router's metrics, which say until when it lasts.
const OutOfRouter = "gets no requests of the router: "

// NoBatch is the text of a Note about requests that a server accepted without logging another batch.
const NoBatch = "takes requests, and logs no batch any more"

// Untold begins the text of a PeerLost about a prefill server that does not answer the first question of a decode server.
const Untold = "a prefill server does not tell where it takes transfers"

// AbortedWaiting begins the text of a ClientGone about a request that was aborted while it waited for a KV cache.
const AbortedWaiting = "a request was aborted while it waited "

// Metric returns the metric with an ID.
func (s *Set) Metric(id MetricID) *Metric {
	if id < KnownMetrics {
		return &Metrics[id]
	}
	return &s.named[id-KnownMetrics]
}

// Empty reports whether the set has no inputs.
func (s *Set) Empty() bool { return s == nil || len(s.Sources) == 0 }

// Pos returns the position of an instant.
func (s *Set) Pos(i *Instant) trace.Pos {
	return trace.Pos{File: s.Sources[i.Source].Name, Line: int64(i.Line), Offset: -1}
}

// Bounds returns the first and the last time of all inputs; ok is false without any.
func (s *Set) Bounds() (from, to trace.Time, ok bool) {
	for i := range s.Sources {
		x := &s.Sources[i]
		if x.First == 0 {
			continue
		}
		if !ok || x.First < from {
			from = x.First
		}
		to, ok = max(to, x.Last), true
	}
	return from, to, ok
}

// LastErrors returns the samples of the metrics that hold the last error of a device, by place. Some exporters also put
// the code into a label, which makes each code a series of its own.
func (s *Set) LastErrors() map[int32][]Sample {
	of := map[int32][]Sample{}
	for i := range s.List {
		if x := &s.List[i]; x.Metric == Xid {
			of[x.Place] = slices.AppendSeq(of[x.Place], s.Each(i))
		}
	}
	for _, list := range of {
		slices.SortStableFunc(list, func(a, b Sample) int { return cmp.Or(cmp.Compare(a.Time, b.Time), cmp.Compare(b.Value, a.Value)) })
	}
	return of
}

// reported adds an instant for each change of LastErrors from one scrape to the next, even across files. The code in
// the first scrape was there before.
func (s *Set) reported() {
	source := map[int32]uint32{}
	for i := range s.List {
		if x := &s.List[i]; x.Metric == Xid && s.columns[i].n > 0 {
			source[x.Place] = s.columns[i].blocks[0].source
		}
	}
	for place, list := range s.LastErrors() {
		for k := 1; k < len(list); k++ {
			if code := list[k].Value; code > 0 && code != list[k-1].Value && list[k].Time != list[k-1].Time {
				s.Instants = append(s.Instants, Instant{Time: list[k].Time, Place: place, Kind: Hardware, Count: 1, Source: source[place], Text: s.Syms.Intern(fmt.Sprintf("Xid %.0f", code))})
			}
		}
	}
}

// Called returns the name of a server for people: logs distinguish servers rather than hosts.
func (x *Server) Called() string { return cmp.Or(x.Name, x.Host) }

// At returns the naming.Place for an index into Places.
func (s *Set) At(i int32) naming.Place {
	p := &s.Places[i]
	x := &s.Servers[p.Server]
	return naming.Place{Role: cmp.Or(x.Role, "other"), Host: x.Called(), Rank: p.Rank}
}

// Names returns the names of all ranks: on a server with ranks, places without a rank get no name.
func (s *Set) Names() *naming.Names {
	ranked := map[int32]bool{}
	for _, p := range s.Places {
		ranked[p.Server] = ranked[p.Server] || p.Rank.Known() > 0
	}
	var places []naming.Place
	for i, p := range s.Places {
		if p.GPU == NoGPU && p.UUID == "" && (p.Rank.Known() > 0 || !ranked[p.Server]) {
			places = append(places, s.At(int32(i)))
		}
	}
	return naming.New(places, naming.HostNames{})
}

// IsDevice reports whether a place is a GPU.
func (p *Place) IsDevice() bool { return p.GPU != NoGPU || p.UUID != "" }

// Device returns the name of a GPU: its number and host, or its UUID if nothing else is known.
func Device(host, uuid string, gpu int32) string {
	switch {
	case gpu == NoGPU && uuid != "":
		return uuid
	case host == "":
		return fmt.Sprintf("GPU %d", gpu)
	}
	return fmt.Sprintf("GPU %d of %s", gpu, host)
}

// NameOf returns the name of a place for people: of a GPU, a rank, or else a server. names are those of the set.
func (s *Set) NameOf(i int32, names *naming.Names) string {
	p := &s.Places[i]
	x := &s.Servers[p.Server]
	switch {
	case p.IsDevice():
		return Device(x.Host, p.UUID, p.GPU)
	case p.Rank != trace.NoRank:
		return names.Rank(s.At(i))
	case p.User != "": // a pod, as reported by its host
		return p.User
	}
	return x.Called()
}

// HasLabel reports whether one of the labels, separated by commas, is the given one, such as "category=idle".
func (s *Set) HasLabel(label trace.Sym, is string) bool {
	return slices.Contains(strings.Split(s.Syms.Name(label), ","), is)
}

// Labeled returns a name followed by the label in parentheses, if there is one.
func (s *Set) Labeled(name string, label trace.Sym) string {
	if label == 0 {
		return name
	}
	return name + " (" + s.Syms.Name(label) + ")"
}

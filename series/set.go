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

// A Set is what all inputs say. The zero value is not ready: see [New].
type Set struct {
	Syms    *trace.Symbols
	Diags   *trace.Diags
	Sources []Source
	Servers []Server
	Places  []Place
	List    []Series
	// Instants are by time once the set is finished.
	Instants []Instant
	Runs     []Run // of load generators, as their files have them

	named   []Metric // those that only their producers know, behind Metrics
	columns []column // the samples of each of List

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
	// Lines are those of a file that has lines, Read those of which something was kept, and Other those
	// that tell of trouble in words that nothing here knows; all others say nothing that is looked for.
	Lines, Read, Other int
	FirstOther         int  // the first line that Other counts; 0 is none
	OnlyRecords        bool // nothing else than records of requests is in it
	Unnamed            bool // of metrics: no label names their server, which is called by its file
	Undated            bool // stamps have no date: the last one is taken for the last such time before the file was written
	Bytes              int64
	Samples            int
	Zone               Zone
	// First and Last are the first and the last stamp; 0 without any.
	First, Last trace.Time
	part        span
	places      []uint64 // bits of indexes into Set.Places
}

// About yields the places that an input says something about, as indexes into Set.Places.
func (s *Source) About() iter.Seq[int] {
	return func(yield func(int) bool) {
		for i := range 64 * len(s.places) {
			if s.places[i/64]>>(i%64)&1 != 0 && !yield(i) {
				return
			}
		}
	}
}

// IsLog reports whether a source is a log, a list of events, or a dump of requests; else it is of metrics.
func (s *Source) IsLog() bool {
	return slices.ContainsFunc([]string{" log", " events", " dump"}, func(kind string) bool { return strings.HasSuffix(s.Encoding, kind) })
}

// Logs returns how many inputs are logs of servers or routers, which say what failed and what ended. Records of
// requests do not, and metrics, kernels, and orchestrators say so of other things.
func (s *Set) Logs() (n int) {
	for i := range s.Sources {
		switch x := &s.Sources[i]; {
		case x.Encoding == "server log" && !x.OnlyRecords, x.Encoding == "router log", x.Encoding == "request log":
			n++
		}
	}
	return n
}

// A span is where what an input says happened lies in Instants.
type span struct{ instant, instants int }

// A Server is one server, or a host where Name is "".
type Server struct {
	Host string // "" is unknown
	Name string // tells servers of a host apart: the pod, or the file of its log
	Role string // "prefill", "decode", "unified", "router"; "" is unknown
	// Engine is "SGLang", "vLLM", "TensorRT-LLM"; "" is unknown.
	Engine string
	// Address is where it listens, "10.0.0.9:30000"; "" is unknown.
	Address string
	EP      int32 // GPUs that share the experts, as it was told; 0 is unknown
}

// On reports whether a server runs on a host, as far as names tell.
func (s *Server) On(host string) bool {
	at, _, _ := strings.Cut(s.Address, ":")
	return host != "" && (s.Host == host || at == host)
}

// NoGPU is the GPU of what is not about one.
const NoGPU = -1

// A Place is what a series is about: a rank of a server, or a GPU of a host.
type Place struct {
	Server int32 // index into Set.Servers
	Rank   trace.Rank
	GPU    int32  // index on its host; NoGPU
	UUID   string // of the GPU; "" is unknown
	User   string // the pod that the GPU is given to; "" is unknown
}

// A Series are the values of a metric at a place.
type Series struct {
	Metric MetricID
	Place  int32   // index into Set.Places
	Most   float64 // of a Bucket: the most that it counts; else 0
	// Label is what else the producer tells series apart by, "stage=prefill_forward"; 0 is nothing.
	Label trace.Sym
}

// A Sample is a value of a series.
type Sample struct {
	Time  trace.Time // Unix ns
	Value float64
	mark  uint32 // a line, and how exact its time is
}

const lineBits = 24

// Line tells samples of one line of a log from those of others of the same time: the last bits of its
// number. It is 0 where there are no lines.
func (s Sample) Line() uint32 { return s.mark & (1<<lineBits - 1) }

// Within returns how much later than Time it may have been, in ns: a stamp of whole seconds is the
// beginning of its second.
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

// InstantKind says what happens at an instant.
type InstantKind uint8

const (
	Note           InstantKind = iota // worth knowing
	Ready                             // a server is up
	Starting                          // a step of a server's start
	Stopping                          // a server was told to shut down
	Retraction                        // requests were thrown out of a full KV cache; Count of them
	OutOfMemory                       // memory of a device ran out
	PeerLost                          // a server lost the other side of its transfers
	TransferFailed                    // the KV cache of a request did not arrive
	Timeout                           // a watchdog saw that something does not come back
	Unhealthy                         // a health check failed
	Exception                         // a traceback
	Crash                             // a process ended
	Hardware                          // a driver or a kernel reports an error of a device
	Cluster                           // what an orchestrator says
	ClientGone                        // a client went away
	Unrouted                          // a router takes a server for ill, or takes it out
	Routed                            // a router sends to a server, or does so again
	Refusal                           // a router has no server for a request, or no place in its queue
	Traceback                         // an exception that need not be the end of anything
	Halt                              // a scheduler does something that no batch runs beside
	Communication                     // a library of collectives says that it failed
	Complaint                         // a line that its program calls an error, in words that nothing here knows; Count of them
)

// String returns the word that tables print.
func (k InstantKind) String() string {
	return [...]string{"note", "ready", "start", "stop", "retraction", "out of memory", "peer lost", "transfer failed", "timeout", "unhealthy", "exception",
		"crash", "hardware", "cluster", "client gone", "unrouted", "routed", "refusal", "traceback", "halt", "communication", "complaint"}[k]
}

// An Instant is something that happened.
type Instant struct {
	Time   trace.Time // Unix ns; 0 is unknown
	Within uint32     // as of a Sample
	Kind   InstantKind
	Place  int32     // index into Set.Places
	Source uint32    // index into Set.Sources
	Line   uint32    // in its file; 0 has no lines
	Count  int32     // of requests or repetitions; at least 1
	Text   trace.Sym // one line, without prompts or keys
	Stack  trace.Sym // frames, innermost first, divided by newlines; 0 is none
}

// Warns begins the text of a Complaint that its program calls a warning.
const Warns = "a warning: "

// Sleeps and Wakes are what a Note says of an engine that gives its memory back until it is needed again.
const Sleeps, Wakes = "sleeps: gave its memory back", "woke up: has its memory again"

// OutOfRouter begins what an Unrouted says by metrics of a router, which tell until when it is so.
const OutOfRouter = "gets no requests of the router: "

// NoBatch is what a Note says of requests that a server took without a batch behind its last one.
const NoBatch = "takes requests, and logs no batch any more"

// Untold begins what a PeerLost says of a prefill server that does not answer the first question of a decode server.
const Untold = "a prefill server does not tell where it takes transfers"

// AbortedWaiting begins what a ClientGone says of a request that was aborted while it waited for something of a KV cache.
const AbortedWaiting = "a request was aborted while it waited "

// Metric returns what series s is of.
func (s *Set) Metric(id MetricID) *Metric {
	if id < KnownMetrics {
		return &Metrics[id]
	}
	return &s.named[id-KnownMetrics]
}

// Empty reports whether no input says anything.
func (s *Set) Empty() bool { return s == nil || len(s.Sources) == 0 }

// Pos returns where an instant stands.
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

// LastErrors returns the samples of the metrics that keep the last error of a device, by place. Some exporters have the code in a label,
// too: then each code is a series of its own.
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

// reported makes instants of them: where the code changes from one scrape to the next, whatever files these are in. The one that the
// first scrape has was there before it.
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

// Called returns the name that people have for a server: logs tell servers apart, and not hosts.
func (x *Server) Called() string { return cmp.Or(x.Name, x.Host) }

// At returns the place of an index of Places, of a role that naming knows, as its names need it.
func (s *Set) At(i int32) naming.Place {
	p := &s.Places[i]
	x := &s.Servers[p.Server]
	return naming.Place{Role: cmp.Or(x.Role, "other"), Host: x.Called(), Rank: p.Rank}
}

// Names returns the names of all ranks: where ranks of a server speak, what else speaks there is none.
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

// Device returns the name of a host's GPU: its number and host, or its UUID where that is all
// there is.
func Device(host, uuid string, gpu int32) string {
	switch {
	case gpu == NoGPU && uuid != "":
		return uuid
	case host == "":
		return fmt.Sprintf("GPU %d", gpu)
	}
	return fmt.Sprintf("GPU %d of %s", gpu, host)
}

// NameOf returns the name that people have for a place: a GPU of a host, a rank, or else a server. names are those of
// the set.
func (s *Set) NameOf(i int32, names *naming.Names) string {
	p := &s.Places[i]
	x := &s.Servers[p.Server]
	switch {
	case p.IsDevice():
		return Device(x.Host, p.UUID, p.GPU)
	case p.Rank != trace.NoRank:
		return names.Rank(s.At(i))
	case p.User != "": // a pod of which its host tells
		return p.User
	}
	return x.Called()
}

// HasLabel reports whether a label, of several, is "category=idle".
func (s *Set) HasLabel(label trace.Sym, is string) bool {
	return slices.Contains(strings.Split(s.Syms.Name(label), ","), is)
}

// Labeled returns a name with the labels that tell it apart from others, in parentheses.
func (s *Set) Labeled(name string, label trace.Sym) string {
	if label == 0 {
		return name
	}
	return name + " (" + s.Syms.Name(label) + ")"
}

package request

import (
	"cmp"
	"iter"
	"math"
	"slices"
	"strings"
	"sync"
	"unsafe"

	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/internal/parallel"
	"github.com/sgtrace/sgtrace/trace"
	"github.com/sgtrace/sgtrace/trace/naming"
	"github.com/sgtrace/sgtrace/trace/redact"
)

// A Set is everything that is known of some requests: tables that refer to each
// other by index. Whoever fills it begins with [NewSet] and ends with [Set.Own].
type Set struct {
	Syms  *trace.Symbols // of names, and of keys of arguments
	Args  *trace.Args    // arguments of rows and instants
	Diags *trace.Diags   // what is wrong with the input

	Files   []File
	Sources []Source
	Writers []Writer
	Offsets []int64 // that places of rows without lines are in

	Rows     []Row     // those of a trace follow each other
	Instants []Instant // by row
	Tree     Tree      // which row lies in which
	Links    []Link    // by the row that they lead to
	// Ties tell the order of rows that begin and end together, so that it does not
	// depend on the order in which they were read; nil unless it was asked for.
	Ties []uint32

	Procs    []Proc // ordered for display: router, prefill, decode; host; rank
	Parts    []Part
	Threads  []Thread
	Requests []Request // by start
	// Window is the time that was selected, whose requests these are; all of them at other times
	// need not be there. The zero value is all time.
	Window Interval
	// Servers tell the servers of a host and role apart, by proc: see [Set.Server]; nil
	// if there is one of each.
	Servers []int32
	// HostNames are the names of hosts of which Procs have ids, as far as the input tells.
	HostNames naming.HostNames
	// Names is what ranks and hosts are called. Other inputs may know more of them.
	Names *naming.Names
	// Stages has the meaning of stages by name, in the order of a request's way.
	Stages []StageInfo
	// Results are the keys of arguments that tell which request it is and how it went, as
	// [Set.IsResult] reads them; the others tell what was asked for.
	Results []string
	// Orphans is how many rows lie in one that is not in the input, NoID how many cannot
	// be told apart by an id.
	Orphans, NoID int
	// Missing are rows that others show to be lost, in no order, and Shown is how many
	// rows of each proc others show, lost or not.
	Missing []Missing
	Shown   []int
	// Steps are the clocks that were set while requests were served, in order. Times are as if
	// they had not been.
	Steps []ClockStep
	// Clocks tell how times were put on one clock; nil where they are as recorded.
	Clocks *HostClocks

	stages         [][]uint32       // of threads of which they are not the first rows below their own
	names          []string         // of all symbols that rows have
	redact         *redact.Redactor // of what the set itself tells; nil is none
	texts          *trace.Args      // that Text returns
	threads, parts []int            // of all parts and requests, of which each has a list
	// gatewayOf is one more than the request of each row of a gateway or an envelope, by row; nil if
	// there is none.
	gatewayOf []int32
	openOnce  sync.Once
	open      *OpenFinder // see [Set.OpenFinder]
}

// NewSet returns an empty Set, whose rows have names of syms. All of these are known
// by now.
func NewSet(syms *trace.Symbols, args *trace.Args, diags *trace.Diags) *Set {
	return &Set{Syms: syms, Args: args, Diags: diags, names: syms.Names(), HostNames: naming.HostNames{}, texts: trace.NewArgs()}
}

// A File is an input that rows come from.
type File struct {
	Name      string
	Encoding  string // after decompression
	Bytes     int64  // after decompression
	Documents int    // messages
	Rows      int
	Other     int // messages about something else, skipped
}

// A Writer is what rows tell of the process that wrote them, as it says it.
type Writer struct {
	Service, Instance      trace.Sym // instance: new at every start of a process
	Language, SDK, Version string    // of the software that it writes them with
	Release                string    // service.version; "" is unknown: SGLang does not set it, but whoever runs it may
	Pool                   string    // attributes that say which servers were set up alike, "gpu.type H100, pool a"; "" is none
	Layouts                Layouts   // that its rows are a sign of
}

// Setup says what an operator chose for the servers of w: their version and pool; "" is unknown.
func (w *Writer) Setup() string {
	if w.Release == "" || w.Pool == "" {
		return w.Release + w.Pool
	}
	return w.Release + ", " + w.Pool
}

// A Source is where rows come from.
type Source struct {
	File   int       // index into Set.Files
	Writer int       // index into Set.Writers
	Scope  trace.Sym // the library that made the rows, as it says
}

// Pos returns where row i stands: its line, or its offset in a file without lines.
func (s *Set) Pos(i int) trace.Pos {
	row := &s.Rows[i]
	return row.Place.In(s.Files[s.Sources[row.Source].File].Name, s.Offsets)
}

// Kind is what a row stands for.
type Kind uint8

const (
	Generic   Kind = iota // something of a service that is not known here
	Duplicate             // was read twice; ignored
	Root                  // all that a server did for a request
	Envelope              // groups the parts of a request
	ThreadRow             // all that a thread did for a part
	Stage
	Gateway    // a gateway's or router's own
	Unselected // left out by a Selection
)

// A Row is something that took time: a stage of a request, all that a thread or a
// server did for it, or what happened beside requests. Zero is none of Name, Args and
// Means; of the indexes, [None] is.
type Row struct {
	Start, End trace.Time   // Unix ns, by the clock of the host until clocks are related
	Name       trace.Sym    // as the producer calls it
	Args       trace.ArgsID // all else that the producer says
	Thread     int32        // of a stage, and of a thread's own row
	Part       int32        // what it is a piece of
	Proc       int32        // whose it is; None for duplicates
	Source     uint32       // index into Set.Sources
	Place      trace.Place  // in the file of its source: see [Set.Pos]
	Step       int32        // number of the batch that a step or a prefill ran in; Unknown
	// Instants is the first of the row's own in Set.Instants. They end where those of the
	// next row begin.
	Instants uint32
	Kind     Kind
	Phase    Phase   // of a stage
	Means    Meaning // of a stage
	Level    uint8   // lowest trace level that shows it; 0 is not known
}

// Dur returns the length of r in ns; it is negative when the producer's clock
// stepped back.
func (r *Row) Dur() int64 { return int64(r.End - r.Start) }

// An Instant is a point in time that a row reports.
type Instant struct {
	Time  trace.Time
	Name  trace.Sym
	Args  trace.ArgsID
	Batch int32 // how many requests the batch holds that is meant; Unknown
	Kind  InstantKind
	Mode  Mode // of the batch
}

// InstantKind is what happens at an instant.
type InstantKind uint8

const (
	OtherInstant InstantKind = iota
	Scheduled                // the request was put into a batch
	Retracted                // it was thrown out of the batch because memory ran out
	HandedOn                 // a gateway sends it to the servers
)

// Mode is what a batch is for.
type Mode uint8

const (
	UnknownMode Mode = iota
	PrefillMode
	DecodeMode
	OtherMode
)

// A Link says that one row follows from another.
type Link struct {
	From int32 // None where that is not in the input
	To   int32
}

// A Tree says which row lies in which.
type Tree struct {
	Above []int32 // row around each; None
	// Below holds the rows in row i from First[i] up to First[i+1], ordered by start,
	// then longest first.
	First, Below []uint32
}

// Parent returns the row that row i lies in, or None.
func (t *Tree) Parent(i int) int { return int(t.Above[i]) }

// Children returns the rows that lie in row i, ordered by start, then longest first. It
// must not be modified.
func (t *Tree) Children(i int) []uint32 { return t.Below[t.First[i]:t.First[i+1]] }

// Compare orders rows by start, then longest first, then as Ties has them.
func (s *Set) Compare(i, j int) int {
	x, y := &s.Rows[i], &s.Rows[j]
	if c := cmp.Or(cmp.Compare(x.Start, y.Start), cmp.Compare(y.End, x.End)); c != 0 || s.Ties == nil {
		return c
	}
	return cmp.Compare(s.Ties[i], s.Ties[j])
}

// All yields the numbers of all rows, in order. Large tables are walked over with it: see
// [memory.Each].
func (s *Set) All() iter.Seq[int] { return memory.Each(len(s.Rows), RowSize) }

// RowSize is how many bytes a walk over rows looks at in each: the row itself, its place in
// the tree, and some of its arguments.
const RowSize = 128

// AllParts does that for parts.
func (s *Set) AllParts() iter.Seq[int] { return memory.Each(len(s.Parts), partSize) }

// AllThreads does that for threads.
func (s *Set) AllThreads() iter.Seq[int] { return memory.Each(len(s.Threads), threadSize) }

// AllRequests does that for requests.
func (s *Set) AllRequests() iter.Seq[int] { return memory.Each(len(s.Requests), RequestSize) }

// About how many bytes a walk over parts, threads, or requests looks at in each: a few of
// its rows, and what the kernel maps with them.
const (
	partSize    = 4 << 10
	threadSize  = 4 << 10
	RequestSize = 8 << 10
)

// Len returns the number of rows.
func (s *Set) Len() int { return len(s.Rows) }

// Row returns row i.
func (s *Set) Row(i int) *Row { return &s.Rows[i] }

// InstantsOf returns the instants that row i reports, in the order in which it does.
func (s *Set) InstantsOf(i int) []Instant {
	to := len(s.Instants)
	if i+1 < len(s.Rows) {
		to = int(s.Rows[i+1].Instants)
	}
	return s.Instants[s.Rows[i].Instants:to]
}

// Kind returns what row i stands for.
func (s *Set) Kind(i int) Kind { return s.Rows[i].Kind }

// ThreadOf returns the index of the thread that row i is of, or None.
func (s *Set) ThreadOf(i int) int { return int(s.Rows[i].Thread) }

// PartOf returns the index of the part that row i belongs to, or None.
func (s *Set) PartOf(i int) int { return int(s.Rows[i].Part) }

// ProcOf returns the index of the proc that row i is of; None for duplicates.
func (s *Set) ProcOf(i int) int { return int(s.Rows[i].Proc) }

// RequestOf returns the index of the request that row i belongs to, or None. A
// gateway's row belongs to the first of its requests.
func (s *Set) RequestOf(i int) int {
	if p := s.Rows[i].Part; p != None {
		return s.Parts[p].Request
	}
	if s.gatewayOf != nil {
		return int(s.gatewayOf[i]) - 1
	}
	return None
}

// Name returns the name of row i.
func (s *Set) Name(i int) string { return s.names[s.Rows[i].Name] }

// Bounds returns the first and last instant of all rows; ok is false if there are
// none.
func (s *Set) Bounds() (from, to trace.Time, ok bool) {
	type extent struct{ from, to trace.Time }
	from = math.MaxInt64
	parallel.Fold(len(s.Rows), RowSize, func() *extent { return &extent{from: math.MaxInt64} }, func(e *extent, first, behind int) {
		for i := first; i < behind; i++ {
			e.from, e.to = min(e.from, s.Rows[i].Start), max(e.to, s.Rows[i].End)
		}
	}, func(e *extent) { from, to = min(from, e.from), max(to, e.to) })
	if len(s.Rows) == 0 {
		return 0, 0, false
	}
	return from, to, true
}

// OuterSpan returns the gateway's or router's span around a request, or None.
func (s *Set) OuterSpan(r *Request) int {
	if r.Gateway != None {
		return r.Gateway
	}
	for _, p := range s.PartsOf(r) {
		if s.Parts[p].Role == Router && s.Parts[p].Root != None {
			return s.Parts[p].Root
		}
	}
	return None
}

// HasGateway reports whether any request came through a gateway.
func (s *Set) HasGateway() bool {
	return slices.ContainsFunc(s.Requests, func(r Request) bool { return r.Gateway != None })
}

// Any reports whether a selection has left anything.
func (s *Set) Any() bool {
	return slices.ContainsFunc(s.Rows, func(r Row) bool { return r.Kind != Duplicate && r.Kind != Unselected })
}

func (s *Set) stageIndex(name string) int {
	return slices.IndexFunc(s.Stages, func(x StageInfo) bool { return x.Name == name })
}

// StageCalled returns the name of the stage that means m, "" if no table knows one.
func (s *Set) StageCalled(m Meaning) string {
	if i := slices.IndexFunc(s.Stages, func(x StageInfo) bool { return x.Means == m }); i != None {
		return s.Stages[i].Name
	}
	return ""
}

// CompareStages orders the names of stages by phase, then as Stages lists them; what it
// does not list goes last, by name.
func (s *Set) CompareStages(x, y string) int {
	px, ix := s.stagePlace(x)
	py, iy := s.stagePlace(y)
	return cmp.Or(cmp.Compare(px, py), cmp.Compare(ix, iy), strings.Compare(x, y))
}

func (s *Set) stagePlace(name string) (phase, index int) {
	index = s.stageIndex(name)
	if index == None {
		return int(DecodePhase) + 2, 0
	}
	if phase = int(s.Stages[index].Phase); s.Stages[index].Phase == OtherPhase {
		phase = int(DecodePhase) + 1
	}
	return phase, index
}

// A Text is a text of a request or a part, such as its ID, which [Set.Text] returns. A million
// requests have a million of them, which cannot move to a file as strings. 0 is "".
type Text trace.ArgsID

// Text returns a text.
func (s *Set) Text(t Text) string {
	if t == 0 {
		return ""
	}
	return string(s.texts.Raw(trace.ArgsID(t)))
}

// NewText keeps a text.
func (s *Set) NewText(text string) Text {
	if text == "" {
		return 0
	}
	if s.texts == nil {
		s.texts = trace.NewArgs()
	}
	return Text(s.texts.Put(unsafe.Slice(unsafe.StringData(text), len(text)))) // which copies it
}

// A TextKeeper keeps texts of one goroutine, while others keep theirs and nobody asks for one.
type TextKeeper struct{ put *trace.ArgsAppender }

// KeepTexts returns a TextKeeper of a Set that [NewSet] made. It is to be released.
func (s *Set) KeepTexts() TextKeeper { return TextKeeper{s.texts.Appender()} }

// Keep keeps a text.
func (k TextKeeper) Keep(text []byte) Text { return Text(k.put.Put(text)) }

// Release gives k up.
func (k TextKeeper) Release() { k.put.Release() }

// A list is a part of a table of indexes.
type list struct{ from, to int32 }

// ThreadsOf returns the indexes of the threads of p, by start. They must not be modified.
func (s *Set) ThreadsOf(p *Part) []int { return s.threads[p.threads.from:p.threads.to:p.threads.to] }

// PartsOf returns the indexes of the parts of r: router, prefill, decode, sender. They must not
// be modified.
func (s *Set) PartsOf(r *Request) []int { return s.parts[r.parts.from:r.parts.to:r.parts.to] }

// OwnThreads notes which threads are of which part, in the order that sort gives them, which
// several cores may call.
func (s *Set) OwnThreads(sort func(threads []int)) {
	for p := range s.AllParts() {
		s.Parts[p].threads, s.Parts[p].lead = list{}, 0
	}
	for t := range s.AllThreads() {
		s.Parts[s.Threads[t].Part].threads.to++
	}
	n := int32(0)
	for p := range s.AllParts() {
		l := &s.Parts[p].threads
		n, l.from, l.to = n+l.to, n, n
	}
	s.threads = memory.Make[int](len(s.Threads))
	for t := range s.AllThreads() {
		l := &s.Parts[s.Threads[t].Part].threads
		s.threads[l.to] = t
		l.to++
	}
	parallel.Rows(len(s.Parts), partSize, func(from, to int) {
		for p := from; p < to; p++ {
			sort(s.ThreadsOf(&s.Parts[p]))
		}
	})
}

// Free gives up the requests, with their parts and threads: the Set is of no more use. Rows, links, and instants are
// left to whoever has them.
func (s *Set) Free() {
	memory.Free(s.Requests)
	memory.Free(s.parts)
	memory.Free(s.Parts)
	memory.Free(s.threads)
	memory.Free(s.Threads)
	memory.Free(s.gatewayOf)
	*s = Set{}
}

// ReserveRequests makes room for so many requests, of so many parts in all.
func (s *Set) ReserveRequests(requests, parts int) {
	s.Requests, s.parts = memory.Grow(s.Requests, requests), memory.Grow(s.parts, parts)
	room := s.Requests[len(s.Requests):cap(s.Requests)]
	// The first write to a page costs most of what adding a request does: all cores share that.
	parallel.Rows(len(room), RequestSize, func(from, to int) { clear(room[from:to]) })
}

// AddRequest adds a request of some parts.
func (s *Set) AddRequest(r Request, parts ...int) {
	r.parts.from = int32(len(s.parts))
	s.parts = memory.Append(s.parts, parts...)
	r.parts.to = int32(len(s.parts))
	s.Requests = memory.Append(s.Requests, r)
}

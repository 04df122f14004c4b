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

// A Set has all data about some requests: tables that refer to each other by index. To fill it, begin with
// [NewSet] and end with [Set.Own].
type Set struct {
	Syms  *trace.Symbols // names, and keys of arguments
	Args  *trace.Args    // of rows and instants
	Diags *trace.Diags   // problems with the input

	Files   []File
	Sources []Source
	Writers []Writer
	Offsets []int64 // for places of rows without lines

	Rows     []Row     // those of a trace are contiguous
	Instants []Instant // by row
	Tree     Tree      // nesting of rows
	Links    []Link    // by the row that follows
	// Ties orders rows that begin and end together, independently of the order in which they were read; nil
	// unless it was requested.
	Ties []uint32

	Procs    []Proc // in display order: router, prefill, decode; host; rank
	Parts    []Part
	Threads  []Thread
	Requests []Request // by start
	// Window is the selected time to which these requests are limited; requests at other times may be
	// missing. The zero value is all time.
	Window Interval
	// Servers distinguishes servers of the same host and role, by proc: see [Set.Server]; nil if there is
	// only one of each.
	Servers []int32
	// HostNames maps host IDs in Procs to host names, as far as the input has them.
	HostNames naming.HostNames
	// Names has the names of ranks and hosts. Other inputs may supply better ones.
	Names *naming.Names
	// Stages has the meaning of stages by name, in the order in which a request passes through them.
	Stages []StageInfo
	// Results are the keys of arguments that identify the request or say how it went, see [Set.IsResult];
	// other keys are what was asked for.
	Results []string
	// Orphans is the number of rows whose parent is not in the input, NoID the number of rows without an
	// ID.
	Orphans, NoID int
	// Missing are rows that others prove to be lost, unsorted. Shown is the number of rows of each proc
	// that others prove, lost or not.
	Missing []Missing
	Shown   []int
	// Steps are the clocks that were set while requests were served, in order of time. Times are corrected
	// for them.
	Steps []ClockStep
	// Clocks says how times were put on one clock; nil if they are as recorded.
	Clocks *HostClocks

	stages         [][]uint32       // of threads whose stages are not the first rows below their own
	names          []string         // of all symbols in rows
	redact         *redact.Redactor // redacts output of the set itself; nil for none
	texts          *trace.Args      // the texts of Text
	threads, parts []int            // the lists of all parts and requests
	// gatewayOf is the index of the request of each gateway or envelope row, plus one, by row; nil if there
	// are no such rows.
	gatewayOf []int32
	openOnce  sync.Once
	open      *OpenFinder // see [Set.OpenFinder]
}

// NewSet returns an empty Set, whose rows have names in syms. All names must be in syms already.
func NewSet(syms *trace.Symbols, args *trace.Args, diags *trace.Diags) *Set {
	return &Set{Syms: syms, Args: args, Diags: diags, names: syms.Names(), HostNames: naming.HostNames{}, texts: trace.NewArgs()}
}

// A File is an input that rows come from.
type File struct {
	Name      string
	Encoding  string // after decompression
	Bytes     int64  // after decompression
	Documents int    // number of messages
	Rows      int
	Other     int // number of skipped messages about something else
}

// A Writer is a process that wrote rows, as it describes itself.
type Writer struct {
	Service, Instance      trace.Sym // Instance is new at every process start
	Language, SDK, Version string    // of the software that writes the rows
	Release                string    // service.version; "" is unknown: SGLang does not set it, but an operator may
	Pool                   string    // attributes that identify servers with equal setups, "gpu.type H100, pool a"; "" if none
	Layouts                Layouts   // the layouts that its rows show
}

// Setup returns what an operator chose for the servers of w: version and pool; "" is unknown.
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
	Scope  trace.Sym // the instrumentation library
}

// Pos returns the position of row i: its line, or its offset in a file without lines.
func (s *Set) Pos(i int) trace.Pos {
	row := &s.Rows[i]
	return row.Place.In(s.Files[s.Sources[row.Source].File].Name, s.Offsets)
}

// Kind is what a row stands for.
type Kind uint8

const (
	Generic   Kind = iota // from a service without rules
	Duplicate             // read twice; ignored
	Root                  // everything that a server did for a request
	Envelope              // groups the parts of a request
	ThreadRow             // everything that a thread did for a part
	Stage
	Gateway    // a gateway's or router's own row
	Unselected // left out by a Selection
)

// A Row is anything that took time: a stage of a request, all that a thread or a server did for it, or work
// beside requests. For Name, Args, and Means, zero is none; for indexes, [None] is.
type Row struct {
	Start, End trace.Time   // Unix ns, on the host's clock until clocks are related
	Name       trace.Sym    // as the producer calls it
	Args       trace.ArgsID // everything else that the producer says
	Thread     int32        // of a stage, or of a thread's own row
	Part       int32        // the part it belongs to
	Proc       int32        // its proc; None for duplicates
	Source     uint32       // index into Set.Sources
	Place      trace.Place  // in the file of its source: see [Set.Pos]
	Step       int32        // number of the batch of a step or prefill, or Unknown
	// Instants is the index of the row's first instant in Set.Instants. They end where those of the next
	// row begin.
	Instants uint32
	Kind     Kind
	Phase    Phase   // of a stage
	Means    Meaning // of a stage
	Level    uint8   // lowest trace level that exports it; 0 is unknown
}

// Dur returns the length of r in ns; it is negative if the producer's clock stepped back.
func (r *Row) Dur() int64 { return int64(r.End - r.Start) }

// An Instant is a point in time that a row reports.
type Instant struct {
	Time  trace.Time
	Name  trace.Sym
	Args  trace.ArgsID
	Batch int32 // size of the batch, or Unknown
	Kind  InstantKind
	Mode  Mode // of the batch
}

// InstantKind is what happens at an instant.
type InstantKind uint8

const (
	OtherInstant InstantKind = iota
	Scheduled                // the request was put into a batch
	Retracted                // it was removed from the batch because memory ran out
	HandedOn                 // a gateway sends it to the servers
)

// Mode is the purpose of a batch.
type Mode uint8

const (
	UnknownMode Mode = iota
	PrefillMode
	DecodeMode
	OtherMode
)

// A Link says that one row follows from another.
type Link struct {
	From int32 // None if it is not in the input
	To   int32
}

// A Tree says which row is nested in which.
type Tree struct {
	Above []int32 // parent of each row, or None
	// Below has the children of row i from First[i] to First[i+1], sorted by start, then longest first.
	First, Below []uint32
}

// Parent returns the parent of row i, or None.
func (t *Tree) Parent(i int) int { return int(t.Above[i]) }

// Children returns the children of row i, sorted by start, then longest first. It must not be modified.
func (t *Tree) Children(i int) []uint32 { return t.Below[t.First[i]:t.First[i+1]] }

// Compare orders rows by start, then longest first, then by Ties.
func (s *Set) Compare(i, j int) int {
	x, y := &s.Rows[i], &s.Rows[j]
	if c := cmp.Or(cmp.Compare(x.Start, y.Start), cmp.Compare(y.End, x.End)); c != 0 || s.Ties == nil {
		return c
	}
	return cmp.Compare(s.Ties[i], s.Ties[j])
}

// All yields the indexes of all rows, in order. Use it to walk over large tables: see [memory.Each].
func (s *Set) All() iter.Seq[int] { return memory.Each(len(s.Rows), RowSize) }

// RowSize is roughly how many bytes a walk over rows touches per row: the row itself, its place in the
// tree, and some of its arguments.
const RowSize = 128

// AllParts is All for parts.
func (s *Set) AllParts() iter.Seq[int] { return memory.Each(len(s.Parts), partSize) }

// AllThreads is All for threads.
func (s *Set) AllThreads() iter.Seq[int] { return memory.Each(len(s.Threads), threadSize) }

// AllRequests is All for requests.
func (s *Set) AllRequests() iter.Seq[int] { return memory.Each(len(s.Requests), RequestSize) }

// Roughly how many bytes a walk over parts, threads, or requests touches per element: some of its rows, and
// what the kernel maps with them.
const (
	partSize    = 4 << 10
	threadSize  = 4 << 10
	RequestSize = 8 << 10
)

// Len returns the number of rows.
func (s *Set) Len() int { return len(s.Rows) }

// Row returns row i.
func (s *Set) Row(i int) *Row { return &s.Rows[i] }

// InstantsOf returns the instants that row i reports, in the order of the input.
func (s *Set) InstantsOf(i int) []Instant {
	to := len(s.Instants)
	if i+1 < len(s.Rows) {
		to = int(s.Rows[i+1].Instants)
	}
	return s.Instants[s.Rows[i].Instants:to]
}

// Kind returns what row i stands for.
func (s *Set) Kind(i int) Kind { return s.Rows[i].Kind }

// ThreadOf returns the index of the thread of row i, or None.
func (s *Set) ThreadOf(i int) int { return int(s.Rows[i].Thread) }

// PartOf returns the index of the part of row i, or None.
func (s *Set) PartOf(i int) int { return int(s.Rows[i].Part) }

// ProcOf returns the index of the proc of row i; None for duplicates.
func (s *Set) ProcOf(i int) int { return int(s.Rows[i].Proc) }

// RequestOf returns the index of the request of row i, or None. A gateway's row belongs to the first of its
// requests.
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

// Any reports whether a selection has left any rows.
func (s *Set) Any() bool {
	return slices.ContainsFunc(s.Rows, func(r Row) bool { return r.Kind != Duplicate && r.Kind != Unselected })
}

func (s *Set) stageIndex(name string) int {
	return slices.IndexFunc(s.Stages, func(x StageInfo) bool { return x.Name == name })
}

// StageCalled returns the name of the stage with meaning m, "" if there is none.
func (s *Set) StageCalled(m Meaning) string {
	if i := slices.IndexFunc(s.Stages, func(x StageInfo) bool { return x.Means == m }); i != None {
		return s.Stages[i].Name
	}
	return ""
}

// CompareStages orders stage names by phase, then in the order of Stages; unknown stages come last, by
// name.
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

// A Text is a text of a request or a part, such as its ID, which [Set.Text] returns. A million requests
// have a million texts, which could not move to a file as strings. 0 is "".
type Text trace.ArgsID

// Text returns the text of t.
func (s *Set) Text(t Text) string {
	if t == 0 {
		return ""
	}
	return string(s.texts.Raw(trace.ArgsID(t)))
}

// NewText stores a text.
func (s *Set) NewText(text string) Text {
	if text == "" {
		return 0
	}
	if s.texts == nil {
		s.texts = trace.NewArgs()
	}
	return Text(s.texts.Put(unsafe.Slice(unsafe.StringData(text), len(text)))) // Put copies it
}

// A TextKeeper stores texts for one goroutine, concurrently with those of others, while nobody reads texts.
type TextKeeper struct{ put *trace.ArgsAppender }

// KeepTexts returns a TextKeeper of a Set made by [NewSet]. It must be released.
func (s *Set) KeepTexts() TextKeeper { return TextKeeper{s.texts.Appender()} }

// Keep stores a text.
func (k TextKeeper) Keep(text []byte) Text { return Text(k.put.Put(text)) }

// Release ends the use of k.
func (k TextKeeper) Release() { k.put.Release() }

// A list is a range of a table of indexes.
type list struct{ from, to int32 }

// ThreadsOf returns the indexes of the threads of p, by start. They must not be modified.
func (s *Set) ThreadsOf(p *Part) []int { return s.threads[p.threads.from:p.threads.to:p.threads.to] }

// PartsOf returns the indexes of the parts of r: router, prefill, decode, sender. They must not
// be modified.
func (s *Set) PartsOf(r *Request) []int { return s.parts[r.parts.from:r.parts.to:r.parts.to] }

// OwnThreads determines the threads of each part, sorted by sort, which must be safe for concurrent use.
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

// Free releases the requests, with their parts and threads; the Set cannot be used afterward. Rows, links, and
// instants still belong to whoever has them.
func (s *Set) Free() {
	memory.Free(s.Requests)
	memory.Free(s.parts)
	memory.Free(s.Parts)
	memory.Free(s.threads)
	memory.Free(s.Threads)
	memory.Free(s.gatewayOf)
	*s = Set{}
}

// ReserveRequests makes room for a number of requests with a total number of parts.
func (s *Set) ReserveRequests(requests, parts int) {
	s.Requests, s.parts = memory.Grow(s.Requests, requests), memory.Grow(s.parts, parts)
	room := s.Requests[len(s.Requests):cap(s.Requests)]
	// Most of the cost of adding a request is the first write to its page; all cores share that cost here.
	parallel.Rows(len(room), RequestSize, func(from, to int) { clear(room[from:to]) })
}

// AddRequest adds a request with the given parts.
func (s *Set) AddRequest(r Request, parts ...int) {
	r.parts.from = int32(len(s.parts))
	s.parts = memory.Append(s.parts, parts...)
	r.parts.to = int32(len(s.parts))
	s.Requests = memory.Append(s.Requests, r)
}

package nsysexport

import (
	"math"
	"strconv"

	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/profile/kernelname"
	"github.com/sgtrace/sgtrace/trace"
)

// argKeys are the symbols of the keys of arguments, which are those of PyTorch's profiler where it has the same
// arguments.
type argKeys struct {
	device, context, stream, correlation, grid, block, registers, shared, node, exec, bytes, result,
	category, open, cpu, stack, event, collective, comm, size, seq trace.Sym
}

func (k *argKeys) init(syms *trace.Symbols) {
	syms.InternAll(map[*trace.Sym]string{
		&k.device: "device", &k.context: "context", &k.stream: "stream", &k.correlation: "correlation", &k.grid: "grid",
		&k.block: "block", &k.registers: "registers per thread", &k.shared: "shared memory", &k.node: "graph node id",
		&k.exec: "graph exec id", &k.bytes: "bytes", &k.result: "return value", &k.category: "category",
		&k.open: "never closed", &k.cpu: "cpu", &k.stack: "stack", &k.event: "wait_on_cuda_event_record", &k.collective: "Collective name",
		&k.comm: "NCCL communicator", &k.size: "message size", &k.seq: "Seq",
	})
}

// reader reads one table, or a few, into pieces.
type reader struct {
	*profiler
	put    *trace.ArgsAppender // nil leaves arguments out
	pieces []*piece            // by number
	byPID  map[int32]*piece
	list   trace.ArgList
	keeper *profile.Keeper
	meets  *trace.PerName[bool] // by name of a kernel: whether it communicates with other ranks
}

// piece is what one reader read about one process.
type piece struct {
	pid, number int32
	rows        []profile.Row
	rowOf       map[rowKey]int32
	lastKey     rowKey
	lastRow     int32
	events      list[profile.Slice]
	instants    []profile.Instant
	samples     list[profile.CounterSample]
	launches    list[profile.Launch]
	work        list[work] // empty if the events contain it
	collectives profile.Collectives
	prints      list[profile.Fingerprint] // for the fingerprint
	nodes       list[uint64]              // of collectives; 0 is not in a graph
	steps       []profile.Step
	forwards    []profile.Step // the parts of steps that run the model
	first, last trace.Time
	total       int
}

// rowKey identifies a row of a piece: its layer, and two numbers or symbols.
type rowKey struct {
	layer layer
	a, b  uint32
}

// layer is a kind of row of a process.
type layer uint8

const (
	layerNone layer = iota
	layerStream
	layerWaits
	layerCalls
	layerLibrary
	layerNVTX
	layerAsync
	layerOS
	layerRunning
	layerSamples
	layerMemory
	layerMetric
)

func newReader(r *profiler) *reader {
	return &reader{profiler: r, byPID: map[int32]*piece{}, put: r.filter.Appender(r.src.Options.Args), keeper: profile.NewKeeper(r.filter, r.syms),
		meets: trace.EachName(r.syms, kernelname.MeetsOthers)}
}

// piece returns the piece of a process.
func (r *reader) piece(pid int32) *piece {
	p, ok := r.byPID[pid]
	if !ok {
		p = &piece{pid: pid, number: int32(len(r.pieces)), rowOf: map[rowKey]int32{}, first: math.MaxInt64, last: math.MinInt64}
		r.byPID[pid] = p
		r.pieces = append(r.pieces, p)
	}
	return p
}

// walk returns a walk over the rows of all processes; the rank of each is the number of its piece.
func (r *reader) walk() *walk {
	w := stream{r.src.Within(0, 0), func(pid int32) int32 { return r.piece(pid).number }}.walk()
	w.lenient = true
	return w
}

// saw records the time of an event of a walk, and returns the event's piece.
func (r *reader) saw(e *profile.Event) *piece {
	p := r.pieces[e.Rank]
	p.saw(e.Start, e.End)
	return p
}

// row returns the row with a key, which fresh makes if it is new.
func (p *piece) row(key rowKey, fresh func() profile.Row) int32 {
	if p.lastKey == key {
		return p.lastRow
	}
	i := order.At(p.rowOf, &p.rows, key, fresh)
	p.lastKey, p.lastRow = key, i
	return i
}

// saw extends the times of the piece, and counts the event.
func (p *piece) saw(from, to trace.Time) {
	p.total++
	if profile.IsPossible(from) && profile.IsPossible(to) {
		p.first, p.last = min(p.first, from), max(p.last, to)
	}
}

// category is the category of a table's events, and whether it is wanted.
type category struct {
	sym    trace.Sym
	kind   profile.SliceKind
	wanted bool
}

func (r *reader) category(name string) category {
	sym := r.syms.Intern(name)
	return category{sym, profile.SliceKindOf(name), r.keeper.Category(sym)}
}

// keeps reports whether the filter keeps an event with a duration.
func (r *reader) keeps(c category, name trace.Sym, from, to trace.Time) bool {
	switch {
	case !profile.IsPossible(from) || !profile.IsPossible(to):
		r.impossible(from, to)
		return false
	case to < from:
		reportBackwards(r.src)
		to = from
	}
	return int64(to-from) >= r.filter.MinDur && r.keepsAny(c, name, from, to)
}

// impossible reports a row with impossible times.
func (r *reader) impossible(from, to trace.Time) {
	r.src.Diag(trace.NsysTime, "", 0, from, to)
}

// keepsAny is keeps for events of any duration.
func (r *reader) keepsAny(c category, name trace.Sym, from, to trace.Time) bool {
	return c.wanted && r.keeper.Within(name, from, to)
}

// add adds an event with the arguments in the reader's list.
func (r *reader) add(p *piece, row int32, c category, e *profile.Event) int32 {
	s := profile.Slice{Time: e.Start, Dur: e.Dur(), Correlation: int64(uint32(e.Correlation)), Name: e.Name, Cat: c.sym, Place: c.kind.On(row)}
	if s.Name == 0 {
		s.Name = r.syms.Intern(profile.NoName)
	}
	if r.put != nil {
		s.Args = r.put.Put(r.list)
	}
	return int32(p.events.add(s))
}

// A list is a table that grows without moving, and whose parts can be freed separately.
type list[T any] struct {
	chunks [][]T
	n      int
}

const chunkSize = 1 << 15

// add adds a row and returns its number.
func (l *list[T]) add(v T) int {
	last := len(l.chunks) - 1
	if last < 0 || len(l.chunks[last]) == cap(l.chunks[last]) {
		size := chunkSize
		if last < 0 {
			size = 64 // many lists stay small
		}
		l.chunks = append(l.chunks, memory.Make[T](size)[:0])
		last++
	}
	l.chunks[last] = append(l.chunks[last], v)
	l.n++
	return l.n - 1
}

// appendTo appends the rows to a table, and frees them.
func (l *list[T]) appendTo(table []T) []T {
	for i, c := range l.chunks {
		table = append(table, c...)
		l.chunks[i] = nil
	}
	l.chunks = nil
	return table
}

// numberText returns the text of a number.
func numberText[T int32 | uint32](n T) string { return strconv.FormatInt(int64(n), 10) }

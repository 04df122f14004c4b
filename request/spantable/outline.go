package spantable

import (
	"math"
	"strconv"

	"github.com/sgtrace/sgtrace/trace"
)

// A TraceID is the ID of a trace: high half, low half.
type TraceID [2]uint64

// A Prescan says what an [Outline] collects from spans besides their traces and times.
type Prescan struct {
	// Plain reports whether spans with a name have nothing else of interest, as most do. For each such
	// name, only some traces are collected.
	Plain func(name []byte) bool
	// Keys are the attributes of interest. The name of a span counts as one more, with index len(Keys).
	Keys []string
	// Mark returns a hash for the value of a key, 0 for none, and whether its trace is wanted because of
	// it. It is called from several goroutines.
	Mark func(key int, value []byte) (mark uint64, wanted bool)
}

// A PrescannedTrace is the result of scanning a trace.
type PrescannedTrace struct {
	ID          TraceID
	First, Last trace.Time // first start and last end of its spans, as stamped
	Longest     int64      // duration of its longest span, ns
	Wanted      bool       // because of some value: see [Prescan.Mark]
}

// widen adds the result for the same trace elsewhere.
func (s *PrescannedTrace) widen(o *PrescannedTrace) {
	s.First, s.Last = min(s.First, o.First), max(s.Last, o.Last)
	s.Longest, s.Wanted = max(s.Longest, o.Longest), s.Wanted || o.Wanted
}

// A Mark says that a trace has a value.
type Mark struct {
	Value uint64
	Trace uint32 // index into the traces
}

// A PrescannedPiece is the result of scanning a piece of a file.
type PrescannedPiece struct {
	Spans, Documents int
	prescan          *Prescan
	traces           []PrescannedTrace
	marks            [][]Mark // by key
	numbers          map[TraceID]uint32
	plain            map[string]bool // names already collected
}

// NewPiece returns an empty PrescannedPiece.
func (l *Prescan) NewPiece() *PrescannedPiece {
	return &PrescannedPiece{prescan: l, marks: make([][]Mark, len(l.Keys)+1), numbers: map[TraceID]uint32{}, plain: map[string]bool{}}
}

// Span adds a span, and returns the number of its trace in g.
func (g *PrescannedPiece) Span(id TraceID, start, end trace.Time) uint32 {
	n := g.Trace(id)
	g.SpanOf(n, start, end)
	return n
}

// Trace returns the number of a trace in g; the caller must add a span of it.
func (g *PrescannedPiece) Trace(id TraceID) uint32 {
	n, ok := g.numbers[id]
	if !ok {
		n = uint32(len(g.traces))
		g.numbers[id] = n
		g.traces = append(g.traces, PrescannedTrace{ID: id, First: math.MaxInt64, Last: math.MinInt64, Longest: math.MinInt64})
	}
	return n
}

// SpanOf adds a span of the trace with the given number.
func (g *PrescannedPiece) SpanOf(number uint32, start, end trace.Time) {
	g.Spans++
	g.traces[number].widen(&PrescannedTrace{First: start, Last: end, Longest: int64(end - start)})
}

// Name adds the name of a span of a trace, and reports whether its attributes are of interest: see
// [Prescan.Plain].
func (g *PrescannedPiece) Name(number uint32, name []byte) bool {
	if g.plain[string(name)] {
		return false
	}
	g.Value(number, len(g.prescan.Keys), name)
	if !g.prescan.Plain(name) {
		return true
	}
	g.plain[string(name)] = true
	return false
}

// Value adds a value of a span of a trace.
func (g *PrescannedPiece) Value(number uint32, key int, value []byte) {
	mark, wanted := g.prescan.Mark(key, value)
	if mark != 0 {
		g.marks[key] = append(g.marks[key], Mark{mark, number})
	}
	g.traces[number].Wanted = g.traces[number].Wanted || wanted
}

// Attribute adds an attribute that is the value of a key.
func (g *PrescannedPiece) Attribute(number uint32, key int, a trace.Arg) {
	switch a.Kind {
	case trace.ArgString:
		g.Value(number, key, a.Bytes())
	case trace.ArgInt:
		g.Value(number, key, strconv.AppendInt(nil, a.Int(), 10))
	case trace.ArgFloat:
		g.Value(number, key, strconv.AppendFloat(nil, a.Float(), 'g', -1, 64))
	}
}

// An Outline describes the spans of files before they are read: which traces there are, their times, and
// which pieces of the files have spans of them. A caller that wants only some traces then reads only those
// pieces: see [Outline.Choose].
type Outline struct {
	Prescan Prescan
	Traces  []PrescannedTrace
	Marks   [][]Mark // by key, in the order of the files
	Spans   int

	numbers map[TraceID]uint32
	files   map[string][]prescannedRange
}

// A prescannedRange is a scanned piece of a file.
type prescannedRange struct {
	ByteRange
	traces []uint32
}

// A ByteRange is a piece of a file that may or may not be wanted.
type ByteRange struct {
	Offset, Line     int64 // in the decompressed file; Line is 0 if it has no lines
	Size             int
	Open             bool // it extends to the end of the file
	Spans, Documents int
	Wanted           bool // it has spans of a chosen trace
}

// NewOutline returns an empty Outline.
func NewOutline(prescan Prescan) *Outline {
	return &Outline{Prescan: prescan, Marks: make([][]Mark, len(prescan.Keys)+1), numbers: map[TraceID]uint32{}, files: map[string][]prescannedRange{}}
}

// Add adds the result of scanning the next piece of a file; at is its location.
func (o *Outline) Add(file string, at ByteRange, g *PrescannedPiece) {
	at.Spans, at.Documents = g.Spans, at.Documents+g.Documents
	piece := prescannedRange{ByteRange: at, traces: make([]uint32, len(g.traces))}
	for i := range g.traces {
		s := &g.traces[i]
		n, ok := o.numbers[s.ID]
		if !ok {
			n = uint32(len(o.Traces))
			o.numbers[s.ID] = n
			o.Traces = append(o.Traces, *s)
		}
		o.Traces[n].widen(s)
		piece.traces[i] = n
	}
	for key, marks := range g.marks {
		for _, m := range marks {
			o.Marks[key] = append(o.Marks[key], Mark{m.Value, piece.traces[m.Trace]})
		}
	}
	o.Spans += g.Spans
	o.files[file] = append(o.files[file], piece)
}

// Choose returns the traces for which keep, by trace number, is true.
func (o *Outline) Choose(keep []bool) *Selected {
	c := &Selected{traces: map[TraceID]struct{}{}, files: make(map[string][]ByteRange, len(o.files))}
	for n, chosen := range keep {
		if chosen {
			c.traces[o.Traces[n].ID] = struct{}{}
		}
	}
	for file, pieces := range o.files {
		list := make([]ByteRange, len(pieces))
		for i := range pieces {
			list[i] = pieces[i].ByteRange
			for _, n := range pieces[i].traces {
				list[i].Wanted = list[i].Wanted || keep[n]
			}
		}
		c.files[file] = list
	}
	return c
}

// Selected are the traces to read from files; nil is all of them.
type Selected struct {
	traces map[TraceID]struct{}
	files  map[string][]ByteRange
}

// Has reports whether a trace is selected.
func (c *Selected) Has(hi, lo uint64) bool {
	if c == nil {
		return true
	}
	_, ok := c.traces[TraceID{hi, lo}]
	return ok
}

// Ranges returns the pieces of a file in order; nil if it was not outlined, or everything is read.
func (c *Selected) Ranges(file string) []ByteRange {
	if c == nil {
		return nil
	}
	return c.files[file]
}

package spantable

import (
	"math"
	"strconv"

	"github.com/sgtrace/sgtrace/trace"
)

// A TraceID is the ID of a trace: its high half, then its low half.
type TraceID [2]uint64

// A Prescan says what an [Outline] notes of spans beside their traces and times.
type Prescan struct {
	// Plain reports whether spans with a name have nothing else that is of interest: most
	// have not. Of these, some trace with each name is noted, not all.
	Plain func(name []byte) bool
	// Keys are the attributes that are of interest. The name of a span counts as one more,
	// whose number is len(Keys).
	Keys []string
	// Mark returns what stands for the value of a key, 0 for nothing, and whether its trace
	// is wanted because of it. It is called from several goroutines.
	Mark func(key int, value []byte) (mark uint64, wanted bool)
}

// A PrescannedTrace is what a look saw of a trace.
type PrescannedTrace struct {
	ID          TraceID
	First, Last trace.Time // the first start and the last end of its spans, as they were stamped
	Longest     int64      // how long its longest span lasts, ns
	Wanted      bool       // because of some value: see [Prescan.Mark]
}

// widen adds what was seen of the same trace elsewhere.
func (s *PrescannedTrace) widen(o *PrescannedTrace) {
	s.First, s.Last = min(s.First, o.First), max(s.Last, o.Last)
	s.Longest, s.Wanted = max(s.Longest, o.Longest), s.Wanted || o.Wanted
}

// A Mark says that a trace has a value.
type Mark struct {
	Value uint64
	Trace uint32 // index into the traces
}

// A PrescannedPiece is what was seen of a piece of a file.
type PrescannedPiece struct {
	Spans, Documents int
	prescan          *Prescan
	traces           []PrescannedTrace
	marks            [][]Mark // by key
	numbers          map[TraceID]uint32
	plain            map[string]bool // names that were noted
}

// NewPiece returns a PrescannedPiece that has seen nothing.
func (l *Prescan) NewPiece() *PrescannedPiece {
	return &PrescannedPiece{prescan: l, marks: make([][]Mark, len(l.Keys)+1), numbers: map[TraceID]uint32{}, plain: map[string]bool{}}
}

// Span notes a span, and returns the number of its trace in g.
func (g *PrescannedPiece) Span(id TraceID, start, end trace.Time) uint32 {
	n := g.Trace(id)
	g.SpanOf(n, start, end)
	return n
}

// Trace returns the number of a trace in g, which has a span then.
func (g *PrescannedPiece) Trace(id TraceID) uint32 {
	n, ok := g.numbers[id]
	if !ok {
		n = uint32(len(g.traces))
		g.numbers[id] = n
		g.traces = append(g.traces, PrescannedTrace{ID: id, First: math.MaxInt64, Last: math.MinInt64, Longest: math.MinInt64})
	}
	return n
}

// SpanOf notes a span of a trace of which the number is known.
func (g *PrescannedPiece) SpanOf(number uint32, start, end trace.Time) {
	g.Spans++
	g.traces[number].widen(&PrescannedTrace{First: start, Last: end, Longest: int64(end - start)})
}

// Name notes the name of a span of a trace, and reports whether its attributes are of
// interest: see [Prescan.Plain].
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

// Value notes a value that a span of a trace has.
func (g *PrescannedPiece) Value(number uint32, key int, value []byte) {
	mark, wanted := g.prescan.Mark(key, value)
	if mark != 0 {
		g.marks[key] = append(g.marks[key], Mark{mark, number})
	}
	g.traces[number].Wanted = g.traces[number].Wanted || wanted
}

// Attribute notes an attribute that is the value of a key.
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

// An Outline is what a look at files tells of their spans before these are read: which
// traces there are, when they were, and which pieces of the files have spans of them. Who
// wants some of the traces reads only those then: see [Outline.Choose].
type Outline struct {
	Prescan Prescan
	Traces  []PrescannedTrace
	Marks   [][]Mark // by key, in the order of the files
	Spans   int

	numbers map[TraceID]uint32
	files   map[string][]prescannedRange
}

// A prescannedRange is a piece of a file.
type prescannedRange struct {
	ByteRange
	traces []uint32
}

// A ByteRange is a piece of a file of which it is known whether it is wanted.
type ByteRange struct {
	Offset, Line     int64 // in the file, decompressed; Line is 0 where there are none
	Size             int
	Open             bool // it goes on to the end of the file
	Spans, Documents int
	Wanted           bool // it has spans of a trace that was chosen
}

// NewOutline returns an Outline of no file.
func NewOutline(prescan Prescan) *Outline {
	return &Outline{Prescan: prescan, Marks: make([][]Mark, len(prescan.Keys)+1), numbers: map[TraceID]uint32{}, files: map[string][]prescannedRange{}}
}

// Add adds what was seen of the next piece of a file, of which at says where it is.
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

// Choose returns the traces for which keep is true, by their numbers.
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

// Selected are the traces that are read of files; nil are all.
type Selected struct {
	traces map[TraceID]struct{}
	files  map[string][]ByteRange
}

// Has reports whether a trace is read.
func (c *Selected) Has(hi, lo uint64) bool {
	if c == nil {
		return true
	}
	_, ok := c.traces[TraceID{hi, lo}]
	return ok
}

// Ranges returns the pieces of a file, one after the other; nil if it was not outlined, or
// all is read.
func (c *Selected) Ranges(file string) []ByteRange {
	if c == nil {
		return nil
	}
	return c.files[file]
}

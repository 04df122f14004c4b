// Package spantable is the table of the spans from which requests are built, whatever wrote them: a [Table] has the
// content of the files, with the events, links, attributes, and origin of each span, and no opinion on the producer.
// Formats of requests fill it, and package assembly gives the spans their meaning.
//
// Formats of logs and records fill [RequestRecords]: when whole requests arrived, waited, had their first token, and
// ended, and how many tokens they had. Once all inputs were read, [RequestRecords.Emit] makes spans from these, as
// SGLang's tracing would have written them. Only then is it known which time zone local stamps are in, which server
// prefills, which rows are about the same request, and which requests already have spans.
package spantable

import (
	"iter"

	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/internal/parallel"
	"github.com/sgtrace/sgtrace/trace"
)

// SpanStatus is the status code of a span (OTLP Status.StatusCode).
type SpanStatus uint8

const (
	StatusUnset SpanStatus = iota
	StatusOK
	StatusError
)

// A Span is a span in wire form. IDs are big-endian numbers; Parent is 0 for a root. A span is identified
// by (TraceHi, TraceLo, ID): processes that start at the same instant may draw equal span IDs.
type Span struct {
	TraceHi, TraceLo uint64
	ID, Parent       uint64
	Start, End       trace.Time // Unix ns on the emitting host's clock
	Name             trace.Sym
	Args             trace.ArgsID // attributes
	Origin           OriginID
	Line             uint32 // in the origin's file; 0 if the file has no lines
	Status           SpanStatus
	Kind             uint8 // OTLP SpanKind: 1 internal, 2 server, 3 client, 4 producer, 5 consumer
}

// Dur returns the length of s in ns; it is negative if the producer's clock stepped back.
func (s Span) Dur() int64 { return int64(s.End - s.Start) }

// An Event is a point in time that a span reports.
type Event struct {
	Time trace.Time
	Name trace.Sym
	Args trace.ArgsID
}

// A Link names another span, of the same trace or not.
type Link struct {
	TraceHi, TraceLo, ID uint64
}

// An Identity has the IDs of a span and its parent.
type Identity struct {
	ID, Parent    uint64
	Trace         uint32 // number of its trace: see [Table.TraceID]
	events, links uint32 // the first of this span's; they end where the next span's begin
	Status        SpanStatus
	Kind          uint8
}

// A Body is the rest of a span, which becomes a row of a request.
type Body struct {
	Start, End trace.Time
	Name       trace.Sym
	Args       trace.ArgsID
	Origin     OriginID
	Place      trace.Place // in the origin's file, with the offsets of Frames
}

// OriginID indexes [Table.Origins]; 0 is unknown.
type OriginID uint32

// An Origin is where a span came from.
type Origin struct {
	File     uint32 // index into Table.Files
	Resource uint32 // index into Table.Resources
	Scope    trace.Sym
}

// A Resource is the process that emitted spans.
type Resource struct {
	Service  trace.Sym // service.name
	Instance trace.Sym // service.instance.id: one per process start
	Args     trace.ArgsID
}

// A File describes one input.
type File struct {
	Name      string
	Encoding  string // "json", "zstd frames", "protobuf frames"
	Bytes     int64  // after decompression
	Documents int    // number of ExportTraceServiceRequest messages
	Spans     int
	Other     int // number of skipped documents of other signals (logs, metrics, profiles)
}

// A Table is everything that was read, in file order until a [Tree] is made from it. Index 0 of Origins and
// Resources is the unknown one.
type Table struct {
	Syms      *trace.Symbols
	Args      *trace.Args
	Diags     *trace.Diags
	Files     []File
	Origins   []Origin
	Resources []Resource
	// KeepSecrets keeps attributes that may hold prompts or credentials.
	KeepSecrets bool
	// Selected are the traces that readers add; nil is all of them. Readers may ignore it.
	Selected *Selected

	ids    memory.Column[Identity]
	bodies memory.Column[Body] // in reading order
	events memory.Column[Event]
	links  memory.Column[link]

	place []uint32 // by body, the number of its span; nil if they are equal
	read  []uint32 // by span, the number of its body; built on first use

	traces Numbering

	frames []int64 // offsets of the frames of all files that have frames, in order

	originIDs   map[Origin]OriginID
	resourceIDs map[string]uint32 // by encoded attributes
}

// New returns an empty Table that reports to diags.
func New(diags *trace.Diags) *Table {
	return &Table{
		Syms: trace.NewSymbols(), Args: trace.NewArgs(), Diags: diags,
		Origins: make([]Origin, 1), Resources: make([]Resource, 1),
		originIDs: map[Origin]OriginID{}, resourceIDs: map[string]uint32{},
	}
}

// Len returns the number of spans.
func (d *Table) Len() int { return d.ids.Len() }

// Span returns span i, 0 <= i < Len().
func (d *Table) Span(i int) Span {
	id, b := d.ids.At(i), d.body(i)
	t := d.traces.IDs[id.Trace]
	return Span{TraceHi: t[0], TraceLo: t[1], ID: id.ID, Parent: id.Parent, Start: b.Start, End: b.End, Name: b.Name, Args: b.Args,
		Origin: b.Origin, Line: b.Place.Line(), Status: id.Status, Kind: id.Kind}
}

// Numbers yields the numbers of all spans, in order. Use it to walk over large tables: see [memory.Each].
func (d *Table) Numbers() iter.Seq[int] { return memory.Each(d.Len(), spanSize) }

// Bounds returns the first and the last instant of all spans; 0 without any.
func (d *Table) Bounds() (from, to trace.Time) {
	for i := range d.Numbers() {
		b := d.bodies.At(i)
		from, to = order.Earlier(from, b.Start), max(to, b.End)
	}
	return from, to
}

// spanSize is roughly how many bytes a walk over spans touches per span.
const spanSize = 128

// Identity returns the identity of span i.
func (d *Table) Identity(i int) *Identity { return d.ids.At(i) }

// TraceID returns the ID of the trace with a number.
func (d *Table) TraceID(number uint32) TraceID { return d.traces.IDs[number] }

// TraceOf returns the ID of the trace of span i.
func (d *Table) TraceOf(i int) TraceID { return d.traces.IDs[d.ids.At(i).Trace] }

// Traces returns the number of traces.
func (d *Table) Traces() int { return len(d.traces.IDs) }

// Each calls f for the bodies of all spans, on all cores. If giveUp is set, it releases the bodies piece by
// piece, so that whatever is made from them takes their place in memory.
func (d *Table) Each(giveUp bool, f func(i int, s *Body)) {
	at := func(k int, s *Body) { f(int(d.place[k]), s) }
	if d.place == nil {
		at = f
	}
	each(&d.bodies, giveUp, at)
	if giveUp {
		d.freeBodies()
	}
}

func (d *Table) freeBodies() {
	d.bodies.Free()
	memory.Free(d.place)
	memory.Free(d.read)
	d.place, d.read = nil, nil
}

// each calls f for all rows of a column, on all cores. If giveUp is set, it releases the column piece by piece.
func each[T any](c *memory.Column[T], giveUp bool, f func(i int, row *T)) {
	parallel.Each(c.Pieces(), func(k int) {
		from, to := c.Piece(k)
		for i := from; i < to; i++ {
			if i%touched == 0 {
				memory.Touch(touched * spanSize)
			}
			f(i, c.At(i))
		}
		if giveUp {
			c.GiveUp(k)
		}
	})
}

// touched is the number of spans between calls of [memory.Touch].
const touched = 512

// Events yields the events of span i.
func (d *Table) Events(i int) iter.Seq[*Event] {
	return func(yield func(*Event) bool) {
		events, _ := d.extent(i)
		for e := events.from; e < events.to; e++ {
			if !yield(d.events.At(e)) {
				return
			}
		}
	}
}

// numbers is a range of row numbers, from inclusive to exclusive.
type numbers struct{ from, to int }

func (n numbers) count() uint32 { return uint32(n.to - n.from) }

// extent returns the numbers of the events and links of span i.
func (d *Table) extent(i int) (events, links numbers) {
	id := d.ids.At(i)
	events, links = numbers{int(id.events), d.events.Len()}, numbers{int(id.links), d.links.Len()}
	if i+1 < d.ids.Len() {
		next := d.ids.At(i + 1)
		events.to, links.to = int(next.events), int(next.links)
	}
	return events, links
}

// FirstEvent returns the number of the first event of span i among those of all spans. Its events end where
// those of the next span begin.
func (d *Table) FirstEvent(i int) uint32 { return d.ids.At(i).events }

// FirstLink is FirstEvent for links.
func (d *Table) FirstLink(i int) uint32 { return d.ids.At(i).links }

// Event returns an event by its number.
func (d *Table) Event(n int) *Event { return d.events.At(n) }

// Links yields the links of span i.
func (d *Table) Links(i int) iter.Seq[Link] {
	return func(yield func(Link) bool) {
		_, links := d.extent(i)
		for n := links.from; n < links.to; n++ {
			if !yield(d.Link(n)) {
				return
			}
		}
	}
}

// Link returns a link by its number: see [Table.FirstLink].
func (d *Table) Link(n int) Link {
	l := d.links.At(n)
	t := d.traces.IDs[l.trace()]
	return Link{t[0], t[1], l.id()}
}

// A link is a Link in 12 bytes: the ID, low half first, and the number of the trace.
type link [3]uint32

func (l link) id() uint64    { return uint64(l[1])<<32 | uint64(l[0]) }
func (l link) trace() uint32 { return l[2] }

// Frame says that the spans added next are in a frame (or whatever a file without lines has) at an offset.
func (d *Table) Frame(offset int64) { d.frames = append(d.frames, offset) }

// Origin returns the index of an origin, adding it if it is new.
func (d *Table) Origin(o Origin) OriginID {
	id, ok := d.originIDs[o]
	if !ok {
		id = OriginID(len(d.Origins))
		d.Origins = append(d.Origins, o)
		d.originIDs[o] = id
	}
	return id
}

// ResourceOf returns the index of the resource with these attributes, adding it if it is new.
func (d *Table) ResourceOf(service, instance trace.Sym, args trace.ArgList) uint32 {
	id, ok := d.resourceIDs[string(args)]
	if !ok {
		id = uint32(len(d.Resources))
		d.Resources = append(d.Resources, Resource{Service: service, Instance: instance, Args: d.Args.Put(args)})
		d.resourceIDs[string(args)] = id
	}
	return id
}

// LinkCount returns the number of links of all spans.
func (d *Table) LinkCount() int { return d.links.Len() }

// EventCount returns the number of events of all spans.
func (d *Table) EventCount() int { return d.events.Len() }

// Pos returns the position of span i: its line, or its frame in a file without lines.
func (d *Table) Pos(i int) trace.Pos {
	b := d.body(i)
	return b.Place.In(d.Files[d.Origins[b.Origin].File].Name, d.frames)
}

// Frames returns the offsets of frames, for files that have frames instead of lines: a [Body]'s Place
// refers to this list. It must not be modified.
func (d *Table) Frames() []int64 { return d.frames }

// Release releases all spans, with their events and links. Symbols, arguments, and the descriptions of
// files stay.
func (d *Table) Release() {
	d.ids.Free()
	d.events.Free()
	d.links.Free()
	d.freeBodies()
	d.frames = nil
	d.originIDs, d.resourceIDs, d.traces = nil, nil, Numbering{}
}

// Resource returns the resource of s.
func (d *Table) Resource(s Span) *Resource { return &d.Resources[d.Origins[s.Origin].Resource] }

// ReportOther reports, for each file, the messages that hold other signals.
func (d *Table) ReportOther() {
	for _, f := range d.Files {
		if f.Other > 0 {
			d.Diags.Add(trace.OTLPOtherSignals.Of(f.Name).Times(f.Other))
		}
	}
}

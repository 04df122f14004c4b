package spantable

import (
	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/trace"
)

// AddBelow adds the k-th span that the attributes of span i describe, with the trace, origin, and place of
// span i.
func (d *Table) AddBelow(i, k int, name trace.Sym, start, end trace.Time) {
	s := d.Span(i)
	id := order.Mix(s.ID + uint64(k))
	if s.Line == 0 {
		d.Frame(d.Pos(i).Offset)
	}
	d.Add(&Span{TraceHi: s.TraceHi, TraceLo: s.TraceLo, ID: id, Parent: s.ID, Name: name, Start: start, End: end,
		Origin: s.Origin, Line: s.Line, Kind: 1}, nil, nil)
}

// Add adds a span with its events and links.
func (d *Table) Add(s *Span, events []Event, links []Link) {
	*d.ids.Next() = s.identity(d.Number(s.trace()), d.events.Len(), d.links.Len())
	d.placeNew(1)
	*d.bodies.Next() = s.body(d.latestFrame())
	for i := range events {
		d.events.Push(events[i])
	}
	for i := range links {
		*d.links.Next() = links[i].numbered(d.Number(links[i].trace()))
	}
}

// placeNew assigns places to the next n spans, if spans are stored apart from their bodies.
func (d *Table) placeNew(n int) {
	if d.place == nil {
		return
	}
	for range n {
		d.place = memory.Append(d.place, uint32(len(d.place)))
	}
	d.read = nil
}

// latestFrame returns the place of spans without a line that are added now.
func (d *Table) latestFrame() trace.Place { return trace.AtOffset(len(d.frames) - 1) }

func (s *Span) trace() TraceID { return TraceID{s.TraceHi, s.TraceLo} }

// identity returns the identity row of s, given the number of its trace, and its first event and link.
func (s *Span) identity(trace uint32, event, link int) Identity {
	return Identity{ID: s.ID, Parent: s.Parent, Trace: trace, events: uint32(event), links: uint32(link), Status: s.Status, Kind: s.Kind}
}

// body returns the body row of s; its place is frame if it has no line.
func (s *Span) body(frame trace.Place) Body {
	place := frame
	if s.Line != 0 {
		place = trace.InLine(s.Line)
	}
	return Body{s.Start, s.End, s.Name, s.Args, s.Origin, place}
}

func (l *Link) trace() TraceID { return TraceID{l.TraceHi, l.TraceLo} }

// numbered returns the row of l, given the number of its trace.
func (l *Link) numbered(trace uint32) link { return link{uint32(l.ID), uint32(l.ID >> 32), trace} }

// A Block is room for consecutive spans in a table, with their events and links. Blocks are reserved one
// after another, but each is filled by its own goroutine, independently of the others.
type Block struct {
	ids         rows[Identity]
	bodies      rows[Body]
	events      rows[Event]
	links       rows[link]
	frame       trace.Place
	event, link int // numbers of the next ones
}

// Reserve returns a block of the table for the given total numbers of spans, events, and links.
func (d *Table) Reserve(spans, events, links int) *Block {
	b := &Block{frame: d.latestFrame(), event: d.events.Len(), link: d.links.Len()}
	b.ids, b.bodies = d.ids.Extend(spans), d.bodies.Extend(spans)
	b.events, b.links = d.events.Extend(events), d.links.Extend(links)
	d.placeNew(spans)
	return b
}

// Add adds a span, with the numbers of its trace and of its links' traces: see [Table.Number].
func (b *Block) Add(s *Span, trace uint32, events []Event, links []Link, traces []uint32) {
	*b.ids.next() = s.identity(trace, b.event, b.link)
	*b.bodies.next() = s.body(b.frame)
	for i := range events {
		*b.events.next() = events[i]
	}
	for i := range links {
		*b.links.next() = links[i].numbered(traces[i])
	}
	b.event, b.link = b.event+len(events), b.link+len(links)
}

// rows are the reserved rows of a column, as the slices that hold them.
type rows[T any] [][]T

// next returns the next row.
func (r *rows[T]) next() *T {
	for len((*r)[0]) == 0 {
		*r = (*r)[1:]
	}
	row := &(*r)[0][0]
	(*r)[0] = (*r)[0][1:]
	return row
}

// Number returns the number of a trace, assigning the next one if it is new.
func (d *Table) Number(id TraceID) uint32 { return d.traces.Number(id) }

// A Numbering assigns numbers to traces, in order of first use. The zero value is empty.
type Numbering struct {
	IDs     []TraceID // by number
	numbers map[TraceID]uint32
	latest  uint32 // the last number returned
}

// Number returns the number of a trace, assigning the next one if it is new.
func (t *Numbering) Number(id TraceID) uint32 {
	if int(t.latest) < len(t.IDs) && t.IDs[t.latest] == id {
		return t.latest
	}
	n, ok := t.numbers[id]
	if !ok {
		if t.numbers == nil {
			t.numbers = map[TraceID]uint32{}
		}
		n = uint32(len(t.IDs))
		t.IDs = append(t.IDs, id)
		t.numbers[id] = n
	}
	t.latest = n
	return n
}

// Reset forgets all traces but keeps the memory.
func (t *Numbering) Reset() {
	clear(t.numbers)
	t.IDs, t.latest = t.IDs[:0], 0
}

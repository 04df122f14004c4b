package dataset

import (
	"errors"
	"strconv"

	"github.com/sgtrace/sgtrace/request/spantable"
	"github.com/sgtrace/sgtrace/trace"
)

// readSpans adds the spans of a dump to a table, as the dump's reader did.
func (c *Capture) readSpans(name string, d *spantable.Table) error {
	file, err := c.readFile(name)
	if err != nil {
		return err
	}
	r := &spanReader{capture: c, table: d, file: uint32(len(d.Files)), known: map[string]trace.ArgsID{},
		parser: parser{syms: trace.NewSymbolCache(d.Syms)}}
	d.Files = append(d.Files, file)
	if err := r.readResources(); err != nil {
		return err
	}
	return r.readSpans()
}

// readFile returns the description of the dump as a whole.
func (c *Capture) readFile(name string) (spantable.File, error) {
	in := c.openRows("inputs-0", nil)
	encoding, content, documents, spans, other := in.column("encoding"), in.column("content"), in.column("documents"), in.column("spans"), in.column("other")
	f := spantable.File{Name: name}
	for in.next() {
		f = spantable.File{Name: name, Encoding: string(encoding.text()), Bytes: content.int(), Documents: int(documents.int()),
			Spans: int(spans.int()), Other: int(other.int())}
	}
	return f, in.close()
}

// A spanReader reads the spans of a capture.
type spanReader struct {
	capture   *Capture
	table     *spantable.Table
	file      uint32
	resources []uint32 // index in the table, by number in the capture
	parser    parser
	list      trace.ArgList
	known     map[string]trace.ArgsID // a limited number of attributes seen before
	err       error
}

func (r *spanReader) readResources() error {
	r.resources = []uint32{0}
	in := r.capture.openRows("resources-0", r.table.Syms)
	service, instance, attributes := in.column("service"), in.column("instance"), in.column("attributes")
	for in.next() && in.err == nil {
		var list trace.ArgList
		list, in.err = r.parser.attributes(nil, attributes.text())
		r.resources = append(r.resources, r.table.ResourceOf(service.sym(), instance.sym(), list))
	}
	return in.close()
}

// readSpans adds the spans with their events and links, which are sorted by span.
func (r *spanReader) readSpans() error {
	in := r.capture.openRows("spans-0", r.table.Syms)
	start, dur, traceID, id, parent := in.column("start"), in.column("dur"), in.column("trace_id"), in.column("span_id"), in.column("parent_id")
	name, resource, scope := in.column("name"), in.column("resource"), in.column("scope")
	status, kind, line, offset, attributes := in.column("status"), in.column("kind"), in.column("line"), in.column("byte_offset"), in.column("attributes")
	events, links := r.events(), r.links()
	frame, framed := int64(0), false
	for number := int64(0); in.next(); number++ {
		hi, lo := r.traceID(traceID.text())
		if !r.table.Selected.Has(hi, lo) {
			events.skip(number)
			links.skip(number)
			continue
		}
		s := spantable.Span{TraceHi: hi, TraceLo: lo, ID: uint64(id.int()), Parent: uint64(parent.int()), Start: trace.Time(start.int()), End: trace.Time(start.int() + dur.int()),
			Name: name.sym(), Line: uint32(line.int()), Status: spantable.SpanStatus(status.int()), Kind: uint8(kind.int())}
		s.Args = r.attributes(attributes.text())
		s.Origin = r.table.Origin(spantable.Origin{File: r.file, Resource: r.resource(resource.int()), Scope: scope.sym()})
		if at := offset.int(); s.Line == 0 && (!framed || at != frame) {
			r.table.Frame(at)
			frame, framed = at, true
		}
		r.table.Add(&s, events.rowsOf(number), links.rowsOf(number))
		if in.err = r.err; in.err != nil {
			break
		}
	}
	return errors.Join(in.close(), events.in.close(), links.in.close())
}

// resource returns the index of a resource in the table.
func (r *spanReader) resource(number int64) uint32 {
	if number < 0 || number >= int64(len(r.resources)) {
		r.err = errDamaged
		return 0
	}
	return r.resources[number]
}

// attributes adds attributes to the table. Many spans have the same ones.
func (r *spanReader) attributes(text []byte) trace.ArgsID {
	if len(text) == 0 {
		return 0
	}
	if id, ok := r.known[string(text)]; ok {
		return id
	}
	if r.list, r.err = r.parser.attributes(r.list[:0], text); r.err != nil {
		return 0
	}
	id := r.table.Args.Put(r.list)
	const most = 1 << 12
	if len(r.known) < most {
		r.known[string(text)] = id
	}
	return id
}

func (r *spanReader) traceID(text []byte) (hi, lo uint64) {
	if len(text) != 32 {
		r.err = errDamaged
		return 0, 0
	}
	hi, err := strconv.ParseUint(string(text[:16]), 16, 64)
	lo, err2 := strconv.ParseUint(string(text[16:]), 16, 64)
	if err := errors.Join(err, err2); err != nil {
		r.err = err
	}
	return hi, lo
}

// A follower reads rows that belong to spans, in order of the spans.
type follower[T any] struct {
	in   *rows
	span *cell
	row  func() T
	more bool // the current row belongs to a span not asked for yet
	list []T
}

// rowsOf returns the rows of a span, valid until the next call. Spans must be asked for in order.
func (f *follower[T]) rowsOf(span int64) []T {
	f.list = f.list[:0]
	for f.more && f.span.int() == span {
		f.list = append(f.list, f.row())
		f.more = f.in.next()
	}
	return f.list
}

// skip skips the rows of a span.
func (f *follower[T]) skip(span int64) {
	for f.more && f.span.int() == span {
		f.more = f.in.next()
	}
}

func (r *spanReader) events() *follower[spantable.Event] {
	in := r.capture.openRows("events-0", r.table.Syms)
	time, name, attributes := in.column("time"), in.column("name"), in.column("attributes")
	f := &follower[spantable.Event]{in: in, span: in.column("span"), row: func() spantable.Event {
		return spantable.Event{Time: trace.Time(time.int()), Name: name.sym(), Args: r.attributes(attributes.text())}
	}}
	f.more = in.next()
	return f
}

func (r *spanReader) links() *follower[spantable.Link] {
	in := r.capture.openRows("links-0", r.table.Syms)
	id, span := in.column("trace_id"), in.column("span_id")
	f := &follower[spantable.Link]{in: in, span: in.column("span"), row: func() spantable.Link {
		l := spantable.Link{ID: uint64(span.int())}
		l.TraceHi, l.TraceLo = r.traceID(id.text())
		return l
	}}
	f.more = in.next()
	return f
}

// Outline scans the spans of a dump, like [format.Format.Outline]. It reads attributes only if a span's
// name shows that they may be of interest.
func (c *Capture) Outline(name string, o *spantable.Outline) error {
	syms := trace.NewSymbols()
	r := &spanReader{capture: c, parser: parser{syms: trace.NewSymbolCache(syms)}}
	keys := map[trace.Sym]int{}
	for k, key := range o.Prescan.Keys {
		keys[syms.Intern(key)] = k
	}
	in := c.openRows("spans-0", syms)
	start, dur, traceID, called, attributes := in.column("start"), in.column("dur"), in.column("trace_id"), in.column("name"), in.column("attributes")
	g := o.Prescan.NewPiece()
	for in.next() && r.err == nil {
		var id spantable.TraceID
		id[0], id[1] = r.traceID(traceID.text())
		number := g.Span(id, trace.Time(start.int()), trace.Time(start.int()+dur.int()))
		if !g.Name(number, called.text()) {
			continue
		}
		if r.list, r.err = r.parser.attributes(r.list[:0], attributes.text()); r.err != nil {
			break
		}
		for a := range r.list.All {
			if key, ok := keys[a.Key]; ok {
				g.Attribute(number, key, a)
			}
		}
	}
	o.Add(name, spantable.ByteRange{}, g)
	if r.err != nil {
		in.err = r.err
	}
	return in.close()
}

package otlpjson

import (
	"cmp"
	"encoding/binary"

	"github.com/sgtrace/sgtrace/trace"
)

// A batch is what a parser made of one piece of input. Its records refer to
// each other: spans to origins (1-based), events and links by position, Args
// holds 1 + the position in args of a length-prefixed list.
type batch struct {
	spans     []Span
	events    []Event
	links     []Link
	args      []byte
	origins   []batchOrigin
	resources []batchResource
	diags     []batchDiag
	documents int
	other     int
}

// A batchDiag is a diagnostic on the file that the batch is of.
type batchDiag struct {
	message *trace.Message
	at      place
	msg     string
	count   int
}

// A place is where something stands in a file; line is 0 where there are none.
type place struct{ line, offset int64 }

func (p place) compare(q place) int {
	return cmp.Or(cmp.Compare(p.line, q.line), cmp.Compare(p.offset, q.offset))
}

type batchOrigin struct {
	resource int // 1-based; 0 is unknown
	scope    trace.Sym
}

type batchResource struct {
	service, instance trace.Sym
	args              trace.ArgList
}

// full reports whether the batch is large enough to be handed over in the middle of a
// piece. Damage makes batches that are large without a span.
func (b *batch) full() bool {
	return max(len(b.spans), len(b.origins), len(b.resources)) >= flushSpans
}

func (b *batch) reset() {
	*b = batch{
		spans: b.spans[:0], events: b.events[:0], links: b.links[:0], args: b.args[:0],
		origins: b.origins[:0], resources: b.resources[:0], diags: b.diags[:0],
	}
}

// putArgs stores an encoded list and returns its batch-local id.
func (b *batch) putArgs(list trace.ArgList) trace.ArgsID {
	if len(list) == 0 {
		return 0
	}
	id := trace.ArgsID(len(b.args) + 1)
	b.args = binary.AppendUvarint(b.args, uint64(len(list)))
	b.args = append(b.args, list...)
	return id
}

// A mark remembers how much of a batch is filled, to undo a record that was
// only read in part.
type mark struct{ events, links, args int }

func (b *batch) mark() mark { return mark{len(b.events), len(b.links), len(b.args)} }

func (b *batch) undo(m mark) {
	b.events, b.links, b.args = b.events[:m.events], b.links[:m.links], b.args[:m.args]
}

// collect appends b to the dump as part of the given file.
func (d *Dump) collect(b *batch, file uint32) {
	origins := make([]OriginID, len(b.origins)+1)
	origins[0] = d.origin(Origin{File: file})
	resources := make([]uint32, len(b.resources)+1)
	for i := range b.resources {
		resources[i+1] = d.resource(&b.resources[i])
	}
	for i, o := range b.origins {
		origins[i+1] = d.origin(Origin{File: file, Resource: resources[o.resource], Scope: o.scope})
	}
	events, links := uint32(d.events.len()), uint32(d.links.len())
	for i := range b.events {
		e := b.events[i]
		e.Args = d.args(b, e.Args)
		d.events.push(e)
	}
	for i := range b.links {
		d.links.push(b.links[i])
	}
	for i := range b.spans {
		s := b.spans[i]
		s.Origin = origins[s.Origin]
		s.Args = d.args(b, s.Args)
		s.events += events
		s.links += links
		d.spans.push(s)
	}
	f := &d.Files[file]
	f.Documents += b.documents
	f.Other += b.other
	f.Spans += len(b.spans)
	for _, diag := range b.diags {
		d.Diags.Add(trace.Diag{Message: diag.message, Msg: diag.msg, Count: diag.count,
			Pos: trace.Pos{File: f.Name, Line: diag.at.line, Offset: diag.at.offset}})
	}
}

// args copies a list of b into the dump's arena.
func (d *Dump) args(b *batch, local trace.ArgsID) trace.ArgsID {
	if local == 0 {
		return 0
	}
	n, h := binary.Uvarint(b.args[local-1:])
	at := int(local) - 1 + h
	return d.Args.Put(b.args[at : at+int(n)])
}

func (d *Dump) origin(o Origin) OriginID {
	id, ok := d.originIDs[o]
	if !ok {
		id = OriginID(len(d.Origins))
		d.Origins = append(d.Origins, o)
		d.originIDs[o] = id
	}
	return id
}

func (d *Dump) resource(r *batchResource) uint32 {
	id, ok := d.resourceIDs[string(r.args)]
	if !ok {
		id = uint32(len(d.Resources))
		d.Resources = append(d.Resources, Resource{Service: r.service, Instance: r.instance, Args: d.Args.Put(r.args)})
		d.resourceIDs[string(r.args)] = id
	}
	return id
}

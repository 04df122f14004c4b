package otlpjson

import (
	"cmp"
	"encoding/binary"

	"github.com/sgtrace/sgtrace/request/spantable"
	"github.com/sgtrace/sgtrace/trace"
)

// A batch is what a parser made of one piece of input. Its records refer to
// each other: spans to origins (1-based), events and links by position, Args
// holds 1 + the position in args of a length-prefixed list.
type batch struct {
	spans     []batchSpan
	events    []spantable.Event
	links     []spantable.Link
	args      []byte
	origins   []batchOrigin
	resources []batchResource
	diags     []batchDiag
	documents int
	other     int
	left      int // spans that are not chosen
}

// A batchSpan is a span, and where its events and links begin in the batch: they end where
// the next span's begin.
type batchSpan struct {
	Span          spantable.Span
	events, links uint32
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

// collect appends b to a table as part of the given file.
func (b *batch) collect(d *spantable.Table, file uint32) {
	origins := make([]spantable.OriginID, len(b.origins)+1)
	origins[0] = d.Origin(spantable.Origin{File: file})
	resources := make([]uint32, len(b.resources)+1)
	for i := range b.resources {
		r := &b.resources[i]
		resources[i+1] = d.ResourceOf(r.service, r.instance, r.args)
	}
	for i, o := range b.origins {
		origins[i+1] = d.Origin(spantable.Origin{File: file, Resource: resources[o.resource], Scope: o.scope})
	}
	for i := range b.events {
		b.events[i].Args = b.moved(b.events[i].Args, d)
	}
	for i := range b.spans {
		s := &b.spans[i]
		events, links := uint32(len(b.events)), uint32(len(b.links))
		if i+1 < len(b.spans) {
			events, links = b.spans[i+1].events, b.spans[i+1].links
		}
		s.Span.Origin = origins[s.Span.Origin]
		s.Span.Args = b.moved(s.Span.Args, d)
		d.Add(&s.Span, b.events[s.events:events], b.links[s.links:links])
	}
	f := &d.Files[file]
	f.Documents += b.documents
	f.Other += b.other
	f.Spans += len(b.spans) + b.left
	for _, diag := range b.diags {
		d.Diags.Add(trace.Diag{Message: diag.message, Msg: diag.msg, Count: diag.count,
			Pos: trace.Pos{File: f.Name, Line: diag.at.line, Offset: diag.at.offset}})
	}
}

// moved copies a list of b into the table's arena.
func (b *batch) moved(local trace.ArgsID, d *spantable.Table) trace.ArgsID {
	if local == 0 {
		return 0
	}
	return d.Args.Put(b.list(local))
}

// list returns a list of b.
func (b *batch) list(local trace.ArgsID) trace.ArgList {
	if local == 0 {
		return nil
	}
	n, h := binary.Uvarint(b.args[local-1:])
	at := int(local) - 1 + h
	return b.args[at : at+int(n)]
}

package otlpjson

import (
	"cmp"
	"encoding/binary"

	"github.com/sgtrace/sgtrace/otlpjson/beside"
	"github.com/sgtrace/sgtrace/request/spantable"
	"github.com/sgtrace/sgtrace/trace"
)

// A batch is what a parser made of one piece of input. Its records refer to each other: spans to origins
// (1-based), events and links by position. Args holds 1 + the position in args of a length-prefixed list.
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
	left      int // spans that are not selected
	beside    [beside.Signals][]byte

	traces spantable.Numbering // of spans and links
	ofSpan []uint32            // number in traces
	ofLink []uint32            // number in traces

	// These refer to the table that b is collected in.
	block     *spantable.Block
	originIDs []spantable.OriginID // by origin of the batch
	traceIDs  []uint32             // numbers in the table, by numbers in traces
}

// A batchSpan is a span, and where its events and links begin in the batch: they end where the next span's
// begin.
type batchSpan struct {
	Span          spantable.Span
	events, links uint32
}

// A batchDiag is a diagnostic on the batch's file.
type batchDiag struct {
	message *trace.Message
	at      place
	msg     string
	count   int
}

// A place is a position in a file; line is 0 in files without lines.
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

// full reports whether the batch is large enough to be handed over in the middle of a piece. Damage can make a
// batch large without any span.
func (b *batch) full() bool {
	return max(len(b.spans), len(b.origins), len(b.resources)) >= flushSpans || len(b.beside[beside.Logs])+len(b.beside[beside.Metrics]) >= usual.piece
}

func (b *batch) reset() {
	b.traces.Reset()
	for i := range b.beside {
		b.beside[i] = b.beside[i][:0]
	}
	*b = batch{
		spans: b.spans[:0], events: b.events[:0], links: b.links[:0], args: b.args[:0],
		origins: b.origins[:0], resources: b.resources[:0], diags: b.diags[:0],
		traces: b.traces, ofSpan: b.ofSpan[:0], ofLink: b.ofLink[:0], beside: b.beside,
		originIDs: b.originIDs[:0], traceIDs: b.traceIDs[:0],
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

// A mark remembers how much of a batch is filled, to undo a record that was only partly read.
type mark struct{ events, links, args int }

func (b *batch) mark() mark { return mark{len(b.events), len(b.links), len(b.args)} }

func (b *batch) undo(m mark) {
	b.events, b.links, b.args = b.events[:m.events], b.links[:m.links], b.args[:m.args]
}

// numberTraces numbers the distinct traces of the batch.
func (b *batch) numberTraces() {
	link := 0
	for i := range b.spans {
		s := &b.spans[i].Span
		b.ofSpan = append(b.ofSpan, b.traces.Number(spantable.TraceID{s.TraceHi, s.TraceLo}))
		for end := b.linksEnd(i); link < end; link++ {
			l := &b.links[link]
			b.ofLink = append(b.ofLink, b.traces.Number(spantable.TraceID{l.TraceHi, l.TraceLo}))
		}
	}
}

// eventsEnd and linksEnd return where the events and links of span i end.
func (b *batch) eventsEnd(i int) int {
	if i+1 < len(b.spans) {
		return int(b.spans[i+1].events)
	}
	return len(b.events)
}

func (b *batch) linksEnd(i int) int {
	if i+1 < len(b.spans) {
		return int(b.spans[i+1].links)
	}
	return len(b.links)
}

// collect adds b to the given file in a table, except its rows, for which it only reserves room: see fill. The
// batches of a file are collected in order.
func (b *batch) collect(d *spantable.Table, file uint32) {
	b.originIDs = append(b.originIDs, d.Origin(spantable.Origin{File: file}))
	resources := make([]uint32, len(b.resources)+1)
	for i := range b.resources {
		r := &b.resources[i]
		resources[i+1] = d.ResourceOf(r.service, r.instance, r.args)
	}
	for _, o := range b.origins {
		b.originIDs = append(b.originIDs, d.Origin(spantable.Origin{File: file, Resource: resources[o.resource], Scope: o.scope}))
	}
	for _, t := range b.traces.IDs {
		b.traceIDs = append(b.traceIDs, d.Number(t))
	}
	b.block = d.Reserve(len(b.spans), len(b.events), len(b.links))
	f := &d.Files[file]
	f.Documents += b.documents
	f.Other += b.other
	f.Spans += len(b.spans) + b.left
	for _, diag := range b.diags {
		d.Diags.Add(trace.Diag{Message: diag.message, Msg: diag.msg, Count: diag.count,
			Pos: trace.Pos{File: f.Name, Line: diag.at.line, Offset: diag.at.offset}})
	}
}

// fill sets the rows of b, whose arguments go into an arena. Collected batches may be filled concurrently.
func (b *batch) fill(args *trace.Args) {
	to := args.Appender()
	defer to.Release()
	for i := range b.events {
		b.events[i].Args = to.Put(b.list(b.events[i].Args))
	}
	for l := range b.ofLink {
		b.ofLink[l] = b.traceIDs[b.ofLink[l]]
	}
	for i := range b.spans {
		s := &b.spans[i]
		s.Span.Origin = b.originIDs[s.Span.Origin]
		s.Span.Args = to.Put(b.list(s.Span.Args))
		links, end := int(s.links), b.linksEnd(i)
		b.block.Add(&s.Span, b.traceIDs[b.ofSpan[i]], b.events[s.events:b.eventsEnd(i)], b.links[links:end], b.ofLink[links:end])
	}
}

// list returns the list with a batch-local id.
func (b *batch) list(local trace.ArgsID) trace.ArgList {
	if local == 0 {
		return nil
	}
	n, h := binary.Uvarint(b.args[local-1:])
	at := int(local) - 1 + h
	return b.args[at : at+int(n)]
}

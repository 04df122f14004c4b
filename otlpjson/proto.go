package otlpjson

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"math"
	"strconv"
	"unicode"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/sgtrace/sgtrace/otlpjson/beside"
	"github.com/sgtrace/sgtrace/request/spantable"
	"github.com/sgtrace/sgtrace/trace"
)

// wireType is the encoding of a field of a message; 0 is a field that the message does not have.
type wireType uint8

const (
	varint wireType = iota + 1
	fixed32
	fixed64
	bytesField
)

var wireTypes = [...]wireType{
	protowire.VarintType: varint, protowire.Fixed32Type: fixed32,
	protowire.Fixed64Type: fixed64, protowire.BytesType: bytesField,
}

// The fields of OTLP's messages, from opentelemetry/proto/{collector/trace, trace,common,resource}/v1,
// including those that are not read.
var (
	requestFields = []wireType{1: bytesField}
	// 2 is scope_spans, and also 1000, its number in OTLP before 0.15.
	resourceSpansFields = []wireType{1: bytesField, 2: bytesField, 3: bytesField}
	resourceFields      = []wireType{1: bytesField, 2: varint, 3: bytesField}
	scopeSpansFields    = []wireType{1: bytesField, 2: bytesField, 3: bytesField}
	scopeFields         = []wireType{1: bytesField, 2: bytesField, 3: bytesField, 4: varint}
	spanFields          = []wireType{1: bytesField, 2: bytesField, 3: bytesField, 4: bytesField, 5: bytesField,
		6: varint, 7: fixed64, 8: fixed64, 9: bytesField, 10: varint, 11: bytesField, 12: varint,
		13: bytesField, 14: varint, 15: bytesField, 16: fixed32}
	statusFields   = []wireType{1: varint, 2: bytesField, 3: varint}
	eventFields    = []wireType{1: fixed64, 2: bytesField, 3: bytesField, 4: varint}
	linkFields     = []wireType{1: bytesField, 2: bytesField, 3: bytesField, 4: bytesField, 5: varint, 6: fixed32}
	keyValueFields = []wireType{1: bytesField, 2: bytesField, 3: varint}
	anyValueFields = []wireType{1: bytesField, 2: varint, 3: varint, 4: fixed64, 5: bytesField, 6: bytesField, 7: bytesField, 8: varint}
	listFields     = []wireType{1: bytesField}
)

const (
	scopeSpansBefore015 = 1000
	schemaURL           = 3 // in both messages that have one
	unknownField        = 0 // replaces the numbers that a message does not have
)

// protoField is a field of a protobuf message: num for varints and fixed numbers, data for the rest.
type protoField struct {
	number protowire.Number
	num    uint64
	data   []byte
	// clipped: the message ends before the field does, and data with it.
	clipped bool
}

// each calls f for every field of the message b and reports whether the message is whole. In a damaged or
// cut-off message it reads the fields before the damage, and a field that claims more bytes than there are gets
// the rest.
func (r *recorder) each(b []byte, fields []wireType, f func(protoField)) (whole bool) {
	for len(b) > 0 {
		number, typ, n := protowire.ConsumeTag(b)
		if n < 0 || int(typ) >= len(wireTypes) || wireTypes[typ] == 0 {
			return false
		}
		b = b[n:]
		field := protoField{number: number}
		switch typ {
		case protowire.VarintType:
			field.num, n = protowire.ConsumeVarint(b)
		case protowire.Fixed64Type:
			field.num, n = protowire.ConsumeFixed64(b)
		case protowire.Fixed32Type:
			_, n = protowire.ConsumeFixed32(b)
		case protowire.BytesType:
			var size uint64
			if size, n = protowire.ConsumeVarint(b); n >= 0 {
				field.clipped = size > uint64(len(b)-n)
				size = min(size, uint64(len(b)-n))
				field.data = b[n : n+int(size)]
				n += int(size)
			}
		}
		if n < 0 {
			return false
		}
		if number == scopeSpansBefore015 {
			number, field.number = 2, 2
		}
		switch {
		case int(number) >= len(fields) || fields[number] == 0:
			r.noteUnknown(strconv.Itoa(int(number)))
			field.number = unknownField
			f(field)
		case fields[number] != wireTypes[typ]:
			return false
		default:
			f(field)
		}
		if field.clipped {
			return false
		}
		b = b[n:]
	}
	return true
}

// part reads a message that is a record or a part of one, which is lost if the message is damaged. If it is cut
// off, so is the message around it, which reports that.
func (r *recorder) part(in protoField, fields []wireType, f func(protoField)) {
	if !r.each(in.data, fields, f) && !in.clipped {
		r.fail(errProtobuf)
	}
}

// parseProto reads an ExportTraceServiceRequest from the frame at offset; cut means that the frame is cut off.
func (r *recorder) parseProto(msg []byte, cut bool, offset int64) {
	if s, document, ok := beside.FromProto(msg); ok {
		if r.keeps {
			r.out.beside[s] = append(r.out.beside[s], document...)
		} else {
			r.out.other++
		}
		if cut {
			r.report(trace.OTLPTruncated, place{offset: offset}, 1, "inside a frame")
		}
		return
	}
	p := protoParser{recorder: r, at: place{offset: offset}}
	r.out.documents++
	p.container(protoField{data: msg, clipped: cut}, requestFields, p.resourceSpans)
	if cut {
		r.report(trace.OTLPTruncated, p.at, 1, "inside a frame")
	} else if p.damaged {
		r.report(trace.OTLPProtobuf, p.at, 1)
	}
}

// A protoParser reads one message.
type protoParser struct {
	*recorder
	at      place
	damaged bool // a container of spans
}

// container reads a message that holds records. A record whose tag is damaged shows up as an invalid text.
func (p *protoParser) container(in protoField, fields []wireType, f func(protoField)) {
	whole := p.each(in.data, fields, func(field protoField) {
		if field.number == schemaURL || field.number == unknownField {
			p.damaged = p.damaged || !isText(field.data)
			return
		}
		f(field)
	})
	p.damaged = p.damaged || !whole && !in.clipped
	p.settle(p.at)
}

func isText(b []byte) bool {
	return utf8.Valid(b) && !bytes.ContainsFunc(b, unicode.IsControl)
}

func (p *protoParser) resourceSpans(in protoField) {
	resource, first := 0, len(p.out.origins)
	p.container(in, resourceSpansFields, func(f protoField) {
		switch f.number {
		case 1: // resource
			resource = p.resource(f)
		case 2: // scope_spans
			p.scopeSpans(f)
		}
	})
	for o := first; o < len(p.out.origins); o++ { // the resource may come last
		p.out.origins[o].resource = resource
	}
}

func (p *protoParser) resource(in protoField) int {
	p.settle(p.at)
	var args trace.ArgList
	p.part(in, resourceFields, func(f protoField) {
		if f.number == 1 { // attributes
			p.protoKeyValue(f, &args, 0)
		}
	})
	p.settle(p.at)
	return p.addResource(args, 0)
}

func (p *protoParser) scopeSpans(in protoField) {
	p.out.origins = append(p.out.origins, batchOrigin{})
	origin := len(p.out.origins)
	p.container(in, scopeSpansFields, func(f protoField) {
		switch f.number {
		case 1: // scope
			p.part(f, scopeFields, func(f protoField) {
				if f.number == 1 { // name
					p.out.origins[origin-1].scope = p.cache.Intern(f.data)
				}
			})
		case 2: // spans
			p.span(f, spantable.OriginID(origin))
		}
	})
}

// passOver reports whether a span begins with its trace, as all exporters write it, and that trace is not
// selected.
func (p *protoParser) passOver(in protoField) bool {
	const head, idSize = "\x0a\x10", 16
	if p.chosen == nil || in.clipped || len(in.data) < len(head)+idSize || string(in.data[:len(head)]) != head {
		return false
	}
	id := in.data[len(head):]
	return !p.chosen.Has(binary.BigEndian.Uint64(id), binary.BigEndian.Uint64(id[8:]))
}

// span reads a span. It omits one that is cut off, whose message is reported.
func (p *protoParser) span(in protoField, origin spantable.OriginID) {
	p.settle(p.at)
	if p.passOver(in) {
		p.out.left++
		return
	}
	undo := p.out.mark()
	s := batchSpan{Span: spantable.Span{Origin: origin}, events: uint32(len(p.out.events)), links: uint32(len(p.out.links))}
	list := p.list[:0]
	p.beginFields()
	p.part(in, spanFields, func(f protoField) {
		switch f.number {
		case 1: // trace_id
			s.Span.TraceHi, s.Span.TraceLo = p.protoID(f.data)
		case 2: // span_id
			s.Span.ID = p.protoSpanID(f.data)
		case 3: // trace_state
			p.fields.TraceState = append(p.fields.TraceState[:0], f.data...)
		case 4: // parent_span_id
			s.Span.Parent = p.protoSpanID(f.data)
		case 5: // name
			s.Span.Name = p.cache.Intern(f.data)
		case 6: // kind
			s.Span.Kind = protoEnum(f.num, spanKinds)
		case 7: // start_time_unix_nano
			s.Span.Start = trace.Time(f.num)
		case 8: // end_time_unix_nano
			s.Span.End = trace.Time(f.num)
		case 9: // attributes
			p.protoKeyValue(f, &list, 0)
		case 10: // dropped_attributes_count
			p.fields.DroppedAttributes = int64(f.num)
		case 11: // events
			p.event(f)
		case 12: // dropped_events_count
			p.fields.DroppedEvents = int64(f.num)
		case 13: // links
			p.link(f)
		case 14: // dropped_links_count
			p.fields.DroppedLinks = int64(f.num)
		case 15: // status
			p.status(f, &s)
		}
	})
	p.putArgs(&s, list)
	if in.clipped {
		p.out.undo(undo)
		p.notes = notes{}
		return
	}
	p.addSpan(&s, undo, p.at)
}

func (p *protoParser) status(in protoField, s *batchSpan) {
	p.part(in, statusFields, func(f protoField) {
		switch f.number {
		case 2: // message
			p.fields.Message = append(p.fields.Message[:0], f.data...)
		case 3: // code
			s.Span.Status = spantable.SpanStatus(protoEnum(f.num, statusCodes))
		}
	})
}

func (p *protoParser) event(in protoField) {
	var e spantable.Event
	list := p.eventList[:0]
	p.part(in, eventFields, func(f protoField) {
		switch f.number {
		case 1: // time_unix_nano
			e.Time = trace.Time(f.num)
		case 2: // name
			e.Name = p.cache.Intern(f.data)
		case 3: // attributes
			p.protoKeyValue(f, &list, 0)
		}
	})
	p.eventList = list
	p.addEvent(e, list)
}

func (p *protoParser) link(in protoField) {
	var l spantable.Link
	list := p.linkList[:0]
	p.part(in, linkFields, func(f protoField) {
		switch f.number {
		case 1: // trace_id
			l.TraceHi, l.TraceLo = p.protoID(f.data)
		case 2: // span_id
			l.ID = p.protoSpanID(f.data)
		case 4: // attributes
			p.protoKeyValue(f, &list, 0)
		}
	})
	p.linkList = list
	p.addLink(l, list)
}

func (r *recorder) protoKeyValue(in protoField, list *trace.ArgList, depth int) {
	var key trace.Sym
	var value protoField
	r.part(in, keyValueFields, func(f protoField) {
		switch f.number {
		case 1:
			key = r.cache.Intern(f.data)
		case 2:
			value = f
		}
	})
	start := len(*list)
	r.protoAnyValue(value, key, list, depth)
	if depth == 0 {
		*list = r.hidden(*list, start, key)
	}
}

func (r *recorder) protoAnyValue(in protoField, key trace.Sym, list *trace.ArgList, depth int) {
	if depth > maxValueDepth {
		r.notes.lost++
		return
	}
	r.part(in, anyValueFields, func(f protoField) {
		switch f.number {
		case 1: // string_value
			*list = list.Bytes(key, f.data)
		case 2: // bool_value
			*list = list.Bool(key, f.num != 0)
		case 3: // int_value
			*list = list.Int(key, int64(f.num))
		case 4: // double_value
			*list = list.Float(key, math.Float64frombits(f.num))
		case 5: // array_value
			var elems trace.ArgList
			r.part(f, listFields, func(f protoField) { r.protoAnyValue(f, 0, &elems, depth+1) })
			*list = list.Array(key, elems)
		case 6: // kvlist_value
			var entries trace.ArgList
			r.part(f, listFields, func(f protoField) { r.protoKeyValue(f, &entries, depth+1) })
			*list = list.Dict(key, entries)
		case 7: // base64, as in JSON
			*list = list.Bytes(key, base64.StdEncoding.AppendEncode(nil, f.data))
		}
	})
}

// protoEnum returns an enum; an unknown one is 0.
func protoEnum(v uint64, names []string) uint8 {
	if v >= uint64(len(names)) {
		return 0
	}
	return uint8(v)
}

func (r *recorder) protoSpanID(b []byte) uint64 {
	hi, lo := r.protoID(b)
	if hi != 0 {
		r.fail(errID)
	}
	return lo
}

func (r *recorder) protoID(b []byte) (hi, lo uint64) {
	switch len(b) {
	case 16:
		return binary.BigEndian.Uint64(b), binary.BigEndian.Uint64(b[8:])
	case 8:
		return 0, binary.BigEndian.Uint64(b)
	case 0:
	default:
		r.fail(errID)
	}
	return 0, 0
}

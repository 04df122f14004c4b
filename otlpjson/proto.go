package otlpjson

import (
	"encoding/binary"
	"math"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/sgtrace/sgtrace/trace"
)

// protoField is one field of a protobuf message: num for varints and fixed
// numbers, data for the rest.
type protoField struct {
	number protowire.Number
	num    uint64
	data   []byte
}

// eachField calls f for every field of the message b. It tolerates a message
// that is cut off: a field that claims more than there is gets what is there,
// and whole is false.
func eachField(b []byte, f func(protoField)) (whole bool) {
	for len(b) > 0 {
		number, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
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
			var v uint32
			v, n = protowire.ConsumeFixed32(b)
			field.num = uint64(v)
		case protowire.BytesType:
			var size uint64
			if size, n = protowire.ConsumeVarint(b); n < 0 {
				return false
			}
			if size > uint64(len(b)-n) {
				field.data = b[n:]
				f(field)
				return false
			}
			field.data = b[n : n+int(size)]
			n += int(size)
		default:
			n = protowire.ConsumeFieldValue(number, typ, b)
		}
		if n < 0 {
			return false
		}
		f(field)
		b = b[n:]
	}
	return true
}

// parseProto reads an ExportTraceServiceRequest. Field numbers are those of
// opentelemetry/proto/{collector/trace,trace,common,resource}/v1.
func (r *recorder) parseProto(msg []byte, pos trace.Pos) {
	whole := eachField(msg, func(f protoField) {
		if f.number == 1 { // resource_spans
			r.protoResourceSpans(f.data)
		}
	})
	if !whole {
		r.diag(trace.DataLoss, "otlp-protobuf", pos, "a message is damaged or cut off; the spans before the damage are used")
	}
	r.out.documents++
}

func (r *recorder) protoResourceSpans(b []byte) {
	resource := 0
	eachField(b, func(f protoField) {
		if f.number == 1 { // resource
			var args trace.ArgList
			eachField(f.data, func(f protoField) {
				if f.number == 1 { // attributes
					r.protoKeyValue(f.data, &args, 0)
				}
			})
			resource = r.addResource(args)
		}
	})
	eachField(b, func(f protoField) {
		if f.number == 2 || f.number == 1000 { // scope_spans; instrumentation_library_spans before 0.15
			r.protoScopeSpans(f.data, resource)
		}
	})
}

func (r *recorder) protoScopeSpans(b []byte, resource int) {
	r.out.origins = append(r.out.origins, batchOrigin{resource: resource})
	origin := len(r.out.origins)
	eachField(b, func(f protoField) {
		switch f.number {
		case 1: // scope
			eachField(f.data, func(f protoField) {
				if f.number == 1 { // name
					r.out.origins[origin-1].scope = r.cache.Intern(f.data)
				}
			})
		case 2: // spans
			r.protoSpan(f.data, OriginID(origin))
		}
	})
}

// protoSpan reads a span; one that is cut off before its end time is dropped,
// since its message is reported as cut off.
func (r *recorder) protoSpan(b []byte, origin OriginID) {
	undo := r.out.mark()
	s := Span{Origin: origin, events: uint32(len(r.out.events)), links: uint32(len(r.out.links))}
	list := r.list[:0]
	whole := eachField(b, func(f protoField) {
		switch f.number {
		case 1: // trace_id
			s.TraceHi, s.TraceLo = protoID(f.data)
		case 2: // span_id
			_, s.ID = protoID(f.data)
		case 4: // parent_span_id
			_, s.Parent = protoID(f.data)
		case 5: // name
			s.Name = r.cache.Intern(f.data)
		case 6: // kind
			s.Kind = uint8(min(f.num, uint64(len(spanKinds))) % uint64(len(spanKinds)))
		case 7: // start_time_unix_nano
			s.Start = trace.Time(f.num)
		case 8: // end_time_unix_nano
			s.End = trace.Time(f.num)
		case 9: // attributes
			r.protoKeyValue(f.data, &list, 0)
		case 10: // dropped_attributes_count
			list = list.Int(r.keys.droppedAttributes, int64(f.num))
		case 11: // events
			r.protoEvent(f.data)
		case 13: // links
			r.protoLink(f.data)
		case 15: // status
			r.protoStatus(f.data, &s, &list)
		}
	})
	r.list = list
	if !whole {
		r.out.undo(undo)
		return
	}
	s.Args = r.out.putArgs(list)
	r.out.spans = append(r.out.spans, s)
}

func (r *recorder) protoStatus(b []byte, s *Span, list *trace.ArgList) {
	eachField(b, func(f protoField) {
		switch f.number {
		case 2: // message
			*list = list.Bytes(r.keys.statusMessage, f.data)
		case 3: // code
			s.Status = SpanStatus(f.num % uint64(len(statusCodes)))
		}
	})
}

func (r *recorder) protoEvent(b []byte) {
	var e Event
	list := r.eventList[:0]
	eachField(b, func(f protoField) {
		switch f.number {
		case 1: // time_unix_nano
			e.Time = trace.Time(f.num)
		case 2: // name
			e.Name = r.cache.Intern(f.data)
		case 3: // attributes
			r.protoKeyValue(f.data, &list, 0)
		}
	})
	r.eventList = list
	e.Args = r.out.putArgs(list)
	r.out.events = append(r.out.events, e)
}

func (r *recorder) protoLink(b []byte) {
	var l Link
	eachField(b, func(f protoField) {
		switch f.number {
		case 1: // trace_id
			l.TraceHi, l.TraceLo = protoID(f.data)
		case 2: // span_id
			_, l.ID = protoID(f.data)
		}
	})
	r.out.links = append(r.out.links, l)
}

func (r *recorder) protoKeyValue(b []byte, list *trace.ArgList, depth int) {
	var key trace.Sym
	var value []byte
	eachField(b, func(f protoField) {
		switch f.number {
		case 1:
			key = r.cache.Intern(f.data)
		case 2:
			value = f.data
		}
	})
	r.protoAnyValue(value, key, list, depth)
}

func (r *recorder) protoAnyValue(b []byte, key trace.Sym, list *trace.ArgList, depth int) {
	if depth > maxValueDepth {
		return
	}
	eachField(b, func(f protoField) {
		switch f.number {
		case 1, 7: // string_value, bytes_value
			*list = list.Bytes(key, f.data)
		case 2: // bool_value
			*list = list.Bool(key, f.num != 0)
		case 3: // int_value
			*list = list.Int(key, int64(f.num))
		case 4: // double_value
			*list = list.Float(key, math.Float64frombits(f.num))
		case 5: // array_value
			var elems trace.ArgList
			eachField(f.data, func(f protoField) { r.protoAnyValue(f.data, 0, &elems, depth+1) })
			*list = list.Array(key, elems)
		case 6: // kvlist_value
			var entries trace.ArgList
			eachField(f.data, func(f protoField) { r.protoKeyValue(f.data, &entries, depth+1) })
			*list = list.Dict(key, entries)
		}
	})
}

func protoID(b []byte) (hi, lo uint64) {
	switch len(b) {
	case 16:
		return binary.BigEndian.Uint64(b), binary.BigEndian.Uint64(b[8:])
	case 8:
		return 0, binary.BigEndian.Uint64(b)
	}
	return 0, 0
}

package otlpjson

import (
	"bytes"

	"github.com/sgtrace/sgtrace/internal/jsonscan"
	"github.com/sgtrace/sgtrace/trace"
)

// fields scans the object at b[i] and calls f for each key with the position of
// its value; f answers where the value ends.
func fields(b []byte, i int, f func(key []byte, at int) (next int, err error)) (next int, err error) {
	if i >= len(b) {
		return i, jsonscan.ErrShort
	}
	if b[i] != '{' {
		if bytes.HasPrefix(b[i:], []byte("null")) {
			return i + len("null"), nil
		}
		return i, jsonscan.ErrSyntax
	}
	for i++; ; {
		i = jsonscan.Space(b, i)
		if i >= len(b) {
			return i, jsonscan.ErrShort
		}
		switch b[i] {
		case ',':
			i++
			continue
		case '}':
			return i + 1, nil
		}
		key, _, at, err := jsonscan.String(b, i)
		if err != nil {
			return i, err
		}
		if at = jsonscan.Space(b, at); at >= len(b) {
			return at, jsonscan.ErrShort
		}
		if b[at] != ':' {
			return at, jsonscan.ErrSyntax
		}
		if at = jsonscan.Space(b, at+1); at >= len(b) {
			return at, jsonscan.ErrShort
		}
		if i, err = f(key, at); err != nil {
			return i, err
		}
	}
}

// elements scans the array at b[i] and calls f at each element; f answers where
// the element ends. null counts as the empty array.
func elements(b []byte, i int, f func(at int) (next int, err error)) (next int, err error) {
	if b[i] != '[' {
		if bytes.HasPrefix(b[i:], []byte("null")) {
			return i + len("null"), nil
		}
		return i, jsonscan.ErrSyntax
	}
	for i++; ; {
		i = jsonscan.Space(b, i)
		if i >= len(b) {
			return i, jsonscan.ErrShort
		}
		switch b[i] {
		case ',':
			i++
		case ']':
			return i + 1, nil
		default:
			if i, err = f(i); err != nil {
				return i, err
			}
		}
	}
}

// parseSpan reads the span object at b[i] into s. Names follow OTLP's JSON
// mapping (lowerCamelCase) and, as protobuf parsers do, the field names.
func (p *parser) parseSpan(b []byte, i int, s *Span) (next int, err error) {
	list := p.list[:0]
	s.events, s.links = uint32(len(p.out.events)), uint32(len(p.out.links))
	next, err = fields(b, i, func(key []byte, at int) (next int, err error) {
		switch string(key) {
		case "traceId", "trace_id":
			s.TraceHi, s.TraceLo, next, err = p.id(b, at)
		case "spanId", "span_id":
			_, s.ID, next, err = p.id(b, at)
		case "parentSpanId", "parent_span_id":
			_, s.Parent, next, err = p.id(b, at)
		case "name":
			var name []byte
			if name, next, err = p.text(b, at); err == nil {
				s.Name = p.cache.Intern(name)
			}
		case "startTimeUnixNano", "start_time_unix_nano":
			s.Start, next, err = timestamp(b, at)
		case "endTimeUnixNano", "end_time_unix_nano":
			s.End, next, err = timestamp(b, at)
		case "kind":
			var v uint8
			v, next, err = enum(b, at, spanKinds)
			s.Kind = v
		case "attributes":
			next, err = p.attributes(b, at, &list)
		case "events":
			next, err = elements(b, at, func(at int) (int, error) { return p.event(b, at) })
		case "links":
			next, err = elements(b, at, func(at int) (int, error) { return p.link(b, at) })
		case "status":
			next, err = p.status(b, at, s, &list)
		case "droppedAttributesCount", "dropped_attributes_count":
			var n int64
			if n, next, err = integer(b, at); err == nil && n != 0 {
				list = list.Int(p.keys.droppedAttributes, n)
			}
		case "resourceSpans", "resource", "scopeSpans":
			return at, errNotSpan
		default:
			next, err = jsonscan.Value(b, at)
		}
		return next, err
	})
	p.list = list
	if err == nil {
		s.Args = p.out.putArgs(list)
	}
	return next, err
}

func (p *parser) event(b []byte, i int) (next int, err error) {
	var e Event
	list := p.eventList[:0]
	next, err = fields(b, i, func(key []byte, at int) (next int, err error) {
		switch string(key) {
		case "timeUnixNano", "time_unix_nano":
			e.Time, next, err = timestamp(b, at)
		case "name":
			var name []byte
			if name, next, err = p.text(b, at); err == nil {
				e.Name = p.cache.Intern(name)
			}
		case "attributes":
			next, err = p.attributes(b, at, &list)
		default:
			next, err = jsonscan.Value(b, at)
		}
		return next, err
	})
	p.eventList = list
	if err == nil {
		e.Args = p.out.putArgs(list)
		p.out.events = append(p.out.events, e)
	}
	return next, err
}

func (p *parser) link(b []byte, i int) (next int, err error) {
	var l Link
	next, err = fields(b, i, func(key []byte, at int) (next int, err error) {
		switch string(key) {
		case "traceId", "trace_id":
			l.TraceHi, l.TraceLo, next, err = p.id(b, at)
		case "spanId", "span_id":
			_, l.ID, next, err = p.id(b, at)
		default:
			next, err = jsonscan.Value(b, at)
		}
		return next, err
	})
	if err == nil {
		p.out.links = append(p.out.links, l)
	}
	return next, err
}

func (p *parser) status(b []byte, i int, s *Span, list *trace.ArgList) (next int, err error) {
	return fields(b, i, func(key []byte, at int) (next int, err error) {
		switch string(key) {
		case "code":
			var v uint8
			v, next, err = enum(b, at, statusCodes)
			s.Status = SpanStatus(v)
		case "message":
			var text []byte
			if text, next, err = p.text(b, at); err == nil && len(text) > 0 {
				*list = list.Bytes(p.keys.statusMessage, text)
			}
		default:
			next, err = jsonscan.Value(b, at)
		}
		return next, err
	})
}

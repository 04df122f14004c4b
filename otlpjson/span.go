package otlpjson

import (
	"bytes"

	"github.com/sgtrace/sgtrace/internal/jsonscan"
	"github.com/sgtrace/sgtrace/request/spantable"
	"github.com/sgtrace/sgtrace/trace"
)

// span reads the span at pos, unless its trace is not selected.
func (p *parser) span() error {
	if p.chosen != nil && p.passOver() {
		return nil
	}
	var s batchSpan
	at := p.outside(p.step.at)
	undo := p.out.mark()
	err := p.retry(func() (int, error) {
		p.out.undo(undo)
		s = batchSpan{Span: spantable.Span{Line: uint32(at.line), Origin: spantable.OriginID(len(p.out.origins))}}
		return p.parseSpan(p.buf, p.pos, &s)
	})
	if err != nil {
		p.out.undo(undo)
		p.notes = notes{}
		return err
	}
	p.addSpan(&s, undo, at)
	return nil
}

// passOver moves past the span at pos if it begins as the Collector writes it, belongs to a trace that is not
// selected, and ends in the buffer and on its line, so that no other record can be inside.
func (p *parser) passOver() bool {
	hex, _, ok := traceAt(p.buf, p.pos)
	if !ok {
		return false
	}
	id, ok := traceID(hex)
	if !ok || p.chosen.Has(id[0], id[1]) {
		return false
	}
	next, err := jsonscan.Value(p.buf, p.pos)
	if err != nil || bytes.IndexByte(p.buf[p.pos:next], '\n') >= 0 {
		return false
	}
	p.pos = next
	p.out.left++
	return true
}

// Fields that a span may have only once.
const (
	hasTrace = 1 << iota
	hasID
	hasParent
	hasName
	hasStart
	hasEnd
)

// parseSpan reads the span at b[i] into s. Names follow OTLP's JSON mapping (lowerCamelCase) or, as in protobuf
// parsers, the field names. Repeated lists add up.
func (p *parser) parseSpan(b []byte, i int, s *batchSpan) (next int, err error) {
	p.notes = notes{}
	p.beginFields()
	list := p.list[:0]
	s.events, s.links = uint32(len(p.out.events)), uint32(len(p.out.links))
	begin := i
	seen, at := p.usualHead(b, i, s)
	for i = max(i+1, at); ; {
		if end := behind(b, i, `,"status":{}}`); end > 0 {
			i = end
			break
		}
		var key []byte
		if key, i, err = nextKey(b, i); err != nil {
			return i, err
		}
		if key == nil {
			break
		}
		field := 0
		switch string(key) {
		case "traceId", "trace_id":
			field = hasTrace
			s.Span.TraceHi, s.Span.TraceLo, i, err = p.id(b, i)
		case "spanId", "span_id":
			field = hasID
			s.Span.ID, i, err = p.spanID(b, i)
		case "parentSpanId", "parent_span_id":
			field = hasParent
			s.Span.Parent, i, err = p.spanID(b, i)
		case "name":
			field = hasName
			s.Span.Name, i, err = p.symbol(b, i)
		case "startTimeUnixNano", "start_time_unix_nano":
			field = hasStart
			s.Span.Start, i, err = p.timestamp(b, i)
		case "endTimeUnixNano", "end_time_unix_nano":
			field = hasEnd
			s.Span.End, i, err = p.timestamp(b, i)
		case "kind":
			s.Span.Kind, i, err = p.enum(b, i, spanKinds)
		case "attributes":
			i, err = p.attributes(b, i, &list)
		case "events":
			i, err = inList(b, i, func(i int) (int, error) { return p.event(b, i) })
		case "links":
			i, err = inList(b, i, func(i int) (int, error) { return p.link(b, i) })
		case "status":
			i, err = p.status(b, i, s)
		case "droppedAttributesCount", "dropped_attributes_count":
			p.fields.DroppedAttributes, i, err = p.integer(b, i)
		case "droppedEventsCount", "dropped_events_count":
			p.fields.DroppedEvents, i, err = p.integer(b, i)
		case "droppedLinksCount", "dropped_links_count":
			p.fields.DroppedLinks, i, err = p.integer(b, i)
		case "traceState", "trace_state":
			i, err = p.copyText(&p.fields.TraceState, b, i)
		default:
			i, err = p.pass(key, b, i)
		}
		if err != nil {
			return i, err
		}
		if seen&field != 0 {
			p.fail(errRepeated)
		}
		seen |= field
	}
	if seen&(hasTrace|hasID) == 0 || seen&(hasParent|hasName|hasStart|hasEnd) == 0 {
		return begin, errNoSpan
	}
	p.putArgs(s, list)
	return i, nil
}

// copyText reads the string at b[i] into scratch space.
func (p *parser) copyText(to *[]byte, b []byte, i int) (next int, err error) {
	text, next, err := p.text(b, i)
	*to = append((*to)[:0], text...)
	return next, err
}

// event reads the event at b[i]. It omits an event without a time.
func (p *parser) event(b []byte, i int) (next int, err error) {
	var e spantable.Event
	list := p.eventList[:0]
	i, null, err := inObject(b, i, func(key []byte, i int) (next int, err error) {
		switch string(key) {
		case "timeUnixNano", "time_unix_nano":
			e.Time, i, err = p.timestamp(b, i)
		case "name":
			e.Name, i, err = p.symbol(b, i)
		case "attributes":
			i, err = p.attributes(b, i, &list)
		default:
			i, err = p.pass(key, b, i)
		}
		return i, err
	})
	p.eventList = list
	if err == nil && !null {
		p.addEvent(e, list)
	}
	return i, err
}

// addEvent stores an event, unless it has no time.
func (r *recorder) addEvent(e spantable.Event, list trace.ArgList) {
	if e.Time <= 0 {
		r.notes.lost++
		return
	}
	e.Args = r.out.putArgs(list)
	r.out.events = append(r.out.events, e)
}

func (p *parser) link(b []byte, i int) (next int, err error) {
	if next := p.usualLink(b, i); next > 0 {
		return next, nil
	}
	var l spantable.Link
	list := p.linkList[:0]
	i, null, err := inObject(b, i, func(key []byte, i int) (next int, err error) {
		switch string(key) {
		case "traceId", "trace_id":
			l.TraceHi, l.TraceLo, i, err = p.id(b, i)
		case "spanId", "span_id":
			l.ID, i, err = p.spanID(b, i)
		case "attributes":
			i, err = p.attributes(b, i, &list)
		default:
			i, err = p.pass(key, b, i)
		}
		return i, err
	})
	p.linkList = list
	if err == nil && !null {
		p.addLink(l, list)
	}
	return i, err
}

func (p *parser) status(b []byte, i int, s *batchSpan) (next int, err error) {
	next, _, err = inObject(b, i, func(key []byte, i int) (next int, err error) {
		switch string(key) {
		case "code":
			var code uint8
			code, i, err = p.enum(b, i, statusCodes)
			s.Span.Status = spantable.SpanStatus(code)
		case "message":
			i, err = p.copyText(&p.fields.Message, b, i)
		default:
			i, err = p.pass(key, b, i)
		}
		return i, err
	})
	return next, err
}

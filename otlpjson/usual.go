package otlpjson

import (
	"strconv"

	"github.com/sgtrace/sgtrace/internal/jsonscan"
	"github.com/sgtrace/sgtrace/request/spantable"
	"github.com/sgtrace/sgtrace/trace"
)

// The functions here read the form that exporters write: no blanks, names as in OTLP's JSON mapping, and
// members in the order of the fields. They know where each text begins, and compare instead of searching. Any
// other form is left to the general readers.

// Number of digits of IDs, and of times of this century in ns.
const (
	traceDigits = 32
	spanDigits  = 16
	timeDigits  = 19
)

// A usualSpan is the beginning of a span, up to its times.
type usualSpan struct {
	id, parent []byte // digits; parent is nil if there is none
	name       []byte
	start, end trace.Time
	kind       byte // the byte where the digit belongs
}

// read reads the span at b[i], after its trace. next is the index after its times, or 0 for any other form.
func (s *usualSpan) read(b []byte, i int) (next int) {
	if i = behind(b, i, `,"spanId":"`); i == 0 || i+spanDigits > len(b) {
		return 0
	}
	s.id = b[i : i+spanDigits]
	i += spanDigits
	s.parent = nil
	if parent := behind(b, i, `","parentSpanId":"`); parent > 0 && parent+spanDigits <= len(b) {
		i = parent + spanDigits
		s.parent = b[parent:i]
	}
	if i = behind(b, i, `"`); i == 0 {
		return 0
	}
	if flags := behind(b, i, `,"flags":`); flags > 0 {
		for i = flags; i < len(b) && b[i]-'0' <= 9; i++ {
		}
	}
	if i = behind(b, i, `,"name":"`); i == 0 {
		return 0
	}
	to := jsonscan.EndOfRun(b, i)
	s.name = b[i:to]
	if i = behind(b, to, `","kind":`); i == 0 || i == len(b) {
		return 0
	}
	s.kind = b[i]
	return s.times(b, i+1)
}

// times reads the members after the kind.
func (s *usualSpan) times(b []byte, i int) (next int) {
	if i = behind(b, i, `,"startTimeUnixNano":"`); i == 0 || i+timeDigits > len(b) {
		return 0
	}
	start, ok := instant(b[i : i+timeDigits])
	if i = behind(b, i+timeDigits, `","endTimeUnixNano":"`); !ok || start == 0 || i == 0 || i+timeDigits > len(b) {
		return 0
	}
	end, ok := instant(b[i : i+timeDigits])
	if i = behind(b, i+timeDigits, `"`); !ok {
		return 0
	}
	s.start, s.end = start, end
	return i
}

// usualHead reads the beginning of the span at b[i] into s, and returns which fields it has seen. next is the
// index after it, or 0 for any other form.
func (p *parser) usualHead(b []byte, i int, s *batchSpan) (seen, next int) {
	var u usualSpan
	hex, i, ok := traceAt(b, i)
	if !ok {
		return 0, 0
	}
	if i = u.read(b, i); i == 0 || u.kind-'0' >= byte(len(spanKinds)) {
		return 0, 0
	}
	seen = hasTrace | hasID | hasName | hasStart | hasEnd
	at, ok := p.trace(hex)
	id, ok2 := jsonscan.Hex(u.id)
	if !ok || !ok2 {
		return 0, 0
	}
	if u.parent != nil {
		seen |= hasParent
		if s.Span.Parent, ok = jsonscan.Hex(u.parent); !ok {
			return 0, 0
		}
	}
	s.Span.TraceHi, s.Span.TraceLo, s.Span.ID = at[0], at[1], id
	s.Span.Name, s.Span.Start, s.Span.End, s.Span.Kind = p.cache.Intern(u.name), u.start, u.end, u.kind-'0'
	return seen, i
}

// usualLink reads the link at b[i]. next is the index after it, or 0 for any other form.
func (r *recorder) usualLink(b []byte, i int) (next int) {
	hex, i, ok := traceAt(b, i)
	if !ok {
		return 0
	}
	if i = behind(b, i, `,"spanId":"`); i == 0 || i+spanDigits > len(b) {
		return 0
	}
	id, ok := jsonscan.Hex(b[i : i+spanDigits])
	at, ok2 := r.trace(hex)
	if i = behind(b, i+spanDigits, `"`); i == 0 || !ok || !ok2 {
		return 0
	}
	if flags := behind(b, i, `,"flags":`); flags > 0 {
		for i = flags; i < len(b) && b[i]-'0' <= 9; i++ {
		}
	}
	if i = behind(b, i, `}`); i > 0 {
		r.out.links = append(r.out.links, spantable.Link{TraceHi: at[0], TraceLo: at[1], ID: id})
	}
	return i
}

// trace parses a trace ID, which is often that of the record before.
func (r *recorder) trace(hex []byte) (id spantable.TraceID, ok bool) {
	if string(hex) == string(r.lastHex[:]) {
		return r.lastTrace, true
	}
	if id, ok = traceID(hex); ok {
		r.lastHex, r.lastTrace = [traceDigits]byte(hex), id
	}
	return id, ok
}

// usualKeyValue reads the attribute at b[i], whose value must be a text or a number, and appends it to list.
// next is the index after it, or 0 for any other form.
func (r *recorder) usualKeyValue(b []byte, i int, list *trace.ArgList) (next int) {
	if i = behind(b, i, `{"key":"`); i == 0 {
		return 0
	}
	to := jsonscan.EndOfRun(b, i)
	name := b[i:to]
	if i = behind(b, to, `","value":{"`); i == 0 || len(name) == 0 {
		return 0
	}
	const text, integer, float = `stringValue":"`, `intValue":"`, `doubleValue":`
	switch from := i; {
	case behind(b, i, text) > 0:
		from += len(text)
		if to = jsonscan.EndOfRun(b, from); behind(b, to, `"}}`) == 0 {
			return 0
		}
		start, key := len(*list), r.cache.Intern(name)
		*list = r.hidden(list.Bytes(key, b[from:to]), start, key)
		return to + len(`"}}`)
	case behind(b, i, integer) > 0:
		from += len(integer)
		if to = jsonscan.EndOfRun(b, from); behind(b, to, `"}}`) == 0 {
			return 0
		}
		v, ok := jsonscan.Int(b[from:to])
		if !ok {
			return 0
		}
		*list = list.Int(r.cache.Intern(name), v)
		return to + len(`"}}`)
	case behind(b, i, float) > 0:
		from += len(float)
		for to = from; to < len(b) && isOfNumber(b[to]); to++ {
		}
		v, err := strconv.ParseFloat(string(b[from:to]), 64)
		if err != nil || behind(b, to, `}}`) == 0 {
			return 0
		}
		*list = list.Float(r.cache.Intern(name), v)
		return to + len(`}}`)
	}
	return 0
}

// behind returns the index after text if that is at b[i], and 0 otherwise.
func behind(b []byte, i int, text string) int {
	if i > len(b)-len(text) || string(b[i:i+len(text)]) != text {
		return 0
	}
	return i + len(text)
}

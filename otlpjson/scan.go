package otlpjson

import (
	"bytes"

	"github.com/sgtrace/sgtrace/internal/jsonscan"
	"github.com/sgtrace/sgtrace/request/spantable"
	"github.com/sgtrace/sgtrace/trace"
)

// A scan finds the spans of a piece by the text around their times, without parsing the rest. It only handles
// the form that the Collector and similar tools write: no blanks, names as in OTLP's JSON mapping, and the
// members of a span in the order of its fields. It gives up on any other form.
//
// Quotes in a JSON text are escaped. So `"traceId":` is always a key, whatever prompts and names contain.
type scan struct {
	data       []byte
	prescan    *spantable.Prescan
	prescanned *spantable.PrescannedPiece
	span       uint32 // trace of the span whose attributes begin at rest
	rest       int    // 0 is none
	last       sighted
}

// sighted is the trace of the last span: the next one often has the same.
type sighted struct {
	hex    [traceDigits]byte
	number uint32
	ok     bool
}

var (
	documentBegins = []byte(`{"resourceSpans":[`)
	keyBegins      = []byte(`{"key":"`)
	valueBegins    = []byte(`,"value":{"`)
)

// all records all spans, and reports whether it is sure to have found all of them.
func (s *scan) all() bool {
	if !s.documents() {
		return false
	}
	for at := 0; ; {
		n := bytes.IndexByte(s.data[at:], 'I')
		if n < 0 {
			return s.attributes(len(s.data)) && s.prescanned.Spans > 0 // without spans it may be another form
		}
		at += n
		begin := at - len(`{"trace`)
		if !bytes.HasSuffix(s.data[:at], []byte(`"trace`)) || !bytes.HasPrefix(s.data[at:], []byte(`Id"`)) {
			at++
			continue
		}
		switch rest := s.data[at+len(`Id"`):]; {
		case len(rest) == 0 || begin < 0:
			return false
		case rest[0] == ',' || rest[0] == '}' || rest[0] == ']':
			at++ // this is a value, not a key
			continue
		}
		next, ok := s.header(begin)
		if !ok {
			return false
		}
		at = next
	}
}

// documents reports whether each line is a document with spans, and counts the documents.
func (s *scan) documents() bool {
	for rest := s.data; len(rest) > 0; s.prescanned.Documents++ {
		if !bytes.HasPrefix(rest, documentBegins) {
			return false
		}
		end := bytes.IndexByte(rest, '\n')
		if end < 0 {
			end = len(rest) - 1
		}
		rest = rest[end+1:]
	}
	return true
}

// header records the span that begins at data[begin], and returns the index after its times. A link begins like
// a span.
func (s *scan) header(begin int) (next int, ok bool) {
	hex, i, ok := traceAt(s.data, begin)
	if !ok {
		return 0, false
	}
	var usual usualSpan
	if next := usual.read(s.data, i); next > 0 {
		return next, s.attributes(begin) && s.note(hex, usual.name, usual.start, usual.end, next)
	}
	var name []byte
	var start trace.Time
	parent := false
	for i < len(s.data) && s.data[i] == ',' {
		key, value, next, ok := plainMember(s.data, i+1)
		if !ok {
			return 0, false
		}
		i = next
		switch string(key) {
		case "spanId", "flags", "kind", "traceState":
		case "parentSpanId":
			parent = true
		case "name":
			name = value
		case "startTimeUnixNano":
			if start, ok = instant(value); !ok || start == 0 {
				return 0, false
			}
		case "endTimeUnixNano":
			end, ok := instant(value)
			return i, ok && start != 0 && s.attributes(begin) && s.note(hex, name, start, end, i)
		default:
			return 0, false // SGLang's links have no attributes
		}
	}
	isLink := start == 0 && name == nil && !parent && i < len(s.data) && s.data[i] == '}'
	return i, isLink
}

// note records a span whose attributes begin at data[rest]. It returns false if its trace ID is invalid.
func (s *scan) note(hex []byte, name []byte, start, end trace.Time, rest int) bool {
	if !s.last.ok || string(hex) != string(s.last.hex[:]) {
		id, ok := traceID(hex)
		if !ok {
			return false
		}
		s.last = sighted{[traceDigits]byte(hex), s.prescanned.Trace(id), true}
	}
	number := s.last.number
	if s.prescanned.SpanOf(number, start, end); s.prescanned.Name(number, name) {
		s.span, s.rest = number, rest
	}
	return true
}

// attributes records the attributes of the last span that come before data[end], and reports whether it could
// read them. Attributes of events and links count, too.
func (s *scan) attributes(end int) bool {
	if s.rest == 0 {
		return true
	}
	i := s.rest
	s.rest = 0
	for {
		n := bytes.Index(s.data[i:end], keyBegins)
		if n < 0 {
			return true
		}
		i += n + len(keyBegins)
		quote := bytes.IndexByte(s.data[i:end], '"')
		if quote < 0 {
			return false
		}
		name := s.data[i : i+quote]
		i += quote + 1
		for k, key := range s.prescan.Keys {
			if key != string(name) {
				continue
			}
			if !bytes.HasPrefix(s.data[i:end], valueBegins) {
				return false
			}
			_, value, _, ok := plainMember(s.data[:end], i+len(valueBegins)-1)
			if !ok {
				return false
			}
			s.prescanned.Value(s.span, k, value)
		}
	}
}

// traceAt returns the trace ID of the span or link at b[i], if that is its first member, as it is written, and
// the index after it.
func traceAt(b []byte, i int) (hex []byte, next int, ok bool) {
	const begins = `{"traceId":"`
	next = i + len(begins) + traceDigits + 1
	if next > len(b) || string(b[i:i+len(begins)]) != begins || b[next-1] != '"' {
		return nil, 0, false
	}
	return b[i+len(begins) : next-1], next, true
}

// traceID parses the hexadecimal digits of a trace ID.
func traceID(hex []byte) (spantable.TraceID, bool) {
	hi, ok := jsonscan.Hex(hex[:traceDigits/2])
	lo, ok2 := jsonscan.Hex(hex[traceDigits/2:])
	return spantable.TraceID{hi, lo}, ok && ok2
}

// plainMember reads the member at b[i]: its key, and its value, which must be a text without escapes or a
// number.
func plainMember(b []byte, i int) (key, value []byte, next int, ok bool) {
	if i >= len(b) || b[i] != '"' {
		return nil, nil, 0, false
	}
	n := bytes.IndexByte(b[i+1:], '"')
	if n < 0 {
		return nil, nil, 0, false
	}
	key = b[i+1 : i+1+n]
	if i += n + 2; i+1 >= len(b) || b[i] != ':' {
		return nil, nil, 0, false
	}
	i++
	if b[i] != '"' {
		from := i
		for i < len(b) && isOfNumber(b[i]) {
			i++
		}
		return key, b[from:i], i, i > from && i < len(b)
	}
	end := jsonscan.EndOfRun(b, i+1)
	if end >= len(b) || b[end] != '"' {
		return nil, nil, 0, false // cut off, or with escapes
	}
	return key, b[i+1 : end], end + 1, true
}

func isOfNumber(c byte) bool {
	return c >= '0' && c <= '9' || c == '-' || c == '.' || c == 'e' || c == 'E' || c == '+'
}

// instant reads a time in ns.
func instant(text []byte) (trace.Time, bool) {
	if len(text) == 0 || len(text) > 18+1 {
		return 0, false
	}
	t := uint64(0)
	for ; len(text) >= 8; text = text[8:] {
		eight, ok := jsonscan.EightDigits(text)
		if !ok {
			return 0, false
		}
		t = t*1e8 + eight
	}
	for _, c := range text {
		if c < '0' || c > '9' {
			return 0, false
		}
		t = t*10 + uint64(c-'0')
	}
	return trace.Time(t), t < 1<<63
}

package spans

import (
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
	"strconv"

	"github.com/sgtrace/sgtrace/golden/internal/writing"
)

// traceID is the id of a trace, big endian.
type traceID [16]byte

// newTraceID returns the id that SGLang makes, with 64 random bits, or the one of
// 128 bits that a gateway brings.
func newTraceID(rng *rand.Rand, gateway bool) traceID {
	var id traceID
	if gateway {
		binary.BigEndian.PutUint64(id[:8], newSpanID(rng))
	}
	binary.BigEndian.PutUint64(id[8:], newSpanID(rng))
	return id
}

// newSpanID returns a random span id. Zero would be none.
func newSpanID(rng *rand.Rand) uint64 {
	for {
		if id := rng.Uint64(); id != 0 {
			return id
		}
	}
}

// Span flags: the Python SDK says whether the parent, or the other end of a link,
// is in another process; the Rust SDK of the gateway only that it is sampled.
const (
	flagLocal   = 0x100
	flagRemote  = 0x300
	flagSampled = 0x1
)

// span is a span of OTLP, its times on the clock of its host.
type span struct {
	trace      traceID
	id, parent uint64 // parent 0: none
	flags      int
	name       string
	start, end int64
	attributes attributes
	events     []spanEvent
	link       *spanRef
	failed     bool
}

type spanEvent struct {
	at         int64
	name       string
	attributes attributes
}

// spanRef is the far end of a link, in the trace of the span that has it.
type spanRef struct {
	id    uint64
	flags int
}

// append appends s in the JSON of the Collector: its key order, empty lists left
// out, 64 bit numbers as text.
func (s *span) append(b []byte) []byte {
	b = append(b, `{"traceId":"`...)
	b = hex.AppendEncode(b, s.trace[:])
	b = appendID(append(b, `","spanId":`...), s.id)
	if s.parent != 0 {
		b = appendID(append(b, `,"parentSpanId":`...), s.parent)
	}
	b = strconv.AppendInt(append(b, `,"flags":`...), int64(s.flags), 10)
	b = writing.AppendText(append(b, `,"name":`...), s.name)
	b = strconv.AppendInt(append(b, `,"kind":1,"startTimeUnixNano":"`...), s.start, 10)
	b = strconv.AppendInt(append(b, `","endTimeUnixNano":"`...), s.end, 10)
	b = append(b, '"')
	b = s.attributes.append(b)
	for i, e := range s.events {
		if i == 0 {
			b = append(b, `,"events":[`...)
		} else {
			b = append(b, ',')
		}
		b = strconv.AppendInt(append(b, `{"timeUnixNano":"`...), e.at, 10)
		b = writing.AppendText(append(b, `","name":`...), e.name)
		b = append(e.attributes.append(b), '}')
	}
	if len(s.events) > 0 {
		b = append(b, ']')
	}
	if s.link != nil {
		b = hex.AppendEncode(append(b, `,"links":[{"traceId":"`...), s.trace[:])
		b = appendID(append(b, `","spanId":`...), s.link.id)
		b = strconv.AppendInt(append(b, `,"flags":`...), int64(s.link.flags), 10)
		b = append(b, "}]"...)
	}
	if s.failed {
		return append(b, `,"status":{"code":2}}`...)
	}
	return append(b, `,"status":{}}`...)
}

// attributes is the inside of a JSON list of attributes. The zero value is empty.
type attributes []byte

// append appends the member "attributes", unless there are none.
func (a attributes) append(b []byte) []byte {
	if len(a) == 0 {
		return b
	}
	b = append(b, `,"attributes":[`...)
	return append(append(b, a...), ']')
}

func (a *attributes) key(k, kind string) {
	if *a == nil {
		*a = make(attributes, 0, 256) // for three or four, which saves as many copies
	}
	if len(*a) > 0 {
		*a = append(*a, ',')
	}
	*a = writing.AppendText(append(*a, `{"key":`...), k)
	*a = append(append(append(*a, `,"value":{"`...), kind...), `":`...)
}

func (a *attributes) text(k, v string) {
	a.key(k, "stringValue")
	*a = append(writing.AppendText(*a, v), "}}"...)
}

func (a *attributes) integer(k string, v int64) {
	a.key(k, "intValue")
	*a = strconv.AppendInt(append(*a, '"'), v, 10)
	*a = append(*a, `"}}`...)
}

func (a *attributes) double(k string, v float64) {
	a.key(k, "doubleValue")
	*a = append(strconv.AppendFloat(*a, v, 'f', -1, 64), "}}"...)
}

// appendID appends a span id in quotes.
func appendID(b []byte, id uint64) []byte {
	const digits = "0123456789abcdef"
	b = append(b, '"')
	for shift := 60; shift >= 0; shift -= 4 {
		b = append(b, digits[id>>shift&15])
	}
	return append(b, '"')
}

package otlp

import (
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
	"strconv"

	"github.com/sgtrace/sgtrace/golden/simulator"
)

// TraceID is the id of a trace, big endian.
type TraceID [16]byte

// NewTraceID returns an id like SGLang's, with 64 random bits, or one of 128 bits from a gateway.
func NewTraceID(rng *rand.Rand, gateway bool) TraceID {
	var id TraceID
	if gateway {
		binary.BigEndian.PutUint64(id[:8], NewSpanID(rng))
	}
	binary.BigEndian.PutUint64(id[8:], NewSpanID(rng))
	return id
}

// NewSpanID returns a random span id, which is never zero.
func NewSpanID(rng *rand.Rand) uint64 {
	for {
		if id := rng.Uint64(); id != 0 {
			return id
		}
	}
}

// Span flags: the Python SDK records whether the parent, or the other end of a link, is in another process; the Rust SDK of
// the gateway only that the span is sampled.
const (
	FlagLocal   = 0x100
	FlagRemote  = 0x300
	FlagSampled = 0x1
)

// Span is a span of OTLP, its times on the clock of its host.
type Span struct {
	Trace      TraceID
	ID, Parent uint64 // Parent 0: none
	Flags      int
	Name       string
	Start, End int64
	Attributes Attributes
	Events     []Event
	Link       *Ref
	Failed     bool
}

// Event is a moment in a span.
type Event struct {
	At         int64
	Name       string
	Attributes Attributes
}

// Ref is the far end of a link, in the same trace as the span.
type Ref struct {
	ID    uint64
	Flags int
}

// append appends s in the JSON format of the Collector: its key order, no empty lists, 64-bit numbers as text.
func (s *Span) append(b []byte) []byte {
	b = append(b, `{"traceId":"`...)
	b = hex.AppendEncode(b, s.Trace[:])
	b = appendID(append(b, `","spanId":`...), s.ID)
	if s.Parent != 0 {
		b = appendID(append(b, `,"parentSpanId":`...), s.Parent)
	}
	b = strconv.AppendInt(append(b, `,"flags":`...), int64(s.Flags), 10)
	b = simulator.AppendText(append(b, `,"name":`...), s.Name)
	b = strconv.AppendInt(append(b, `,"kind":1,"startTimeUnixNano":"`...), s.Start, 10)
	b = strconv.AppendInt(append(b, `","endTimeUnixNano":"`...), s.End, 10)
	b = append(b, '"')
	b = s.Attributes.append(b)
	for i, e := range s.Events {
		if i == 0 {
			b = append(b, `,"events":[`...)
		} else {
			b = append(b, ',')
		}
		b = strconv.AppendInt(append(b, `{"timeUnixNano":"`...), e.At, 10)
		b = simulator.AppendText(append(b, `","name":`...), e.Name)
		b = append(e.Attributes.append(b), '}')
	}
	if len(s.Events) > 0 {
		b = append(b, ']')
	}
	if s.Link != nil {
		b = hex.AppendEncode(append(b, `,"links":[{"traceId":"`...), s.Trace[:])
		b = appendID(append(b, `","spanId":`...), s.Link.ID)
		b = strconv.AppendInt(append(b, `,"flags":`...), int64(s.Link.Flags), 10)
		b = append(b, "}]"...)
	}
	if s.Failed {
		return append(b, `,"status":{"code":2}}`...)
	}
	return append(b, `,"status":{}}`...)
}

// Attributes is the inside of a JSON list of attributes. The zero value is empty.
type Attributes []byte

// append appends the member "attributes", unless there are none.
func (a Attributes) append(b []byte) []byte {
	if len(a) == 0 {
		return b
	}
	b = append(b, `,"attributes":[`...)
	return append(append(b, a...), ']')
}

func (a *Attributes) key(k, kind string) {
	if *a == nil {
		*a = make(Attributes, 0, 256) // room for three or four, which avoids reallocations
	}
	if len(*a) > 0 {
		*a = append(*a, ',')
	}
	*a = simulator.AppendText(append(*a, `{"key":`...), k)
	*a = append(append(append(*a, `,"value":{"`...), kind...), `":`...)
}

// Text adds an attribute that is a string.
func (a *Attributes) Text(k, v string) {
	a.key(k, "stringValue")
	*a = append(simulator.AppendText(*a, v), "}}"...)
}

// Integer adds an attribute that is a whole number.
func (a *Attributes) Integer(k string, v int64) {
	a.key(k, "intValue")
	*a = strconv.AppendInt(append(*a, '"'), v, 10)
	*a = append(*a, `"}}`...)
}

// Double adds an attribute that is a number.
func (a *Attributes) Double(k string, v float64) {
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

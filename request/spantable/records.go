package spantable

import (
	"bytes"
	"fmt"

	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
	"github.com/sgtrace/sgtrace/trace/redact"
)

// Unknown is a number or a duration that is not in the input.
const Unknown = -1

// Viewpoint says who observed a request.
type Viewpoint uint8

const (
	Server    Viewpoint = iota // an API server or a tokenizer: the whole request
	Scheduler                  // from when it queued the request
	Client                     // the client: everything, including the network and gateways
)

// A Text is a range of the texts of a table.
type Text struct {
	at uint64
	n  uint32
}

// A Phase is a part of a request's time; From 0 is unknown.
type Phase struct{ From, To trace.Time }

// Phases of a request, in order.
const (
	Prepare = iota // until the scheduler receives it
	Bootstrap
	Queue
	Prefill
	Transfer
	Decode
	phases
)

// A RequestRecord is what one line says about a request. Times are in Unix ns, or on a wall clock if Local
// is set; 0 is unknown. It holds no pointers, so that a large table can be stored in a file.
type RequestRecord struct {
	ID, Room   Text
	Start, End trace.Time
	First      trace.Time // time of the first token, or of the first piece of the answer
	Phases     [phases]Phase
	TTFT, E2E  int64 // ns, or Unknown
	Prompt     int64
	Completion int64
	Cached     int64
	Retracted  int64 // number of retractions, or Unknown
	Model      trace.Sym
	Reason     trace.Sym // why it failed or was aborted; 0 if it was not
	Finish     trace.Sym // "stop", "length", "abort"; 0 is unknown
	Server     int32     // index into series.Set.Servers, or Unknown
	Line       uint32
	source     uint32
	DP         int16 // DP rank, or Unknown
	Who        Viewpoint
	Role       Role
	Local      bool
	Fronted    bool // a frontend reports for its server: all times are on the frontend's clock
}

// Role is what a server did for a request.
type Role uint8

const (
	NoRole Role = iota // unknown
	Unified
	PrefillRole
	DecodeRole
)

// RoleOf returns the role for a word.
func RoleOf(word string) Role {
	switch word {
	case "unified", "null":
		return Unified
	case "prefill":
		return PrefillRole
	case "decode":
		return DecodeRole
	}
	return NoRole
}

// NewRequestRecord returns a row in which everything is unknown.
func NewRequestRecord() RequestRecord {
	return RequestRecord{TTFT: Unknown, E2E: Unknown, Prompt: Unknown, Completion: Unknown, Cached: Unknown, Retracted: Unknown, Server: Unknown, DP: Unknown}
}

// RequestRecords are the records of all inputs.
type RequestRecords struct {
	Series  *series.Set // has the servers, and the time zones of inputs
	rows    []RequestRecord
	texts   []byte
	sources []source
}

// A source is an input.
type source struct {
	name, encoding string
	series         int32        // index into series.Set.Sources
	received       []trace.Time // when requests arrived, on the log's clock
}

// NewRequestRecords returns an empty table.
func NewRequestRecords(s *series.Set) *RequestRecords { return &RequestRecords{Series: s} }

// Len returns the number of rows.
func (t *RequestRecords) Len() int { return len(t.rows) }

// A RequestFiller adds the rows of one input to a table.
type RequestFiller struct {
	N      int // number of rows added
	t      *RequestRecords
	source uint32
	series *series.Filler
}

// Fill starts an input, whose series f fills.
func (t *RequestRecords) Fill(f *series.Filler) *RequestFiller {
	t.sources = append(t.sources, source{name: f.Source().Name, encoding: f.Source().Encoding, series: int32(len(t.Series.Sources) - 1)})
	return &RequestFiller{t: t, source: uint32(len(t.sources) - 1), series: f}
}

// Text stores a text; it returns no text if b is too long for an ID.
func (f *RequestFiller) Text(b []byte) Text {
	const longest = 256
	if b = bytes.TrimSpace(b); len(b) == 0 || len(b) > longest {
		return Text{}
	}
	at := uint64(len(f.t.texts))
	f.t.texts = memory.Append(f.t.texts, b...)
	return Text{at, uint32(len(b))}
}

// Add adds a row if it has what a request must have: an ID, and a start or an end. It reports whether it
// does.
func (f *RequestFiller) Add(r RequestRecord) bool {
	if r.ID.n == 0 || r.End <= 0 && r.Start <= 0 {
		return false
	}
	f.N++
	r.source = f.source
	f.t.rows = memory.Append(f.t.rows, r)
	f.series.Saw(max(r.Start, 0))
	f.series.Saw(max(r.End, 0))
	return true
}

// Received records the arrival of a request, whose end another line should report.
func (f *RequestFiller) Received(at trace.Time) {
	s := &f.t.sources[f.source]
	s.received = memory.Append(s.received, at)
}

func (t *RequestRecords) text(x Text) []byte { return t.texts[x.at : x.at+uint64(x.n)] }

// Symbols returns the symbols of models and reasons in rows.
func (f *RequestFiller) Symbols() *trace.Symbols { return f.t.Series.Syms }

// Fields are what a span has besides its name, times, and attributes. A timeline shows them as attributes,
// under the names that OpenTelemetry gives them in formats without such fields; fields without information,
// such as the kind "internal", are left out.
type Fields struct {
	Kind       uint8 // see [Span.Kind]
	TraceState []byte
	Message    []byte // of the status
	// DroppedAttributes, DroppedEvents, and DroppedLinks are the numbers of those that the SDK left out.
	DroppedAttributes, DroppedEvents, DroppedLinks int64
	// Links has an element for each link with attributes: see [FieldKeys.Link].
	Links trace.ArgList
}

// FieldKeys are the names of fields as attributes.
type FieldKeys struct {
	kind, state, message, attributes, events, links, linked, span trace.Sym
}

// NewFieldKeys interns the names of fields.
func NewFieldKeys(syms *trace.Symbols) FieldKeys {
	return FieldKeys{
		kind: syms.Intern("span.kind"), state: syms.Intern("w3c.tracestate"), message: syms.Intern("status.message"),
		attributes: syms.Intern("dropped_attributes_count"), events: syms.Intern("dropped_events_count"), links: syms.Intern("dropped_links_count"),
		linked: syms.Intern("link_attributes"), span: syms.Intern("span_id"),
	}
}

// Link appends the attributes of a link to those of others: a dictionary that begins with the ID of the
// linked span.
func (k *FieldKeys) Link(list trace.ArgList, l *Link, attributes trace.ArgList) trace.ArgList {
	if len(attributes) == 0 {
		return list
	}
	return list.Dict(0, append(trace.ArgList(nil).String(k.span, fmt.Sprintf("%016x", l.ID)), attributes...))
}

// Append appends fields to the attributes of a span; credentials in them are masked unless secrets are
// kept.
func (k *FieldKeys) Append(list trace.ArgList, f *Fields, keepSecrets bool) trace.ArgList {
	text := func(key trace.Sym, value []byte) {
		switch {
		case len(value) == 0:
		case keepSecrets:
			list = list.Bytes(key, value)
		default:
			list = list.String(key, redact.Mask(string(value)))
		}
	}
	count := func(key trace.Sym, n int64) {
		if n != 0 {
			list = list.Int(key, n)
		}
	}
	const internal = 1
	if f.Kind > internal && int(f.Kind) < len(kinds) {
		list = list.String(k.kind, kinds[f.Kind])
	}
	text(k.state, f.TraceState)
	count(k.attributes, f.DroppedAttributes)
	count(k.events, f.DroppedEvents)
	count(k.links, f.DroppedLinks)
	if len(f.Links) > 0 {
		list = list.Array(k.linked, f.Links)
	}
	text(k.message, f.Message)
	return list
}

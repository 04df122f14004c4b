package spantable

import (
	"bytes"
	"fmt"

	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
	"github.com/sgtrace/sgtrace/trace/redact"
)

// Unknown is a number or a duration that the input does not tell.
const Unknown = -1

// Viewpoint says whose view of a request a row is.
type Viewpoint uint8

const (
	Server    Viewpoint = iota // an API server or a tokenizer: the whole request
	Scheduler                  // from when the request was queued
	Client                     // what a client saw: all of it, with the network and gateways
)

// A Text is a piece of the texts of a table.
type Text struct {
	at uint64
	n  uint32
}

// A Phase is a piece of a request's time; From 0 is unknown.
type Phase struct{ From, To trace.Time }

// Phases of a request, in the order of its way.
const (
	Prepare = iota // until the scheduler takes it in
	Bootstrap
	Queue
	Prefill
	Transfer
	Decode
	phases
)

// A RequestRecord is what one line says of a request. Times are in Unix ns, or in those of a wall clock
// if Local is set; 0 is unknown. It holds no pointers, so that a large table can lie in a file.
type RequestRecord struct {
	ID, Room   Text
	Start, End trace.Time
	First      trace.Time // the first token, or the first piece of an answer
	Phases     [phases]Phase
	TTFT, E2E  int64 // ns; Unknown
	Prompt     int64
	Completion int64
	Cached     int64
	Retracted  int64 // how often it was thrown out of a batch; Unknown
	Model      trace.Sym
	Reason     trace.Sym // why it failed or was aborted; 0 if it did not
	Finish     trace.Sym // "stop", "length", "abort"; 0 is unknown
	Server     int32     // index into series.Set.Servers; Unknown
	Line       uint32
	source     uint32
	DP         int16 // Unknown
	Who        Viewpoint
	Role       Role
	Local      bool
	Fronted    bool // a frontend says so of its server: all times are by its own clock
}

// Role is which part of a request a server did.
type Role uint8

const (
	NoRole Role = iota // nothing says
	Unified
	PrefillRole
	DecodeRole
)

// RoleOf returns the role that a word stands for.
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

// NewRequestRecord returns a row that knows nothing.
func NewRequestRecord() RequestRecord {
	return RequestRecord{TTFT: Unknown, E2E: Unknown, Prompt: Unknown, Completion: Unknown, Cached: Unknown, Retracted: Unknown, Server: Unknown, DP: Unknown}
}

// RequestRecords are those of all inputs.
type RequestRecords struct {
	Series  *series.Set // with the servers, and the zones of inputs
	rows    []RequestRecord
	texts   []byte
	sources []source
}

// A source is an input.
type source struct {
	name, encoding string
	series         int32        // index into series.Set.Sources
	received       []trace.Time // when requests came, in the clock of the log
}

// NewRequestRecords returns an empty table.
func NewRequestRecords(s *series.Set) *RequestRecords { return &RequestRecords{Series: s} }

// Len is how many rows there are.
func (t *RequestRecords) Len() int { return len(t.rows) }

// A RequestFiller puts the rows of one input into a table.
type RequestFiller struct {
	N      int // rows that were added
	t      *RequestRecords
	source uint32
	series *series.Filler
}

// Fill begins an input, of which f fills the series.
func (t *RequestRecords) Fill(f *series.Filler) *RequestFiller {
	t.sources = append(t.sources, source{name: f.Source().Name, encoding: f.Source().Encoding, series: int32(len(t.Series.Sources) - 1)})
	return &RequestFiller{t: t, source: uint32(len(t.sources) - 1), series: f}
}

// Text keeps a text. What is longer than an ID may be is none.
func (f *RequestFiller) Text(b []byte) Text {
	const longest = 256
	if b = bytes.TrimSpace(b); len(b) == 0 || len(b) > longest {
		return Text{}
	}
	at := uint64(len(f.t.texts))
	f.t.texts = memory.Append(f.t.texts, b...)
	return Text{at, uint32(len(b))}
}

// Add adds a row, and reports whether it has what a request must have: an ID, and an end or a
// beginning.
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

// Received says that a request came, of which another line is to tell how it ended.
func (f *RequestFiller) Received(at trace.Time) {
	s := &f.t.sources[f.source]
	s.received = memory.Append(s.received, at)
}

func (t *RequestRecords) text(x Text) []byte { return t.texts[x.at : x.at+uint64(x.n)] }

// Symbols are those that rows name models and reasons by.
func (f *RequestFiller) Symbols() *trace.Symbols { return f.t.Series.Syms }

// Fields are what a span tells beside its names, times and attributes. A timeline shows them
// as attributes, under the names that OpenTelemetry gives them in formats without such
// fields; what says nothing, as the kind "internal", has none.
type Fields struct {
	Kind       uint8 // see [Span.Kind]
	TraceState []byte
	Message    []byte // of the status
	// DroppedAttributes, DroppedEvents and DroppedLinks are how many the SDK left out.
	DroppedAttributes, DroppedEvents, DroppedLinks int64
	// Links has an element for each link with attributes: see [FieldKeys.Link].
	Links trace.ArgList
}

// FieldKeys are the symbols that fields are attributes by.
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

// Link appends the attributes of a link to those of others: a dictionary that begins with
// the span that it names.
func (k *FieldKeys) Link(list trace.ArgList, l *Link, attributes trace.ArgList) trace.ArgList {
	if len(attributes) == 0 {
		return list
	}
	return list.Dict(0, append(trace.ArgList(nil).String(k.span, fmt.Sprintf("%016x", l.ID)), attributes...))
}

// Append appends fields to the attributes of a span; credentials in them are masked unless
// they are kept.
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

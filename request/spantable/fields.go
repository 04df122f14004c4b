package spantable

import (
	"fmt"

	"github.com/sgtrace/sgtrace/trace"
	"github.com/sgtrace/sgtrace/trace/redact"
)

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

package dataset

import (
	"fmt"

	"github.com/sgtrace/sgtrace/trace"
)

// spans writes what a dump holds.
func (w *writer) spans() {
	d := w.content.Spans
	if d == nil {
		return
	}
	w.resources()
	names := d.Syms.Names()
	spans, events, links := lazy[spanRow]{of: w, name: "spans-0"}, lazy[eventRow]{of: w, name: "events-0"}, lazy[linkRow]{of: w, name: "links-0"}
	attributes := func(id trace.ArgsID) string {
		w.text = w.json.attributes(w.text[:0], d.Args.All(id))
		return string(w.text)
	}
	for i := range d.Len() {
		s := d.Span(i)
		o := d.Origins[s.Origin]
		row := spanRow{Start: int64(s.Start), Dur: s.Dur(), TraceID: traceID(s.TraceHi, s.TraceLo), SpanID: s.ID, ParentID: s.Parent,
			Name: names[s.Name], Resource: int32(o.Resource), Scope: names[o.Scope], Status: int32(s.Status), Kind: int32(s.Kind),
			Line: int64(s.Line), Attributes: attributes(s.Args)}
		if s.Line == 0 {
			row.Offset = d.Pos(i).Offset
		}
		spans.write(row)
		for e := range d.Events(i) {
			events.write(eventRow{Span: int64(i), Time: int64(e.Time), Name: names[e.Name], Attributes: attributes(e.Args)})
		}
		for l := range d.Links(i) {
			links.write(linkRow{Span: int64(i), TraceID: traceID(l.TraceHi, l.TraceLo), SpanID: l.ID})
		}
	}
	spans.close()
	events.close()
	links.close()
}

// resources writes the processes that emitted spans; number 0 is the unknown one.
func (w *writer) resources() {
	d := w.content.Spans
	names := d.Syms.Names()
	l := lazy[resourceRow]{of: w, name: "resources-0"}
	for i, r := range d.Resources {
		if i > 0 {
			l.write(resourceRow{Resource: int32(i), Service: names[r.Service], Instance: names[r.Instance],
				Attributes: string(w.json.attributes(nil, d.Args.All(r.Args)))})
		}
	}
	l.close()
}

func traceID(hi, lo uint64) string { return fmt.Sprintf("%016x%016x", hi, lo) }

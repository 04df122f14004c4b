package dataset

import (
	"github.com/sgtrace/sgtrace/request/spantable"
	"github.com/sgtrace/sgtrace/trace"
)

// Outline looks at the spans of a dump, as [format.Format.Outline] does: at the attributes only of
// those that have something of interest, by their names.
func (c *Capture) Outline(name string, o *spantable.Outline) error {
	syms := trace.NewSymbols()
	r := &spanReader{capture: c, parser: parser{syms: trace.NewSymbolCache(syms)}}
	keys := map[trace.Sym]int{}
	for k, key := range o.Prescan.Keys {
		keys[syms.Intern(key)] = k
	}
	in := c.openRows("spans-0", syms)
	start, dur, traceID, called, attributes := in.column("start"), in.column("dur"), in.column("trace_id"), in.column("name"), in.column("attributes")
	g := o.Prescan.NewPiece()
	for in.next() && r.err == nil {
		var id spantable.TraceID
		id[0], id[1] = r.traceID(traceID.text())
		number := g.Span(id, trace.Time(start.int()), trace.Time(start.int()+dur.int()))
		if !g.Name(number, called.text()) {
			continue
		}
		if r.list, r.err = r.parser.attributes(r.list[:0], attributes.text()); r.err != nil {
			break
		}
		for a := range r.list.All {
			if key, ok := keys[a.Key]; ok {
				g.Attribute(number, key, a)
			}
		}
	}
	o.Add(name, spantable.ByteRange{}, g)
	if r.err != nil {
		in.err = r.err
	}
	return in.close()
}

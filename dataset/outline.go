package dataset

import (
	"strconv"

	"github.com/sgtrace/sgtrace/spantable"
	"github.com/sgtrace/sgtrace/trace"
)

// Outline looks at the spans of a dump, as [format.Format.Outline] does: at the attributes only of
// those that have something of interest, by their names.
func (c *Capture) Outline(name string, o *spantable.Outline) error {
	syms := trace.NewSymbols()
	r := &spanReader{capture: c, parser: parser{syms: trace.NewSymbolCache(syms)}}
	keys := map[trace.Sym]int{}
	for k, key := range o.Look.Keys {
		keys[syms.Intern(key)] = k
	}
	in := c.openRows("spans-0", syms)
	start, dur, traceID, called, attributes := in.column("start"), in.column("dur"), in.column("trace_id"), in.column("name"), in.column("attributes")
	g := o.Look.NewGlance()
	plain := map[trace.Sym]bool{}
	for in.next() && r.err == nil {
		var id spantable.TraceID
		id[0], id[1] = r.traceID(traceID.text())
		number := g.Span(id, trace.Time(start.int()), trace.Time(start.int()+dur.int()))
		s := called.sym()
		is, known := plain[s]
		if !known {
			is = o.Look.Plain(called.text())
			plain[s] = is
		}
		if is {
			continue
		}
		g.Value(number, len(o.Look.Keys), called.text())
		if r.list, r.err = r.parser.attributes(r.list[:0], attributes.text()); r.err != nil {
			break
		}
		for a := range r.list.All {
			if key, ok := keys[a.Key]; ok {
				note(g, number, key, a)
			}
		}
	}
	o.Add(name, spantable.Stretch{}, g)
	if r.err != nil {
		in.err = r.err
	}
	return in.close()
}

// note notes a value that the spans of a trace have.
func note(g *spantable.Glance, number uint32, key int, a trace.Arg) {
	switch a.Kind {
	case trace.ArgString:
		g.Value(number, key, a.Bytes())
	case trace.ArgInt:
		g.Value(number, key, strconv.AppendInt(nil, a.Int(), 10))
	}
}

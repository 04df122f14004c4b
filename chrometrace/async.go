package chrometrace

import (
	"slices"

	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// A span is an event that begins or ends a slice. Pairs are put together by the
// collector, since a slice may begin and end in different pieces.
type span struct {
	ends  bool
	async bool
	row   int32
	event int32 // of one that begins: index into events, or NoEvent
	time  trace.Time
	name  trace.Sym
	args  trace.ArgList // of one that ends
	at    int64         // in the input
}

// span records an event of phase B or E, of the async phases b, n and e, or of
// their predecessors S, T, p and F.
func (p *parser) span() {
	ev := &p.ev
	s := span{async: ev.ph != 'B' && ev.ph != 'E', event: profile.NoEvent, time: ev.ts, name: p.nameOf(ev).sym, at: p.at()}
	if s.async {
		s.row = p.asyncRow()
	} else {
		// What ends a slice has often no category.
		s.row = p.row(laneAny)
	}
	switch ev.ph {
	case 'n', 'T', 'p':
		p.instant(s.row)
		return
	case 'E', 'e', 'F':
		s.ends = true
		if p.opt.Filter.Args != profile.ArgsNone && len(p.list) > 0 {
			s.args = append(trace.ArgList(nil), p.list...)
		}
	default:
		cat := p.categoryOf(ev)
		if p.plain || !p.opt.Filter.IndexOnly && cat.match && p.nameOf(ev).match {
			s.event = int32(len(p.out.events))
			p.out.events = append(p.out.events, trace.Slice{
				Time: ev.ts, Track: trace.TrackID(s.row), Name: s.name, Cat: cat.sym, Args: p.putArgs(),
			})
		}
	}
	if !s.ends && ev.bind != nil {
		p.bound(s.event, s.row)
	}
	p.out.open = append(p.out.open, s)
}

// asyncRow returns the row of an async event: those of one category and id, in
// one process unless the id says that it holds everywhere.
func (p *parser) asyncRow() int32 {
	ev := &p.ev
	cat := p.categoryOf(ev)
	id := &rowID{lane: laneAsync, name: p.nameOf(ev).text}
	id.part, id.pid, _ = identify(ev.pid, nil)
	raw, global := ev.anyID()
	id.global = global
	id.extra = cat.text + "\x00" + string(p.idText(raw))
	return p.rows.use(&p.out, p.rows.entry(id))
}

// An openSlice has begun and not ended yet.
type openSlice struct {
	slice *trace.Slice // nil if the filter leaves it out
	name  trace.Sym
	time  trace.Time
	at    int64
	doc   int
}

// spans puts pairs together. rows are those of the file, by those of the batch.
func (c *collector) spans(b *batch, rows []int32) {
	for i := range b.open {
		s := &b.open[i]
		row := rows[s.row]
		stack := c.open[row]
		if !s.ends {
			o := openSlice{name: s.name, time: s.time, at: s.at, doc: len(c.docs) - 1}
			if s.event != profile.NoEvent {
				o.slice = &b.events[s.event]
				c.paired = true
			}
			c.open[row] = append(stack, o)
			continue
		}
		last := len(stack) - 1
		if last < 0 {
			c.report(trace.DataLoss, "trace-unmatched-end", s.at, 1, "an event ends a slice that did not begin in this file; left out")
			continue
		}
		for j := last; s.async && j >= 0; j-- { // slices of one id may overlap
			if stack[j].name == s.name {
				last = j
				break
			}
		}
		o := stack[last]
		c.open[row] = slices.Delete(stack, last, last+1)
		c.end(o, s)
	}
}

// end ends a slice.
func (c *collector) end(o openSlice, s *span) {
	if o.slice == nil {
		return
	}
	dur := int64(s.time - o.time)
	if dur < 0 {
		c.report(trace.Notice, "trace-negative-duration", s.at, 1, "an event ends before it starts; taken as having no duration")
		dur = 0
	}
	o.slice.Dur = dur
	if len(s.args) > 0 {
		o.slice.Args = c.opt.Args.Put(s.args.Extend(o.slice.Args))
	}
}

// endOpen ends the slices that are still open with the last event of their
// document: it is all that is known.
func (c *collector) endOpen() {
	for _, stack := range c.open {
		for _, o := range stack {
			c.report(trace.Notice, "trace-open-slice", o.at, 1, "a slice has no end; drawn up to the last event of the file")
			if o.slice != nil {
				o.slice.Dur = max(0, int64(c.docs[o.doc].last(o.time)-o.time))
			}
		}
	}
}

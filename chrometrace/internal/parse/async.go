package parse

import (
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// A Span is an event that begins or ends a slice. Package chrometrace pairs them, since a slice may begin and
// end in different pieces.
type Span struct {
	Ends  bool
	Async bool
	Row   int32
	Event int32 // of a begin: index into events, or NoEvent
	Time  trace.Time
	Name  trace.Sym
	Args  trace.ArgList // of an end
	At    int64         // offset in the input
}

// span records an event of phase B or E, of the async phases b, n and e, or of
// their predecessors S, T, p and F.
func (p *parser) span() {
	ev := &p.ev
	s := Span{Async: ev.ph != 'B' && ev.ph != 'E', Event: profile.NoEvent, Time: ev.ts, Name: p.nameOf(ev).sym, At: p.at()}
	if s.Async {
		s.Row = p.asyncRow()
	} else {
		// An end often has no category.
		s.Row = p.row(LaneAny)
	}
	switch ev.ph {
	case 'n', 'T', 'p':
		p.instant(s.Row)
		return
	case 'E', 'e', 'F':
		s.Ends = true
		if p.opt.Filter.Args != profile.ArgsNone && len(p.list) > 0 {
			s.Args = append(trace.ArgList(nil), p.list...)
		}
	default:
		cat := p.categoryOf(ev)
		if p.plain || !p.opt.Filter.IndexOnly && cat.match && p.nameOf(ev).match {
			s.Event = int32(len(p.out.Events))
			p.out.Events = append(p.out.Events, profile.Slice{Time: ev.ts, Name: s.Name, Cat: cat.sym, Args: p.putArgs(), Place: cat.kind.On(s.Row)})
		}
	}
	if !s.Ends && ev.bind != nil {
		p.bound(s.Event, s.Row)
	}
	p.out.Open = append(p.out.Open, s)
}

// asyncRow returns the row of an async event: that of its category and id, in one process unless the id is
// global.
func (p *parser) asyncRow() int32 {
	ev := &p.ev
	cat := p.categoryOf(ev)
	id := &RowID{Lane: laneAsync, name: p.nameOf(ev).text}
	id.Part, id.PID, _ = identify(ev.pid, nil)
	raw, global := ev.anyID()
	id.global = global
	id.extra = cat.text + "\x00" + string(p.idText(raw))
	return p.rows.use(&p.out, p.rows.entry(id))
}

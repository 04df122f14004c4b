package perfetto

import "github.com/sgtrace/sgtrace/internal/order"

// maxContents is the room that a worker takes for contents. What is beyond it
// becomes a gap: huge arguments are encoded one by one.
const maxContents = 4 << 20

// worker encodes pieces. Events come to it track by track, and it encodes their
// contents in this order, in which the tables of the trace are read from front
// to back; the order of the packets follows.
type worker struct {
	*encoder
	scratch  []event
	contents []extent
}

// extent is where the content of a packet lies in the worker's buffer. It is
// empty if there is a gap. index is that of the event.
type extent struct{ from, to, index uint32 }

// run encodes pieces.
func (w *worker) run(todo <-chan *piece) {
	for p := range todo {
		w.encode(p)
		p.events, w.scratch = order.ByTime(p.events, w.scratch)
		w.wrap(p)
		p.done <- struct{}{}
	}
}

// plain reports whether the packet of an event is the end of a slice and no more.
func (w *worker) plain(ev event) bool { return kindOf(ev) == end && !w.flows.atEnd }

// encode encodes the contents of all packets of a piece but the plain ones, and
// makes its events refer to them.
func (w *worker) encode(p *piece) {
	w.buf, w.contents = w.buf[:0], w.contents[:0]
	for i := range p.events {
		ev := &p.events[i]
		if w.plain(*ev) {
			continue
		}
		from := len(w.buf)
		if from < maxContents {
			var all bool
			if w.buf, all = w.content(w.buf, *ev); !all {
				w.buf = w.buf[:from]
			}
		}
		w.contents = append(w.contents, extent{uint32(from), uint32(len(w.buf)), ev.Index})
		ev.Index = uint32(len(w.contents) - 1)
	}
}

// wrap makes packets of the contents, in the order of the events.
func (w *worker) wrap(p *piece) {
	p.out, p.gaps = p.out[:0], p.gaps[:0]
	now := p.before
	for _, ev := range p.events {
		delta := ev.Time - now
		now = ev.Time
		if w.plain(ev) {
			p.out = appendEnd(p.out, delta, trackOf(ev))
			continue
		}
		c := w.contents[ev.Index]
		if c.from == c.to {
			ev.Index = c.index
			p.gaps = append(p.gaps, gap{len(p.out), delta, ev})
			continue
		}
		p.out = appendEvent(p.out, delta, w.buf[c.from:c.to], nil)
	}
}

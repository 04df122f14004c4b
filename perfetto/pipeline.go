package perfetto

import (
	"cmp"
	"io"
	"slices"

	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/internal/parallel"
	"github.com/sgtrace/sgtrace/trace"
)

const (
	// bufferSize is the smallest amount of output that is written in one piece.
	bufferSize = 64 << 10
	// maxWorkers is the number of workers that one goroutine can keep busy with pieces.
	maxWorkers = 8
	// readPerWritten is roughly the number of bytes of the timeline and its arguments that are read for each byte
	// written.
	readPerWritten = 4
)

// piece is the part of the output in one window of time. A worker turns its events into packets, except for the
// gaps.
type piece struct {
	events []event
	before uint64 // time of the last event of the previous piece
	out    []byte
	gaps   []gap
	done   chan struct{} // signals that out is ready
}

// gap is a missing packet of a piece.
type gap struct {
	at    int // its place in the output
	delta uint64
	event event
}

// cutter cuts the events of a trace into pieces.
type cutter struct {
	t       *trace.Trace
	origin  trace.Time
	tracks  []trackRows
	later   []order.Key // the tracks that have not begun, by start
	under   []stream    // the tracks in progress, in order
	windows []trace.Time
	rows    int // approximate number of rows that begin in a window
}

func newCutter(t *trace.Trace, from, to trace.Time, rows int) *cutter {
	c := &cutter{t: t, origin: from, tracks: rowsOfTracks(t), windows: windows(t, to, rows), rows: rows}
	c.later = memory.Make[order.Key](len(c.tracks))[:0]
	for i := range c.tracks {
		if first, ok := c.tracks[i].first(t); ok {
			c.later = append(c.later, order.Key{Time: uint64(first - from), Index: uint32(i)})
		}
	}
	c.later, _ = order.ByTime(c.later, memory.Make[order.Key](len(c.later)))
	return c
}

// advance appends the events of all tracks up to and including a time, track by track.
func (c *cutter) advance(last trace.Time, out []event) []event {
	n := 0
	for n < len(c.later) && c.later[n].Time <= uint64(last-c.origin) {
		n++
	}
	if n > 0 {
		for _, k := range c.later[:n] {
			c.under = append(c.under, stream{track: trace.TrackID(k.Index), trackRows: c.tracks[k.Index]})
		}
		c.later = c.later[n:]
		slices.SortFunc(c.under, func(x, y stream) int { return cmp.Compare(x.track, y.track) })
	}
	for i := range c.under {
		out = c.under[i].advance(c.t, c.origin, last, out)
	}
	c.under = slices.DeleteFunc(c.under, func(s stream) bool { return s.done() })
	return out
}

// run fills free pieces, one for each window, until it runs out of one or the other. Their events are still to
// be sorted.
func (c *cutter) run(free <-chan *piece, todo, order chan<- *piece) {
	defer close(todo)
	defer close(order)
	now := uint64(0)
	for len(c.windows) > 0 {
		// Each piece visits all tracks in progress: they must be few compared with the rows.
		const most = 4
		n := min(1+len(c.under)/(most*c.rows), len(c.windows))
		last := c.windows[n-1]
		c.windows = c.windows[n:]
		p, ok := <-free
		if !ok {
			return
		}
		p.events, p.before = p.events[:0], now
		p.events = c.advance(last, p.events)
		for i := range p.events {
			now = max(now, p.events[i].Time)
		}
		todo <- p
		order <- p
	}
}

// events writes all events, ordered by time. Workers on all cores make pieces of the output; e fills their
// gaps, in order, so that ids are assigned in the order of first use, whatever the timing of the cores.
func (e *encoder) events(w io.Writer, c *cutter) (err error) {
	const held = 2 * maxContents // per worker: contents, and a piece of the output
	workers := min(parallel.Workers(held), maxWorkers)
	inUse := 2*workers + 4 // one set each is cut and encoded, and a few more even out differences in speed
	free, todo, order := make(chan *piece, inUse), make(chan *piece, inUse), make(chan *piece, inUse)
	for range inUse {
		free <- &piece{done: make(chan struct{}, 1)}
	}
	go c.run(free, todo, order)
	for range workers {
		w := &worker{encoder: newEncoder(e.tables, false)}
		go w.run(todo)
	}
	for p := range order {
		<-p.done
		if err != nil {
			continue
		}
		if err = e.fill(w, p); err != nil {
			close(free) // ends all the others
			continue
		}
		trace.Touch(readPerWritten * len(p.out))
		free <- p
	}
	return err
}

// fill writes a piece, including its missing packets.
func (e *encoder) fill(w io.Writer, p *piece) error {
	from := 0
	for _, g := range p.gaps {
		if _, err := w.Write(p.out[from:g.at]); err != nil {
			return err
		}
		from = g.at
		e.buf, _ = e.content(e.buf[:0], g.event)
		e.packet = appendEvent(e.packet[:0], g.delta, e.buf, e.defs)
		e.defs = e.defs[:0]
		if _, err := w.Write(e.packet); err != nil {
			return err
		}
	}
	_, err := w.Write(p.out[from:])
	return err
}

// maxContents is the room that a worker takes for contents. Contents beyond it become gaps: huge arguments are
// encoded one by one.
const maxContents = 4 << 20

// worker encodes pieces. It gets events track by track, and encodes their contents in this order, which reads
// the tables of the trace from front to back. The packets are put in order afterward.
type worker struct {
	*encoder
	scratch  []event
	contents []extent
}

// extent is the position of a packet's content in the worker's buffer. It is empty if there is a gap. index is
// that of the event.
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

// plain reports whether the packet of an event only ends a slice.
func (w *worker) plain(ev event) bool { return kindOf(ev) == end && !w.flows.atEnd }

// encode encodes the contents of all packets of a piece except plain ones, and makes its events refer to them.
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

// wrap makes packets from the contents, in the order of the events.
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

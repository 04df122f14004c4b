package perfetto

import (
	"io"
	"runtime"

	"github.com/sgtrace/sgtrace/trace"
)

const (
	// bufferSize is the smallest amount of output that is written in one piece.
	bufferSize = 64 << 10
	// maxWorkers is how many workers one goroutine can keep busy with pieces.
	maxWorkers = 8
	// readPerWritten is about how many bytes of the timeline and its arguments are read for
	// one that is written.
	readPerWritten = 4
)

// piece is the part of the output that is in one window of time. A worker turns
// its events into packets, all but those in the gaps.
type piece struct {
	events []event
	before uint64 // time of the last event of the piece before
	out    []byte
	gaps   []gap
	done   chan struct{} // says that out is ready
}

// gap is a packet that is missing in a piece.
type gap struct {
	at    int // where it belongs
	delta uint64
	event event
}

// cutter cuts the events of a trace into pieces.
type cutter struct {
	t       *trace.Trace
	origin  trace.Time
	streams []stream
	windows []trace.Time
}

func newCutter(t *trace.Trace, from, to trace.Time, rows int) *cutter {
	return &cutter{t, from, streams(t), windows(t, to, rows)}
}

// run fills free pieces, one for each window, until there are no more of one or
// the other. Their events are still to be sorted.
func (c *cutter) run(free <-chan *piece, todo, order chan<- *piece) {
	defer close(todo)
	defer close(order)
	now := uint64(0)
	for _, last := range c.windows {
		p, ok := <-free
		if !ok {
			return
		}
		p.events, p.before = p.events[:0], now
		for i := range c.streams {
			p.events = c.streams[i].advance(c.t, c.origin, last, p.events)
		}
		for i := range p.events {
			now = max(now, p.events[i].Time)
		}
		todo <- p
		order <- p
	}
}

// events writes all events, ordered by time. Workers on all cores make pieces of
// the output; e fills their gaps, in order, so that ids are given in the order
// of first use whatever the cores do.
func (e *encoder) events(w io.Writer, c *cutter) (err error) {
	workers := min(runtime.GOMAXPROCS(0), maxWorkers)
	inUse := workers + 2 // one is being cut, one written
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
			close(free) // that ends all the others
			continue
		}
		trace.Touch(readPerWritten * len(p.out))
		free <- p
	}
	return err
}

// fill writes a piece, and the packets missing in it.
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

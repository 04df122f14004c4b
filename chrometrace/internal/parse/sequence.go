package parse

import (
	"io"

	"github.com/sgtrace/sgtrace/internal/parallel"
)

// heldByWorker is a rough number of bytes held by a worker: the current piece, those waiting before and after
// it, and the parsed records.
const heldByWorker = 4 << 20

// Read parses an input and passes batches to keep, in the order of the file, each with at most one document.
func Read(r io.Reader, opt Options, l Limits, keep func(*Batch)) Ending {
	if opt.Workers <= 0 {
		opt.Workers = parallel.Workers(heldByWorker)
	}
	set := newSettings(opt, l)
	src := &source{r: r}
	work := make(chan *piece, opt.Workers)
	order := make(chan *piece, opt.Workers)
	q := sequence{parser: newParser(set), keep: keep}
	cut := cutter{in: src, blocks: &blocks{size: l.Block}, work: work, order: order}
	if set.timed {
		q.state.clock = opt.Base
		clock := make(chan int64, 1)
		cut.clock, q.clock = clock, clock
	}
	start := q.state
	go func() {
		cut.run(start)
		close(work)
		close(order)
	}()
	for range opt.Workers {
		go func() {
			p := newParser(set)
			appender := opt.Args.Appender()
			for piece := range work {
				if !piece.last || piece.offset > 0 { // a small file needs no block of its own
					p.args = appender
				}
				p.parse(piece)
			}
		}()
	}
	for p := range order {
		q.take(p, <-p.done)
		cut.blocks.put(p.data)
	}
	end := Ending{Size: src.n, Offset: q.offset, Between: q.state.isBetween()}
	if src.failed() {
		end.Err = src.err
	}
	return end
}

// An Ending is where and how an input ended.
type Ending struct {
	Size    int64 // bytes read
	Err     error // why reading failed; nil at the end of the input
	Offset  int64 // end of the last thing that was understood
	Between bool  // Offset is between two events, or members of a document
}

// parse reads a piece, unless its beginning is known to be wrong.
func (p *parser) parse(piece *piece) {
	var r result
	if piece.guess {
		p.failed = piece.failed
		r.used, r.end, r.again = p.run(piece.data, piece.offset, piece.last, piece.begin)
		r.batch = p.out.take()
	}
	piece.done <- r
}

// A sequence takes the results of pieces in order, and rereads the input where it was cut in the wrong place.
type sequence struct {
	parser *parser // for input that no piece has whole
	keep   func(*Batch)
	clock  chan<- int64

	state   state  // after everything taken
	pending []byte // input from there on; needs more input
	offset  int64  // of pending
	need    int    // length that pending should have for the next try
}

// take takes the result of a piece, if the piece began where the one before ended. Otherwise, and where a piece
// ended inside of something, it reads the input itself.
func (q *sequence) take(p *piece, r result) {
	if p.guess && len(q.pending) == 0 && q.state == p.begin {
		q.offset = p.offset + int64(r.used)
		q.state = r.end
		q.pending = append(q.pending, p.data[r.used:]...)
		q.keep(r.batch)
		if r.again || p.last {
			q.readPending(p)
		}
	} else {
		q.pending = append(q.pending, p.data...)
		if p.last || len(q.pending) >= q.need {
			q.readPending(p)
		}
	}
	if q.clock != nil {
		q.clock <- q.state.clock
		q.clock = nil
	}
}

// readPending reads the pending input. If that needs more input, the next try waits for twice as much, so that
// a long event is not scanned too often.
func (q *sequence) readPending(p *piece) {
	q.parser.failed = p.failed
	pending := q.pending
	for again := true; again; {
		var used int
		used, q.state, again = q.parser.run(pending, q.offset, p.last, q.state)
		q.keep(q.parser.out.take())
		q.offset += int64(used)
		pending = pending[used:]
	}
	q.pending = append(q.pending[:0], pending...)
	q.need = 2 * len(q.pending)
}

// isBetween reports whether a document continues after s with an event or a member.
func (s *state) isBetween() bool {
	return s.level == inEvents || s.level == inObject || s.level == behindList
}

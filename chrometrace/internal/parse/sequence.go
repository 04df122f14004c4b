package parse

import (
	"io"

	"github.com/sgtrace/sgtrace/internal/parallel"
)

// heldByWorker is about how many bytes a worker holds: the piece at hand, those that wait before and
// behind it, and what was parsed of them.
const heldByWorker = 4 << 20

// Read parses an input. It passes what it makes of it on to keep, in the order of
// the file, batch by batch, each of one document at most.
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
	Size    int64 // how much was read
	Err     error // why reading failed; nil is the end of the input
	Offset  int64 // behind the last thing that was understood
	Between bool  // it is between two events, or members of a document
}

// parse reads a piece, if its beginning is not known to be none.
func (p *parser) parse(piece *piece) {
	var r result
	if piece.guess {
		p.failed = piece.failed
		r.used, r.end, r.again = p.run(piece.data, piece.offset, piece.last, piece.begin)
		r.batch = p.out.take()
	}
	piece.done <- r
}

// A sequence takes what was made of pieces in their order, and reads what was cut in
// the wrong place.
type sequence struct {
	parser *parser // for what no piece has whole
	keep   func(*Batch)
	clock  chan<- int64

	state   state  // behind all that was taken
	pending []byte // input behind that, which needs more behind it
	offset  int64  // of pending
	need    int    // how long pending should be before it is tried again
}

// take takes what was made of a piece, if the piece began where the one before
// ended. Otherwise, and where a piece ended inside of something, it reads on by
// itself.
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

// readPending reads what is pending. If that needs more behind it, the next try
// waits for twice as much, so that a long event is not scanned too often.
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

// isBetween reports whether a document goes on behind s with an event or a member.
func (s *state) isBetween() bool {
	return s.level == inEvents || s.level == inObject || s.level == behindList
}

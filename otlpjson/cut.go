package otlpjson

import (
	"bytes"
	"io"
	"math"

	"github.com/sgtrace/sgtrace/request/spantable"
)

// limits are the sizes that bound memory. They must not affect the result, which tests check with very small
// ones, except that a record longer than record is lost.
type limits struct {
	// block is the size of a piece in bytes: large enough that handing it over costs little, small enough to stay
	// in the cache.
	block int
	// piece is the length from which a document is streamed through one parser instead of being handed over whole.
	piece int
	// record is the longest span, or token outside of spans: anything longer is damage, and is skipped.
	record int
}

var usual = limits{block: 1 << 20, piece: 8 << 20, record: 64 << 20}

// A piece is a part of an input that one parser handles alone.
type piece struct {
	data   []byte
	buffer []byte      // data's buffer from blocks, to be given back; nil if it has none
	rest   io.Reader   // continues data; nil if data is all
	kind   framing     // how data is encoded
	cut    bool        // data is a frame whose end is missing
	offset int64       // of data, or of its frame, in the decompressed input
	line   int64       // of data's first byte, 1-based
	done   chan *batch // the parsed batches, in order; closed at the end
	// skipped is what an outline recorded of a piece that needs no parsing.
	skipped    *spantable.ByteRange
	prescanned *spantable.PrescannedPiece // what an outline found in it
}

// A source is an input that counts the bytes read and keeps the error at the end.
type source struct {
	r    io.Reader
	head []byte // already read
	n    int64
	err  error
}

// peek returns the first n bytes, or fewer at the end of the input; Read returns them again. Memory grows with
// the actual bytes.
func (s *source) peek(n int) []byte {
	for s.err == nil && len(s.head) < n {
		if len(s.head) == cap(s.head) {
			s.head = append(make([]byte, 0, min(n, max(4<<10, 2*len(s.head)))), s.head...)
		}
		m, _ := s.fetch(s.head[len(s.head):cap(s.head)])
		s.head = s.head[:len(s.head)+m]
	}
	return s.head
}

func (s *source) Read(p []byte) (int, error) {
	if len(s.head) > 0 {
		n := copy(p, s.head)
		s.head = s.head[n:]
		return n, nil
	}
	if s.err != nil {
		return 0, s.err
	}
	return s.fetch(p)
}

func (s *source) fetch(p []byte) (n int, err error) {
	n, s.err = s.r.Read(p)
	s.n += int64(n)
	return n, s.err
}

// size returns the number of bytes of input in the piece, as far as known.
func (p *piece) size() int64 {
	if p.skipped != nil {
		return int64(p.skipped.Size)
	}
	return int64(len(p.data))
}

// A cutter cuts an input into pieces. Every piece goes to order, where the
// collector waits for its batches, and to work, where a parser takes it.
type cutter struct {
	limits
	in     *source
	at     io.ReaderAt // the same input, if it allows random access
	tail   source      // the part of at that follows the pieces
	blocks *blocks
	work   chan *piece
	order  chan *piece
	left   chan func() // work without an order
	// known are the pieces that the input was cut into before; nil if it was not.
	known []spantable.ByteRange
	sent  int
}

// send hands over a piece, unless an earlier cut shows that it has nothing wanted.
func (c *cutter) send(p *piece) {
	p.done = make(chan *batch, 1)
	if c.sent < len(c.known) {
		s := &c.known[c.sent]
		if !s.Wanted && !s.Open && s.Offset == p.offset && s.Size == len(p.data) {
			p.skipped = s
		}
	}
	c.sent++
	c.order <- p // bounds how far the cutter runs ahead
	if p.skipped != nil {
		close(p.done)
		return
	}
	c.work <- p
}

// cutKnown reads the known pieces that are wanted.
func (c *cutter) cutKnown() {
	for i := range c.known {
		s := &c.known[i]
		p := &piece{offset: s.Offset, line: s.Line}
		if !s.Wanted && !s.Open {
			p.skipped, p.done = s, make(chan *batch)
			close(p.done)
			c.order <- p
			continue
		}
		p.buffer = c.blocks.get()
		if p.data = p.buffer; len(p.data) < s.Size {
			p.data = make([]byte, s.Size)
		}
		n, _ := c.at.ReadAt(p.data[:s.Size], s.Offset) // a shorter file is damage
		p.data = p.data[:n]
		if s.Open {
			p.rest = c.behind(s.Offset + int64(s.Size))
		}
		c.send(p)
	}
}

// cutDocuments cuts JSON at newlines between documents. If a stretch has no such place for too long, one parser
// reads on from there alone.
func (c *cutter) cutDocuments() {
	next := c.blocks.follow(c.in)
	if c.at != nil {
		ahead, stop := c.blocks.ahead(c.at)
		defer stop()
		next = ahead
	}
	var ready *piece  // waits for the next block; left follows it in the same buffer
	var before []byte // the buffer of left, if it holds no piece
	var left []byte   // read, but not in a piece yet
	leftLines, offset, line := 0, int64(0), int64(1)
	for {
		buf := next()
		data := buf.joined(left)
		if ready != nil {
			c.send(ready)
			ready = nil
		}
		c.blocks.put(before)
		before = nil
		p := &piece{data: data, buffer: buf.whole, offset: offset, line: line}
		if buf.err != nil {
			c.in.n, c.in.err = offset+int64(len(data)), buf.err
			c.send(p)
			return
		}
		switch cut := lastCut(data); {
		case cut > 0:
			ready, p.data, left = p, data[:cut], data[cut:]
			lines := bytes.Count(left, []byte{'\n'})
			offset, line, leftLines = offset+int64(cut), line+int64(leftLines+buf.lines-lines), lines
		case len(data) < c.piece:
			before, left, leftLines = buf.whole, data, leftLines+buf.lines
		default:
			p.rest = c.behind(offset + int64(len(data)))
			c.send(p)
			return
		}
	}
}

// behind returns the input from an offset on, up to which it was read.
func (c *cutter) behind(offset int64) io.Reader {
	if c.at == nil {
		return c.in
	}
	c.tail.r = io.NewSectionReader(c.at, offset, math.MaxInt64-offset)
	return &c.tail
}

// lastCut returns the last position in data where one document has ended and another begins on a new line: a
// document after a closing brace and a newline. 0 means that there is none.
//
// A parser that meets such a place starts afresh there, whatever it was in, so cutting changes nothing.
func lastCut(data []byte) int {
	for end := len(data); ; {
		nl := lastNewline(data[:end])
		if nl < 0 {
			return 0
		}
		before := bytes.TrimRight(data[:nl], " \t\r\n")
		after := nl + len(data[nl:]) - len(bytes.TrimLeft(data[nl:], " \t\r\n"))
		if len(before) > 0 && before[len(before)-1] == '}' && after < len(data) && data[after] == '{' {
			if l, ok, _ := recordAt(data, after); ok && l == atTop {
				return after
			}
		}
		end = len(before)
	}
}

// lastNewline returns the position of the last newline in data, or -1. It uses [bytes.IndexByte], as
// [bytes.LastIndexByte] goes byte by byte, and lines are long.
func lastNewline(data []byte) int {
	const step = 1 << 10
	for end := len(data); end > 0; end -= step {
		from := max(0, end-step)
		if bytes.IndexByte(data[from:end], '\n') >= 0 {
			return from + bytes.LastIndexByte(data[from:end], '\n')
		}
	}
	return -1
}

package otlpjson

import (
	"bytes"
	"io"
	"math"

	"github.com/sgtrace/sgtrace/request/spantable"
)

// limits are the sizes that bound memory. No result may depend on them, which
// tests prove with very small ones; only a record that is longer than record
// is lost.
type limits struct {
	// block is how much input makes a piece: enough that the cost of handing
	// it over vanishes, little enough to stay in the cache.
	block int
	// piece is how long a document may be before it is streamed through one
	// parser instead of being handed over whole.
	piece int
	// record bounds the bytes that one span, or one token outside of spans,
	// may take: a record that is longer is damage, and is skipped.
	record int
}

var usual = limits{block: 1 << 20, piece: 8 << 20, record: 64 << 20}

// A piece is a part of an input that one parser handles by itself.
type piece struct {
	data   []byte
	buffer []byte      // of blocks, which is given back; nil if data lies in none
	rest   io.Reader   // continues data; nil if data is all
	kind   framing     // how data is encoded
	cut    bool        // data is a frame whose end is missing
	offset int64       // of data, or its frame, in the decompressed input
	line   int64       // of data's first byte, 1-based
	done   chan *batch // the parsed batches, in order; closed at the end
	// skipped is set where nobody works on it: what a look saw.
	skipped    *spantable.ByteRange
	prescanned *spantable.PrescannedPiece // what an outline saw of it
}

// A source is an input that counts what was read and keeps the error that it
// ended with.
type source struct {
	r    io.Reader
	head []byte // read already
	n    int64
	err  error
}

// peek returns the first n bytes, or what there is of them; Read gives them
// again. Memory grows with what is there.
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

// size returns how many bytes of the input the piece is, as far as they are known.
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
	at     io.ReaderAt // the same, if it can be read anywhere
	tail   source      // what at has behind the pieces
	blocks *blocks
	work   chan *piece
	order  chan *piece
	left   chan func() // what needs no order
	// known are the pieces that the input was cut into before, nil if it was not.
	known []spantable.ByteRange
	sent  int
}

// send hands over a piece, unless it was cut before and nothing of it is wanted.
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

// cutKnown reads those of the known pieces that are wanted.
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
		n, _ := c.at.ReadAt(p.data[:s.Size], s.Offset) // what is not there any more is damage
		p.data = p.data[:n]
		if s.Open {
			p.rest = c.behind(s.Offset + int64(s.Size))
		}
		c.send(p)
	}
}

// cutDocuments cuts JSON at newlines between documents. What has no such place
// for too long is left to one parser that reads on by itself.
func (c *cutter) cutDocuments() {
	next := c.blocks.follow(c.in)
	if c.at != nil {
		ahead, stop := c.blocks.ahead(c.at)
		defer stop()
		next = ahead
	}
	var ready *piece  // whose end is known: left is behind it, in the same buffer
	var before []byte // the buffer of left, if there is no piece in it
	var left []byte   // read already
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

// behind returns what follows an offset up to which the input was read.
func (c *cutter) behind(offset int64) io.Reader {
	if c.at == nil {
		return c.in
	}
	c.tail.r = io.NewSectionReader(c.at, offset, math.MaxInt64-offset)
	return &c.tail
}

// lastCut returns the last position in data where one document has ended and
// another begins on a new line: at a document that is behind a closing brace and
// a newline. 0 is none.
//
// A parser that meets such a place starts afresh there, whatever it was in, so
// cutting changes nothing.
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

// lastNewline returns the position of the last newline in data, or -1. [bytes.LastIndexByte] goes
// byte by byte, and lines are long; [bytes.IndexByte] does not.
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

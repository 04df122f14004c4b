package parse

import (
	"bytes"
	"io"
	"sync"

	"github.com/sgtrace/sgtrace/internal/jsonscan"
	"github.com/sgtrace/sgtrace/internal/memory"
)

// Limits are the sizes that bound memory. They don't affect the result, except that an event longer than Record
// is lost.
type Limits struct {
	Block  int // size of a piece in bytes
	Record int // largest event, or value outside of events, in bytes
}

// Usual are the limits of all but tests.
var Usual = Limits{Block: 1 << 20, Record: 64 << 20}

// A piece is a part of an input that one parser reads alone, assuming that it begins between two events. The
// sequence checks the assumption.
type piece struct {
	data   []byte
	offset int64
	begin  state
	guess  bool // begin may be right
	last   bool // nothing follows
	failed bool // because reading failed
	done   chan result
}

// A result is what a parser made of a piece.
type result struct {
	used  int // bytes of data
	end   state
	again bool
	batch *Batch
}

// A source counts the bytes read and keeps the error that ended the input.
type source struct {
	r   io.Reader
	n   int64
	err error
}

// fill reads until buf is full or the input ends.
func (s *source) fill(buf []byte) (n int) {
	for n < len(buf) && s.err == nil {
		var m int
		m, s.err = s.r.Read(buf[n:])
		n += m
	}
	s.n += int64(n)
	return n
}

// failed reports whether the input ended with an error.
func (s *source) failed() bool { return s.err != nil && s.err != io.EOF }

// blocks keeps buffers for reuse.
type blocks struct {
	size int
	pool sync.Pool
}

func (b *blocks) get() []byte {
	if buf, ok := b.pool.Get().(*[]byte); ok {
		return (*buf)[:0]
	}
	return memory.Huge(make([]byte, 0, b.size+b.size/8))
}

// larger is get for a buffer that may hold the rest of a small file.
func (b *blocks) larger(size int) []byte {
	if size >= b.size {
		return b.get()
	}
	return make([]byte, 0, size)
}

// put returns an unused buffer for reuse; it drops one for a small file.
func (b *blocks) put(buf []byte) {
	if cap(buf) >= b.size {
		b.pool.Put(&buf)
	}
}

// A cutter cuts an input into pieces where one event seems to end and another to begin. Checking that would
// take as long as parsing, so that is left to the parsers: the cut was right if the parser of the piece before
// ends exactly there.
type cutter struct {
	in     *source
	blocks *blocks
	work   chan<- *piece
	order  chan<- *piece
	// clock receives the base time once the first piece was read; nil if nobody needs it.
	clock <-chan int64
}

// run cuts the input; start is the state at its beginning.
func (c *cutter) run(start state) {
	p := &piece{guess: true, begin: start}
	data := make([]byte, 0, c.blocks.size/16) // most files are small
	for {
		n := c.in.fill(data[len(data):cap(data)])
		data = data[:len(data)+n]
		if c.in.err != nil {
			p.data, p.last, p.failed = data, true, c.in.failed()
			c.send(p)
			return
		}
		if cap(data) < c.blocks.size {
			data = append(c.blocks.larger(4*cap(data)+1), data...)
			continue
		}
		cut := lastCut(data)
		next := &piece{guess: cut > 0, begin: p.begin}
		next.begin.to(inEvents)
		if cut == 0 {
			cut = len(data)
		}
		next.offset = p.offset + int64(cut)
		rest := append(c.blocks.get(), data[cut:]...)
		p.data = data[:cut]
		c.send(p)
		if c.clock != nil && p.offset == 0 {
			next.begin.clock = <-c.clock
		}
		p, data = next, rest
	}
}

func (c *cutter) send(p *piece) {
	p.done = make(chan result, 1)
	c.order <- p // bounds how far the cutter runs ahead
	c.work <- p
}

// lastCut returns the last position in data at which an event seems to follow another, or 0 if there is none.
func lastCut(data []byte) int {
	for end := len(data); ; {
		brace := bytes.LastIndexByte(data[:end], '{')
		if brace <= 0 {
			return 0
		}
		end = brace
		before := bytes.TrimRight(data[:brace], " \t\r\n")
		if len(before) == 0 || before[len(before)-1] != ',' {
			continue
		}
		before = bytes.TrimRight(before[:len(before)-1], " \t\r\n")
		if len(before) == 0 || before[len(before)-1] != '}' {
			continue
		}
		key := jsonscan.Space(data, brace+1)
		if key == len(data) || data[key] != '"' {
			continue
		}
		if n := bytes.IndexByte(data[key+1:min(len(data), key+maxKey)], '"'); n > 0 && isEventKey(data[key+1:key+1+n]) {
			return brace
		}
	}
}

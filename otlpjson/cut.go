package otlpjson

import (
	"bufio"
	"bytes"
	"io"
	"sync"
)

const (
	// blockSize is how much input makes a piece: enough that the cost of
	// handing it over vanishes, little enough to stay in the cache.
	blockSize = 1 << 20
	// maxPiece is how long a document may be before it is streamed through one
	// parser instead of being handed over whole.
	maxPiece = 8 * blockSize
)

// A piece is a part of an input that one parser handles by itself.
type piece struct {
	data   []byte
	rest   io.Reader   // continues data; nil if data is all
	kind   framing     // how data is encoded
	offset int64       // of data in the decompressed input
	line   int64       // of data's first byte, 1-based
	done   chan *batch // the parsed batches, in order; closed at the end
}

// A source is an input that counts what was read and keeps its last error.
type source struct {
	r   io.Reader
	n   int64
	err error
}

func (s *source) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	s.n += int64(n)
	if err != nil && err != io.EOF {
		s.err = err
	}
	return n, err
}

// A cutter cuts an input into pieces. Every piece goes to order, where the
// collector waits for its batches, and to work, where a parser takes it.
type cutter struct {
	in     *bufio.Reader
	work   chan<- *piece
	order  chan<- *piece
	offset int64 // bytes cut off so far
	line   int64
}

func (c *cutter) send(p *piece) {
	p.offset, p.line, p.done = c.offset, c.line, make(chan *batch, 1)
	c.offset += int64(len(p.data))
	c.order <- p // bounds how far the cutter runs ahead
	c.work <- p
}

var blocks = sync.Pool{New: func() any {
	b := make([]byte, 0, blockSize+blockSize/8)
	return &b
}}

func newBlock() []byte { return (*blocks.Get().(*[]byte))[:0] }

// recycle gives the piece's memory back, unless it is of an unusual size.
func (p *piece) recycle() {
	if p.kind == notFramed && cap(p.data) <= 2*blockSize {
		blocks.Put(&p.data)
	}
}

// cutDocuments cuts JSON at newlines between documents. What has no such place
// within maxPiece is left to one parser that reads on by itself.
func (c *cutter) cutDocuments() {
	c.line = 1
	data := newBlock()
	for {
		n, err := io.ReadFull(c.in, data[len(data):cap(data)])
		data = data[:len(data)+n]
		if err != nil {
			c.send(&piece{data: data})
			return
		}
		cut := lastCut(data)
		switch {
		case cut > 0:
			next := append(newBlock(), data[cut:]...)
			lines := int64(bytes.Count(data[:cut], []byte{'\n'}))
			c.send(&piece{data: data[:cut]})
			c.line += lines
			data = next
			if len(data) == cap(data) {
				data = append(data, 0)[:len(data)]
			}
		case len(data) < maxPiece:
			data = append(make([]byte, 0, 2*cap(data)), data...)
		default:
			c.send(&piece{data: data, rest: c.in})
			return
		}
	}
}

// lastCut returns the last position in data where one document has ended and
// another begins on a new line: behind a newline that stands between a closing
// and an opening brace. Inside a document JSON always has a comma there, and
// strings hold no bare newlines. 0 is none.
func lastCut(data []byte) int {
	for end := len(data); ; {
		nl := bytes.LastIndexByte(data[:end], '\n')
		if nl < 0 {
			return 0
		}
		before := bytes.TrimRight(data[:nl], " \t\r\n")
		after := bytes.TrimLeft(data[nl:], " \t\r\n")
		if len(before) > 0 && before[len(before)-1] == '}' && len(after) > 0 && after[0] == '{' {
			return nl + 1
		}
		end = len(before)
	}
}

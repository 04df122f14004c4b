package otlpjson

import (
	"bytes"
	"io"

	"github.com/sgtrace/sgtrace/internal/jsonscan"
)

// A cursor walks a piece of input that is either complete in memory (src is
// nil) or continues in src. buf[pos:] is what was not consumed yet; everything
// before pos may be thrown away by fill.
type cursor struct {
	buf   []byte
	pos   int
	src   io.Reader
	err   error // that src ended with, io.EOF included
	start int   // where the record or token that is being read begins
	base  int64 // offset in the input of buf[0]
	line  int64 // 1-based line of buf[counted]
	// counted is how far newlines were counted; it only grows within a buffer.
	counted int
}

// maxRecord bounds the bytes that one span, or one token outside of spans, may
// take: a record that is longer is damage, and is skipped.
const maxRecord = 64 << 20

// fill reads more input behind buf[pos:], growing the buffer when the pending
// bytes leave no room. It returns false when there is no more, or when the
// pending record is longer than maxRecord.
func (c *cursor) fill() bool {
	if c.src == nil || c.err != nil || len(c.buf)-c.pos > maxRecord {
		return false
	}
	c.countLines(c.pos)
	n := copy(c.buf, c.buf[c.pos:])
	c.base += int64(c.pos)
	c.start = max(0, c.start-c.pos)
	c.buf, c.pos, c.counted = c.buf[:n], 0, 0
	if n > cap(c.buf)/2 {
		bigger := make([]byte, n, max(2*cap(c.buf), blockSize))
		copy(bigger, c.buf)
		c.buf = bigger
	}
	for c.err == nil && len(c.buf) < cap(c.buf) {
		var m int
		m, c.err = c.src.Read(c.buf[len(c.buf):cap(c.buf)])
		c.buf = c.buf[:len(c.buf)+m]
		if m > 0 {
			return true
		}
	}
	return false
}

// countLines moves the line counter up to buf[to].
func (c *cursor) countLines(to int) {
	if to > c.counted {
		c.line += int64(bytes.Count(c.buf[c.counted:to], []byte{'\n'}))
		c.counted = to
	}
}

// peek returns the next byte that is not white space; ok is false at the end.
func (c *cursor) peek() (b byte, ok bool) {
	for {
		c.pos = jsonscan.Space(c.buf, c.pos)
		if c.pos < len(c.buf) {
			return c.buf[c.pos], true
		}
		if !c.fill() {
			return 0, false
		}
	}
}

// retry runs scan, which looks at buf from pos on and answers where the token
// ends, until the token is complete in the buffer; then it moves behind it.
func (c *cursor) retry(scan func() (next int, err error)) error {
	for {
		next, err := scan()
		if err == nil {
			c.pos = next
			return nil
		}
		if err != jsonscan.ErrShort || !c.fill() {
			return err
		}
	}
}

// key scans `"name" :` and returns the name; it is valid until the next call.
func (c *cursor) key() (name []byte, err error) {
	err = c.retry(func() (int, error) {
		raw, _, next, err := jsonscan.String(c.buf, c.pos)
		if err != nil {
			return 0, err
		}
		next = jsonscan.Space(c.buf, next)
		if next >= len(c.buf) {
			return 0, jsonscan.ErrShort
		}
		if c.buf[next] != ':' {
			return 0, jsonscan.ErrSyntax
		}
		name = raw
		return next + 1, nil
	})
	return name, err
}

// skipValue moves behind the next value, which may be longer than any buffer.
func (c *cursor) skipValue() error {
	b, ok := c.peek()
	if !ok {
		return jsonscan.ErrShort
	}
	if b != '{' && b != '[' {
		return c.retry(func() (int, error) { return jsonscan.Value(c.buf, c.pos) })
	}
	var skip jsonscan.Skipper
	for {
		n, done, err := skip.Skip(c.buf[c.pos:])
		c.pos += n
		if done || err != nil {
			return err
		}
		if !c.fill() {
			return jsonscan.ErrShort
		}
	}
}

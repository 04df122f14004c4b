package otlpjson

import (
	"bytes"
	"io"

	"github.com/sgtrace/sgtrace/internal/jsonscan"
)

// A cursor walks a piece of input that is either complete in memory (src is nil) or continues in src. buf[pos:]
// is not consumed yet; fill may discard everything before pos.
type cursor struct {
	limits
	buf   []byte
	pos   int
	src   io.Reader
	err   error // that src ended with, including io.EOF
	start int   // where the current record or token begins
	base  int64 // offset of buf[0] in the input, or in the content of the frame
	line  int64 // 1-based line of buf[counted]
	// counted is the position up to which newlines were counted; it only grows within a buffer.
	counted int
	// framed: buf is unpacked from the frame at this offset, which is reported for every position, as positions in
	// the unpacked content would help nobody.
	framed  bool
	frameAt int64
}

// fill reads more input after buf[pos:], growing the buffer if the pending bytes leave no room. It returns
// false if there is no more, or if the pending record is too long.
func (c *cursor) fill() bool {
	if c.last() || c.tooLong() {
		return false
	}
	c.countLines(c.pos)
	n := copy(c.buf, c.buf[c.pos:])
	c.base += int64(c.pos)
	c.start = max(0, c.start-c.pos)
	c.buf, c.pos, c.counted = c.buf[:n], 0, 0
	// One block beyond the longest record is enough to see that a record is too long.
	if most := c.record + c.block; n > cap(c.buf)/2 && cap(c.buf) < most {
		size := min(max(2*cap(c.buf), c.block), most)
		if size > 2*c.piece {
			size = most // grow to the full size at once, or as much again would stay behind in smaller buffers
		}
		c.buf = append(make([]byte, 0, size), c.buf...)
	}
	// Doubling bounds how often a record is scanned again, even if src returns a byte at a time. The process only
	// holds the part of a buffer that was read into.
	full := min(max(2*n, c.block), cap(c.buf))
	for c.err == nil && len(c.buf) < full {
		var m int
		m, c.err = c.src.Read(c.buf[len(c.buf):full])
		c.buf = c.buf[:len(c.buf)+m]
	}
	return len(c.buf) > n
}

// last reports whether no more input can come.
func (c *cursor) last() bool { return c.src == nil || c.err != nil }

// tooLong reports whether the pending record is longer than any real one.
func (c *cursor) tooLong() bool { return len(c.buf)-c.pos > c.record }

// countLines advances the line counter to buf[to].
func (c *cursor) countLines(to int) {
	if to > c.counted {
		c.line += int64(bytes.Count(c.buf[c.counted:to], []byte{'\n'}))
		c.counted = to
	}
}

// at returns the position of buf[i], or that of its frame if there is one. Later calls must not ask for earlier
// bytes.
func (c *cursor) at(i int) place {
	c.countLines(i)
	return place{c.line, c.base + int64(i)}
}

// outside returns the position in the file.
func (c *cursor) outside(p place) place {
	if c.framed {
		return place{offset: c.frameAt}
	}
	return p
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

// retry runs scan, which looks at buf from pos on and returns where the token or record ends, until all of that
// is in the buffer, and then moves past it. On an error, it moves to where that was detected.
func (c *cursor) retry(scan func() (next int, err error)) error {
	for {
		next, err := scan()
		if err == jsonscan.ErrShort {
			was := c.base
			if c.fill() {
				continue
			}
			next -= int(c.base - was)
		}
		if err == nil && next-c.pos > c.record {
			err = errTooLong // even if it happened to fit in the buffer
		}
		c.pos = next
		return err
	}
}

// skipValue moves past the next value, which may be longer than any buffer. If a record of one of the levels
// seems to be inside, the value was cut off, and skipValue stops at the record.
func (c *cursor) skipValue(records levels) error {
	b, ok := c.peek()
	if !ok {
		return jsonscan.ErrShort
	}
	if b != '{' && b != '[' {
		return c.retry(func() (int, error) { return jsonscan.Value(c.buf, c.pos) })
	}
	var skipper jsonscan.Skipper
	for {
		rest := c.buf[c.pos:]
		ahead := skipper
		end, done, err := ahead.Skip(rest)
		n, _, found := nextRecord(rest[:end], records, done || c.last())
		switch {
		case found:
			err = errBegins
		case done || err != nil:
			n = end
		default:
			skipper.Skip(rest[:n])
			c.pos += n
			if c.fill() {
				continue
			}
			n, err = 0, jsonscan.ErrShort
		}
		c.pos += n
		if err != nil {
			c.start = c.pos // nothing to find before it
		}
		return err
	}
}

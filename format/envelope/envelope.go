// Package envelope removes the layers around the content of a file: compression, the lines of Docker's logs,
// the JSON of log stores, in any combination, and archives. Formats only see the content.
package envelope

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/sgtrace/sgtrace/internal/jsonscan"
)

// A Reader reads the content of a file.
type Reader struct {
	io.Reader
	Outer string // the innermost envelope that was taken off: "gzip", "zstd", "docker", "collected"; "" is none
	Head  []byte // the first [HeadBytes] of the content; valid until the first Read

	closers []func()
}

// HeadBytes is the part of the content that is sniffed. It is enough to recognize a format, unless the head of
// the file is missing.
const HeadBytes = 64 << 10

// envelopes are tried in this order.
var envelopes = []struct {
	name  string
	begin func(head []byte) bool
	open  func(in *bufio.Reader) (r io.Reader, closer func(), err error)
}{
	{"gzip", func(head []byte) bool { return bytes.HasPrefix(head, []byte{0x1f, 0x8b}) }, openGzip},
	{"zstd", func(head []byte) bool {
		return bytes.HasPrefix(head, []byte{0x28, 0xb5, 0x2f, 0xfd}) || isSkippableFrame(head)
	}, openZstd},
	{"docker", isDocker, openDocker},
	{"collected", isCollected, openCollected},
	{"collected", isExported, openExported},
}

const (
	maxLayers = 3         // .gz inside .gz happens; more is a bomb
	maxWindow = 128 << 20 // zstd --long=27, the most that the zstd tool takes unasked
)

// Open removes the envelopes of raw; name is for messages. The caller closes the result, which does not close
// raw.
func Open(name string, raw io.Reader) (*Reader, error) {
	r := &Reader{Reader: raw}
	if err := r.unwrap(name); err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

// Close releases the decompressors.
func (r *Reader) Close() {
	for _, f := range r.closers {
		f()
	}
	r.closers = nil
}

func (r *Reader) unwrap(name string) error {
layers:
	for range maxLayers {
		in := bufio.NewReaderSize(r.Reader, HeadBytes)
		head, err := in.Peek(HeadBytes)
		if errors.Is(err, zstd.ErrWindowSizeExceeded) && len(head) == 0 {
			return fmt.Errorf("%s: %w: run unzstd --long=31 -k on it and give the result", name, err)
		}
		if err != nil && err != io.EOF && len(head) == 0 {
			return fmt.Errorf("reading %s: %w", name, err)
		}
		for _, e := range envelopes {
			if !e.begin(head) {
				continue
			}
			below, closer, err := e.open(in)
			if err != nil {
				return fmt.Errorf("%s: broken %s header: %w", name, e.name, err)
			}
			r.Reader, r.Outer, r.closers = below, e.name, append(r.closers, closer)
			continue layers
		}
		r.Reader, r.Head = in, head
		return nil
	}
	return fmt.Errorf("%s: compressed more than %d times", name, maxLayers-1)
}

func openGzip(in *bufio.Reader) (io.Reader, func(), error) {
	z, err := NewGzip(in)
	return z, func() {}, err
}

func openZstd(in *bufio.Reader) (io.Reader, func(), error) {
	z, err := zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
	if err != nil {
		return nil, nil, err
	}
	return z, z.Close, nil
}

// isSkippableFrame reports whether head begins with a zstd skippable frame, which seekable archives put first
// (RFC 8878, 3.1.2).
func isSkippableFrame(head []byte) bool {
	return len(head) >= 4 && head[0]&0xf0 == 0x50 && head[1] == 0x2a && head[2] == 0x4d && head[3] == 0x18
}

// A Gzip reads the members of a gzip file, and like gzip(1) ignores zeros between and after them: tapes and
// block devices pad.
type Gzip struct {
	in  *bufio.Reader
	z   *gzip.Reader // current member
	err error        // the error at the end, which is returned repeatedly
}

// NewGzip reads the header of the first member.
func NewGzip(in *bufio.Reader) (*Gzip, error) {
	z, err := gzip.NewReader(in)
	if err != nil {
		return nil, err
	}
	z.Multistream(false)
	return &Gzip{in: in, z: z}, nil
}

func (g *Gzip) Read(p []byte) (n int, _ error) {
	for n == 0 && g.err == nil && len(p) > 0 { // members may be empty
		if n, g.err = g.z.Read(p); g.err == io.EOF {
			g.err = g.next()
		}
	}
	return n, g.err
}

// next moves to the next member; it returns io.EOF if there is none.
func (g *Gzip) next() error {
	for {
		b, err := g.in.ReadByte()
		if err != nil {
			return err
		}
		if b != 0 {
			break
		}
	}
	g.in.UnreadByte()
	err := g.z.Reset(g.in)
	if err == io.EOF {
		return io.ErrUnexpectedEOF // in the middle of a header
	}
	g.z.Multistream(false)
	return err
}

// isDocker reports whether head begins with a line of Docker's json-file log driver:
// {"log":"...\n","stream":"stdout","time":"..."}.
func isDocker(head []byte) bool {
	return bytes.HasPrefix(bytes.TrimLeft(head, " \t\r\n"), []byte(`{"log":"`))
}

// maxDockerLine bounds a line of the log. Docker writes at most 16 KiB of a program's output into one, and
// continues in the next.
const maxDockerLine = 1 << 20

// docker restores the output of a program from Docker's lines.
type docker struct {
	in   *bufio.Reader
	line []byte // of the log, if it is longer than in's buffer
	out  []byte // output from lines, not read yet from at on
	at   int
	err  error
	goes bool // the line of the program continues in Docker's next line
}

func openDocker(in *bufio.Reader) (io.Reader, func(), error) {
	return &docker{in: in}, func() {}, nil
}

func (d *docker) Read(p []byte) (n int, err error) {
	for n < len(p) {
		if d.at == len(d.out) {
			if d.err != nil || n > 0 && d.in.Buffered() == 0 { // more may take long to arrive
				break
			}
			d.out, d.at = d.out[:0], 0
			d.err = d.next()
		}
		copied := copy(p[n:], d.out[d.at:])
		n, d.at = n+copied, d.at+copied
	}
	if n == 0 && len(p) > 0 {
		return 0, d.err
	}
	return n, nil
}

// next takes the content of the next line of the log. If that begins with a local time in brackets, as in
// servers' logs, next puts Docker's time in front, as in kubectl's output: otherwise the zone would be unknown.
// A line that is not Docker's, or is damaged, goes to the format, which reports it; one that is cut off is the
// end.
func (d *docker) next() error {
	line, err := d.in.ReadSlice('\n')
	if err == bufio.ErrBufferFull {
		d.line = append(d.line[:0], line...)
		for err == bufio.ErrBufferFull && len(d.line) < maxDockerLine {
			line, err = d.in.ReadSlice('\n')
			d.line = append(d.line, line...)
		}
		line = d.line
	}
	if err != nil && len(line) == 0 {
		return err
	}
	if !isDocker(line) {
		d.out = append(d.out, line...)
		return nil
	}
	var text, stamp []byte
	end, err := jsonscan.Members(line, 0, func(key, value []byte) {
		switch string(key) {
		case "log":
			text = jsonscan.Quoted(value)
		case "time":
			stamp = jsonscan.Quoted(value)
		}
	})
	if err != nil || len(bytes.TrimSpace(line[end:])) > 0 || !known(text) {
		if line[len(line)-1] != '\n' {
			return io.ErrUnexpectedEOF
		}
		d.out = append(d.out, line...)
		return nil
	}
	first := !d.goes
	d.goes = !bytes.HasSuffix(text, []byte(`\n`))
	if first && bytes.HasPrefix(text, []byte("[20")) && len(stamp) > 0 {
		d.out = append(append(d.out, stamp...), ' ')
	}
	d.out = jsonscan.Unescape(d.out, text)
	return nil
}

// known reports whether all escapes of a string are valid JSON.
func known(raw []byte) bool {
	for i := bytes.IndexByte(raw, '\\'); i >= 0; i = bytes.IndexByte(raw, '\\') {
		if raw = raw[i+1:]; len(raw) == 0 || strings.IndexByte(`"\/bfnrtu`, raw[0]) < 0 {
			return false
		}
		raw = raw[1:]
	}
	return true
}

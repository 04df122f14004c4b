package convert

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// A Stream is an opened input after decompression.
type Stream struct {
	io.Reader
	Name        string
	Compression string  // "", "gzip", "zstd"
	Format      *Format // nil if it was not recognised
	Empty       bool    // nothing but white space
	unknown     error   // what it is otherwise
	zeros       bool    // it begins with nothing but zeros
	closers     []func() error
}

// Close releases everything behind the stream.
func (s *Stream) Close() error {
	var errs []error
	for i := len(s.closers) - 1; i >= 0; i-- {
		errs = append(errs, s.closers[i]())
	}
	return errors.Join(errs...)
}

// Open opens the named input; stdin is what Stdin stands for. Compression and
// format are recognised by content, never by name. meter may be nil.
func Open(name string, stdin io.Reader, meter Meter) (*Stream, error) {
	s := &Stream{Name: name}
	raw := stdin
	if name == Stdin {
		s.Name = "standard input"
	} else {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		s.closers = append(s.closers, f.Close)
		raw = f
	}
	if meter != nil {
		meter.File(s.Name)
		raw = &meteredReader{raw, meter}
	}
	if err := s.decompress(raw); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// decompress sets the Reader: it takes off compression as long as there is
// some, and looks at what is below.
func (s *Stream) decompress(raw io.Reader) error {
	r := raw
	for range maxLayers {
		in := bufio.NewReaderSize(r, sniffBytes)
		head, err := in.Peek(sniffBytes)
		if errors.Is(err, zstd.ErrWindowSizeExceeded) && len(head) == 0 {
			return fmt.Errorf("%s: %w: run unzstd --long=31 -k on it, and give the file that this makes", s.Name, err)
		}
		if err != nil && err != io.EOF && len(head) == 0 {
			return fmt.Errorf("reading %s: %w", s.Name, err)
		}
		switch {
		case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
			z, err := newGzipReader(in)
			if err != nil {
				return fmt.Errorf("%s: broken gzip header: %w", s.Name, err)
			}
			s.Compression, r = "gzip", z
		case bytes.HasPrefix(head, []byte{0x28, 0xb5, 0x2f, 0xfd}) || isSkippableFrame(head):
			z, err := zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
			if err != nil {
				return fmt.Errorf("%s: broken zstd header: %w", s.Name, err)
			}
			s.closers = append(s.closers, func() error { z.Close(); return nil })
			s.Compression, r = "zstd", z
		default:
			s.Reader, s.Format, s.Empty = in, sniff(head), len(bytes.TrimSpace(head)) == 0
			s.unknown, s.zeros = unknownFormat(head), len(bytes.TrimLeft(head, "\x00")) == 0
			return nil
		}
	}
	return fmt.Errorf("%s: compressed more than %d times over", s.Name, maxLayers-1)
}

// gzipReader reads the members of a gzip file, and like gzip(1) takes no offence
// at zeros between and behind them: tapes and block devices pad.
type gzipReader struct {
	in  *bufio.Reader
	z   *gzip.Reader // one member
	err error        // that ended it; said again as often as it is asked
}

func newGzipReader(in *bufio.Reader) (*gzipReader, error) {
	z, err := gzip.NewReader(in)
	if err != nil {
		return nil, err
	}
	z.Multistream(false)
	return &gzipReader{in: in, z: z}, nil
}

func (g *gzipReader) Read(p []byte) (n int, _ error) {
	for n == 0 && g.err == nil && len(p) > 0 { // members may be empty
		if n, g.err = g.z.Read(p); g.err == io.EOF {
			g.err = g.next()
		}
	}
	return n, g.err
}

// next goes on to the next member; io.EOF says that there is none.
func (g *gzipReader) next() error {
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

const (
	maxLayers = 3         // .gz inside .gz happens; more is a bomb
	maxWindow = 128 << 20 // zstd --long=27, the most that the zstd tool takes unasked
)

// isSkippableFrame tells whether head begins with a zstd skippable frame, which
// seekable archives put in front (RFC 8878, 3.1.2).
func isSkippableFrame(head []byte) bool {
	return len(head) >= 4 && head[0]&0xf0 == 0x50 && head[1] == 0x2a && head[2] == 0x4d && head[3] == 0x18
}

type meteredReader struct {
	r     io.Reader
	meter Meter
}

func (m *meteredReader) Read(p []byte) (int, error) {
	n, err := m.r.Read(p)
	m.meter.Add(n)
	return n, err
}

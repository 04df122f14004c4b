package memory

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/klauspost/compress/s2"
)

// inMemory is the number of bytes that are kept without a file.
const inMemory = 4 << 20

// block is the number of bytes that are compressed together: reading any byte decompresses its block.
const block = 256 << 10

// A Spool keeps the content of a stream. The zero value is empty.
type Spool struct {
	err    error // that the stream ended with; nil for io.EOF
	failed error // why the stream could not be kept

	small  []byte
	size   int64
	file   *os.File
	to     *s2.Writer
	remove func() error
	index  []byte
	full   bool // the stream was read to its end
}

// Keep returns a reader that reads r and keeps what it read. Closing it reads the rest, and closes r.
func (s *Spool) Keep(r io.ReadCloser) io.ReadCloser { return &keeper{r, s} }

type keeper struct {
	io.ReadCloser
	to *Spool
}

func (k *keeper) Read(p []byte) (n int, err error) {
	n, err = k.ReadCloser.Read(p)
	if k.to.write(p[:n]); k.to.failed != nil {
		return n, k.to.failed
	}
	if err != nil {
		k.to.err = err
	}
	return n, err
}

func (k *keeper) Close() error {
	_, err := io.Copy(io.Discard, struct{ io.Reader }{k})
	if k.to.err == err {
		err = nil // reading it again will return it
	}
	if k.to.end(); k.to.failed != nil {
		err = k.to.failed
	}
	return cmp.Or(err, k.ReadCloser.Close())
}

// fail records why the stream cannot be kept.
func (s *Spool) fail(err error) {
	if err != nil && s.failed == nil {
		s.failed = fmt.Errorf("writing it to a temporary file: %w (TMPDIR says where these go)", err)
	}
}

// Write keeps p, for a stream without a reader. Call [Spool.End] after the last Write.
func (s *Spool) Write(p []byte) (int, error) {
	s.write(p)
	return len(p), s.failed
}

// End ends the stream after the last [Spool.Write].
func (s *Spool) End() error {
	s.end()
	return s.failed
}

// Failed returns why the stream could not be kept; nil if it was.
func (s *Spool) Failed() error { return s.failed }

func (s *Spool) write(p []byte) {
	s.size += int64(len(p))
	if s.file == nil && s.failed == nil {
		if s.small = append(s.small, p...); len(s.small) <= inMemory {
			return
		}
		f, remove, err := TempFile("spooled")
		if err != nil {
			s.fail(err)
			return
		}
		s.file, s.remove, s.to = f, remove, s2.NewWriter(f, s2.WriterBlockSize(block))
		p, s.small = s.small, nil
	}
	if s.failed == nil {
		_, err := s.to.Write(p)
		s.fail(err)
	}
}

func (s *Spool) end() {
	s.full = true
	if s.to != nil {
		index, err := s.to.CloseIndex()
		s.fail(err)
		s.index, s.to = index, nil
	}
}

// Size returns the number of bytes read.
func (s *Spool) Size() int64 { return s.size }

// Full reports whether the stream was read to its end.
func (s *Spool) Full() bool { return s.full }

// Open reads the content of the stream again, after the stream was read. The result is an [io.ReaderAt], unless
// the stream ended with an error, which the reader returns again. Several may be open at once, each used by one goroutine.
func (s *Spool) Open() (io.ReadCloser, error) {
	content := io.ReadSeeker(bytes.NewReader(s.small))
	if s.file != nil {
		r := s2.NewReader(io.NewSectionReader(s.file, 0, 1<<62), s2.ReaderMaxBlockSize(block))
		var err error
		if content, err = r.ReadSeeker(true, s.index); err != nil {
			return nil, err
		}
	}
	if s.err != nil && s.err != io.EOF {
		return io.NopCloser(io.MultiReader(content, broken{s.err})), nil
	}
	return &reader{r: content}, nil
}

// broken returns the error that a stream ended with.
type broken struct{ err error }

func (b broken) Read([]byte) (int, error) { return 0, b.err }

// A reader reads the content from its beginning, or at any offset.
type reader struct {
	mu sync.Mutex
	r  io.ReadSeeker
	at int64 // offset of Read
	is int64 // offset of r
}

func (r *reader) Read(p []byte) (n int, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n, err = r.read(p, r.at)
	r.at += int64(n)
	return n, err
}

func (r *reader) ReadAt(p []byte, offset int64) (n int, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for n < len(p) && err == nil {
		var m int
		m, err = r.read(p[n:], offset+int64(n))
		n += m
	}
	if n == len(p) {
		err = nil
	}
	return n, err
}

// read seeks only if it has to, as compressed blocks are read from their beginnings.
func (r *reader) read(p []byte, at int64) (n int, err error) {
	if r.is != at {
		if _, err := r.r.Seek(at, io.SeekStart); err != nil {
			return 0, err
		}
		r.is = at
	}
	n, err = r.r.Read(p)
	r.is += int64(n)
	return n, err
}

func (r *reader) Close() error { return nil }

// Close frees the content.
func (s *Spool) Close() error {
	if s.remove == nil {
		return nil
	}
	s.file.Close()
	return s.remove()
}

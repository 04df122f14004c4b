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

// inMemory is how many bytes need no file.
const inMemory = 4 << 20

// block is how many bytes are compressed together: whoever reads at some place decompresses
// those around it.
const block = 256 << 10

// A Spool has the content of a stream. The zero value is empty.
type Spool struct {
	err    error // that the stream ended with; io.EOF is none
	failed error // why it could not be kept

	small  []byte
	size   int64
	file   *os.File
	to     *s2.Writer
	remove func() error
	index  []byte
	full   bool // the stream was read to its end
}

// Keep returns what reads r and keeps what was read. Closing it reads the rest, and closes r.
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
		err = nil // whoever reads it again will meet it
	}
	if k.to.end(); k.to.failed != nil {
		err = k.to.failed
	}
	return cmp.Or(err, k.ReadCloser.Close())
}

// fail notes why the stream cannot be kept.
func (s *Spool) fail(err error) {
	if err != nil && s.failed == nil {
		s.failed = fmt.Errorf("writing it to a temporary file: %w (TMPDIR says where these go)", err)
	}
}

// Write keeps p, of a stream that nobody reads. [Spool.End] follows the last one.
func (s *Spool) Write(p []byte) (int, error) {
	s.write(p)
	return len(p), s.failed
}

// End says that all was written.
func (s *Spool) End() error {
	s.end()
	return s.failed
}

// Failed tells why the stream could not be kept; nil if it was.
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

// Size returns how many bytes were read.
func (s *Spool) Size() int64 { return s.size }

// Full reports whether the stream was read to its end.
func (s *Spool) Full() bool { return s.full }

// Open reads the content of the stream once more, once that was read. What it returns is an
// [io.ReaderAt], unless the stream ended with an error, which whoever reads it meets again. Of
// several at a time, each is to be used by itself.
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

// broken is where a stream ended with an error.
type broken struct{ err error }

func (b broken) Read([]byte) (int, error) { return 0, b.err }

// A reader reads the content from its beginning, and at any place.
type reader struct {
	mu sync.Mutex
	r  io.ReadSeeker
	at int64 // of Read
	is int64 // where r is
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

// read moves only where it has to: of what is compressed, blocks are read from their beginnings.
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

// Close gives up what was kept.
func (s *Spool) Close() error {
	if s.remove == nil {
		return nil
	}
	s.file.Close()
	return s.remove()
}

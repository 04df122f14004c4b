package inputs

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/sgtrace/sgtrace/format"
	"github.com/sgtrace/sgtrace/format/envelope"
)

// A Stream is an opened file with its envelopes removed.
type Stream struct {
	io.Reader
	Name        string
	Compression string         // "", "gzip", "zstd"
	Format      *format.Format // nil if unrecognized
	Empty       bool           // has nothing but white space
	unknown     error          // the error if Format is nil
	zeros       bool           // begins with nothing but zeros
	own         *reason        // the kind of file, if sgtrace wrote it; otherwise nil
	content     *envelope.Reader
	file        *os.File // nil for standard input
	meter       Meter    // may be nil
}

// Close releases all resources of the stream.
func (s *Stream) Close() error {
	if s.content != nil {
		s.content.Close()
	}
	if s.file == nil {
		return nil
	}
	return s.file.Close()
}

// A plainStream is a file without envelopes, which supports random access.
type plainStream struct{ *Stream }

func (s plainStream) ReadAt(p []byte, offset int64) (int, error) {
	n, err := s.file.ReadAt(p, offset)
	if s.meter != nil {
		s.meter.Add(n)
	}
	return n, err
}

// open opens the input; Stdin is read from stdin. Compression and format are recognized by content, never
// by name. meter may be nil.
func (in Input) open(stdin io.Reader, meter Meter) (*Stream, error) {
	s := &Stream{Name: MessageName(in.Name)}
	raw := stdin
	if in.Name != Stdin {
		f, err := os.Open(in.Path())
		if err != nil {
			return nil, err
		}
		s.file, raw = f, f
	}
	if s.meter = meter; meter != nil {
		meter.File(s.Name)
		raw = &meteredReader{raw, meter}
	}
	var err error
	if s.content, err = envelope.Open(s.Name, raw); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	head := s.content.Head
	s.Reader, s.Compression, s.Format = s.content, s.content.Outer, sniff(head)
	s.own = ownOf(head)
	isSource := (s.Format == nil || s.Format.Requests) && source.Match(head)
	if isSource {
		s.Format = nil
	}
	s.Empty, s.zeros = len(bytes.TrimSpace(head)) == 0, len(bytes.TrimLeft(head, "\x00")) == 0
	if s.Format != nil {
		return s, nil
	}
	if s.unknown = unknownFormat(head); isSource {
		s.unknown = errSource
	} else if ext := filepath.Ext(in.Name); s.unknown == errUnknownFormat && (ext == ".nsys-rep" || ext == ".qdrep") {
		s.unknown = damagedReport
	}
	return s, nil
}

// MessageName returns the name of an input for messages.
func MessageName(name string) string {
	if name == Stdin {
		return "standard input"
	}
	return name
}

var errEmpty = errors.New("the file is empty")

// unusable returns why s cannot be read, nil if it can.
func (s *Stream) unusable() error {
	switch {
	case s.Empty:
		return errEmpty
	case s.Format == nil:
		return s.unknown
	}
	return nil
}

// A Meter receives the progress of reading. It may be called from any goroutine.
type Meter interface {
	File(name string) // the file that is read from now on
	Add(n int)        // number of bytes read, before decompression
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

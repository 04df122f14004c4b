package inputs

import (
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/sgtrace/sgtrace/format"
	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/trace"
)

// Source is a recognized input, and what its format read from it.
type Source struct {
	Content *format.Source
	Input   Input
	Format  *format.Format
	names   []string // of the files in it, if it is a folder
	Once    bool     // it can be opened only once
	stream  *Stream  // open after recognition; nil if it was closed or has been read
	meter   Meter    // for the first reading; nil from then on
	stdin   io.Reader
	spool   *memory.Spool // for an input that can be opened only once but is read twice; otherwise nil
	zeros   bool          // the head has nothing but zeros
	// Input that must be on disk but is compressed or a pipe is unpacked to a temporary file, which remove
	// removes.
	unpacked bool
	remove   func() error
	own      *reason   // the kind of file, if sgtrace wrote it
	reopened []*Source // the originals of a capture in a dataset
	closed   bool      // originals must not be opened
	head     uint64    // a hash of the beginning of a log; see repeatedLogs
}

// fewOpen is how many files any system lets a process keep open, see mostOpen. There may be more inputs:
// the others are opened again after recognition.
const fewOpen = 8

// recognize examines the head of the input. It keeps the stream open if keep is set, or if the input can be
// opened only once.
func (x *Source) recognize(keep bool) error {
	if x.Input.capture != nil {
		return x.recognizeCapture()
	}
	info, err := os.Stat(x.Input.Path())
	if err == nil && info.IsDir() {
		return x.recognizeFolder()
	}
	x.Once = err != nil || !info.Mode().IsRegular()
	meter := x.meter
	switch {
	case x.Once || meter == nil:
	case keep:
		meter = silent{meter} // until it is read
	default:
		meter = nil // its bytes are read again
	}
	s, err := x.Input.open(x.stdin, meter)
	if err != nil {
		return err
	}
	x.stream, x.Format, x.zeros, x.own = s, s.Format, s.zeros, s.own
	x.head = maphash.Bytes(headSeed, s.content.Head)
	if err := s.unusable(); err != nil {
		return err
	}
	pipe := x.Once
	if x.Format.OnDisk {
		x.unpacked, x.Once = pipe || s.Compression != "", false
		keep = keep && x.unpacked
	}
	if !keep && !pipe {
		return x.closeStream()
	}
	return nil
}

// silent is a Meter without the names of files.
type silent struct{ Meter }

func (silent) File(string) {}

func (x *Source) recognizeFolder() error {
	entries, err := os.ReadDir(x.Input.Path())
	if err != nil {
		return err
	}
	x.names = filesOf(x.Input.Path(), entries)
	if x.Format = sniffFolder(x.names); x.Format == nil {
		return errUnknownFormat
	}
	return nil
}

func (x *Source) closeStream() error {
	if x.stream == nil {
		return nil
	}
	s := x.stream
	x.stream = nil
	return s.Close()
}

// open returns the content of the input: the stream that recognition left open, or the file opened again,
// for example for a window of time.
func (x *Source) open() (io.ReadCloser, error) {
	if x.spool != nil && x.spool.Full() {
		return x.spool.Open()
	}
	s, meter := x.stream, x.meter
	x.stream, x.meter = nil, nil
	switch {
	case s != nil:
		if meter != nil {
			meter.File(s.Name)
		}
	case x.Once:
		return nil, fmt.Errorf("%s: %w", x.name(), ErrOnce)
	default:
		var err error
		if s, err = x.Input.open(nil, meter); err != nil {
			return nil, err
		}
	}
	switch {
	case x.spool != nil:
		return x.spool.Keep(s), nil
	case s.Compression == "" && !x.Once:
		return plainStream{s}, nil
	}
	return s, nil
}

// paths returns the paths of the files in a folder; nil for a file.
func (x *Source) paths() (paths []string) {
	return order.Each(x.names, func(name string) string { return filepath.Join(x.Input.Path(), name) })
}

// name returns the name of the input for messages.
func (x *Source) name() string { return MessageName(x.Input.Name) }

// asked returns the input as its format sees it.
func (x *Source) asked() *format.Input {
	return &format.Input{Name: x.name(), Path: x.Input.Path(), Files: x.paths(), Found: x.Input.Search != nil, Open: x.open}
}

// index reads the input with its format.
func (x *Source) index(opt *format.Options) error {
	in := x.asked()
	var err error
	if x.unpacked {
		in.Path, err = x.unpack(opt.Diags)
	}
	switch {
	case err != nil:
	case x.Input.capture != nil:
		x.Content, err = x.indexCapture(in, opt)
	default:
		x.Content, err = x.Format.Index(in, opt)
		if err == nil {
			err = indexParts(in, x.Content, opt)
		}
	}
	err = errors.Join(err, x.closeStream())
	if err != nil {
		x.close()
	}
	return err
}

// close closes the files that rows are read from, and removes temporary files.
func (x *Source) close() error {
	var errs []error
	if x.Content != nil && x.Content.Close != nil {
		errs = append(errs, x.Content.Close())
	}
	if x.remove != nil {
		errs = append(errs, x.remove())
		x.remove = nil
	}
	if x.spool != nil {
		errs = append(errs, x.spool.Close())
		x.spool = nil
	}
	for _, o := range x.reopened {
		errs = append(errs, o.close())
	}
	x.reopened = nil
	return errors.Join(errs...)
}

// Recognize returns the inputs that can be read: dumps and logs first, then profiles, then the rest. Inputs
// that cannot be used are reported to diags. The caller closes each result.
func Recognize(inputs []Input, opt Options, diags *trace.Diags) []*Source {
	m := &Loaded{Spans: newSpans(diags, opt.KeepSecrets), Diags: diags, opt: opt}
	known := m.recognize(inputs)
	return slices.Concat(known.dumps, known.recordings, known.aside)
}

// Apart reads an input into its own tables. After an error, nothing in them can be used.
func (x *Source) Apart(opt Options, diags *trace.Diags) (*Loaded, error) {
	m := newLoaded(opt, diags)
	m.Sources = []*Source{x}
	reading := m.options(opt.Filter, 0)
	reading.Parts = false // a dataset has only what the input's own format reads
	err := x.index(reading)
	m.finishSeries()
	m.Spans.ReportOther()
	return m, err
}

// Files returns the paths of the files that an input consists of, sorted.
func (in Input) Files() (paths []string, err error) {
	info, err := os.Stat(in.Path())
	if err != nil || !info.IsDir() {
		return []string{in.Path()}, err
	}
	entries, err := os.ReadDir(in.Path())
	for _, name := range filesOf(in.Path(), entries) {
		paths = append(paths, filepath.Join(in.Path(), name))
	}
	return paths, err
}

// Close releases the input.
func (x *Source) Close() error { return errors.Join(x.closeStream(), x.close()) }

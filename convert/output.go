package convert

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/klauspost/compress/gzip"

	"github.com/sgtrace/sgtrace/chrometrace"
	"github.com/sgtrace/sgtrace/perfetto"
	"github.com/sgtrace/sgtrace/trace"
)

// outputs lists what can be written, by the end of the name. Anything else is
// refused, so that a typing error does not decide a format.
var outputs = []struct {
	suffix string
	write  func(w io.Writer, t *trace.Trace) error
	gzip   bool
}{
	{".pftrace", perfetto.Write, false},
	{".pftrace.gz", perfetto.Write, true},
	{".perfetto-trace", perfetto.Write, false},
	{".json", chrometrace.Write, false},
	{".json.gz", chrometrace.Write, true},
}

// ErrOutputName says that the output cannot have this name.
var ErrOutputName = errors.New("unusable output name")

// An Output is a file that appears whole or not at all: it is written beside
// its final name and renamed at the end.
type Output struct {
	name  string
	write func(w io.Writer, t *trace.Trace) error
	gzip  bool
	file  *os.File

	mu   sync.Mutex // guards done
	done bool       // renamed or removed
}

// Create prepares the output of the given name, before the long work, so that
// what cannot be written is known at once. inputs must not be overwritten.
func Create(name string, inputs []string) (*Output, error) {
	o := &Output{name: name}
	for _, f := range outputs {
		if hasSuffix(name, f.suffix) {
			o.write, o.gzip = f.write, f.gzip
		}
	}
	if o.write == nil {
		return nil, fmt.Errorf("%w: %s must end in .pftrace, .pftrace.gz, .json or .json.gz", ErrOutputName, name)
	}
	for _, in := range inputs {
		if same(in, name) {
			return nil, fmt.Errorf("%w: %s is also an input", ErrOutputName, name)
		}
	}
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("output %s: not a regular file", name)
	}
	if _, err := os.Stat(filepath.Dir(name)); err != nil {
		return nil, fmt.Errorf("output %s: %w", name, err)
	}
	var err error
	o.file, err = os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+".*.tmp")
	if err != nil {
		return nil, fmt.Errorf("output %s: %w", name, err)
	}
	return o, nil
}

func hasSuffix(name, suffix string) bool { return strings.HasSuffix(strings.ToLower(name), suffix) }

// IsOutputName tells whether name is one that outputs can have.
func IsOutputName(name string) bool {
	for _, f := range outputs {
		if hasSuffix(name, f.suffix) {
			return true
		}
	}
	return false
}

// same tells whether two names are one file.
func same(a, b string) bool {
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	return errX == nil && errY == nil && os.SameFile(x, y)
}

// Write writes t and gives the file its name. It returns the size in bytes.
func (o *Output) Write(t *trace.Trace) (int64, error) {
	if err := o.writeAll(t); err != nil {
		return 0, fmt.Errorf("writing %s: %w", o.name, err)
	}
	info, err := o.file.Stat()
	if err != nil {
		return 0, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	// CreateTemp makes files private; the result is as readable as any other.
	if err := errors.Join(o.file.Chmod(0o644), o.file.Close()); err != nil {
		return 0, fmt.Errorf("writing %s: %w", o.name, err)
	}
	if err := os.Rename(o.file.Name(), o.name); err != nil {
		return 0, fmt.Errorf("writing %s: %w", o.name, err)
	}
	o.done = true
	return info.Size(), nil
}

func (o *Output) writeAll(t *trace.Trace) error {
	if !o.gzip {
		return o.write(o.file, t)
	}
	// Compression takes longer than encoding; it runs behind a pipe on a core of
	// its own.
	r, w := io.Pipe()
	done := make(chan error, 1)
	go func() {
		z, _ := gzip.NewWriterLevel(o.file, gzip.BestSpeed)
		_, err := io.Copy(z, r)
		err = errors.Join(err, z.Close())
		r.CloseWithError(err)
		done <- err
	}()
	buf := bufio.NewWriterSize(w, 1<<20)
	err := o.write(buf, t)
	if err == nil {
		err = buf.Flush()
	}
	w.CloseWithError(err)
	return errors.Join(err, <-done)
}

// Abandon removes what was written so far. It does nothing after Write, and may
// be called at any time from any goroutine.
func (o *Output) Abandon() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.done {
		o.file.Close()
		os.Remove(o.file.Name())
		o.done = true
	}
}

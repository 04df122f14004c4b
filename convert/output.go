package convert

import (
	"bufio"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
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

// ErrDiffers says that a file does not hold what was written to it.
var ErrDiffers = errors.New("the file is not what was written")

// An Output is a file that appears whole or not at all: it is written without a
// name, or beside its final one where the file system wants a name, and renamed
// at the end.
type Output struct {
	name  string
	write func(w io.Writer, t *trace.Trace) error // nil for what is no trace
	gzip  bool
	file  *os.File
	temp  string // the name that file has so far; "" if none

	mu   sync.Mutex // guards temp and done
	done bool       // renamed or removed
}

// Create prepares the output of the given name, before the long work, so that
// what cannot be written is known at once. inputs must not be overwritten.
func Create(name string, inputs []string) (*Output, error) {
	for _, f := range outputs {
		if !hasSuffix(name, f.suffix) {
			continue
		}
		o, err := CreateFile(name, inputs)
		if err == nil {
			o.write, o.gzip = f.write, f.gzip
		}
		return o, err
	}
	return nil, fmt.Errorf("%w: %s must end in .pftrace, .pftrace.gz, .json or .json.gz", ErrOutputName, name)
}

// CreateFile is like Create for a file of any name and content, which
// [Output.WriteFunc] writes.
func CreateFile(name string, inputs []string) (*Output, error) {
	for _, in := range inputs {
		if SameFile(in, name) {
			return nil, fmt.Errorf("%w: %s is also an input", ErrOutputName, name)
		}
	}
	info, err := os.Stat(name)
	switch {
	case err == nil && !info.Mode().IsRegular():
		return nil, fmt.Errorf("output %s: not a regular file", name)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("output %s: %w", name, err)
	}
	if dir := filepath.Dir(name); !exists(dir) {
		return nil, fmt.Errorf("output %s: there is no folder %s; 'mkdir -p %[2]s' makes it", name, dir)
	}
	o := &Output{name: name}
	if o.file = openNameless(name); o.file == nil {
		if o.file, err = os.CreateTemp(filepath.Dir(name), o.hidden("*")); err != nil {
			return nil, fmt.Errorf("output %s: %w", name, err)
		}
		o.temp = o.file.Name()
	}
	return o, nil
}

// hidden returns the name that the file has before its final one.
func (o *Output) hidden(unique string) string {
	return "." + filepath.Base(o.name) + "." + unique + ".tmp"
}

// Name returns the final name.
func (o *Output) Name() string { return o.name }

// IsJSON tells whether a trace is written as Chrome JSON.
func (o *Output) IsJSON() bool { return hasSuffix(o.name, ".json") || hasSuffix(o.name, ".json.gz") }

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

// SameFile tells whether two names are one file, or will be: a name may be of a
// file that is yet to be written.
func SameFile(a, b string) bool {
	if same(a, b) {
		return true
	}
	return filepath.Base(a) == filepath.Base(b) && same(filepath.Dir(a), filepath.Dir(b))
}

func same(a, b string) bool {
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	return errX == nil && errY == nil && os.SameFile(x, y)
}

// Write writes t and gives the file its name. It returns the size in bytes.
func (o *Output) Write(t *trace.Trace) (int64, error) {
	return o.WriteFunc(func(w io.Writer) error { return o.write(w, t) })
}

// WriteFunc is like Write for what write writes.
func (o *Output) WriteFunc(write func(w io.Writer) error) (int64, error) {
	return o.writeChecked(write, func() error { return nil })
}

// writeChecked is like WriteFunc, but the file gets its name only if check returns nil.
func (o *Output) writeChecked(write func(w io.Writer) error, check func() error) (size int64, err error) {
	if o.gzip {
		err = compress(o.file, write)
	} else {
		err = write(o.file)
	}
	if err == nil {
		err = check()
	}
	if err == nil {
		size, err = o.appear()
	}
	if inner, ok := errors.AsType[*fs.PathError](err); ok {
		err = inner.Err // the hidden name says nothing
	}
	if err != nil {
		return 0, fmt.Errorf("writing %s: %w", o.name, err)
	}
	return size, nil
}

// appear gives the file its name.
func (o *Output) appear() (size int64, err error) {
	info, err := o.file.Stat()
	if err != nil {
		return 0, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.temp == "" {
		// A link cannot take the place of a file, only a rename can.
		temp := filepath.Join(filepath.Dir(o.name), o.hidden(rand.Text()[:10]))
		if err := linkNameless(o.file, temp); err != nil {
			return 0, err
		}
		o.temp = temp
	}
	// Temporary files are private; the result is as readable as any other.
	if err := errors.Join(o.file.Chmod(0o644), o.file.Close()); err != nil {
		return 0, err
	}
	if err := os.Rename(o.temp, o.name); err != nil {
		return 0, err
	}
	o.done = true
	return info.Size(), nil
}

// compress gives write a writer that compresses to w. Compression takes longer
// than encoding; it runs behind a pipe on a core of its own.
func compress(w io.Writer, write func(w io.Writer) error) error {
	out, in := io.Pipe()
	done := make(chan error, 1)
	go func() {
		z, _ := gzip.NewWriterLevel(w, gzip.BestSpeed)
		_, err := io.Copy(z, out)
		if err == nil {
			err = z.Close()
		}
		out.CloseWithError(err)
		done <- err
	}()
	buf := bufio.NewWriterSize(in, 1<<20)
	err := write(buf)
	if err == nil {
		err = buf.Flush()
	}
	// An error of either side is the other one's, too: it is told once.
	in.CloseWithError(err)
	return <-done
}

// Abandon removes what was written so far. It does nothing after Write, and may
// be called at any time from any goroutine.
func (o *Output) Abandon() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.done {
		o.file.Close()
		if o.temp != "" {
			os.Remove(o.temp)
		}
		o.done = true
	}
}

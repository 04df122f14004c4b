package convert

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/sgtrace/sgtrace/chrometrace"
	"github.com/sgtrace/sgtrace/convert/inputs"
	"github.com/sgtrace/sgtrace/convert/verify"
	"github.com/sgtrace/sgtrace/format/envelope"
	"github.com/sgtrace/sgtrace/perfetto"
	"github.com/sgtrace/sgtrace/trace"
)

// outputs lists the supported formats by file name suffix. Any other suffix is refused, so that a
// typo does not pick a format.
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

// ErrOutputName is returned if the output cannot have this name.
var ErrOutputName = errors.New("unusable output name")

// errDiffers is returned if a file does not hold what was written to it.
var errDiffers = errors.New("the file differs from what was written")

// An Output is a file that appears whole or not at all. It is written without a name, or under a
// temporary name beside the final one if the file system needs names, and is renamed at the end.
type Output struct {
	name  string
	write func(w io.Writer, t *trace.Trace) error // nil unless the output is a trace
	gzip  bool
	file  *os.File
	mode  fs.FileMode // of the file being replaced; 0 if there is none
	held  bool        // Release, not Write, gives it its name

	mu   sync.Mutex // guards temp and done
	temp string     // the file's current name; "" if none
	done bool       // renamed or removed
}

// CreateOutput prepares the output of the given name before the long work starts, so that an output
// that cannot be written fails at once. It must not overwrite any of files, the inputs.
func CreateOutput(name string, files []string) (*Output, error) {
	for _, f := range outputs {
		if !inputs.HasSuffix(name, f.suffix) {
			continue
		}
		o, err := CreateFileOutput(name, files)
		if err == nil {
			o.write, o.gzip = f.write, f.gzip
		}
		return o, err
	}
	return nil, fmt.Errorf("%w: %s must end in .pftrace, .pftrace.gz, .json or .json.gz", ErrOutputName, name)
}

// CreateFileOutput is like CreateOutput for a file of any name and content, which
// [Output.WriteFunc] writes.
func CreateFileOutput(name string, inputs []string) (*Output, error) {
	for _, in := range inputs {
		if SameFile(in, name) {
			return nil, fmt.Errorf("%w: %s is also an input", ErrOutputName, name)
		}
	}
	o := &Output{name: name}
	if err := o.open(); err != nil {
		return nil, fmt.Errorf("output %s: %w", name, withoutPath(err))
	}
	return o, nil
}

// newMode is the mode of a new file, before the umask.
const newMode = 0o666

// open opens the file to write, after checking the one that it will replace.
func (o *Output) open() error {
	info, err := os.Stat(o.name)
	switch {
	case err == nil && !info.Mode().IsRegular():
		return errors.New("not a regular file")
	case err == nil:
		// Renaming would replace even a write-protected file; it must not.
		old, err := os.OpenFile(o.name, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		old.Close()
		o.mode = info.Mode().Perm()
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if dir := filepath.Dir(o.name); !inputs.Exists(dir) {
		return fmt.Errorf("there is no directory %s; 'mkdir -p %[1]s' creates it", dir)
	}
	if o.file = openNameless(o.name); o.file == nil {
		return o.openNamed()
	}
	return nil
}

// openNamed opens the file under a hidden name.
func (o *Output) openNamed() (err error) {
	o.temp = o.hidden()
	o.file, err = os.OpenFile(o.temp, os.O_RDWR|os.O_CREATE|os.O_EXCL, newMode)
	return err
}

// hidden returns a temporary name for the file.
func (o *Output) hidden() string {
	return filepath.Join(filepath.Dir(o.name), "."+filepath.Base(o.name)+"."+rand.Text()[:10]+".tmp")
}

// withoutPath strips the path from an error: the caller adds the path again, or it is a hidden name
// that means nothing to the user.
func withoutPath(err error) error {
	if inner, ok := errors.AsType[*fs.PathError](err); ok {
		return inner.Err
	}
	return err
}

// Name returns the final name.
func (o *Output) Name() string { return o.name }

// IsJSON reports whether a trace is written as Chrome JSON.
func (o *Output) IsJSON() bool {
	return inputs.HasSuffix(o.name, ".json") || inputs.HasSuffix(o.name, ".json.gz")
}

// IsOutputName reports whether an output can have this name.
func IsOutputName(name string) bool {
	for _, f := range outputs {
		if inputs.HasSuffix(name, f.suffix) {
			return true
		}
	}
	return false
}

// SameFile reports whether two names are the same file, or will be: either file may not exist yet.
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

// WriteFunc is like Write for content that the given function writes.
func (o *Output) WriteFunc(write func(w io.Writer) error) (int64, error) {
	return o.writeChecked(write, func() error { return nil })
}

// writeChecked is like WriteFunc, but the file gets its name only if check returns nil.
func (o *Output) writeChecked(write func(w io.Writer) error, check func() error) (size int64, err error) {
	out := bufio.NewWriterSize(o.file, 1<<16) // templates write word by word, gzip a few hundred bytes at a time
	if o.gzip {
		err = compress(out, write)
	} else {
		err = write(out)
	}
	if err == nil {
		err = out.Flush()
	}
	if err == nil {
		err = check()
	}
	var info fs.FileInfo
	if err == nil {
		info, err = o.file.Stat()
	}
	if err == nil && !o.held {
		err = o.appear()
	}
	if err != nil {
		return 0, fmt.Errorf("writing %s: %w", o.name, withoutPath(err))
	}
	return info.Size(), nil
}

// Hold delays naming the file until [Output.Release], so that it can appear together with others.
func (o *Output) Hold() { o.held = true }

// Release gives its name to a held file that has been written.
func (o *Output) Release() error {
	if err := o.appear(); err != nil {
		return fmt.Errorf("writing %s: %w", o.name, withoutPath(err))
	}
	return nil
}

// appear gives the file its name.
func (o *Output) appear() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.temp == "" {
		// A link cannot replace an existing file; only a rename can.
		temp := o.hidden()
		if err := linkNameless(o.file, temp); err != nil {
			return err
		}
		o.temp = temp
	}
	if o.mode != 0 {
		if err := o.file.Chmod(o.mode); err != nil {
			return err
		}
	}
	if err := o.file.Close(); err != nil {
		return err
	}
	if err := os.Rename(o.temp, o.name); err != nil {
		return err
	}
	o.done = true
	return nil
}

// compress gives write a writer that compresses to w. Compression is slower than encoding, so it
// runs behind a pipe on its own core.
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
	// An error on either side also reaches the other; it is reported once.
	in.CloseWithError(err)
	return <-done
}

// Abandon removes what was written so far. It does nothing after Write, and is safe to call at any
// time from any goroutine.
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

// headSize is how many bytes of a file are read for its attributes, which name all inputs.
const headSize = 1 << 20

// OpeningOf returns a file's instructions for opening it, in the viewer's time base. Files of other
// programs have none.
func OpeningOf(name string) (trace.Opening, error) {
	head, err := headOf(name)
	if err != nil {
		return trace.Opening{}, err
	}
	if perfetto.Sniff(head) {
		return trace.OpeningOf(perfetto.Attributes(head)), nil
	}
	attributes := chrometrace.Attributes(head)
	o := trace.OpeningOf(attributes)
	base, err := strconv.ParseInt(attributes[chrometrace.BaseAttribute], 10, 64)
	if o.From, o.To = o.From-trace.Time(base), o.To-trace.Time(base); err != nil || o.From < 0 {
		o.From, o.To = 0, 0
	}
	for i, path := range o.Pin { // Chrome JSON has no nested tracks
		parts := strings.Split(path, trace.PathSeparator)
		o.Pin[i] = parts[len(parts)-1]
	}
	return o, nil
}

// headOf returns the first headSize bytes of a file, uncompressed.
func headOf(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	buffered := bufio.NewReaderSize(f, 1<<16)
	var in io.Reader = buffered
	if magic, _ := buffered.Peek(2); bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		if in, err = envelope.NewGzip(buffered); err != nil {
			return nil, err
		}
	}
	head, err := io.ReadAll(io.LimitReader(in, headSize))
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil // the viewer will report it
	}
	return head, err
}

// WriteVerified is like Write, but reads the file back and compares it with t, event by event,
// before the file gets its name. It also returns how much compared equal; the error describes the
// first difference, and then there is no output.
//
// It reads back what the operating system holds: it does not detect a disk that loses data later.
func (o *Output) WriteVerified(t *trace.Trace) (size int64, equal verify.Counts, err error) {
	check := func() (err error) {
		equal, err = o.verify(t)
		return err
	}
	size, err = o.writeChecked(func(w io.Writer) error { return o.write(w, t) }, check)
	return size, equal, err
}

// verify compares the file, which has been written, with t.
func (o *Output) verify(t *trace.Trace) (equal verify.Counts, err error) {
	if _, err := o.file.Seek(0, io.SeekStart); err != nil {
		return equal, err
	}
	var in io.Reader = o.file
	if o.gzip {
		if in, err = envelope.NewGzip(bufio.NewReaderSize(o.file, 1<<16)); err != nil {
			return equal, fmt.Errorf("%w: %w", errDiffers, err)
		}
	}
	compare := verify.Perfetto
	if o.IsJSON() {
		compare = verify.ChromeJSON
	}
	if equal, err = compare(in, t); err != nil {
		return equal, fmt.Errorf("%w: %w", errDiffers, err)
	}
	return equal, nil
}

package live

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"time"
)

// DefaultInterval is how long a GrowingFile waits before it checks its file again.
const DefaultInterval = 500 * time.Millisecond

// A GrowingFile reads a file from its beginning, waits at its end for more, and continues with the file
// that replaces it.
//
// While it waits, it has returned only complete lines: whatever follows the last newline is held back until
// the line is complete, so that a reader never mistakes half a record for a broken one. Memory is that of
// the longest line.
//
//   - A file that became shorter was truncated, and is read again from its beginning. If it has
//     grown beyond the old end by the next check, the truncation goes unnoticed, and reading
//     continues there.
//   - A file is replaced if its path leads to another one and, an interval later, the old one
//     has no more data: writers switch to a new file in their own time. If it is replaced
//     several times within an interval, only the last file is seen.
//   - If the path leads nowhere, it waits for a file and still reads the old one.
//
// If a file is left for one of these reasons amid a line, a newline is added to the partial line, so
// that the next line stays whole.
//
// When the context ends, so does the input: what was held back is returned as it is, followed by
// io.EOF. Data that was not read by then is lost.
type GrowingFile struct {
	ctx      context.Context // Read has no other way to learn that it should stop
	path     string
	interval time.Duration

	file     *os.File
	info     fs.FileInfo // of file when it was opened: its identity
	offset   int64       // how much of file has been read
	replaced bool        // path led to another file before the last wait, and file has had no more data since
	ended    bool        // ctx is done, and buf holds the rest

	// buf[from:ready] can be returned, buf[ready:] is held back. Before a fill, nothing can be returned.
	buf         []byte
	from, ready int
}

// minRead is the minimum size of the buffer for a read from the file.
const minRead = 64 << 10

// OpenGrowing opens the regular file at path, which must exist. An interval of zero is [DefaultInterval].
func OpenGrowing(ctx context.Context, path string, interval time.Duration) (*GrowingFile, error) {
	interval = cmp.Or(interval, DefaultInterval)
	r := &GrowingFile{ctx: ctx, path: path, interval: interval}
	if err := r.open(); err != nil {
		return nil, err
	}
	return r, nil
}

// open switches to the file at path.
func (r *GrowingFile) open() error {
	info, err := os.Stat(r.path)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() { // opening a named pipe could block forever
		return fmt.Errorf("%s: cannot follow it: not a regular file", r.path)
	}
	f, err := os.Open(r.path)
	if err != nil {
		return err
	}
	if info, err = f.Stat(); err != nil {
		f.Close()
		return err
	}
	if r.file != nil {
		r.file.Close()
	}
	r.file, r.info, r.offset, r.replaced = f, info, 0, false
	return nil
}

// Close closes the file. It must not run concurrently with Read; cancel the context to end a Read.
func (r *GrowingFile) Close() error { return r.file.Close() }

// Read waits until there is data to return.
func (r *GrowingFile) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	for r.from == r.ready {
		if r.ended {
			return 0, io.EOF
		}
		if err := r.fill(); err != nil {
			return 0, err
		}
	}
	n := copy(p, r.buf[r.from:r.ready])
	r.from += n
	return n, nil
}

// fill takes one step toward returning data: it reads, or checks the file at its end.
func (r *GrowingFile) fill() error {
	if r.from > 0 {
		r.buf = append(r.buf[:0], r.buf[r.ready:]...)
		r.from, r.ready = 0, 0
	}
	if r.ctx.Err() != nil {
		r.ready, r.ended = len(r.buf), true
		return nil
	}
	held := len(r.buf)
	r.buf = slices.Grow(r.buf, minRead)
	n, err := r.file.Read(r.buf[held:cap(r.buf)])
	r.buf = r.buf[:held+n]
	r.offset += int64(n)
	switch {
	case n > 0:
		r.replaced = false
		if i := bytes.LastIndexByte(r.buf[held:], '\n'); i >= 0 {
			r.ready = held + i + 1
		}
		return nil
	case err != io.EOF:
		return err
	}
	return r.atEnd()
}

// atEnd starts over if the file was truncated, moves on if it was replaced, and waits otherwise.
func (r *GrowingFile) atEnd() error {
	now, err := r.file.Stat()
	if err != nil {
		return err
	}
	if now.Size() < r.offset {
		if _, err := r.file.Seek(0, io.SeekStart); err != nil {
			return err
		}
		r.offset = 0
		r.endLine()
		return nil
	}
	there, err := os.Stat(r.path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	another := err == nil && !os.SameFile(there, r.info)
	if another && r.replaced {
		switch err := r.open(); {
		case err == nil:
			r.endLine()
			return nil
		case !errors.Is(err, fs.ErrNotExist):
			return err
		}
		another = false // gone again
	}
	r.replaced = another
	r.wait()
	return nil
}

// endLine ends the partial line that is held back, if any.
func (r *GrowingFile) endLine() {
	if len(r.buf) > 0 {
		r.buf = append(r.buf, '\n')
		r.ready = len(r.buf)
	}
}

func (r *GrowingFile) wait() {
	timer := time.NewTimer(r.interval)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.ctx.Done():
	}
}

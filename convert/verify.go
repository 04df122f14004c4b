package convert

import (
	"bufio"
	"fmt"
	"io"

	"github.com/sgtrace/sgtrace/convert/verify"
	"github.com/sgtrace/sgtrace/format/envelope"
	"github.com/sgtrace/sgtrace/trace"
)

// WriteVerified is like Write, but reads the file back and compares it with t, event
// by event, before the file gets its name. It returns what was found equal, too; the
// error tells the first difference, and then there is no output.
//
// What is read back is what the operating system holds: a disk that forgets it later is
// another matter.
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
			return equal, fmt.Errorf("%w: %w", ErrDiffers, err)
		}
	}
	compare := verify.Perfetto
	if o.IsJSON() {
		compare = verify.ChromeJSON
	}
	if equal, err = compare(in, t); err != nil {
		return equal, fmt.Errorf("%w: %w", ErrDiffers, err)
	}
	return equal, nil
}

package chrometrace

import (
	"errors"
	"fmt"
	"io"

	"github.com/sgtrace/sgtrace/chrometrace/internal/parse"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// errNoTrace says that an input is something else.
var errNoTrace = errors.New("not a Chrome trace: it has neither traceEvents nor an event")

// Read reads a trace from the decompressed input r; name is for messages.
//
// Damage becomes diagnostics, and everything readable is kept; so is what was
// read before r failed. The error says that nothing could be used.
func Read(name string, r io.Reader, opt Options) (*profile.Profile, error) {
	return read(name, r, opt, parse.Usual)
}

func read(name string, r io.Reader, opt Options, l parse.Limits) (*profile.Profile, error) {
	c := &collector{name: name, opt: opt, rows: map[rowKey]int32{}, open: map[int32][]openSlice{}}
	end := parse.Read(r, opt, l, c.keep)
	if !c.chrome {
		if end.Err != nil {
			return nil, fmt.Errorf("reading %s: %w", name, end.Err)
		}
		return nil, fmt.Errorf("reading %s: %w", name, errNoTrace)
	}
	c.truncated(end)
	f := c.finish()
	if end.Err != nil {
		opt.Diags.Add(trace.TraceTruncated.At(trace.Pos{File: name, Offset: end.Size}, fmt.Sprintf("where reading failed (%v)", end.Err)))
	}
	return f, nil
}

// Options say how a file is read.
type Options = parse.Options

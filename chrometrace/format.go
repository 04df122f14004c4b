package chrometrace

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"runtime"

	"github.com/sgtrace/sgtrace/chrometrace/internal/parse"
	"github.com/sgtrace/sgtrace/format"
	"github.com/sgtrace/sgtrace/format/inventory"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// Format is Chrome JSON, as PyTorch's profiler and others write it.
var Format = &format.Format{
	Name:     "Chrome JSON (PyTorch profiler)",
	Doc:      "PyTorch profiler traces, and other Chrome JSON (\"Trace Event Format\")",
	For:      "'sgtrace merge' or 'sgtrace report --kernels' (--api, --nvtx, ...)",
	Sniff:    sniff,
	FirstKey: "schemaVersion",
	Index:    index,
	Text:     true,
	Noun:     "PyTorch trace",
}

// manyEvents is from where on a table of events is large beside all else.
const manyEvents = 1 << 20

// index reads a trace with the events that the filter keeps.
func index(in *format.Input, opt *format.Options) (*format.Source, error) {
	p, err := open(in, opt, 0)
	if err != nil {
		return nil, err
	}
	base := p.Meta.Base // stands behind the events, as a rule
	stream := func(opt *format.Options) ([]*profile.Profile, error) {
		p, err := open(in, opt, base)
		return []*profile.Profile{p}, err
	}
	list := func(v *inventory.Inventory, size int64, are [][]profile.Identity) {
		Inventory(v, p, opt.Syms, size, are[0])
	}
	return &format.Source{Profiles: []*profile.Profile{p}, Stream: stream, Inventory: list}, nil
}

// open opens a trace and reads it; base is that of its times, if it was read before.
func open(in *format.Input, opt *format.Options, base int64) (*profile.Profile, error) {
	r, err := in.Open()
	if err != nil {
		return nil, err
	}
	p, err := Read(in.Name, r, Options{Syms: opt.Syms, Args: opt.Args, Diags: opt.Diags, Workers: opt.Workers, Filter: opt.Filter, Base: base,
		KeepSecrets: opt.KeepSecrets})
	if err := errors.Join(err, r.Close()); err != nil {
		return nil, err
	}
	if len(p.Events) > manyEvents {
		// The pieces that the table was put together from are garbage, as much as the
		// table itself, and sorting comes on top. A cycle takes milliseconds, since
		// tables hold no pointers.
		runtime.GC()
	}
	return p, nil
}

// sniff reports whether a file with the given (decompressed) head, of up to 64 KiB,
// is Chrome JSON.
func sniff(head []byte) bool {
	if listOfEvents.Match(head) {
		return true
	}
	// The events of a PyTorch trace may begin behind a long list of groups.
	if bytes.Contains(head, []byte(`"schemaVersion"`)) &&
		(bytes.Contains(head, []byte(`"deviceProperties"`)) || bytes.Contains(head, []byte(`"distributedInfo"`))) {
		return true
	}
	// A list of events, or a file whose beginning is missing.
	return parse.HasEvent(head)
}

// listOfEvents is how the list of events begins, as far as the head goes. Notes that quote it have a few
// words there.
var listOfEvents = regexp.MustCompile(`"traceEvents"\s*(?:$|:\s*(?:$|\[?\s*(?:$|[{\]n])))`)

// IsOwn reports whether Write wrote the file with the given head.
func IsOwn(head []byte) bool { return ownHeader.Match(head) }

// ownHeader is how the list of events is preceded in what Write writes, whoever
// formatted it since.
var ownHeader = regexp.MustCompile(`^\s*\{[^\[]*"metadata"\s*:\s*\{\s*"base_time_ns"\s*:`)

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

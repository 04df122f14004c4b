package chrometrace

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"runtime"
	"slices"

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

// manyEvents is the number of events from which their table is large compared with everything else.
const manyEvents = 1 << 20

// index reads a trace with the events that the filter keeps.
func index(in *format.Input, opt *format.Options) (*format.Source, error) {
	p, err := open(in, opt, 0)
	if err != nil {
		return nil, err
	}
	base := p.Meta.Base // the base usually comes after the events
	stream := func(opt *format.Options) ([]*profile.Profile, error) {
		p, err := open(in, opt, base)
		return []*profile.Profile{p}, err
	}
	list := func(v *inventory.Inventory, size int64, are [][]profile.Identity) {
		Inventory(v, p, opt.Syms, size, are[0])
	}
	return &format.Source{Profiles: []*profile.Profile{p}, Stream: stream, Inventory: list}, nil
}

// open opens a trace and reads it; base is the base of its times, if known from an earlier read.
func open(in *format.Input, opt *format.Options, base int64) (*profile.Profile, error) {
	var p *profile.Profile
	err := in.Read(func(r io.Reader) (err error) {
		p, err = Read(in.Name, r, Options{Syms: opt.Syms, Args: opt.Args, Diags: opt.Diags, Workers: opt.Workers, Filter: opt.Filter, Base: base,
			KeepSecrets: opt.KeepSecrets})
		return err
	})
	if err != nil {
		return nil, err
	}
	if len(p.Events) > manyEvents {
		// The pieces of the table are garbage now, as large as the table itself, and sorting needs memory, too. A
		// collection takes milliseconds, since tables hold no pointers.
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
	// A long list of groups may come before the events of a PyTorch trace.
	if bytes.Contains(head, []byte(`"schemaVersion"`)) &&
		(bytes.Contains(head, []byte(`"deviceProperties"`)) || bytes.Contains(head, []byte(`"distributedInfo"`))) {
		return true
	}
	// A list of events, or a file without its beginning.
	return parse.HasEvent(head)
}

// listOfEvents matches the beginning of the list of events, as far as the head goes. In notes that quote the
// key, words follow it.
var listOfEvents = regexp.MustCompile(`"traceEvents"\s*(?:$|:\s*(?:$|\[?\s*(?:$|[{\]n])))`)

// IsOwn reports whether Write wrote the file with the given head.
func IsOwn(head []byte) bool { return ownHeader.Match(head) }

// ownHeader matches the beginning of a file written by Write up to the list of events, even if it was
// reformatted.
var ownHeader = regexp.MustCompile(`^\s*\{[^\[]*"metadata"\s*:\s*\{\s*"base_time_ns"\s*:`)

// errNoTrace means that an input is something else.
var errNoTrace = errors.New("not a Chrome trace: it has neither traceEvents nor an event")

// Read reads a trace from the decompressed input r; name is for messages.
//
// Damage becomes diagnostics, and everything readable is kept, including what was read before r failed. An
// error means that nothing could be used.
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
	if end.Err != nil || slices.ContainsFunc(c.Diags, func(d parse.Diag) bool { return d.Message == trace.TraceTruncated }) {
		f.EndWithDevices()
	}
	return f, nil
}

// Options control how a file is read.
type Options = parse.Options

// Package format defines [Format], a row of the table of input formats that every
// command reads. A package that reads a format offers one [Format] and imports no
// other format; the table is a plain slice in package inputs of convert.
//
// Inputs are read in two steps:
//
//  1. Index reads of an input what decides who is who and how clocks relate: headers,
//     rows, ranks, steps, collectives, and what tells a copy. It may keep what it read.
//  2. Once ranks, duplicates and clocks are decided, the [Source] passes the events:
//     those that Index kept, or a window of them by [Source.Stream], or row by row.
//
// What compresses or wraps a file is not seen here: see package envelope.
package format

import (
	"cmp"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/format/inventory"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/profile/recorder"
	"github.com/sgtrace/sgtrace/request/spantable"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// A Format is a kind of input.
type Format struct {
	Name string // as messages call it: "OTLP"
	Noun string // what one input is called: "OTLP dump"
	Doc  string // what writes it, one line
	For  string // the commands that read it, for messages of others
	// Convert is the command of convert that reads this format alone, "otel2perfetto";
	// "" is none.
	Convert string

	// Sniff reports whether a file is of this format; head is its beginning, at most 64 KiB of its content.
	Sniff func(head []byte) bool
	// Folder reports whether a folder with files of these names is one input of this format; nil is never.
	Folder func(files []string) bool
	// FirstKey is that of the JSON object that inputs of this format begin with, of formats of which
	// people have many or large files: of what begins so, Sniff is called before that of any other.
	FirstKey string
	// Index reads an input. The error says that nothing of it can be used; what is
	// damaged or missing otherwise goes to the diagnostics.
	Index func(in *Input, opt *Options) (*Source, error)

	// Outline looks at the spans of an input of requests, so that Index can leave out traces
	// that nobody asks for: see [spantable.Table]. nil is for formats of which all is read.
	Outline func(in *Input, o *spantable.Outline) error

	// Requests: it fills Options.Spans, and Series: it fills Options.Series. A log may do both.
	// All others are what profilers recorded.
	Requests, Series bool
	// Aside: it fills a table that is neither of requests nor of what profilers recorded: Options.Flight,
	// Options.Experts. Inputs of such formats are read several at once.
	Aside bool
	// OnDisk: it is read by its path, so that it must be a file, and not compressed.
	OnDisk bool
	// Empty reports whether a file of a name, without folders, says enough by being empty; nil is no name.
	Empty func(name string) bool
	// Text: zeros in front of it are blocks that never reached the disk.
	Text bool

	// The following are about what profilers recorded.

	// Beside: it was recorded beside another profiler, whose recording tells more about
	// what both saw. What only this one saw is added to that.
	Beside bool
	// Machine: an input has the processes of a machine, of which not every one is a
	// rank; a name or a label of the input is about its only rank. Otherwise it is of
	// one process, or of parts that its rows name.
	Machine bool
	// Session: times count from the start of a session, which may be in several inputs.
	Session bool
	// Again: rows can be walked again and again, so that reports need not hold them.
	Again bool
}

// Sorted returns formats as texts list them: requests first, what is recorded beside
// others last.
func Sorted[T any](by map[*Format]T) []*Format {
	place := func(f *Format) int {
		switch {
		case f.Requests:
			return 0
		case f.Beside:
			return 2
		}
		return 1
	}
	return slices.SortedFunc(maps.Keys(by), func(a, b *Format) int {
		return cmp.Or(cmp.Compare(place(a), place(b)), strings.Compare(a.Noun, b.Noun))
	})
}

// An Input is what is to be read: one file, or those of a folder.
type Input struct {
	Name  string   // for messages
	Path  string   // of the file or folder; "" for a pipe
	Files []string // of a folder: the paths of its files, sorted; nil of a file
	Found bool     // a folder or a pattern led to it: nothing is started to read it
	// Open returns the content of a file, without its envelopes. Of a pipe it works
	// once. What it returns is an [io.ReaderAt] if the content is the file itself.
	Open func() (io.ReadCloser, error)
}

// ErrNotNeeded is wrapped by errors about inputs whose content is in another file beside
// them. If a folder led to such an input, nothing is missing.
var ErrNotNeeded = errors.New("left out, since its export is beside it")

// Options say how inputs are read. Symbols, arguments and diagnostics are shared by all
// inputs that are read together.
type Options struct {
	Syms  *trace.Symbols
	Args  *trace.Args
	Diags *trace.Diags
	// Spans is where formats of requests put what they read, all into one table: the spans
	// of a request are in the dumps of several hosts.
	Spans *spantable.Table
	// Series is where formats of logs and metrics put what they read, all into one table.
	Series *series.Set
	// Flight is where formats of what processes have in flight put what they read.
	Flight *recorder.InFlight
	// Records is where they put what they read of whole requests, which becomes spans.
	Records *spantable.RequestRecords
	// Heap is where snapshots of memory go; nil is nowhere.
	Heap *recorder.Memory
	// Experts is where tokens by expert go.
	Experts *recorder.Experts
	// Workers is how many goroutines may parse; 0 is one for every core.
	Workers int
	// KeepSecrets tells to keep arguments that may hold prompts or credentials.
	KeepSecrets bool
	// Filter says which events are kept. The index is complete whatever it says.
	Filter profile.Filter
	// Walk tells that rows will be walked, not drawn: of a format that can do that
	// [Format.Again], Index keeps no events.
	Walk bool
	// Parts tells that what an input holds besides what its format reads is wanted: see [Source.Parts].
	Parts bool
}

// A Part is what an input holds of another kind: logs and metrics in a dump of spans, the log of each of many programs.
type Part struct {
	Name string // for messages
	// Inside is what only parts are, such as the logs of a dump; "" is what a file could be, which its content tells.
	Inside string
	Open   func() (io.ReadCloser, error)
}

// A Source is an input that was indexed.
type Source struct {
	// Profiles are the processes that the input is of, or the one that all of its parts
	// are in, with the events that were kept. A format of requests has none.
	Profiles []*profile.Profile
	// Print is equal for inputs that hold the same; "" is unknown. It is for those of
	// which no events were kept: of others the events are compared.
	Print string
	// Stream reads the profiles once more, with the events that the filter keeps, to the same numbers
	// of processes and ranks in Meta, by which they are recognized. It is nil where there is nothing to be read.
	Stream func(opt *Options) ([]*profile.Profile, error)
	// Rows walks over the rows of the processes to which rank gives a rank; processes
	// with a negative one are left out. It is nil where rows are in Profiles.
	Rows func(rank func(pid int32) int32) profile.Stream
	// Observed walks over what the input holds of those processes besides the events in
	// Profiles: what threads ran, when they had cores, and what was sampled of devices. It is
	// nil where there is nothing of that.
	Observed func(rank func(pid int32) int32) profile.Stream
	// Inventory adds what the input, of size bytes, holds to an inventory; are says which
	// rank each profile is, or each of its parts. nil adds nothing.
	Inventory func(v *inventory.Inventory, size int64, are [][]profile.Identity)
	// Parts are read behind the input, each by the format that it has.
	Parts []Part
	// Close gives back what the methods and Parts read from; nil is nothing.
	Close func() error
}

// Spans returns the Index of a format that is nothing but spans, which read puts into the
// table of all. encoding is what diagnostics call the file.
func Spans(encoding string, read func(to *spantable.Filler, in io.Reader)) func(*Input, *Options) (*Source, error) {
	return func(in *Input, opt *Options) (*Source, error) {
		r, err := in.Open()
		if err != nil {
			return nil, err
		}
		read(opt.Spans.Fill(in.Name, encoding), r)
		return &Source{}, r.Close()
	}
}

// Prescan returns the Outline of a format that is nothing but spans, which read reads.
func Prescan(read func(to *spantable.Filler, in io.Reader)) func(*Input, *spantable.Outline) error {
	return func(in *Input, o *spantable.Outline) error {
		r, err := in.Open()
		if err != nil {
			return err
		}
		to, ended := o.Fill(in.Name)
		read(to, r)
		ended()
		return r.Close()
	}
}

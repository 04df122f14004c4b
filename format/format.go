// Package format defines [Format], a row of the table of input formats that every command reads. A package that
// reads a format offers one [Format] and imports no other format; the table is a plain slice in package inputs
// of convert.
//
// Inputs are read in two steps:
//
//  1. Index reads what is needed to identify processes and relate clocks: headers,
//     rows, ranks, steps, collectives, and whatever reveals copies. It may keep what it read.
//  2. Once ranks, duplicates, and clocks are settled, the [Source] passes the events:
//     those that Index kept, or a window of them by [Source.Stream], or row by row.
//
// Formats never see the compression or wrapping of a file: see package envelope.
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
	Name string // in messages: "OTLP"
	Noun string // for one input: "OTLP dump"
	Doc  string // what writes it, in one line
	For  string // the commands that read it, for messages of other commands
	// Convert is the command of convert that reads only this format, "otel2perfetto"; "" is none.
	Convert string

	// Sniff reports whether a file has this format; head is the beginning of its content, at most 64 KiB.
	Sniff func(head []byte) bool
	// Folder reports whether a folder with files of these names is one input of this format; nil means never.
	Folder func(files []string) bool
	// FirstKey is the first key of inputs of this format, if they begin with a JSON object. It is for formats whose
	// files are many or large: the Sniff of a format with a matching key is called first.
	FirstKey string
	// Index reads an input. An error means that nothing of it can be used; any other damage or gap goes to the
	// diagnostics.
	Index func(in *Input, opt *Options) (*Source, error)

	// Outline finds the spans in an input of requests, so that Index can omit traces that nobody needs: see
	// [spantable.Table]. nil is for formats that are read completely.
	Outline func(in *Input, o *spantable.Outline) error

	// Requests: it fills Options.Spans; Series: it fills Options.Series. A log may do both. All other formats are
	// recordings of profilers.
	Requests, Series bool
	// Momentary: an input shows one moment, and may not say which.
	Momentary bool
	// Aside: it fills a table other than those of requests and profiles: Options.Flight, Options.Experts. Several
	// such inputs are read concurrently.
	Aside bool
	// OnDisk: it is read by its path, so that it must be an uncompressed file.
	OnDisk bool
	// Empty reports whether an empty file with a name, without its directory, is informative by being empty; nil
	// means never.
	Empty func(name string) bool
	// Text: zeros at its beginning are blocks that never reached the disk.
	Text bool

	// The following fields are for recordings of profilers.

	// Beside: it was recorded alongside another profiler, whose recording has more information on what both saw.
	// Only what the other did not see is added to that recording.
	Beside bool
	// Machine: an input has the processes of a machine, not all of which are ranks; a name or a label of the input
	// belongs to its only rank. Otherwise it has one process, or parts that its rows name.
	Machine bool
	// Session: times count from the start of a session, which may be in several inputs.
	Session bool
	// Again: rows can be walked repeatedly, so that reports need not hold them.
	Again bool
}

// Sorted returns formats in the order for texts: requests first, and recordings made alongside others last.
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

// An Input is a file or a folder to be read.
type Input struct {
	Name  string   // for messages
	Path  string   // of the file or folder; "" for a pipe
	Files []string // paths of the files of a folder, sorted; nil for a file
	Found bool     // found by a folder or a pattern: no program is started to read it
	// Open returns the content of a file, without its envelopes. It works only once for a pipe. The result is an
	// [io.ReaderAt] if the content is the file itself.
	Open func() (io.ReadCloser, error)
}

// Read passes the content to read.
func (in *Input) Read(read func(io.Reader) error) error {
	r, err := in.Open()
	if err != nil {
		return err
	}
	return errors.Join(read(r), r.Close())
}

// ErrNotNeeded is wrapped by errors about inputs whose content is also in another file in the same folder. If
// the input was found by a folder, nothing is missing.
var ErrNotNeeded = errors.New("left out, since its export is beside it")

// Options control how inputs are read. Symbols, arguments, and diagnostics are shared by all inputs that are
// read together.
type Options struct {
	Syms  *trace.Symbols
	Args  *trace.Args
	Diags *trace.Diags
	// Spans gets the spans from all inputs of requests: the spans of a request are in the dumps of several hosts.
	Spans *spantable.Table
	// Series gets the logs and metrics of all inputs.
	Series *series.Set
	// Flight gets the operations that processes have in flight.
	Flight *recorder.InFlight
	// Records gets records of whole requests, which become spans.
	Records *spantable.RequestRecords
	// Heap gets memory snapshots; nil drops them.
	Heap *recorder.Memory
	// Experts gets token counts by expert.
	Experts *recorder.Experts
	// Workers is the number of parsing goroutines; 0 is one per core.
	Workers int
	// KeepSecrets keeps arguments that may hold prompts or credentials.
	KeepSecrets bool
	// Filter selects the events to keep. It does not affect the index.
	Filter profile.Filter
	// Walk means that rows will be walked, not drawn: if the format can do that ([Format.Again]), Index keeps no
	// events.
	Walk bool
	// Parts means that the parts of an input are wanted, too: see [Source.Parts].
	Parts bool
}

// A Part is the part of an input with another format: logs and metrics in a dump of spans, or the log of each
// of many programs.
type Part struct {
	Name string // for messages
	// Inside is a kind that only parts have, such as the logs of a dump; "" means that its content is sniffed like
	// a file.
	Inside string
	Open   func() (io.ReadCloser, error)
}

// A Source is an input that was indexed.
type Source struct {
	// Profiles are the processes in the input, or the one process with all of its parts, with the events that were
	// kept. A format of requests has none.
	Profiles []*profile.Profile
	// Print is the same text for inputs with the same content; "" is unknown. It is for inputs without kept events:
	// for others, events are compared.
	Print string
	// Stream reads the profiles again, with the events that the filter keeps. It returns the same processes and
	// ranks in Meta, by which they are recognized. It is nil if there is nothing to read.
	Stream func(opt *Options) ([]*profile.Profile, error)
	// Rows walks over the rows of the processes to which rank assigns a rank; it omits processes with a negative
	// one. It is nil if the rows are in Profiles.
	Rows func(rank func(pid int32) int32) profile.Stream
	// Observed walks over the data of those processes besides the events in Profiles: stack samples, scheduling,
	// and samples of devices. It is nil if there are none.
	Observed func(rank func(pid int32) int32) profile.Stream
	// Inventory adds the content of the input, of size bytes, to an inventory; are identifies each profile, or each
	// of its parts. nil adds nothing.
	Inventory func(v *inventory.Inventory, size int64, are [][]profile.Identity)
	// Parts are read after the input, each in its own format.
	Parts []Part
	// Close closes what the functions and Parts read from; nil does nothing.
	Close func() error
}

// Spans returns the Index of a format that only has spans, which read adds to the common table. encoding is the
// name of the format in diagnostics.
func Spans(encoding string, read func(to *spantable.Filler, in io.Reader)) func(*Input, *Options) (*Source, error) {
	return func(in *Input, opt *Options) (*Source, error) {
		return &Source{}, in.Read(func(r io.Reader) error {
			read(opt.Spans.Fill(in.Name, encoding), r)
			return nil
		})
	}
}

// Prescan returns the Outline of a format that only has spans.
func Prescan(read func(to *spantable.Filler, in io.Reader)) func(*Input, *spantable.Outline) error {
	return func(in *Input, o *spantable.Outline) error {
		return in.Read(func(r io.Reader) error {
			to, ended := o.Fill(in.Name)
			read(to, r)
			ended()
			return nil
		})
	}
}

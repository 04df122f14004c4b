package main

import (
	"io"
	"slices"

	"github.com/sgtrace/sgtrace/chrometrace/writer"
	"github.com/sgtrace/sgtrace/cmd/sgtrace/internal/commandline"
	"github.com/sgtrace/sgtrace/convert/inputs"
	"github.com/sgtrace/sgtrace/convert/output"
	"github.com/sgtrace/sgtrace/trace"
)

// create prepares the output file of a trace.
func (c *command) create(name string, files []inputs.Input) (*output.Output, error) {
	if name == "" {
		return nil, commandline.Usage("no output; give -o FILE, with a name ending in .pftrace or .json")
	}
	return c.outputs.add(name, func() (*output.Output, error) { return output.Create(name, c.kept(name, files)) })
}

// kept are the files that an output of this name must not replace: all that are read. What
// an earlier run wrote into a folder that is searched is none of these.
func (c *command) kept(name string, files []inputs.Input) []string {
	names := slices.Clone(c.beside)
	for _, in := range files {
		if !output.SameFile(in.Name, name) || !in.Replaceable() {
			names = append(names, in.Name)
		}
	}
	return names
}

// A textFile is an output of text. Whoever writes it, it is redacted if all is.
type textFile struct {
	Output   *output.Output
	redacted func(write func(w io.Writer) error) func(w io.Writer) error
}

// WriteFunc writes text on lines and gives the file its name.
func (f *textFile) WriteFunc(write func(w io.Writer) error) (int64, error) {
	return f.Output.WriteFunc(f.redacted(write))
}

// createFile prepares an output file of text.
func (c *command) createFile(name string, files []inputs.Input) (*textFile, error) {
	out, err := c.outputs.add(name, func() (*output.Output, error) { return output.CreateFile(name, c.kept(name, files)) })
	return &textFile{out, c.redacted}, err
}

// writeTrace writes t and gives the file its name. It returns the size in bytes. All
// traces are written here, so that none can miss what --redact and --verify say.
func (c *command) writeTrace(out *output.Output, t *trace.Trace) (int64, error) {
	c.redactTrace(t)
	from, to, _ := t.Bounds()
	if span := to - from; out.IsJSON() && (span > writer.MaxExact || span < 0) { // < 0: over 292 years
		c.diags.Add(trace.JSONSpan.Of(out.Name()))
	}
	c.screen.Doing("writing " + out.Name())
	drawn := len(t.Slices) - 1 // the first one is none
	write := out.Write
	if c.verify {
		write = func(t *trace.Trace) (int64, error) { return c.writeVerified(out, t) }
	}
	size, err := write(t)
	if err == nil && (drawn > mostViewed || size > mostViewedBytes) {
		c.diags.Add(trace.TimelineLarge.Of(out.Name(), count(drawn, "slice"), bytesText(size)))
	}
	return size, err
}

// What viewers can be expected to open: Perfetto holds all of a file, and tables that it makes of
// it, in the 4 GB that WebAssembly has.
var (
	mostViewed      = 5_000_000
	mostViewedBytes = int64(1 << 30)
)

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/sgtrace/sgtrace/analyze/gate"
	"github.com/sgtrace/sgtrace/analyze/page"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/chrometrace"
	"github.com/sgtrace/sgtrace/cmd/sgtrace/internal/commandline"
	"github.com/sgtrace/sgtrace/cmd/sgtrace/internal/reports"
	"github.com/sgtrace/sgtrace/cmd/sgtrace/internal/screen"
	"github.com/sgtrace/sgtrace/convert"
	"github.com/sgtrace/sgtrace/convert/inputs"
	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/trace"
)

// formatFlag is on every command that prints tables. more describes further formats.
func formatFlag(more ...string) cli.Flag {
	return &cli.StringFlag{Name: "format", Value: string(table.FormatText), Usage: "print as `FORMAT`: text, markdown, csv, or json" + strings.Join(more, "")}
}

// format reads --format, which accepts more in addition to the formats of every table.
func format(ctx *cli.Context, more []table.Format) (table.Format, error) {
	f := table.Format(ctx.String("format"))
	if f == "md" {
		f = table.FormatMarkdown
	}
	switch {
	case slices.Contains(table.Formats, f), slices.Contains(more, f):
		return f, nil
	case f == table.FormatFolded:
		return "", commandline.Usage("--format folded is for 'sgtrace report --stacks'")
	}
	names := order.Each(slices.Concat(table.Formats, more), func(f table.Format) string { return string(f) })
	return "", commandline.OneOf("--format", string(f), names...)
}

// outputFiles are the outputs of a run so far. An interrupt removes those that are not finished.
type outputFiles struct {
	interrupted int // exit status after an interrupt

	watch sync.Once
	mu    sync.Mutex
	list  []*convert.Output
}

// add creates an output. Errors that a different name would avoid are of type [commandline.UsageError].
func (l *outputFiles) add(name string, create func() (*convert.Output, error)) (*convert.Output, error) {
	l.onInterrupt()
	// The lock makes an interrupt wait until there is something to remove.
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, o := range l.list {
		if convert.SameFile(o.Name(), name) {
			return nil, commandline.Usage("%s is also another output", name)
		}
	}
	out, err := create()
	if err != nil {
		if errors.Is(err, convert.ErrOutputName) {
			return nil, commandline.AsUsage(err)
		}
		return nil, err
	}
	l.list = append(l.list, out)
	return out, nil
}

// release gives held outputs their names. An interrupt waits until all have theirs.
func (l *outputFiles) release(outputs []*convert.Output) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, out := range outputs {
		if err := out.Release(); err != nil {
			return err
		}
	}
	return nil
}

// onInterrupt makes sure that an interrupt leaves nothing behind.
func (l *outputFiles) onInterrupt() { l.watch.Do(l.removeOnInterrupt) }

// removeOnInterrupt cleans up and ends the program on signals, except those that were ignored from the
// start, as by nohup or for background jobs of scripts.
func (l *outputFiles) removeOnInterrupt() {
	signals := make(chan os.Signal, 1)
	for _, s := range [...]os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		if !signal.Ignored(s) {
			signal.Notify(signals, s)
		}
	}
	go func() {
		<-signals
		l.abandon()
		os.Exit(l.interrupted)
	}()
}

// abandon removes unfinished outputs and temporary files. It keeps the lock, so that nothing can be created
// afterward.
func (l *outputFiles) abandon() {
	memory.RemoveTemporary()
	l.mu.Lock()
	for _, out := range l.list {
		out.Abandon()
	}
}

// create prepares the output file of a trace.
func (c *command) create(name string, files []inputs.Input) (*convert.Output, error) {
	if name == "" {
		return nil, commandline.Usage("no output; give -o FILE, with a name ending in .pftrace or .json")
	}
	return c.outputs.add(name, func() (*convert.Output, error) { return convert.CreateOutput(name, c.mustKeep(name, files)) })
}

// mustKeep returns the files that an output of this name must not replace: all that are read, except an
// earlier run's output in a folder that is searched.
func (c *command) mustKeep(name string, files []inputs.Input) []string {
	names := slices.Clone(c.beside)
	for _, in := range files {
		if !convert.SameFile(in.Name, name) || !in.Replaceable() {
			names = append(names, in.Name)
		}
	}
	return names
}

// A textFile is an output of text, which is redacted if the run is.
type textFile struct {
	Output   *convert.Output
	redacted func(write func(w io.Writer) error) func(w io.Writer) error
}

// WriteFunc writes lines of text and gives the file its name.
func (f *textFile) WriteFunc(write func(w io.Writer) error) (int64, error) {
	return f.Output.WriteFunc(f.redacted(write))
}

// createFile prepares an output file of text.
func (c *command) createFile(name string, files []inputs.Input) (*textFile, error) {
	out, err := c.outputs.add(name, func() (*convert.Output, error) { return convert.CreateFileOutput(name, c.mustKeep(name, files)) })
	return &textFile{out, c.redacted}, err
}

// writeTrace writes t and gives the file its name. It returns the size in bytes. All traces are written
// here, so that --redact and --verify apply to each.
func (c *command) writeTrace(out *convert.Output, t *trace.Trace) (int64, error) {
	c.redactTrace(t)
	from, to, _ := t.Bounds()
	if span := to - from; out.IsJSON() && (span > chrometrace.MaxExact || span < 0) { // negative if over 292 years
		c.diags.Add(trace.JSONSpan.Of(out.Name()))
	}
	c.screen.Doing("writing " + out.Name())
	drawn := len(t.Slices) - 1 // the first one is a placeholder
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

// What viewers can be expected to open: Perfetto holds the whole file, and tables made from it, in
// WebAssembly's 4 GB of memory.
var (
	mostViewed      = 5_000_000
	mostViewedBytes = int64(1 << 30)
)

// pageFlag is -o of commands that can write a page.
func pageFlag() cli.Flag {
	return &cli.StringFlag{Name: "o", Aliases: []string{"output"}, Usage: "write one HTML page, `FILE`.html"}
}

// writePage writes the page that draw returns to the file that -o names. args are the command and its
// flags, without the selection and inputs.
func (c *command) writePage(ctx *cli.Context, files []inputs.Input, given, args []string, draw func(page.Provenance) (page.Page, error)) error {
	name := ctx.String("o")
	out, err := c.createFile(name, files)
	if err != nil {
		return err
	}
	defer out.Output.Abandon()
	command := c.commandLine(ctx, append(args, "-o", c.redactedInput(name)), given)
	drawn, err := draw(page.Provenance{Version: commandline.Version(), Command: command, Time: c.now()})
	if err != nil {
		return err
	}
	c.screen.Doing("writing " + name)
	size, err := out.WriteFunc(func(w io.Writer) error { return page.Write(w, drawn) })
	if err == nil {
		fmt.Fprintf(c.screen.Notices, "%s: %s\n", screen.Printable(name), bytesText(size))
	}
	return err
}

// commandLine returns a command with its selection and inputs as given, ready to be pasted into a shell.
func (c *command) commandLine(ctx *cli.Context, args, given []string) string {
	return words.QuoteShell(slices.Concat([]string{"sgtrace"}, args, c.exclusionArgs(ctx), commandline.Args(ctx), given))
}

// now returns the time that a page shows. A reproducible build sets it with $SOURCE_DATE_EPOCH.
func (c *command) now() time.Time {
	if s, err := strconv.ParseInt(c.env("SOURCE_DATE_EPOCH"), 10, 64); err == nil {
		return time.Unix(s, 0)
	}
	return time.Now()
}

// given returns inputs as given, for command lines.
func (c *command) given(ctx *cli.Context, args []string) []string {
	return order.Each(shortInputs(args, ctx.StringSlice("exclude")), c.redactedInput)
}

// A pageDrawer draws what was read for a report. draw returns the error of the report's gate as failed.
type pageDrawer struct {
	// args are the command that prints the same report, without selection and inputs.
	args []string
	draw func(in *reports.Reading, made page.Provenance, command string) (p page.Page, failed, err error)
}

// summaryPage returns the drawer of the summary's page.
func summaryPage(ctx *cli.Context) (d pageDrawer, err error) {
	asked, err := reports.ReadSummary(ctx)
	if err != nil {
		return d, err
	}
	d.args = append([]string{"report"}, commandline.Given(ctx, "slo", "fail-on", "mute", "mute-file", "all-ranks", "hosts")...)
	d.draw = func(in *reports.Reading, made page.Provenance, command string) (page.Page, error, error) {
		o, err := asked.Overview(in, true)
		if err != nil {
			return page.Page{}, nil, err
		}
		p, err := page.Overview(o, made, asked.Folder(in))
		if asked.Alarms == nil || err != nil {
			return p, nil, err
		}
		return gatedPage(p, asked.Alarms.Judge(&o.Result, o.Goodput), command)
	}
	return d, nil
}

// weeksPage returns the drawer of the page about several runs.
func weeksPage(ctx *cli.Context) (d pageDrawer, err error) {
	o, err := reports.ReadFleet(ctx)
	if err != nil {
		return d, err
	}
	d.args = append([]string{"report", "--fleet"}, commandline.Given(ctx, "fail-on", "mute", "mute-file")...)
	d.draw = func(in *reports.Reading, made page.Provenance, command string) (page.Page, error, error) {
		f, found, err := o.Look(in)
		if err != nil {
			return page.Page{}, nil, err
		}
		p := f.Page(found, page.Source{Select: in.Select, Inputs: in.Given}, made)
		if o.Alarms == nil {
			return p, nil, nil
		}
		return gatedPage(p, o.Alarms.Judge(found, nil), command)
	}
	return d, nil
}

// gatedPage adds the result of a gate to a page, and returns the gate's error.
func gatedPage(p page.Page, r *gate.Result, command string) (page.Page, error, error) {
	p.AddGate(r, command)
	return p, r.Err(), nil
}

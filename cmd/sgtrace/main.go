// Command sgtrace explains slow LLM serving from the files that an incident leaves behind.
//
// It is a long package because each command is a file here, with its flags, help, and calls, and because
// the commands share one run with its inputs, messages, and outputs. Anything that does not need the run is
// below internal.
package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"time"
	_ "time/tzdata" // for --tz on machines without a database of zones

	"github.com/urfave/cli/v2"

	"github.com/sgtrace/sgtrace/analyze/document"
	"github.com/sgtrace/sgtrace/analyze/gate"
	"github.com/sgtrace/sgtrace/cmd/sgtrace/internal/commandline"
	"github.com/sgtrace/sgtrace/cmd/sgtrace/internal/screen"
	"github.com/sgtrace/sgtrace/convert/inputs"
	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/trace"
	"github.com/sgtrace/sgtrace/trace/redact"
)

func main() {
	// If a reader has seen enough (head, less) and closes the pipe, the write fails with an error instead
	// of a signal; that is a normal end.
	signal.Ignore(syscall.SIGPIPE)
	os.Exit(run(os.Args, os.Stdin, os.Stdout, os.Stderr))
}

// Exit statuses. A broken pipe is exitOK: the reader has seen enough. If several apply, exitFailed comes
// before exitGate, and exitGate before exitPartial.
const (
	exitOK      = 0
	exitFailed  = 1 // no usable output
	exitUsage   = 2
	exitPartial = 3 // output written, but input was dropped or damaged
	exitGate    = 4 // output written, but a gate failed or could not be judged
)

// run runs the program and returns its exit status.
func run(args []string, in io.Reader, out, errOut io.Writer) int {
	c := &command{in: in, out: out, err: errOut, env: os.Getenv, outputs: outputFiles{interrupted: exitFailed}}
	memory.WatchTemporary(c.outputs.onInterrupt)
	defer inputs.RemoveUnpacked()
	if len(args) > 1 && args[1] == commandline.CompleteCommand {
		return c.exit(c.complete(args[2:]))
	}
	app := c.appOf(args)
	if err := commandline.MisplacedCommand(app, args); err != nil {
		return c.exit(err)
	}
	var err error
	if words, ok := commandline.AsksForHelp(app, args); ok {
		err = c.help(words)
	} else {
		err = app.Run(c.withStdin(app, commandline.Reorder(app, args)))
	}
	return c.exit(cmp.Or(err, c.pages.Err))
}

// command is one run of the program: where it reads and writes, and what it has learned about its inputs.
type command struct {
	in       io.Reader
	out, err io.Writer
	env      func(name string) string
	diags    trace.Diags
	outputs  outputFiles
	read     []inputs.Input         // the inputs taken from all that were found, in order
	beside   []string               // other files that are read, and must not be overwritten either
	pages    commandline.PageWriter // writes pages of help to out
	first    trace.Time             // first event of the requests that were read last
	last     trace.Time             // last event of these
	mixed    string                 // of diff --at: see mixedBy
	verify   bool                   // read outputs back
	told     []document.Warning     // warnings already in the printed text
	unwatch  func()                 // stops watching memory; nil if it is not watched
	redact   *redact.Redactor       // from --redact; nil without it
	screen   screen.Screen          // how text is shown
	zone     *time.Location         // of times given without one
}

// app returns the program with all of its commands, for help and completion.
func (c *command) app() *cli.App { return c.appOf(nil) }

// appOf returns the program with only the command that a command line begins with, or with all of them:
// commands have hundreds of flags, and a run needs those of just one.
func (c *command) appOf(args []string) *cli.App {
	c.pages.W = c.out
	app := &cli.App{
		Name:                      "sgtrace",
		Usage:                     "post-mortems of LLM serving: which stage, which rank, since when, why",
		Version:                   commandline.Version(),
		Reader:                    c.in,
		Writer:                    &c.pages,
		ErrWriter:                 c.err,
		Suggest:                   true,
		DisableSliceFlagSeparator: true,
		HideHelpCommand:           true, // we have our own, and it would hide our flag
		Flags:                     []cli.Flag{cli.HelpFlag},
		ExitErrHandler:            func(*cli.Context, error) {}, // run decides the exit status
		Action: func(ctx *cli.Context) error {
			if ctx.Args().Present() {
				return commandline.UnknownCommand(ctx.App, ctx.Args().First())
			}
			return cli.ShowAppHelp(ctx)
		},
		Commands: c.commandsOf(args),
	}
	commandline.Prepare(app, c.app, screen.Known)
	return app
}

// A maker makes a command.
type maker struct {
	name  string
	reads bool // reads recorded inputs
	make  func() *cli.Command
}

// commandsOf returns the command that a command line begins with, or else all commands, in the order of the help.
func (c *command) commandsOf(args []string) (list []*cli.Command) {
	makers := []maker{
		{"convert", true, c.convertCommand},
		{"merge", true, c.mergeCommand},
		{"report", true, c.reportCommand},
		{"diff", true, c.diffCommand},
		{"whatif", true, c.whatifCommand},
		{"requests", true, c.requestsCommand},
		{"request", true, c.requestCommand},
		{"live", true, c.liveCommand},
		{"inspect", true, c.inspectCommand},
		{"extract", true, c.extractCommand},
		{"dataset", false, c.datasetCommand},
		{"sql", false, c.sqlCommand},
		{"open", false, c.openCommand},
		{"demo", false, c.demoCommand},
		{"version", false, c.versionCommand},
		{"help", false, c.helpCommand},
	}
	if len(args) > 1 {
		if i := slices.IndexFunc(makers, func(m maker) bool { return m.name == args[1] }); i >= 0 {
			makers = makers[i : i+1]
		}
	}
	for _, m := range makers {
		cmd := m.make()
		list = append(list, cmd)
		switch {
		case !m.reads:
		case cmd.Subcommands == nil:
			c.readsInputs(cmd)
		default:
			for _, sub := range cmd.Subcommands {
				c.readsInputs(sub)
			}
		}
	}
	return list
}

// exit prints diagnostics and err, and returns the exit status.
func (c *command) exit(err error) int {
	defer c.flushScrubbed()
	c.screen.Idle()
	var wrong commandline.UsageError
	switch {
	case errors.As(err, &wrong), errors.Is(err, filepath.ErrBadPattern):
		fmt.Fprintf(c.err, "sgtrace: %s\n", screen.Printable(err.Error()))
		return exitUsage
	case errors.Is(err, syscall.EPIPE):
		return exitOK
	}
	lost := c.printDiags()
	if err != nil {
		fmt.Fprintf(c.err, "sgtrace: %s\n", screen.Printable(err.Error()))
		var closed *gate.Failure
		if errors.As(err, &closed) {
			return exitGate
		}
		return exitFailed
	}
	if lost {
		return exitPartial
	}
	return exitOK
}

// Command sgtrace explains slow LLM serving from the files that are left after
// an incident.
package main

import (
	"cmp"
	"io"
	"os"
	"os/signal"
	"syscall"
	_ "time/tzdata" // for --tz on machines without a database of zones

	"github.com/sgtrace/sgtrace/cmd/sgtrace/internal/commandline"
	"github.com/sgtrace/sgtrace/convert/inputs"
	"github.com/sgtrace/sgtrace/internal/temporary"
)

func main() {
	// A reader that has seen enough (head, less) closes the pipe: that shows as an
	// error of the write, and is a normal end.
	signal.Ignore(syscall.SIGPIPE)
	os.Exit(run(os.Args, os.Stdin, os.Stdout, os.Stderr))
}

// Exit statuses. A broken pipe is exitOK: the reader has seen enough. exitGate comes before
// exitPartial, exitFailed before both.
const (
	exitOK      = 0
	exitFailed  = 1 // no usable output
	exitUsage   = 2
	exitPartial = 3 // output written, but input was dropped or damaged
	exitGate    = 4 // output written, but a gate failed or could not be judged
)

// run is the whole program; it returns the exit status.
func run(args []string, in io.Reader, out, errOut io.Writer) int {
	c := &command{in: in, out: out, err: errOut, env: os.Getenv, outputs: outputFiles{interrupted: exitFailed}}
	temporary.Watch(c.outputs.onInterrupt)
	defer inputs.RemoveUnpacked()
	app := c.app()
	if len(args) > 1 && args[1] == commandline.CompleteCommand {
		app.Setup()
		return c.exit(c.complete(app, args[2:]))
	}
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

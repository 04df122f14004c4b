package main

import (
	"context"
	"errors"
	"fmt"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/sgtrace/sgtrace/cmd/sgtrace/internal/commandline"
	"github.com/sgtrace/sgtrace/cmd/sgtrace/internal/live"
	"github.com/sgtrace/sgtrace/cmd/sgtrace/internal/screen"
	"github.com/sgtrace/sgtrace/convert"
	"github.com/sgtrace/sgtrace/convert/inputs"
)

// idleTime is how long open waits for a fetch of the file by default.
const idleTime = 10 * time.Minute

func (c *command) openCommand() *cli.Command {
	return &cli.Command{
		Name:      "open",
		Usage:     "open a timeline in the Perfetto UI, in your browser",
		ArgsUsage: "FILE",
		Description: `Prints a link that makes the viewer fetch the file from 127.0.0.1:9001, expand
the findings and the load, pin the rows that matter, and show the time that
matters. If this machine has a browser, it opens the link. sgtrace serves only
this file, and only to the viewer, until Ctrl-C or until nobody has fetched it
for a while. The file does not leave the machine: the viewer runs in the
browser.

Examples:
  sgtrace open out.pftrace
  sgtrace open demo/merged.pftrace.gz
  sgtrace open --ui https://perfetto.example.com out.pftrace
  ssh -L 9001:127.0.0.1:9001 login-node sgtrace open out.pftrace`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "ui", Value: live.UI, Usage: "`URL` of the viewer, if you host your own"},
			&cli.DurationFlag{Name: "timeout", Value: idleTime, DefaultText: "10m", Usage: "stop `DURATION` after the last fetch; 0 is never"},
			&cli.BoolFlag{Name: "no-browser", DisableDefaultText: true, Usage: "don't open a browser"},
		},
		Action: c.open,
	}
}

// open serves a timeline to the viewer.
func (c *command) open(ctx *cli.Context) error {
	if ctx.NArg() != 1 {
		return commandline.Usage("open takes one file, written by 'sgtrace merge' or 'sgtrace convert'; there are %d", ctx.NArg())
	}
	name, opt := ctx.Args().First(), live.ServeOptions{UI: ctx.String("ui"), Idle: ctx.Duration("timeout")}
	if _, err := live.Origin(opt.UI); err != nil {
		return commandline.Usage("--ui %v", err)
	}
	if opt.Idle < 0 {
		return commandline.Usage("--timeout %s: want a duration, such as 1h, or 0", opt.Idle)
	}
	if _, err := inputs.Find([]string{name}); err != nil {
		return err
	}
	if !convert.IsOutputName(name) {
		return fmt.Errorf("%s: the viewer cannot read this file; 'sgtrace merge %[1]s -o out.pftrace' makes one that it can", name)
	}
	opening, err := convert.OpeningOf(name)
	if err != nil {
		return err
	}
	listener, err := live.Listen()
	if err != nil {
		return err
	}
	defer listener.Close()
	stop, cancel := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer cancel()
	c.announce(name, live.Link(opt.UI, filepath.Base(name), opening), opt, ctx.Bool("no-browser"))
	if err := live.Serve(stop, name, listener, opt); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil // ended by Ctrl-C, as announced
}

// announce prints the link, and says what is served and how to get there.
func (c *command) announce(name, link string, opt live.ServeOptions, noBrowser bool) {
	if screen.IsTerminal(c.out) {
		fmt.Fprintln(c.out, live.Hyperlink(link))
	} else {
		fmt.Fprintln(c.out, link)
	}
	until := ""
	if opt.Idle > 0 {
		until = fmt.Sprintf(", or until nobody has fetched it for %s", opt.Idle)
	}
	fmt.Fprintf(c.err, "serving %s at http://%s to %s until Ctrl-C%s\n", screen.Printable(name), live.Addr, opt.UI, until)
	if tunnel := live.Tunnel(c.env); tunnel != "" {
		fmt.Fprintf(c.err, "your browser is on another machine: run this there, then open the link\n  %s\n", tunnel)
	}
	if noBrowser {
		return
	}
	if browser := live.Browser(live.Desktop{OS: runtime.GOOS, Env: c.env, Find: live.CanRun}, link); browser != nil {
		if err := live.Start(browser); err != nil {
			fmt.Fprintf(c.err, "no browser (%v): open the link yourself\n", err)
		}
	}
}

package main

import (
	"context"
	"fmt"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/urfave/cli/v2"

	"github.com/sgtrace/sgtrace/cmd/sgtrace/internal/commandline"
	"github.com/sgtrace/sgtrace/convert/inputs"
	"github.com/sgtrace/sgtrace/convert/output"
	"github.com/sgtrace/sgtrace/internal/serve"
)

func (c *command) openCommand() *cli.Command {
	return &cli.Command{
		Name:      "open",
		Usage:     "open a timeline in ui.perfetto.dev, in the browser on this machine",
		ArgsUsage: "FILE",
		Description: `Prints a link that makes the viewer fetch the file from 127.0.0.1:9001 and pin
the rows that matter. sgtrace serves only this file, only to the viewer, and
only once. The file does not leave the machine: the viewer runs in the browser.

Examples:
  sgtrace open out.pftrace
  sgtrace open demo/merged.pftrace.gz
  ssh -L 9001:127.0.0.1:9001 login-node sgtrace open out.pftrace`,
		Action: func(ctx *cli.Context) error {
			if ctx.NArg() != 1 {
				return commandline.Usage("open takes one file, written by 'sgtrace merge' or 'sgtrace convert'; there are %d", ctx.NArg())
			}
			name := ctx.Args().First()
			if _, err := inputs.Find([]string{name}); err != nil {
				return err
			}
			if !output.IsOutputName(name) {
				return fmt.Errorf("%s: the viewer cannot read this file; 'sgtrace merge %[1]s -o out.pftrace' makes one that it can", name)
			}
			listener, err := serve.Listen()
			if err != nil {
				return err
			}
			defer listener.Close()
			stop, cancel := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
			defer cancel()
			fmt.Fprintln(c.out, serve.Link(filepath.Base(name), serve.DefaultCommands()))
			return serve.Serve(stop, name, listener)
		},
	}
}

package main

import (
	"context"
	"os/signal"
	"syscall"

	"github.com/urfave/cli/v2"

	"github.com/sgtrace/sgtrace/cmd/sgtrace/internal/commandline"
	"github.com/sgtrace/sgtrace/cmd/sgtrace/internal/follower"
	"github.com/sgtrace/sgtrace/cmd/sgtrace/internal/selection"
	"github.com/sgtrace/sgtrace/convert/inputs"
)

// followRequests prints requests as they end, until interrupted.
func (c *command) followRequests(ctx *cli.Context) error {
	if ctx.NArg() != 1 || ctx.String("format") != "text" || ctx.IsSet("sort") || ctx.IsSet("limit") || ctx.IsSet("exclude") {
		return commandline.Usage("--follow takes one file and prints text as requests end, without --sort, --limit, --exclude, or --format")
	}
	stop, cancel := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer cancel()
	if _, err := inputs.Find(ctx.Args().Slice()); err != nil {
		return err
	}
	r, err := follower.Open(stop, ctx.Args().First(), 0)
	if err != nil {
		return err
	}
	defer r.Close()
	sel, err := selection.Read(ctx)
	if err != nil {
		return err
	}
	f := follower.Follower{Out: c.out, Selected: sel, Dump: inputs.NewGrowing(ctx.Args().First(), &c.diags), Redact: c.redactRequests}
	return f.Follow(r)
}

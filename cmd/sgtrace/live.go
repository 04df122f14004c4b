package main

import (
	"context"
	"os/signal"
	"syscall"

	"github.com/urfave/cli/v2"

	"github.com/sgtrace/sgtrace/analyze/document"
	"github.com/sgtrace/sgtrace/analyze/requests"
	"github.com/sgtrace/sgtrace/cmd/sgtrace/internal/commandline"
	"github.com/sgtrace/sgtrace/cmd/sgtrace/internal/live"
	"github.com/sgtrace/sgtrace/convert/inputs"
)

func (c *command) liveCommand() *cli.Command {
	return &cli.Command{
		Name:      "live",
		Usage:     "list the requests under way at a moment, with the stage of each",
		ArgsUsage: "INPUT...",
		Description: `Text shows the 200 oldest requests. CSV and JSON have all.

Examples:
  sgtrace live --at 20:53:33 otel_trace.json
  sgtrace live --at +12.5s --role decode --sort -age otel_trace.json
  sgtrace live --at 20:53:33 --format csv otel_trace.json`,
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "at", Usage: "list the requests under way at `TIME`: 20:53:20, 2026-08-17T20:53:20Z, +10s"},
			formatFlag(),
			&cli.StringFlag{Name: "sort", Usage: "sort by `COLUMN`; -COLUMN reverses the order"},
			&cli.IntFlag{Name: "limit", Usage: "print the first `N` requests; 0 is all", DefaultText: "200 for text and markdown, otherwise all"},
		}, commandline.Flags()...),
		Action: c.live,
	}
}

func (c *command) live(ctx *cli.Context) error {
	how, err := printing(ctx, maxRequests)
	if err != nil {
		return err
	}
	if !ctx.IsSet("at") {
		return commandline.Usage("live needs --at TIME, such as --at 20:53:33, or --at +10s from the beginning")
	}
	if _, err := commandline.Instant("--at", ctx.String("at"), 1, 1, c.zone); err != nil {
		return err
	}
	set, err := c.load(ctx, ctx.Args().Slice())
	if err != nil {
		return err
	}
	at, err := commandline.Instant("--at", ctx.String("at"), c.first, c.last, c.zone)
	if err != nil {
		return err
	}
	d := document.Of(requests.At(set, at).Report())
	d.Schema = "sgtrace.live/v2"
	return c.write(d, how)
}

// followRequests prints requests as they end, until it is interrupted.
func (c *command) followRequests(ctx *cli.Context) error {
	if ctx.NArg() != 1 || ctx.String("format") != "text" || ctx.IsSet("sort") || ctx.IsSet("limit") || ctx.IsSet("exclude") {
		return commandline.Usage("--follow takes one file and prints text as requests end, without --sort, --limit, --exclude, or --format")
	}
	stop, cancel := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer cancel()
	if _, err := inputs.Find(ctx.Args().Slice()); err != nil {
		return err
	}
	r, err := live.OpenGrowing(stop, ctx.Args().First(), 0)
	if err != nil {
		return err
	}
	defer r.Close()
	sel, err := commandline.Read(ctx)
	if err != nil {
		return err
	}
	f := live.Follower{Out: c.out, Selected: sel, Dump: inputs.NewGrowing(ctx.Args().First(), &c.diags), Redact: c.redactRequests}
	return f.Follow(r)
}

package main

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/urfave/cli/v2"

	"github.com/sgtrace/sgtrace/convert"
	"github.com/sgtrace/sgtrace/trace"
)

func (c *command) convertCommand() *cli.Command {
	return &cli.Command{
		Name:  "convert",
		Usage: "turn one kind of input into a file for Perfetto",
		Action: func(ctx *cli.Context) error {
			if ctx.Args().Present() {
				return usage("no converter %q; there is otel2perfetto", ctx.Args().First())
			}
			return cli.ShowSubcommandHelp(ctx)
		},
		Subcommands: []*cli.Command{{
			Name:      "otel2perfetto",
			Usage:     "OTLP dumps of SGLang's request tracing to Perfetto (or Chrome JSON)",
			ArgsUsage: "INPUT... -o OUT",
			Description: `OUT decides the format: .pftrace and .pftrace.gz are Perfetto's own, .json and
.json.gz are Chrome JSON.

Examples:
  sgtrace convert otel2perfetto otel_trace.json -o out.pftrace
  sgtrace convert otel2perfetto 'dumps/*.zst' --slowest 20:ttft -o slow.pftrace.gz
  sgtrace convert otel2perfetto otel.jsonl --view request --rid 7ca07386 -o one.json`,
			Flags: append([]cli.Flag{
				&cli.StringFlag{Name: "o", Aliases: []string{"output"}, Usage: "write to `FILE`"},
				&cli.StringFlag{Name: "view", Value: "both", Usage: "`VIEW` to draw: thread, request or both"},
			}, selectionFlags()...),
			OnUsageError: onUsageError,
			Action:       c.otel2perfetto,
		}},
	}
}

func (c *command) otel2perfetto(ctx *cli.Context) error {
	view, err := convert.ParseView(ctx.String("view"))
	if err != nil {
		return usageError{err}
	}
	names, err := inputs(ctx.Args().Slice())
	if err != nil {
		return err
	}
	out, err := c.create(ctx.String("o"), names)
	if err != nil {
		return err
	}
	defer out.Abandon()
	c.collectEarly()
	t, requests, err := c.layout(ctx, names, view)
	if err != nil {
		return err
	}
	size, err := out.Write(t)
	if err != nil {
		return err
	}
	fmt.Fprintf(c.err, "%s: %d requests, %d slices on %d tracks, %d arrows, %s\n", ctx.String("o"),
		requests, len(t.Slices)-1, len(t.Tracks)-1, len(t.Flows), bytesText(size))
	return nil
}

// create prepares the output file, which an interrupt removes again.
func (c *command) create(name string, inputs []string) (*convert.Output, error) {
	if name == "" {
		return nil, usage("no output; give -o FILE, with a name that ends in .pftrace or .json")
	}
	// Signals are held back until there is something to remove.
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	out, err := convert.Create(name, inputs)
	if err != nil {
		signal.Stop(signals)
		if errors.Is(err, convert.ErrOutputName) {
			return nil, usageError{err}
		}
		return nil, err
	}
	go func() {
		<-signals
		out.Abandon()
		os.Exit(exitFailed)
	}()
	return out, nil
}

// layout loads and draws the inputs. It is a function of its own so that the
// spans can be given up before the long work of writing.
func (c *command) layout(ctx *cli.Context, names []string, view convert.View) (t *trace.Trace, requests int, err error) {
	set, err := c.loadFiles(ctx, names)
	if err != nil {
		return nil, 0, err
	}
	return convert.Layout(set, view), len(set.Requests), nil
}

// collectEarly trades some time for memory, unless the user says otherwise: the
// tables of the timeline come on top of those of the spans. They hold no
// pointers, so that a cycle of the garbage collector is cheap.
func (c *command) collectEarly() {
	if c.env("GOGC") == "" {
		debug.SetGCPercent(20)
	}
}

// bytesText prints a size for people.
func bytesText(n int64) string {
	switch {
	case n < 1000:
		return fmt.Sprintf("%d B", n)
	case n < 1e6:
		return fmt.Sprintf("%.1f kB", float64(n)/1e3)
	case n < 1e9:
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	}
	return fmt.Sprintf("%.2f GB", float64(n)/1e9)
}

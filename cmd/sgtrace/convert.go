package main

import (
	"cmp"
	"fmt"
	"runtime/debug"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/sgtrace/sgtrace/analyze/finders"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/cmd/sgtrace/internal/annotate"
	"github.com/sgtrace/sgtrace/cmd/sgtrace/internal/commandline"
	"github.com/sgtrace/sgtrace/cmd/sgtrace/internal/reports"
	"github.com/sgtrace/sgtrace/cmd/sgtrace/internal/screen"
	"github.com/sgtrace/sgtrace/convert/drawing"
	"github.com/sgtrace/sgtrace/convert/inputs"
	"github.com/sgtrace/sgtrace/format/rocm"
	"github.com/sgtrace/sgtrace/nsysexport"
	"github.com/sgtrace/sgtrace/otlpjson"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// converters replace the usage and add the description of some commands of convert.
var converters = map[string]struct{ usage, description string }{
	otlpjson.Format.Convert: {"OTLP dumps of SGLang requests to Perfetto or Chrome JSON",
		`The name of OUT selects the format: .pftrace and .pftrace.gz are Perfetto's own
format, .json and .json.gz are Chrome JSON.

Examples:
  sgtrace convert otel2perfetto otel_trace.json -o out.pftrace
  sgtrace convert otel2perfetto 'dumps/*.zst' --slowest 20:ttft -o slow.pftrace
  sgtrace convert otel2perfetto otel.jsonl --rid 7ca07386 -o one.json.gz`},
	nsysexport.Format.Convert: {"Nsight Systems exports to Perfetto or Chrome JSON",
		`An export is what 'nsys export' writes with --type sqlite or parquetdir. A
report (.nsys-rep) is exported first, if nsys is in PATH. Each process that is a
rank gets its streams, threads, NVTX ranges, and counters. To see PyTorch traces
and requests beside them, use 'sgtrace merge'.

Examples:
  sgtrace convert nsys2perfetto node0.sqlite -o node0.pftrace
  sgtrace convert nsys2perfetto node0.sqlite --from +2s --to +3s -o part.pftrace
  sgtrace convert nsys2perfetto 'node*.sqlite' --cat kernel,nvtx -o out.json.gz`},
	rocm.Rocpd.Convert: {"rocpd databases of ROCm to Perfetto or Chrome JSON",
		`Each process gets its streams, threads, roctx ranges, and counters. A capture
lasts as long as the process, so a part of it is usually enough.

Examples:
  sgtrace convert rocpd2perfetto 4000_results.db -o out.pftrace
  sgtrace convert rocpd2perfetto 4000_results.db --to +2ms -o part.pftrace
  sgtrace convert rocpd2perfetto '*_results.db' --cat kernel -o out.json.gz`},
	rocm.RPD.Convert: {"RPD traces to Perfetto or Chrome JSON",
		`All ranks of a host are in one trace. Each gets its streams, threads, and marks
of roctx.

Examples:
  sgtrace convert rpd2perfetto trace.rpd -o out.pftrace
  sgtrace convert rpd2perfetto trace.rpd --from +1s --to +1500ms -o part.pftrace
  sgtrace convert rpd2perfetto trace.rpd --cat kernel -o out.json.gz`},
	rocm.Rocprof.Convert: {"JSON of rocprofv3 to Perfetto or Chrome JSON",
		`Each process gets its streams, threads, roctx ranges, and counters.

Examples:
  sgtrace convert rocprof2perfetto 4001_results.json -o out.pftrace
  sgtrace convert rocprof2perfetto 4001_results.json --to +2ms -o part.pftrace
  sgtrace convert rocprof2perfetto '*_results.json' --cat kernel -o out.json.gz`},
}

// convertCommand has a subcommand for every format that has one.
func (c *command) convertCommand() *cli.Command {
	all := &cli.Command{
		Name:   "convert",
		Usage:  "convert one kind of input to a timeline for Perfetto",
		Action: func(*cli.Context) error { return c.help([]string{"convert"}) },
	}
	for _, f := range slices.Backward(inputs.Formats) {
		if f.Convert != "" {
			all.Subcommands = append(all.Subcommands, c.converter(f))
		}
	}
	return all
}

// converter returns the command that reads inputs of one format.
func (c *command) converter(f *inputs.Format) *cli.Command {
	cmd := &cli.Command{Name: f.Convert, Usage: f.Doc + ", to Perfetto or Chrome JSON", ArgsUsage: "INPUT... -o OUT"}
	if text, ok := converters[f.Convert]; ok {
		cmd.Usage, cmd.Description = text.usage, text.description
	}
	if f.Requests {
		cmd.Flags = append([]cli.Flag{
			&cli.StringFlag{Name: "o", Aliases: []string{"output"}, Usage: "write to `FILE`"},
			c.verifyFlag(),
			keepSecretsFlag(),
		}, slices.Concat(findingFlags(), requestDrawingFlags(), commandline.Flags())...)
		cmd.Action = func(ctx *cli.Context) error { return c.convertRequests(ctx, f) }
		return cmd
	}
	cmd.Flags = append(c.timelineFlags(), commandline.WindowFlags()...)
	cmd.Action = func(ctx *cli.Context) error {
		inputs, err := findInputs(ctx, ctx.Args().Slice())
		if err != nil {
			return err
		}
		return c.draw(ctx, inputs, f)
	}
	return cmd
}

// requestDrawingFlags say how requests are drawn.
func requestDrawingFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "view", Value: "both", Usage: "`VIEW` of requests to draw: thread, request, or both"},
		&cli.StringFlag{Name: "requests", DefaultText: "those that matter", Usage: "draw `N` requests in the request view, or all, by minute of arrival"},
	}
}

// drawingOptions reads the flags that say what a timeline shows.
func drawingOptions(ctx *cli.Context) (opt drawing.Options, err error) {
	opt.Zone = words.Zone()
	if opt.View, err = drawing.ParseView(cmp.Or(ctx.String("view"), "both")); err != nil {
		return opt, commandline.AsUsage(err)
	}
	if ctx.IsSet("requests") {
		if opt.Requests, err = drawing.ParseRequests(ctx.String("requests")); err != nil {
			return opt, commandline.AsUsage(err)
		}
	}
	if ctx.IsSet("layout") {
		if opt.Ranks, err = drawing.ParseRankLayout(ctx.String("layout")); err != nil {
			return opt, commandline.AsUsage(err)
		}
	}
	return opt, nil
}

// findingFlags are on every command that draws a timeline.
func findingFlags() []cli.Flag {
	return append([]cli.Flag{
		&cli.BoolFlag{Name: "no-findings", DisableDefaultText: true, Usage: "don't look for what stands out (default: draw what 'sgtrace report' finds)"},
	}, reports.MuteFlags("")...)
}

// addFindings adds findings about the inputs to a timeline, except muted ones.
func (c *command) addFindings(opt *drawing.Options, in finders.Inputs, mutes []finders.Mute) {
	c.screen.Doing("looking for findings")
	in.Diags = &c.diags
	if n := annotate.Findings(opt, in, mutes); n > 0 {
		fmt.Fprintf(c.screen.Notices, "%s muted\n", words.Counted(n, "finding"))
	}
}

// convertRequests draws the requests of inputs of one format.
func (c *command) convertRequests(ctx *cli.Context, f *inputs.Format) error {
	opt, err := drawingOptions(ctx)
	if err != nil {
		return err
	}
	mutes, err := reports.Mutes(ctx)
	if err != nil {
		return err
	}
	files, err := findInputs(ctx, ctx.Args().Slice())
	if err != nil {
		return err
	}
	out, err := c.create(ctx.String("o"), files)
	if err != nil {
		return err
	}
	defer out.Abandon()
	c.collectEarly(50)
	t, requests, err := c.layout(ctx, files, opt, mutes, f)
	if err != nil {
		return err
	}
	size, err := c.writeTrace(out, t)
	if err != nil {
		return err
	}
	fmt.Fprintf(c.screen.Notices, "%s: %s, %s\n", screen.Printable(ctx.String("o")), count(requests, "request"), contents(t, size))
	return nil
}

// layout loads and draws the inputs. It is a function of its own so that the spans can be released before
// the long work of writing.
func (c *command) layout(ctx *cli.Context, files []inputs.Input, opt drawing.Options, mutes []finders.Mute, f *inputs.Format) (t *trace.Trace, requests int, err error) {
	set, err := c.loadFiles(ctx, files, loading{only: f})
	if err != nil {
		return nil, 0, err
	}
	if !ctx.Bool("no-findings") {
		c.addFindings(&opt, finders.Inputs{Requests: set}, mutes)
	}
	c.screen.Doing("drawing")
	t = drawing.Layout(set, opt)
	return t, len(set.Requests), nil
}

// collectEarly trades time for memory, unless the user sets GOGC: it lets the heap grow by at most percent between
// garbage collections, or less if that was set before. The timeline's tables come on top of those of the spans. They
// hold no pointers, so a collection is cheap.
func (c *command) collectEarly(percent int) {
	if c.env("GOGC") == "" {
		debug.SetGCPercent(min(percent, debug.SetGCPercent(percent)))
	}
}

// contents describes what a timeline holds.
func contents(t *trace.Trace, size int64) string {
	logged := ""
	if name := t.Syms.Intern(profile.Logged); slices.ContainsFunc(t.Tracks, func(x trace.Track) bool { return x.Name == name }) {
		logged = count(len(t.Samples), "sample") + ", " + count(len(t.Instants), "instant") + ", and "
	}
	return fmt.Sprintf("%s%s on %s, %s, %s", logged, count(len(t.Slices)-1, "slice"), count(len(t.Tracks)-1, "track"), count(len(t.Flows), "arrow"), bytesText(size))
}

// count formats a number of things.
func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// bytesText formats a size.
func bytesText(n int64) string { return screen.Bytes(float64(n)) }

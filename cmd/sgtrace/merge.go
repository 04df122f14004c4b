package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/sgtrace/sgtrace/analyze/finders"
	"github.com/sgtrace/sgtrace/analyze/requests"
	"github.com/sgtrace/sgtrace/chrometrace"
	"github.com/sgtrace/sgtrace/cmd/sgtrace/internal/commandline"
	"github.com/sgtrace/sgtrace/cmd/sgtrace/internal/reports"
	"github.com/sgtrace/sgtrace/cmd/sgtrace/internal/screen"
	"github.com/sgtrace/sgtrace/convert"
	"github.com/sgtrace/sgtrace/convert/clocks"
	"github.com/sgtrace/sgtrace/convert/drawing"
	"github.com/sgtrace/sgtrace/convert/inputs"
	"github.com/sgtrace/sgtrace/convert/ranks"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/nsysexport"
	"github.com/sgtrace/sgtrace/otlpjson"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

func (c *command) mergeCommand() *cli.Command {
	files := func(name, usage string) cli.Flag { return &cli.StringSliceFlag{Name: name, Usage: usage} }
	const clock = "Clocks:"
	return &cli.Command{
		Name:      "merge",
		Usage:     "put ranks and requests on one timeline and one clock",
		ArgsUsage: "[LABEL=]INPUT...",
		Description: `sgtrace recognizes inputs by content; --torch, --nsys, and --otel only document
what they are. A label says which host, rank, or both a file is from:
node1=x.json, TP3=x.json, node1/TP3=x.json. sgtrace aligns the clocks of hosts
by collectives that their ranks share and by requests that cross them, and
prints one line per host that says how. A trace and an export of one process
become one rank; what both recorded is drawn once.

Examples:
  sgtrace merge --torch 'traces/*.json.gz' --otel otel.jsonl -o merged.pftrace
  sgtrace merge traces/ --cat kernel,user_annotation -o kernels.pftrace.gz
  sgtrace merge traces/ otel.jsonl --around 7ca07386 -o around.pftrace
  sgtrace merge --nsys 'node*.sqlite' --rank-of 4100=TP0 -o merged.pftrace
  sgtrace merge traces/ --split 60s -o part.pftrace  # part-001.pftrace, ...
  sgtrace merge traces/ --offset node1=+1.2ms --drift node1=2ppm -o out.json`,
		Flags: slices.Concat([]cli.Flag{
			files("torch", "`INPUT` with PyTorch traces: a file, glob, or folder"),
			files("nsys", "`INPUT` with Nsight Systems exports (SQLite): a file, glob, or folder"),
			files("otel", "`INPUT` with OTLP dumps: a file, glob, or folder"),
		}, c.timelineFlags(), requestDrawingFlags(), []cli.Flag{
			&cli.BoolFlag{Name: "without-originals", Usage: "draw what datasets have, without arguments and arrows", DisableDefaultText: true},
			&cli.StringFlag{Name: "around", Usage: "only the time of the request with this `ID` (or the start of one), on all ranks", Category: ofRanks},

			&cli.StringSliceFlag{Name: "offset", Usage: "the clock of this host is ahead: `HOST=+1.2ms`", Category: clock},
			&cli.StringSliceFlag{Name: "drift", Usage: "the clock of this host runs fast: `HOST=+12ppm`", Category: clock},
			&cli.BoolFlag{Name: "no-align", Usage: "don't align clocks; apply only --offset and --drift", Category: clock, DisableDefaultText: true},
			&cli.StringFlag{Name: "clock-report", Usage: "write to `FILE`, as JSON, how the clocks were aligned", Category: clock},
		}, commandline.Flags()),
		Action: c.merge,
	}
}

// manySlices is the number of slices from which a timeline dominates memory.
const manySlices = 1 << 20

// ofRanks is the category of flags that select events of ranks.
const ofRanks = "Events of ranks:"

// timelineFlags returns the flags of commands that draw ranks.
func (c *command) timelineFlags() []cli.Flag {
	return append([]cli.Flag{
		&cli.StringFlag{Name: "o", Aliases: []string{"output"}, Usage: "write to `FILE`"},
		&cli.StringSliceFlag{Name: "rank-of", Usage: "the process PID of an export is this rank: `PID=RANK`, such as 4100=TP3 or node1:4100=TP3"},
		&cli.StringFlag{Name: "layout", Value: "both", Usage: "`LAYOUT` of ranks: ranks (threads and streams of each rank), compare (the same row of all ranks together), or both"},
		&cli.DurationFlag{Name: "split", Usage: "write a numbered series of files, each `DURATION` long, such as 60s", DefaultText: "one file"},
		c.verifyFlag(),
		keepSecretsFlag(),
		&cli.StringSliceFlag{Name: "cat", Usage: "include events of this `CATEGORY`: kernel, cpu_op, python_function, nvtx, ...; separate several with commas", Category: ofRanks},
		&cli.StringFlag{Name: "name", Usage: "include events whose name matches `REGEXP`", Category: ofRanks},
		&cli.StringFlag{Name: "args", Value: "all", Usage: "`WHICH` arguments to keep: none, min, or all", Category: ofRanks},
		reports.CapturesFlag(""),
	}, findingFlags()...)
}

// mergeFlags are the flags of merge, parsed.
type mergeFlags struct {
	draw   drawing.Options
	read   inputs.Options
	ranks  ranks.Options
	sel    *commandline.Selected
	given  []clocks.Given
	mutes  []finders.Mute
	clocks *textFile // from --clock-report; nil without it
}

func (c *command) merge(ctx *cli.Context) error {
	inputs, err := mergeInputsOf(ctx)
	if err != nil {
		return err
	}
	return c.draw(ctx, inputs, nil)
}

// mergeInputsOf finds the inputs, with the formats implied by --torch, --nsys, and --otel.
func mergeInputsOf(ctx *cli.Context) ([]inputs.Input, error) {
	exclude := ctx.StringSlice("exclude")
	files, err := inputs.Find(ctx.Args().Slice(), exclude...)
	for _, f := range []struct {
		flag string
		as   *inputs.Format
	}{{"torch", chrometrace.Format}, {"nsys", nsysexport.Format}, {"otel", otlpjson.Format}} {
		if err != nil {
			return nil, err
		}
		var more []inputs.Input
		more, err = inputs.Find(ctx.StringSlice(f.flag), exclude...)
		for i := range more {
			more[i].As = f.as
		}
		files = append(files, more...)
	}
	return inputs.Unique(files), err
}

// draw puts inputs on one timeline; only refuses other formats unless it is nil.
func (c *command) draw(ctx *cli.Context, files []inputs.Input, only *inputs.Format) error {
	flags, err := c.mergeFlags(ctx)
	if err != nil {
		return err
	}
	flags.read.Only = only
	if len(files) == 0 {
		return commandline.Usage("no input; give files, globs, or folders")
	}
	out, err := c.create(ctx.String("o"), files)
	if err != nil {
		return err
	}
	defer out.Abandon()
	if name := ctx.String("clock-report"); name != "" {
		if flags.clocks, err = c.createFile(name, files); err != nil {
			return err
		}
		defer flags.clocks.Output.Abandon()
	}
	c.collectEarly(50)
	t, err := c.mergeInputs(ctx, files, flags)
	if err != nil {
		return err
	}
	if len(t.Slices) > manySlices {
		debug.FreeOSMemory() // returns everything that the timeline was made from
	}
	if d := ctx.Duration("split"); d > 0 {
		return c.writeSeries(t, d, ctx.String("o"), files)
	}
	size, err := c.writeTrace(out, t)
	if err != nil {
		return err
	}
	c.summarize(ctx.String("o"), t, size)
	fmt.Fprintf(c.screen.Notices, "to view it: sgtrace open %s\n", screen.Printable(ctx.String("o")))
	return nil
}

// mergeInputs reads, aligns, selects, and draws. It is a function of its own so that everything but the
// result can be released before the long work of writing.
func (c *command) mergeInputs(ctx *cli.Context, files []inputs.Input, flags *mergeFlags) (*trace.Trace, error) {
	windowed := flags.sel.Window != (commandline.Window{}) || ctx.IsSet("around")
	files, captures, err := splitCaptures(ctx, files)
	if err != nil {
		return nil, err
	}
	in, of, err := c.readMerged(ctx, files, flags, windowed)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	if in.Requests == nil && len(of.Tracks) == 0 && in.Series.Empty() {
		return nil, errors.New("nothing to draw: the inputs have no requests, and nothing that profilers, logs or metrics tell of a time")
	}
	aligned, err := clocks.Align(in, of, clocks.Options{Given: flags.given, Find: !ctx.Bool("no-align")})
	if err != nil {
		return nil, commandline.Usage("--offset, --drift: %v", err)
	}
	if c.redact != nil {
		convert.Learn(in, of, c.redact)
	}
	if err := c.reportClocks(aligned.Report(of), flags); err != nil {
		return nil, err
	}
	if windowed {
		if err := c.readWindow(in, of, aligned, flags, ctx.String("around")); err != nil {
			return nil, err
		}
	}
	if err := flags.choose(in.Requests); err != nil {
		return nil, err
	}
	if c.redact != nil {
		convert.Redact(in, of, aligned, c.redact)
	}
	var profiles *profile.Set
	if in.KeepsKinds() {
		profiles = convert.Profiles(in, of, aligned)
	}
	if !ctx.Bool("no-findings") {
		found := finders.Inputs{Requests: in.Requests, Profiles: profiles}
		if !in.Series.Empty() {
			found.Series = in.Series
		}
		c.addFindings(&flags.draw, found, flags.mutes)
	}
	if err := c.addNested(ctx, &flags.draw, profiles, captures); err != nil {
		return nil, err
	}
	c.screen.Doing("drawing")
	t := drawing.Draw(in, of, aligned, flags.draw)
	if len(t.Slices) == 1 && len(t.Instants) == 0 && len(t.Samples) == 0 {
		return nil, nothingLeft(ctx)
	}
	return t, nil
}

// readWindow reads the events of the window of time, which is known once the clocks are aligned.
func (c *command) readWindow(in *inputs.Loaded, of *ranks.Assignment, aligned *clocks.Alignment, flags *mergeFlags, around string) error {
	c.screen.Doing("reading the window of time")
	first, last := bounds(aligned, in.Series)
	if err := flags.resolve(first, last, in.Requests, around); err != nil {
		return err
	}
	return convert.ReadWindow(in, of, aligned, flags.sel.Selection.From, flags.sel.Selection.To)
}

// readMerged reads the inputs of a timeline. For a window of time, it reads only what decides where the window is.
func (c *command) readMerged(ctx *cli.Context, files []inputs.Input, flags *mergeFlags, windowed bool) (*inputs.Loaded, *ranks.Assignment, error) {
	opt := flags.read
	opt.Stdin, opt.Zone = c.in, c.givenZone(ctx)
	opt.Filter.IndexOnly = windowed
	if !ctx.IsSet("around") && len(flags.given) == 0 { // otherwise, times may move by any amount
		opt.Pick = wantedTraces(flags.sel, nil, ctx.Bool("no-align"))
	}
	opt.Meter = c.screen.Reading(size(files))
	in, of, err := convert.Read(files, opt, flags.ranks, &c.diags)
	c.screen.Doing("matching ranks and clocks")
	if errors.Is(err, ranks.ErrNoProcess) {
		return nil, nil, commandline.Usage("--rank-of: %v", err)
	}
	return in, of, err
}

// choose applies the selection flags to what is drawn, and to requests, which may be nil.
func (f *mergeFlags) choose(set *request.Set) error {
	s := f.sel.Selection
	f.draw.Window = inputs.Extent{From: s.From, To: s.To}
	f.draw.Hosts, f.draw.Want = s.Hosts, s.Ranks
	if set == nil {
		return nil
	}
	return set.Select(s)
}

// bounds returns the first and the last instant of all inputs on the common clock.
func bounds(aligned *clocks.Alignment, said *series.Set) (first, last trace.Time) {
	first, last = aligned.Bounds()
	if from, to, ok := said.Bounds(); ok {
		first, last = order.Earlier(first, from), max(last, to)
	}
	return first, last
}

// reportClocks prints a line for each clock, and writes the file of --clock-report.
func (c *command) reportClocks(clocks *clocks.Report, flags *mergeFlags) error {
	for i := range clocks.Clocks {
		fmt.Fprintln(c.screen.Notices, screen.Printable(clocks.Clocks[i].String()))
	}
	if flags.clocks == nil {
		return nil
	}
	_, err := flags.clocks.WriteFunc(clocks.WriteJSON)
	return err
}

// nothingLeft explains why there is nothing to draw.
func nothingLeft(ctx *cli.Context) error {
	names := []string{"layout", "view", "cat", "name", "around"}
	for _, f := range commandline.Flags() {
		names = append(names, f.Names()[0])
	}
	var given []string
	for _, name := range names {
		if ctx.IsSet(name) {
			given = append(given, "--"+name)
		}
	}
	if given == nil {
		return errors.New("the inputs have no events")
	}
	hint := ""
	if ctx.IsSet("cat") || ctx.IsSet("name") {
		hint = "; 'sgtrace inspect --table categories' lists what there is"
	}
	return fmt.Errorf("nothing matches %s%s", strings.Join(given, ", "), hint)
}

// resolve determines the selected window of time, for inputs that begin and end at first and last.
func (f *mergeFlags) resolve(first, last trace.Time, requests *request.Set, around string) error {
	err := f.sel.Resolve(first, last)
	if err == nil && around != "" {
		err = timesOf(requests, around, &f.sel.Selection)
	}
	return err
}

// timesOf selects the time of the request with the given ID. If several requests have the ID, it is the
// time of all of them.
func timesOf(s *request.Set, id string, sel *request.Selection) error {
	if s == nil {
		return commandline.Usage("--around %s: there are no requests; add the OTLP dump", id)
	}
	found := requests.Find(s, id)
	if len(found) == 0 {
		return fmt.Errorf("--around %s: no such request%s ('sgtrace requests' lists them)", id, s.Similar(id))
	}
	if !shareID(s, found, id) {
		return commandline.Usage("--around %s: %d requests begin with %[1]s; give more of the ID", id, len(found))
	}
	sel.From = s.Requests[found[0]].Start
	for _, r := range found {
		sel.From = min(sel.From, s.Requests[r].Start)
		sel.To = max(sel.To, s.Requests[r].End)
	}
	return nil
}

// shareID reports whether all of the requests share one full ID that begins with the given one.
func shareID(s *request.Set, these []int, begin string) bool {
	ids := func(r int) []string { return requests.RequestIDs(s, &s.Requests[r]) }
	return slices.ContainsFunc(ids(these[0]), func(id string) bool {
		return strings.HasPrefix(id, begin) &&
			!slices.ContainsFunc(these[1:], func(r int) bool { return !slices.Contains(ids(r), id) })
	})
}

// mergeFlags parses and checks the flags of merge.
func (c *command) mergeFlags(ctx *cli.Context) (f *mergeFlags, err error) {
	f = &mergeFlags{}
	if f.draw, err = drawingOptions(ctx); err != nil {
		return nil, err
	}
	if f.sel, err = commandline.Read(ctx); err != nil {
		return nil, err
	}
	if f.mutes, err = reports.Mutes(ctx); err != nil {
		return nil, err
	}
	if d := ctx.Duration("split"); ctx.IsSet("split") && d <= 0 {
		return nil, commandline.Usage("--split %s: want a duration above 0, such as 60s", d)
	}
	if ctx.IsSet("around") && f.sel.Window != (commandline.Window{}) {
		return nil, commandline.Usage("--around already selects a time window; leave out --from and --to")
	}
	f.read.KeepSecrets, f.read.WithoutOriginals = ctx.Bool("keep-secrets"), ctx.Bool("without-originals")
	f.ranks.Ranks, f.ranks.Hosts = f.sel.Selection.Ranks, f.sel.Selection.Hosts
	for _, text := range ctx.StringSlice("rank-of") {
		given, err := ranks.ParseGivenRank(text)
		if err != nil {
			return nil, commandline.Usage("--rank-of %v", err)
		}
		f.ranks.Given = append(f.ranks.Given, given)
	}
	filter := &f.read.Filter
	filter.MinDur = f.sel.Selection.MinDur
	for _, list := range ctx.StringSlice("cat") {
		filter.Cats = append(filter.Cats, strings.Split(list, ",")...)
	}
	if text := ctx.String("name"); text != "" {
		if filter.Names, err = regexp.Compile(text); err != nil {
			return nil, commandline.Usage("--name: %v", err)
		}
	}
	modes := map[string]profile.ArgsMode{"all": profile.ArgsAll, "min": profile.ArgsMin, "none": profile.ArgsNone}
	mode, ok := modes[ctx.String("args")]
	if !ok {
		return nil, commandline.OneOf("--args", ctx.String("args"), "none", "min", "all")
	}
	filter.Args = mode
	if f.given, err = clocks.ParseGiven(ctx.StringSlice("offset"), ctx.StringSlice("drift")); err != nil {
		return nil, commandline.AsUsage(err)
	}
	return f, nil
}

// maxSeries is the maximum number of files of --split, so that a typo or a broken clock does not fill the
// disk.
const maxSeries = 1000

// writeSeries writes t as files of duration d each: merged-001.pftrace, merged-002.pftrace.
func (c *command) writeSeries(t *trace.Trace, d time.Duration, name string, files []inputs.Input) error {
	from, to, _ := t.Bounds()
	n := int64(to-from)/int64(d) + 1
	if n > maxSeries {
		return commandline.Usage("--split %s makes %d files; the maximum is %d", d, n, maxSeries)
	}
	dir, base := filepath.Split(name)
	stem, ext, _ := strings.Cut(base, ".")
	var parts []*convert.Output
	for i := range n {
		part := filepath.Join(dir, fmt.Sprintf("%s-%03d.%s", stem, i+1, ext))
		if c.redact != nil {
			c.redact.Keep(part)
		}
		out, err := c.create(part, files)
		if err != nil {
			return err
		}
		defer out.Abandon()
		out.Hold() // the series appears as a whole or not at all
		parts = append(parts, out)
	}
	for i, out := range parts {
		start := from + trace.Time(int64(i)*int64(d))
		window := trace.Window(t, start, start+trace.Time(d))
		size, err := c.writeTrace(out, window)
		if err != nil {
			return err
		}
		c.summarize(out.Name(), window, size)
	}
	return c.outputs.release(parts)
}

// summarize prints what an output holds.
func (c *command) summarize(name string, t *trace.Trace, size int64) {
	fmt.Fprintf(c.screen.Notices, "%s: %s\n", screen.Printable(name), contents(t, size))
}

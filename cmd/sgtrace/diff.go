package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/sgtrace/sgtrace/analyze/diff"
	"github.com/sgtrace/sgtrace/analyze/document"
	"github.com/sgtrace/sgtrace/analyze/finders"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/gate"
	"github.com/sgtrace/sgtrace/analyze/lifecycle"
	"github.com/sgtrace/sgtrace/analyze/page"
	"github.com/sgtrace/sgtrace/analyze/requests"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/cmd/sgtrace/internal/commandline"
	"github.com/sgtrace/sgtrace/cmd/sgtrace/internal/reports"
	"github.com/sgtrace/sgtrace/convert"
	"github.com/sgtrace/sgtrace/convert/inputs"
	"github.com/sgtrace/sgtrace/format/inventory"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
	"github.com/sgtrace/sgtrace/trace/naming"
)

// maxDiffRows is how many rows text and Markdown show by default.
const maxDiffRows = 40

func (c *command) diffCommand() *cli.Command {
	flags := []cli.Flag{
		formatFlag(), pageFlag(),
		&cli.BoolFlag{Name: "by-rank", Usage: "one row per rank and stage, step, or kernel", DisableDefaultText: true},
		&cli.BoolFlag{Name: "ops", Usage: "operators of PyTorch, too: calls, CPU and GPU time", DisableDefaultText: true},
		&cli.BoolFlag{Name: "gaps", Usage: "what the host did while GPUs waited for it, too", DisableDefaultText: true},
		&cli.StringFlag{Name: "slo", Usage: "compare the goodput, too: which requests keep `METRIC=LIMIT`,... such as ttft=500ms,itl=50ms"},
		&cli.StringSliceFlag{Name: "fail-if", Usage: "exit status 4 if `CONDITION` holds, such as 'ttft.p99>+10%'"},
		&cli.StringFlag{Name: "table", Usage: "print only the table called `NAME`: diff, diff.setup, diff.load, diff.percentiles, diff.captures, diff.ops, diff.gaps, or gate"},
		&cli.StringFlag{Name: "sort", Usage: "sort rows by `COLUMN`; -COLUMN reverses the order"},
		&cli.IntFlag{Name: "limit", Usage: "print the first `N` rows; 0 is all", DefaultText: "40 for text and markdown"},
		&cli.StringFlag{Name: "at", Usage: "compare one capture before `TIME` with itself from then on"},
	}
	flags = append(flags, reports.CapturesFlag("with --ops: "))
	flags = append(flags, reports.MuteFlags("")...)
	for _, side := range diffSides {
		flags = append(flags, &cli.StringSliceFlag{Name: side, Usage: "[LABEL=]`INPUT`, one of several captures " + side})
		for _, end := range []string{"from", "to"} {
			flags = append(flags, &cli.StringFlag{Name: side + "-" + end, Usage: "--" + end + " `TIME` of " + strings.ToUpper(side) + " alone"})
		}
	}
	return &cli.Command{
		Name:      "diff",
		Usage:     "what changed between two captures, and whether it could be chance",
		ArgsUsage: "[LABEL=]BEFORE [LABEL=]AFTER, or --at TIME INPUT",
		Description: `BEFORE and AFTER are each a file, a directory, or a quoted glob: OTLP dumps,
PyTorch traces, Nsight Systems exports, logs, metrics, or a mix. Totals are per
request or per step, so captures may differ in length. Each change has a 95 %
confidence interval; ~ marks changes that may be chance. --from and --to are
times or offsets (+10s) from the start of each capture; a request counts where
it begins.
Several captures of each side show how much days differ: give each with --before
or --after. 'sgtrace help metrics' defines every number, 'sgtrace help gate' the
conditions of --fail-if.

Examples:
  sgtrace diff healthy.jsonl incident.jsonl
  sgtrace diff v0.5=profiles/monday v0.6='profiles/tuesday/*.json.gz' --by-rank
  sgtrace diff --ops --gaps profiles/monday profiles/tuesday
  sgtrace diff --at +30s incident.jsonl
  sgtrace diff --before-to +30s --after-from +30s a.jsonl b.jsonl
  sgtrace diff --stage decode_loop --from +30s --format csv a.jsonl b.jsonl
  sgtrace diff --fail-if 'decode_step.mean>+2%' profiles/monday profiles/tuesday
  sgtrace diff --before a.jsonl --before healthy.jsonl --after b.jsonl`,
		Flags:  slices.Concat(flags, commandline.Flags()),
		Action: c.diff,
	}
}

// diffSides are the two sides, as named in flags.
var diffSides = [2]string{"before", "after"}

func (c *command) diff(ctx *cli.Context) error {
	how, err := printing(ctx, maxDiffRows)
	if err != nil {
		return err
	}
	conditions, err := gate.Parse(ctx.StringSlice("fail-if"))
	if err != nil {
		return commandline.Usage("--fail-if: %v", err)
	}
	if err := reports.CheckPage(ctx); err != nil {
		return err
	}
	mutes, err := reports.Mutes(ctx)
	if err != nil {
		return err
	}
	read := c.readCaptures
	if ctx.IsSet("at") {
		read = c.readAt
	}
	sides, names, err := read(ctx)
	if err != nil {
		return err
	}
	if !sides[0].Shares(sides[1]) {
		return fmt.Errorf("%s and %s cannot be compared: one has %s, and the other %s", names[0], names[1], sides[0].Holds(), sides[1].Holds())
	}
	c.screen.Doing("comparing")
	d := diff.Compare(sides[0], sides[1], diff.Options{ByRank: ctx.Bool("by-rank")})
	if len(d.Rows)+len(d.Load) == 0 {
		return fmt.Errorf("%s and %s cannot be compared: they have no requests, steps, kernels, or copies, and no metrics in common", names[0], names[1])
	}
	d.Mute(func(f *finding.Finding) bool {
		return slices.ContainsFunc(mutes, func(m finders.Mute) bool { return m.Covers(f) })
	})
	if ctx.IsSet("o") {
		return c.diffPage(ctx, d, sides, conditions)
	}
	doc := &document.Document{Schema: "sgtrace.diff/v2"}
	if conditions != nil {
		judged := conditions.Judge(d)
		doc.Add(judged.Report())
		doc.Failure = judged.Err()
	}
	captures := d.SideReport()
	if c.mixed != "" {
		captures.Note("%s", c.mixed)
	}
	doc.Add(captures, d.SetupReport(), d.LoadReport(), d.Percentiles())
	if len(d.Rows) > 0 {
		doc.AddMain(d.Report())
	} else {
		doc.Main = d.LoadReport().Name()
	}
	doc.Add(d.MoreReports()...)
	doc.LimitAll = len(d.Operators)+len(d.Gaps) > 0
	doc.Findings = d.Findings()
	return c.write(doc, how)
}

// diffPage writes the comparison as a page, and returns the error of the conditions, if any.
func (c *command) diffPage(ctx *cli.Context, d *diff.Diff, sides [2]*diff.Collected, conditions gate.Conditions) error {
	args := append([]string{"diff"}, commandline.Given(ctx, "by-rank", "slo", "fail-if", "mute", "mute-file", "at", "before", "after", "before-from", "before-to", "after-from", "after-to")...)
	given := c.given(ctx, ctx.Args().Slice())
	var judged error
	err := c.writePage(ctx, c.read, given, args, func(made page.Provenance) (page.Page, error) {
		command := c.commandLine(ctx, args, given)
		p := page.Diff(d, sides[0], sides[1], command, made)
		if conditions != nil {
			gate := conditions.Judge(d)
			judged = gate.Err()
			p.AddGate(gate, command)
		}
		return p, nil
	})
	return cmp.Or(err, judged)
}

// captureArgs returns the inputs of both sides: two arguments, or the values of --before and --after.
func captureArgs(ctx *cli.Context) (of [2][]string, err error) {
	args := ctx.Args().Slice()
	for i, side := range diffSides {
		of[i] = ctx.StringSlice(side)
	}
	switch {
	case of[0] == nil && of[1] == nil && len(args) == 2:
		return [2][]string{args[:1], args[1:]}, nil
	case of[0] == nil && of[1] == nil:
		return of, commandline.Usage("diff takes two inputs, BEFORE and AFTER, each a file, a directory, or a quoted glob; there are %d", len(args))
	case of[0] == nil || of[1] == nil:
		return of, commandline.Usage("--before and --after go together: each side needs a capture at least")
	case len(args) > 0:
		return of, commandline.Usage("with --before and --after, diff takes no other inputs; there is %s", args[0])
	}
	return of, nil
}

// readCaptures reads the captures of both sides one after the other, so that it needs no more memory than a
// report.
func (c *command) readCaptures(ctx *cli.Context) (sides [2]*diff.Collected, names []string, err error) {
	args, err := captureArgs(ctx)
	if err != nil {
		return sides, nil, err
	}
	all := slices.Concat(args[0], args[1])
	if at := slices.Index(all, inputs.Stdin); at >= 0 && slices.Contains(all[at+1:], inputs.Stdin) {
		return sides, nil, commandline.Usage("only one of BEFORE and AFTER can be standard input")
	}
	for i, side := range diffSides {
		window := commandline.Window{From: cmp.Or(ctx.String(side+"-from"), ctx.String("from")), To: cmp.Or(ctx.String(side+"-to"), ctx.String("to"))}
		if err := window.Check(c.zone); err != nil {
			return sides, nil, err
		}
		sides[i] = diff.NewCollected(0)
		if len(all) > 2 {
			sides[i] = diff.NewCollected(len(args[i]))
		}
		for _, arg := range args[i] {
			if err := c.addCapture(ctx, sides[i], arg, window); err != nil {
				return sides, nil, err
			}
		}
		names = append(names, strings.Join(args[i], ", "))
	}
	return sides, names, nil
}

// addCapture reads a capture and adds it to a side.
func (c *command) addCapture(ctx *cli.Context, side *diff.Collected, arg string, window commandline.Window) error {
	capture, err := c.readCapture(ctx, arg, window)
	if err != nil {
		return err
	}
	return errors.Join(capture.add(side, window), capture.evidence.Close())
}

// readAt reads one capture and splits it at --at.
func (c *command) readAt(ctx *cli.Context) (sides [2]*diff.Collected, names []string, err error) {
	at, args := ctx.String("at"), ctx.Args().Slice()
	if len(args) != 1 {
		return sides, nil, commandline.Usage("diff --at takes one input, which it divides at that time; there are %d", len(args))
	}
	names = []string{"before " + at, "from " + at}
	windows := [2]commandline.Window{{From: ctx.String("from"), To: at}, {From: at, To: ctx.String("to")}}
	for i, side := range diffSides {
		if ctx.IsSet(side+"-from") || ctx.IsSet(side+"-to") {
			return sides, nil, commandline.Usage("--%s-from and --%s-to are for two inputs; with --at, use --from and --to", side, side)
		}
		if err := windows[i].Check(c.zone); err != nil {
			return sides, nil, err
		}
	}
	capture, err := c.readCapture(ctx, args[0], commandline.Window{})
	if err != nil {
		return sides, nil, err
	}
	defer capture.evidence.Close()
	c.mixed = mixedBy(capture.evidence.Requests)
	for i, window := range windows {
		capture.label, sides[i] = names[i], diff.NewCollected(0)
		if err := capture.add(sides[i], window); err != nil {
			return sides, nil, err
		}
	}
	return sides, names, nil
}

// mixedBy says that servers were restarted one after another, and how to compare the time before all
// restarts with the time after: a side that has both hides what the restarts changed.
func mixedBy(s *request.Set) string {
	if s == nil {
		return ""
	}
	from, to := lifecycle.Find(s).Restarted()
	if from == 0 {
		return ""
	}
	const second = trace.Time(1_000_000_000)
	return fmt.Sprintf("servers were restarted between %s and %s; to compare what was before with what came after, use 'sgtrace diff --before-to %s --after-from %s INPUT INPUT', twice with this input",
		words.At(from, words.TenthLayout), words.At(to, words.TenthLayout), words.At(from, time.TimeOnly), words.At(to+second, time.TimeOnly))
}

// requestFlags are the flags that select requests.
var requestFlags = []string{"rid", "room", "trace", "status", "slowest", "sample"}

// A readCapture is an input of a comparison.
type readCapture struct {
	label      string
	evidence   *convert.ReportData
	inventory  *inventory.Inventory // what profile files say about themselves
	objectives []requests.Objective
	ops, gaps  bool // requested by flags
	some       bool // only some requests are selected
	zone       *time.Location
}

// readCapture reads an input with all selection flags applied, except for times; of large dumps, it reads
// only what is needed within a window. The caller closes its evidence.
func (c *command) readCapture(ctx *cli.Context, arg string, within commandline.Window) (*readCapture, error) {
	label, path := naming.SplitLabel(arg, func(path string) bool {
		_, err := os.Stat(path)
		return err == nil
	})
	ops, gaps := ctx.Bool("ops"), ctx.Bool("gaps")
	events := reports.AllEvents
	if ops || gaps {
		events = reports.HostEvents
	}
	files := &inventory.Inventory{}
	e, _, err := c.readInputs(ctx, []string{path}, needed{anyTime: true, within: within, inventory: files, captures: ops, events: profile.Filter{Cats: events, Args: profile.ArgsNone},
		data: convert.ReportOptions{MatchCollectives: true, Attribute: ops || gaps}})
	if err != nil {
		return nil, err
	}
	objectives, err := reports.Objectives(ctx)
	if err != nil {
		return nil, errors.Join(err, e.Close())
	}
	return &readCapture{cmp.Or(label, c.redactedInput(path)), e, files, objectives, ops, gaps, slices.ContainsFunc(requestFlags, ctx.IsSet), c.zone}, nil
}

// add adds a window of time of the capture to a side; offsets count from the beginning of the input.
func (r *readCapture) add(side *diff.Collected, window commandline.Window) error {
	e := r.evidence
	from, to, err := window.Resolve(e.First, e.Last, r.zone)
	if err != nil {
		return err
	}
	if !side.Add(diff.Capture{Label: r.label, Requests: e.Requests, Profiles: &e.Profiles, Series: e.Series, Inventory: r.inventory, SLO: r.objectives, Operators: r.ops, Gaps: r.gaps, Some: r.some,
		From: from, To: to}) {
		return fmt.Errorf("%s has nothing to compare%s", r.label, window.Words())
	}
	return nil
}

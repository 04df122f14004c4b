package main

import (
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/urfave/cli/v2"

	"github.com/sgtrace/sgtrace/analyze/document"
	"github.com/sgtrace/sgtrace/analyze/finders"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/gpu"
	"github.com/sgtrace/sgtrace/analyze/whatif"
	"github.com/sgtrace/sgtrace/cmd/sgtrace/internal/commandline"
	"github.com/sgtrace/sgtrace/cmd/sgtrace/internal/reports"
)

func (c *command) whatifCommand() *cli.Command {
	flags := []cli.Flag{
		formatFlag(),
		&cli.StringSliceFlag{Name: "fix", Usage: "take away `WHAT`: " + whatif.FixNames() + ", or the ID of a finding"},
		&cli.StringFlag{Name: "slo", Usage: "count the requests that keep `LIMITS`, such as ttft=500ms,itl=50ms"},
		&cli.StringFlag{Name: "sweep", Usage: "play numbers of servers, `ROLE=FROM..TO`,... such as prefill=1..4,decode=1..8"},
		&cli.StringFlag{Name: "table", Usage: "print only the table called `NAME`: whatif, whatif.models; of --sweep, whatif.sweep"},
		&cli.BoolFlag{Name: "together", Usage: "answer all changes at once, and not one by one", DisableDefaultText: true},
	}
	for _, s := range whatif.Settings {
		flags = append(flags, &cli.StringSliceFlag{Name: s.Name, Usage: "play " + s.Doc + ": `" + s.Value + "`"})
	}
	return &cli.Command{
		Name:      "whatif",
		Usage:     "latencies without a finding, or with other servers",
		ArgsUsage: "INPUT...",
		Description: `Plays the recorded requests again, with a model of step times that is fitted to
the dump. It takes trace level 3, which has decode steps. Without a change, it
plays the run without each finding that it can take away.

Examples:
  sgtrace whatif otel_trace.json
  sgtrace whatif --fix straggler --slo ttft=500ms otel_trace.json
  sgtrace whatif --fix straggler traces/
  sgtrace whatif --servers decode=4 --scale decode=0.9 otel_trace.json`,
		Flags:  slices.Concat(flags, commandline.Flags()),
		Action: c.whatif,
	}
}

func (c *command) whatif(ctx *cli.Context) error {
	how, err := printing(ctx, 0)
	if err != nil {
		return err
	}
	objectives, err := reports.Objectives(ctx)
	if err != nil {
		return err
	}
	var axes []whatif.Axis
	if ctx.IsSet("sweep") {
		if axes, err = whatif.ParseSweep(ctx.String("sweep")); err != nil {
			return commandline.Usage("--sweep: %v", err)
		}
	}
	c.collectEarly(25) // what was read stays, nearly all without pointers
	in, done, err := c.reading(ctx, reports.All[0])
	if err != nil {
		return err
	}
	defer done()
	if in.Requests == nil || len(in.Requests.Requests) == 0 {
		return c.whatifSteps(ctx, in, how)
	}
	run := whatif.New(in.Requests, objectives)
	if run.Refused != "" {
		return errors.New("nothing can be said: " + run.Refused)
	}
	if axes != nil {
		points, err := run.Sweep(axes)
		if err != nil {
			return commandline.Usage("--sweep: %v", err)
		}
		d := document.Of(run.SweepReport(axes, points))
		d.Schema = "sgtrace.whatif/v2"
		return c.write(d, how)
	}
	changes, left, err := chosenChanges(ctx, run, func() []finding.Finding {
		m := finders.Measure(finders.Inputs{Requests: in.Requests, Diags: &c.diags})
		return m.Look(finders.All).Findings
	})
	if err != nil {
		return err
	}
	var answers []whatif.Answer
	for _, change := range changes {
		metrics, err := run.Ask(change)
		if err != nil {
			return err
		}
		answers = append(answers, whatif.Answer{Change: change, Metrics: metrics})
	}
	table := run.Report(answers)
	for _, why := range left {
		table.Note("%s", why)
	}
	d := document.Of(table, run.ModelReport())
	d.Schema = "sgtrace.whatif/v2"
	return c.write(d, how)
}

// whatifSteps estimates step times of the ranks after a fix, for inputs without requests.
func (c *command) whatifSteps(ctx *cli.Context, in *reports.Reading, how printed) error {
	if in.Profiles == nil {
		return errors.New("nothing can be said: no input has requests, or profiles of ranks")
	}
	for _, flag := range []string{"sweep", "slo", "together", "kv", "chunk", "max-running", "servers", "scale"} {
		if ctx.IsSet(flag) {
			return commandline.Usage("--%s is about requests, and no input has any", flag)
		}
	}
	m := finders.Measure(finders.Inputs{Profiles: in.Profiles, Series: in.Series, Experts: in.Experts, Devices: gpu.Options{From: in.From, To: in.To}, Played: true, Diags: &c.diags})
	steps := whatif.NewSteps(&m)
	answers, err := steps.Fix(ctx.StringSlice("fix"), m.Look(finders.All).Findings)
	if err != nil {
		return err
	}
	d := document.Of(whatif.StepReport(answers))
	d.Schema = "sgtrace.whatif/v2"
	return c.write(d, how)
}

// chosenChanges returns the changes that flags ask for. Without any, it returns those for all findings, and explains which
// findings have no change.
func chosenChanges(ctx *cli.Context, run *whatif.Run, find func() []finding.Finding) (list []*whatif.Change, left []string, err error) {
	find = sync.OnceValue(find)
	for _, name := range ctx.StringSlice("fix") {
		change, err := run.Fix(name, find())
		if err != nil {
			return nil, nil, err
		}
		list = append(list, change)
	}
	for i := range whatif.Settings {
		s := &whatif.Settings[i]
		for _, value := range ctx.StringSlice(s.Name) {
			changes, err := s.Make(run, value)
			if err != nil {
				return nil, nil, commandline.Usage("%v", err)
			}
			list = append(list, changes...)
		}
	}
	if len(list) == 0 {
		if list, left = run.Changes(find()); len(list) == 0 {
			why := append([]string{"nothing was found that a replay could take away; --servers, --kv, --scale, and others change what there was"}, left...)
			return nil, nil, errors.New(strings.Join(why, "; "))
		}
	}
	if ctx.Bool("together") {
		list = []*whatif.Change{whatif.Combine(list)}
	}
	return list, left, nil
}

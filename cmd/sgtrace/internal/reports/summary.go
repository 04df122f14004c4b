package reports

import (
	"errors"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/sgtrace/sgtrace/analyze/document"
	"github.com/sgtrace/sgtrace/analyze/finders"
	"github.com/sgtrace/sgtrace/analyze/gate"
	"github.com/sgtrace/sgtrace/analyze/gpu"
	"github.com/sgtrace/sgtrace/analyze/overview"
	"github.com/sgtrace/sgtrace/analyze/requests"
	"github.com/sgtrace/sgtrace/analyze/whatif"
	"github.com/sgtrace/sgtrace/cmd/sgtrace/internal/commandline"
)

// summaryTables are the tables behind the sentences of the summary.
var summaryTables = []string{
	"findings", "summary.load", "summary.servers", "summary.profiles", "summary.kernels", "summary.clocks", "summary.latency", "summary.events", "summary.costs", "summary.finders", "logs.ranks", "logs.events", "logs.inputs", "metrics.percentiles", "bench", "slo", "slo.causes", "slo.ranks", "gate",
}

// SummaryOptions are the options of the summary.
type SummaryOptions struct {
	Objectives []requests.Objective
	Mutes      []finders.Mute
	Alarms     *gate.Alarms // nil without --fail-on
	Summing
}

// ReadSummary reads the flags of the summary and its page.
func ReadSummary(ctx *cli.Context) (a SummaryOptions, err error) {
	if a.Alarms, err = failOn(ctx); err != nil {
		return a, err
	}
	if a.Objectives, err = Objectives(ctx); err != nil {
		return a, err
	}
	if a.Mutes, err = Mutes(ctx); err != nil {
		return a, err
	}
	a.Summing, err = ReadSumming(ctx)
	return a, err
}

// parseSummary makes the summary; -o makes a page of it.
func parseSummary(ctx *cli.Context) (Run, error) {
	if err := CheckPage(ctx); err != nil {
		return nil, err
	}
	asked, err := ReadSummary(ctx)
	if err != nil {
		return nil, err
	}
	all, evidence := ctx.Bool("all-findings"), ctx.Bool("evidence")
	return func(in *Reading) (*document.Document, error) {
		if err := in.hasRequests(asked.Objectives); err != nil {
			return nil, err
		}
		o, err := asked.Overview(in, false)
		if err != nil {
			return nil, err
		}
		o.AllFindings, o.AllEvidence = all, evidence
		d := o.Document()
		if asked.Alarms != nil {
			addGate(d, asked.Alarms.Judge(&o.Result, o.Goodput))
		}
		return d, nil
	}, nil
}

// CheckPage reports mistakes with -o, which writes a page, before anything is read.
func CheckPage(ctx *cli.Context) error {
	if !ctx.IsSet("o") {
		return nil
	}
	name := ctx.String("o")
	if ext := strings.ToLower(filepath.Ext(name)); ext != ".html" && ext != ".htm" {
		return commandline.Usage("-o %s: want a name that ends in .html; tables go to standard output, with --format csv or json for programs", name)
	}
	for _, other := range []string{"format", "table", "sort", "limit"} {
		if ctx.IsSet(other) {
			return commandline.Usage("--%s and -o exclude each other: -o writes a page of everything", other)
		}
	}
	return nil
}

// Objectives reads the flag --slo; nil without it.
func Objectives(ctx *cli.Context) ([]requests.Objective, error) {
	if !ctx.IsSet("slo") {
		return nil, nil
	}
	list, err := requests.ParseObjectives(ctx.String("slo"))
	if err != nil {
		return nil, commandline.Usage("--slo: %v", err)
	}
	return list, nil
}

// Mutes reads the flags --mute and --mute-file; nil without them.
func Mutes(ctx *cli.Context) (list []finders.Mute, err error) {
	for _, text := range ctx.StringSlice("mute") {
		m, err := finders.ParseMute(text)
		if err != nil {
			return nil, commandline.Usage("--mute %v", err)
		}
		list = append(list, m)
	}
	name := ctx.String("mute-file")
	if name == "" {
		return list, nil
	}
	known, err := readNamed("mute-file", name, finders.ReadMutes)
	if err != nil {
		return nil, err
	}
	return append(list, known...), nil
}

// hasRequests returns an error if there are objectives but no requests.
func (in *Reading) hasRequests(objectives []requests.Objective) error {
	if objectives != nil && in.Requests == nil {
		return errors.New("--slo is about requests, and no input has any")
	}
	return nil
}

// failOn reads the flag --fail-on; nil without it.
func failOn(ctx *cli.Context) (*gate.Alarms, error) {
	if !ctx.IsSet("fail-on") {
		return nil, nil
	}
	alarms, err := gate.ParseAlarms(ctx.String("fail-on"))
	if err != nil {
		return nil, commandline.Usage("--fail-on: %v", err)
	}
	if alarms.NeedSLO() && !ctx.IsSet("slo") {
		return nil, commandline.Usage("--fail-on goodput needs --slo, which says what requests must meet")
	}
	return alarms, nil
}

// addGate adds the result of a gate to the end of the summary.
func addGate(d *document.Document, r *gate.Result) {
	t := r.Report()
	d.Add(t)
	d.Append(t)
	d.Failure = r.Err()
}

// Overview analyzes everything that was read, without muted findings, and determines which requests meet
// the objectives. Findings name groups of hosts. drawn says that it is for a page. It is an error if the
// selection leaves nothing to analyze.
func (a *SummaryOptions) Overview(in *Reading, drawn bool) (*overview.Overview, error) {
	o := overview.New(overview.Input{
		Select: in.Select, Inputs: in.Given, Files: in.Inputs, Requests: in.Requests, Clocks: in.Clocks, Diags: in.Diags,
		Profiles: in.Profiles, Series: in.Series, Flight: in.Flight, Heap: in.Heap, Experts: in.Experts, Devices: gpu.Options{From: in.From, To: in.To}, SLO: a.Objectives, Mutes: a.Mutes, Drawn: drawn, Played: in.WhatIf, Weeks: in.weeks,
	})
	if in.Selected && o.Empty() {
		return nil, in.noneSelected("nothing")
	}
	if in.WhatIf {
		whatif.Explain(&o.Measured, o.Findings, a.Objectives)
	}
	a.hosts.Annotate(o.Findings, in.ranks())
	return o, nil
}

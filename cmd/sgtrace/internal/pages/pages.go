// Package pages draws reports as pages: which report has which page, and what its flags say about
// that.
package pages

import (
	"github.com/urfave/cli/v2"

	"github.com/sgtrace/sgtrace/analyze/fleetpage"
	"github.com/sgtrace/sgtrace/analyze/gate"
	"github.com/sgtrace/sgtrace/analyze/page"
	"github.com/sgtrace/sgtrace/cmd/sgtrace/internal/commandline"
	"github.com/sgtrace/sgtrace/cmd/sgtrace/internal/reports"
)

// A Drawer draws what was read for a report. failed is the error of its gate, if that did not pass.
type Drawer struct {
	// Args are the command that prints the same, without selection and inputs.
	Args []string
	Draw func(in *reports.Reading, made page.Made, command string) (p page.Page, failed, err error)
}

// Of reads the flags of a report that takes -o.
func Of(ctx *cli.Context, r *reports.Report) (Drawer, error) {
	if r.Runs {
		return weeks(ctx, r)
	}
	return summary(ctx)
}

// summary draws everything that was looked at.
func summary(ctx *cli.Context) (d Drawer, err error) {
	objectives, err := reports.Objectives(ctx)
	if err != nil {
		return d, err
	}
	mutes, err := reports.Mutes(ctx)
	if err != nil {
		return d, err
	}
	alarms, err := reports.FailOn(ctx)
	if err != nil {
		return d, err
	}
	summing, err := reports.ReadSumming(ctx)
	if err != nil {
		return d, err
	}
	d.Args = append([]string{"report"}, commandline.Given(ctx, "slo", "fail-on", "mute", "mute-file", "all-ranks", "hosts")...)
	d.Draw = func(in *reports.Reading, made page.Made, command string) (page.Page, error, error) {
		o, err := reports.Overview(in, objectives, mutes, summing.Hosts(), true)
		if err != nil {
			return page.Page{}, nil, err
		}
		p, err := page.Overview(o, made, summing.Folder(in))
		if alarms == nil || err != nil {
			return p, nil, err
		}
		return gated(p, alarms.Judge(&o.Result, o.Goodput), command)
	}
	return d, nil
}

// weeks draws what several runs say together.
func weeks(ctx *cli.Context, r *reports.Report) (d Drawer, err error) {
	o, err := reports.ReadFleet(ctx)
	if err != nil {
		return d, err
	}
	d.Args = append([]string{"report", commandline.Dashed(r.Name)}, commandline.Given(ctx, "fail-on", "mute", "mute-file")...)
	d.Draw = func(in *reports.Reading, made page.Made, command string) (page.Page, error, error) {
		f, found, err := o.Look(in)
		if err != nil {
			return page.Page{}, nil, err
		}
		p := fleetpage.New(f, found, page.Source{Select: in.Select, Inputs: in.Given}, made)
		if o.Alarms == nil {
			return p, nil, nil
		}
		return gated(p, o.Alarms.Judge(found, nil), command)
	}
	return d, nil
}

// gated is a page that shows what came of a gate, and the error of the gate.
func gated(p page.Page, r *gate.Result, command string) (page.Page, error, error) {
	p.AddGate(r, command)
	return p, r.Err(), nil
}

package main

import (
	"github.com/urfave/cli/v2"

	"github.com/sgtrace/sgtrace/analyze/gate"
	"github.com/sgtrace/sgtrace/analyze/page"
	"github.com/sgtrace/sgtrace/cmd/sgtrace/internal/commandline"
	"github.com/sgtrace/sgtrace/cmd/sgtrace/internal/reports"
)

// A pageDrawer draws what was read for a report. failed is the error of its gate, if that did not pass.
type pageDrawer struct {
	// args are the command that prints the same, without selection and inputs.
	args []string
	draw func(in *reports.Reading, made page.Made, command string) (p page.Page, failed, err error)
}

// pageOf reads the flags of a report that takes -o.
func pageOf(ctx *cli.Context, r *reports.Report) (pageDrawer, error) {
	if r.Runs {
		return weeksPage(ctx, r)
	}
	return summaryPage(ctx)
}

// summaryPage draws everything that was looked at.
func summaryPage(ctx *cli.Context) (d pageDrawer, err error) {
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
	d.args = append([]string{"report"}, commandline.Given(ctx, "slo", "fail-on", "mute", "mute-file", "all-ranks", "hosts")...)
	d.draw = func(in *reports.Reading, made page.Made, command string) (page.Page, error, error) {
		o, err := reports.Overview(in, objectives, mutes, summing.Hosts(), true)
		if err != nil {
			return page.Page{}, nil, err
		}
		p, err := page.Overview(o, made, summing.Folder(in))
		if alarms == nil || err != nil {
			return p, nil, err
		}
		return gatedPage(p, alarms.Judge(&o.Result, o.Goodput), command)
	}
	return d, nil
}

// weeksPage draws what several runs say together.
func weeksPage(ctx *cli.Context, r *reports.Report) (d pageDrawer, err error) {
	o, err := reports.ReadFleet(ctx)
	if err != nil {
		return d, err
	}
	d.args = append([]string{"report", commandline.Dashed(r.Name)}, commandline.Given(ctx, "fail-on", "mute", "mute-file")...)
	d.draw = func(in *reports.Reading, made page.Made, command string) (page.Page, error, error) {
		f, found, err := o.Look(in)
		if err != nil {
			return page.Page{}, nil, err
		}
		p := f.Page(found, page.Source{Select: in.Select, Inputs: in.Given}, made)
		if o.Alarms == nil {
			return p, nil, nil
		}
		return gatedPage(p, o.Alarms.Judge(found, nil), command)
	}
	return d, nil
}

// gatedPage is a page that shows what came of a gate, and the error of the gate.
func gatedPage(p page.Page, r *gate.Result, command string) (page.Page, error, error) {
	p.AddGate(r, command)
	return p, r.Err(), nil
}

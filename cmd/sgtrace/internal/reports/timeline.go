package reports

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/sgtrace/sgtrace/analyze/change"
	"github.com/sgtrace/sgtrace/analyze/document"
	"github.com/sgtrace/sgtrace/analyze/gpu"
	"github.com/sgtrace/sgtrace/analyze/lifecycle"
	"github.com/sgtrace/sgtrace/analyze/load"
	"github.com/sgtrace/sgtrace/analyze/overtime"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/requests"
	"github.com/sgtrace/sgtrace/analyze/serverlimit"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/telemetry"
	"github.com/sgtrace/sgtrace/cmd/sgtrace/internal/commandline"
)

// timelineTables are the tables of requests, then those of profiles, then those of logs and metrics.
var timelineTables = []string{"timeline", "changes", "limits", "summary.events", "timeline.gpus", "timeline.gpuchanges", "timeline.counters", "logs.timeline", "logs.events", "metrics.timeline", "metrics.percentiles"}

// A drawn writes a part of the timeline as text.
type drawn func(io.Writer, table.Style) error

// parseTimeline makes the report on requests, logs and metrics, and profiles over time.
func parseTimeline(ctx *cli.Context) (Run, error) {
	bucket := ctx.Duration("bucket")
	if ctx.IsSet("bucket") && bucket <= 0 {
		return nil, commandline.Usage("--bucket %s: want a duration above 0, such as 1s", bucket)
	}
	objectives, err := Objectives(ctx)
	if err != nil {
		return nil, err
	}
	hosts, err := hosts(ctx)
	if err != nil {
		return nil, err
	}
	return func(in *Reading) (*document.Document, error) {
		if err := in.hasRequests(objectives); err != nil {
			return nil, err
		}
		d := &document.Document{}
		var parts []drawn
		if in.Requests != nil {
			texts, err := loadOverTime(d, in, bucket, objectives, hosts)
			if err != nil {
				return nil, commandline.AsUsage(err)
			}
			parts = append(parts, texts...)
		}
		if in.Series != nil {
			parts = append(parts, seriesOverTime(d, in, bucket)...)
		}
		if in.Profiles != nil {
			text, err := gpusOverTime(d, in, bucket)
			if err != nil {
				return nil, commandline.AsUsage(err)
			}
			parts = append(parts, text)
		}
		switch {
		case len(parts) > 0:
		case in.Selected:
			return nil, errNothingSelected
		case in.onlyInFlight():
			return nil, errOnlyInFlight
		default:
			return nil, errors.New("no input says when anything was; 'sgtrace inspect' lists what there is")
		}
		d.Text = func(w io.Writer, style table.Style) error { return writeParts(w, style, parts) }
		return d, nil
	}, nil
}

// writeParts writes parts separated by empty lines.
func writeParts(w io.Writer, style table.Style, parts []drawn) error {
	for i, part := range parts {
		if i > 0 {
			if _, err := fmt.Fprintln(w); err != nil {
				return err
			}
		}
		if err := part(w, style); err != nil {
			return err
		}
	}
	return nil
}

// loadOverTime adds the tables of requests over time.
func loadOverTime(d *document.Document, in *Reading, bucket time.Duration, objectives []requests.Objective, hosts *document.Hosts) ([]drawn, error) {
	timeline, err := load.New(in.Requests, bucket)
	if err != nil {
		return nil, err
	}
	if objectives != nil {
		requests.MeasureGoodput(in.Requests, objectives).Mark(timeline)
	}
	peers := place.Of(in.Requests)
	changes := change.Find(peers)
	limits, events := serverlimit.Find(peers.Ranks).Report(), lifecycle.Find(in.Requests).Report()
	changed, groups := changes.Report(), groupsChanged(changes, hosts, in.ranks())
	for _, text := range groups {
		changed.Note("%s", text)
	}
	d.Tables = append(d.Tables, changed, limits, events)
	d.AddMain(timeline.Report())
	parts := []drawn{changes.Write}
	if len(groups) > 0 {
		parts = append(parts, func(w io.Writer, _ table.Style) error {
			_, err := fmt.Fprintln(w, strings.Join(groups, "\n"))
			return err
		})
	}
	for _, t := range []*table.Table{events, limits} {
		if t.Len() > 0 {
			parts = append(parts, func(w io.Writer, style table.Style) error { return t.Write(w, table.FormatText, style) })
		}
	}
	return append(parts, func(w io.Writer, style table.Style) error { return timeline.Write(w, style, changes.Times()...) }), nil
}

// seriesOverTime adds the tables of logs and metrics over time.
func seriesOverTime(d *document.Document, in *Reading, bucket time.Duration) (parts []drawn) {
	l := telemetry.Measure(in.Series, telemetry.Options{Bucket: bucket, From: in.From, To: in.To})
	m := telemetry.MeasureMetrics(in.Series, telemetry.Options{Bucket: bucket, From: in.From, To: in.To})
	events, alone := l.EventReport(), in.Requests == nil && in.Profiles == nil
	add := func(t *table.Table, main bool) {
		if main {
			d.AddMain(t)
		} else {
			d.Add(t)
		}
	}
	add(l.TimeReport(), alone && len(l.Ranks) > 0)
	d.Tables = append(d.Tables, events)
	if len(l.Ranks) > 0 {
		parts = append(parts, l.Write)
	}
	if !m.Empty() {
		d.Add(m.Percentiles())
		add(m.Report(), alone && len(l.Ranks) == 0)
		parts = append(parts, m.Write)
	}
	if events.Len() > 0 {
		if len(parts) == 0 && alone {
			d.Main = events.Name()
		}
		parts = append(parts, func(w io.Writer, style table.Style) error {
			t := l.EventReport()
			t.Limit(maxKernels)
			return t.Write(w, table.FormatText, style)
		})
	}
	return parts
}

// gpusOverTime adds the tables of profiles over time.
func gpusOverTime(d *document.Document, in *Reading, bucket time.Duration) (drawn, error) {
	c := overtime.Collect(in.Profiles, overtime.Options{Bucket: bucket, From: in.From, To: in.To, Requests: in.Requests, Everything: true})
	measured := gpu.Measure(in.Profiles, gpu.Options{From: in.From, To: in.To, Watch: c})
	if err := c.Err(); err != nil {
		return nil, err
	}
	t := c.Timeline(measured)
	if in.Requests == nil {
		d.AddMain(t.Report())
	} else {
		d.Add(t.Report())
	}
	d.Tables = append(d.Tables, t.ChangeReport())
	d.Add(t.CounterReport())
	return t.Write, nil
}

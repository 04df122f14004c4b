package reports

import (
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/sgtrace/sgtrace/analyze/critical"
	"github.com/sgtrace/sgtrace/analyze/document"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/replay"
	"github.com/sgtrace/sgtrace/analyze/requests"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/tail"
	"github.com/sgtrace/sgtrace/cmd/sgtrace/internal/commandline"
)

// noOptions returns the Parse function of a report without values to check.
func noOptions(run Run) func(*cli.Context) (Run, error) {
	return func(*cli.Context) (Run, error) { return run, nil }
}

// latencies returns the report on latencies of whole requests.
func latencies(in *Reading) (*document.Document, error) {
	t := requests.MeasureLatencies(in.Requests).Report()
	if t.Len() == 0 && len(t.Footnotes) == 0 {
		t.Footnotes = []string{requests.NoRequests}
	}
	return document.Of(t), nil
}

// criticalPath returns the report on what slow requests waited for; profiles of the ranks that served them add detail.
func criticalPath(in *Reading) (*document.Document, error) {
	if in.Requests == nil {
		return nil, errNoDumps
	}
	run := replay.Read(in.Requests)
	return document.Of(critical.SumSlow(run, critical.ReadHosts(run, in.Profiles)).Report()), nil
}

// stageTables are the tables of reports on stages.
var stageTables = []string{"stages", "latency"}

// dimensions lists the values of --by besides stage.
func dimensions() string {
	var names []string
	for _, d := range requests.Dimensions {
		if d.Name != "stage" {
			names = append(names, d.Name)
		}
	}
	return strings.Join(names, ", ")
}

// stagesBy returns the Parse function of a report on stages by one dimension.
func stagesBy(dimension string) func(*cli.Context) (Run, error) {
	return func(*cli.Context) (Run, error) { return stages(dimension) }
}

// stages makes a report on the durations of stages, by a list of dimensions. With a single dimension, the
// latencies of requests are added.
func stages(list string) (Run, error) {
	by, err := requests.ParseDimensions(list)
	if err != nil {
		return nil, commandline.AsUsage(err)
	}
	return func(in *Reading) (*document.Document, error) {
		d := &document.Document{}
		if len(by) == 1 {
			d.Add(requests.MeasureLatencies(in.Requests).Report())
		}
		d.AddMain(requests.GroupStages(in.Requests, by).Report())
		return d, nil
	}, nil
}

var tailTables = []string{"tail.e2e", "tail.ttft", "tail.itl", "delays", "slowest.e2e", "slowest.ttft", "stalls", "firsttoken", "sides", "transfers", "slowtransfers", "common"}

// parseTail makes the report on why slow requests are slow. --limit is the number of requests that it
// lists.
func parseTail(ctx *cli.Context) (Run, error) {
	opt := tail.Options{Slowest: ctx.Int("limit")}
	switch table.Format(ctx.String("format")) {
	case table.FormatCSV, table.FormatJSON:
		opt.All = true
	}
	var err error
	if opt.Percent, err = tail.ParsePercent(ctx.String("tail")); err != nil {
		return nil, commandline.Usage("--tail: %v", err)
	}
	for _, text := range ctx.StringSlice("metric") {
		m, err := tail.ParseMetric(text)
		if err != nil {
			return nil, commandline.Usage("--metric: %v", err)
		}
		opt.Metrics = append(opt.Metrics, m)
	}
	return func(in *Reading) (*document.Document, error) {
		t := tail.New(place.Of(in.Requests), opt)
		d := &document.Document{Tables: append(t.Reports(), t.Common.Report(opt.All))}
		for _, t := range d.Tables {
			if d.Main == "" && t.Schema == tail.Schema {
				d.Main = t.Name()
			}
		}
		return d, nil
	}, nil
}

package reports

import (
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/sgtrace/sgtrace/analyze/document"
	"github.com/sgtrace/sgtrace/analyze/gpu"
	"github.com/sgtrace/sgtrace/analyze/overview"
	"github.com/sgtrace/sgtrace/cmd/sgtrace/internal/commandline"
)

// summaryTables are the tables behind the sentences of the summary.
var summaryTables = []string{
	"findings", "summary.load", "summary.servers", "summary.profiles", "summary.clocks", "summary.latency", "summary.finders",
}

// parseSummary makes the report on what stands out; -o makes a page of it.
func parseSummary(ctx *cli.Context) (Run, error) {
	if name := ctx.String("o"); ctx.IsSet("o") {
		if ext := strings.ToLower(filepath.Ext(name)); ext != ".html" && ext != ".htm" {
			return nil, commandline.Usage("-o %s: want a name that ends in .html; tables go to standard output, with --format csv or json for programs", name)
		}
		for _, other := range []string{"format", "table"} {
			if ctx.IsSet(other) {
				return nil, commandline.Usage("--%s and -o exclude each other: -o writes a page of everything", other)
			}
		}
	}
	return func(in *Reading) (*document.Document, error) { return Overview(in, false).Document(), nil }, nil
}

// Overview looks at everything that was read; with counters, also for a page that draws them.
func Overview(in *Reading, counters bool) *overview.Overview {
	return overview.New(overview.Input{
		Select: in.Select, Inputs: in.Given, Files: in.Inputs, Requests: in.Requests, Clocks: in.Clocks, Diags: in.Diags,
		Profiles: in.Profiles, Devices: gpu.Options{From: in.From, To: in.To}, Counters: counters,
	})
}

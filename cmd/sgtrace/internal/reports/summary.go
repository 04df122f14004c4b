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
	if err := CheckPage(ctx); err != nil {
		return nil, err
	}
	return func(in *Reading) (*document.Document, error) { return Overview(in).Document(), nil }, nil
}

// CheckPage finds mistakes in -o, which makes a page, before anything is read.
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

// Overview looks at everything that was read.
func Overview(in *Reading) *overview.Overview {
	return overview.New(overview.Input{
		Select: in.Select, Inputs: in.Given, Files: in.Inputs, Requests: in.Requests, Clocks: in.Clocks, Diags: in.Diags,
		Profiles: in.Profiles, Devices: gpu.Options{From: in.From, To: in.To},
	})
}

package main

import (
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/finders"
	"github.com/sgtrace/sgtrace/analyze/gate"
	"github.com/sgtrace/sgtrace/analyze/inspect"
	"github.com/sgtrace/sgtrace/analyze/requests"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/tail"
	"github.com/sgtrace/sgtrace/cmd/sgtrace/internal/reports"
	"github.com/sgtrace/sgtrace/request"
)

// flagValues returns the values that a flag of a command takes behind some other flags, as far as
// they are known without an input.
func flagValues(command, flag string, behind []string) (values []string) {
	switch flag {
	case "format":
		for _, f := range table.Formats {
			values = append(values, string(f))
		}
		if command == "report" {
			values = append(values, string(table.FormatFolded))
		}
	case "fail-on", "mute":
		values = finders.Kinds()
	case "by":
		for _, d := range requests.Dimensions {
			values = append(values, d.Name)
		}
	case "metric":
		for _, m := range tail.Metrics {
			values = append(values, m.Name)
		}
	case "role":
		for role := request.Unified; role <= request.Other; role++ {
			values = append(values, role.String())
		}
	case "status":
		for status := request.Finished; status <= request.Unfinished; status++ {
			values = append(values, status.String())
		}
	case "cat":
		values = slices.Concat(reports.AllEvents, []string{"cpu_op", "python_function", "nvtx"})
	case "fail-if":
		for _, m := range gate.Metrics() {
			if !strings.Contains(m, ".NAME.") {
				values = append(values, m+">+5%")
			}
		}
	case "sort":
		if command == "requests" {
			values = requests.List(new(request.Set), nil).ColumnNames()
		} else if r := reports.Asked(behind); r != nil {
			values = r.Columns()
		}
	case "table":
		if r := reports.Asked(behind); command == "report" && r != nil {
			return r.Tables
		}
		values = map[string][]string{"report": reports.TableNames(), "inspect": inspect.Tables, "diff": {"diff", "diff.setup", "diff.load", "diff.percentiles", "diff.captures", "gate"}}[command]
	default:
		values = map[string][]string{
			"view": {"both", "thread", "request"}, "layout": {"both", "ranks", "compare"}, "args": {"all", "min", "none"},
			"tail": {"p90", "p95", "p99"}, "slowest": {"20:e2e", "20:ttft", "20:itl"}, "level": {"1", "2", "3"}, "classes": {"hta"}, "color": {"auto", "always", "never"},
		}[flag]
	}
	return values
}

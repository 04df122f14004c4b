package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"github.com/sgtrace/sgtrace/analyze/document"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/cmd/sgtrace/internal/reports"
)

// toyReport counts the requests of OTLP dumps.
var toyReport = &reports.Report{
	Name: "toy-count", Usage: "how many requests there are", Needs: reports.Requests,
	Options: []string{"sort", "limit"}, Tables: []string{"toy"},
	Parse: func(*cli.Context) (reports.Run, error) {
		return func(in *reports.Reading) (*document.Document, error) {
			d := &document.Document{}
			d.AddMain(table.New("sgtrace.report.toy/v1", "Toy", []int{len(in.Requests.Requests)}, []table.Field[int]{
				table.CountColumn("requests", "how many", func(n *int) int64 { return int64(*n) }),
			}))
			return d, nil
		}, nil
	},
}

// Adding a report takes one row in a table; every part of the command line then knows it.
func TestOneRowAddsAReport(t *testing.T) {
	before := reports.All
	t.Cleanup(func() { reports.All = before })
	reports.All = append(slices.Clone(before), toyReport)
	dir := recorded(t, 3)
	for _, test := range []struct {
		args   string
		status int
		want   string
	}{
		{"report --toy-count otel.jsonl", exitOK, "Toy\n\nrequests"},
		{"report --toy-count --format csv otel.jsonl", exitOK, "requests\n"},
		{"report --toy-count --format markdown otel.jsonl", exitOK, "### Toy"},
		{"report --toy-count --format json otel.jsonl", exitOK, `{"schema":"sgtrace.report.toy-count/v2","main":"toy",`},
		{"report --toy-count --limit 1 --sort requests otel.jsonl", exitOK, "Toy"},
		{"report --toy-count --kernels otel.jsonl", exitUsage, "--kernels and --toy-count are two reports"},
		{"report --toy-count --bucket 1s otel.jsonl", exitUsage, "--toy-count does not take --bucket; --timeline takes --bucket"},
		{"report --toy-count -o page.html otel.jsonl", exitUsage, "--toy-count does not take -o; --summary and --fleet take -o"},
		{"report --sort requests otel.jsonl", exitUsage, "--stacks and --toy-count"},
		{"report --help", exitOK, "--toy-count           how many requests there are"},
		{"help man", exitOK, "toy\\-count"},
		{"__complete report --toy", exitOK, "--toy-count\thow many requests there are"},
	} {
		r := sgtrace(t, dir, strings.Fields(test.args)...)
		if r.status != test.status || !strings.Contains(r.out+r.err, test.want) {
			t.Errorf("%s: status %d, want %q in\n%s%s", test.args, r.status, test.want, r.out, r.err)
		}
		if strings.Contains(test.args, "json") && test.status == exitOK && strings.Contains(test.args, "format json") && !json.Valid([]byte(r.out)) {
			t.Errorf("%s is no JSON", test.args)
		}
	}
}

package document_test

import (
	"bytes"
	"encoding/json"
	"io"
	"reflect"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/document"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// rows makes a table with one column of values.
func rows(schema, part string, values ...int64) *table.Table {
	t := table.New(schema, "Title of "+schema, values, []table.Field[int64]{
		{Column: table.Column{Name: "took", Unit: table.Duration, Doc: "how long"}, Cell: func(v *int64) table.Cell { return table.NumberCell(*v) }},
	})
	t.Part = part
	return t
}

// sample has two of each part of a document.
func sample() *document.Document {
	d := &document.Document{
		Schema:   "sgtrace.report.sample/v2",
		Inputs:   []document.Input{{Name: "a\x1b.json", Bytes: 7}, {Name: "-", Bytes: request.Unknown}},
		Warnings: []document.Warning{{Severity: trace.DataLoss, Text: "half is gone"}, {Severity: trace.Notice, Text: "odd"}},
		Findings: []finding.Finding{{Kind: finding.Load, Text: "more", Show: [][]string{{"--timeline"}}, Cost: 0.5}, {Kind: finding.Tail, Text: "slow"}},
		Again:    []string{"--from", "+1s", "a b.json"},
	}
	d.Add(rows("sgtrace.report.side/v1", "ttft", 3, request.Unknown), rows("sgtrace.report.empty/v1", ""))
	d.AddMain(rows("sgtrace.report.sample/v1", "", 1, 2))
	return d
}

func write(t *testing.T, d *document.Document, f table.Format) string {
	t.Helper()
	var b bytes.Buffer
	if err := d.Write(&b, f, table.Style{}); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// JSON decodes to the same values, and unknown values are null.
func TestJSON(t *testing.T) {
	var got map[string]any
	if err := json.Unmarshal([]byte(write(t, sample(), table.FormatJSON)), &got); err != nil {
		t.Fatal(err)
	}
	inputs := []any{map[string]any{"name": "a\x1b.json", "size_bytes": 7.0}, map[string]any{"name": "-", "size_bytes": nil}}
	warnings := []any{map[string]any{"severity": "data loss", "text": "half is gone"}, map[string]any{"severity": "notice", "text": "odd"}}
	for key, want := range map[string]any{"schema": "sgtrace.report.sample/v2", "main": "sample", "inputs": inputs, "warnings": warnings} {
		if !reflect.DeepEqual(got[key], want) {
			t.Errorf("%s is %v, want %v", key, got[key], want)
		}
	}
	tables := got["tables"].([]any)
	if len(tables) != 2 {
		t.Fatalf("%d tables, want those that have rows: %v", len(tables), tables)
	}
	side := tables[0].(map[string]any)
	if want := []any{map[string]any{"took_ns": 3.0}, map[string]any{"took_ns": nil}}; side["name"] != "side.ttft" || !reflect.DeepEqual(side["rows"], want) {
		t.Errorf("the first table is %v", side)
	}
	first := got["findings"].([]any)[0].(map[string]any)
	want := []any{[]any{"sgtrace", "report", "--timeline", "--from", "+1s", "a b.json"}}
	if !reflect.DeepEqual(first["commands"], want) || first["cost"] != 0.5 {
		t.Errorf("the first finding is %v", first)
	}
}

// Empty lists are empty arrays in JSON, so that programs need no special case.
func TestEmptyJSON(t *testing.T) {
	want := `{"schema":"sgtrace.report.none/v2","main":null,"inputs":[],"warnings":[],"tables":[],"findings":[]}`
	got := write(t, &document.Document{Schema: "sgtrace.report.none/v2"}, table.FormatJSON)
	if got = strings.ReplaceAll(got, "\n", ""); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

// CSV contains the main table or the chosen one; if there is no such table, the error lists those that exist.
func TestCSV(t *testing.T) {
	d := sample()
	if got, want := write(t, d, table.FormatCSV), "took_ns\n1\n2\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	d.Main = ""
	err := d.Write(&bytes.Buffer{}, table.FormatCSV, table.Style{})
	if err == nil || !strings.Contains(err.Error(), "--table: sample, side.ttft") {
		t.Errorf("without a main table: %v", err)
	}
	if err := d.Choose("side"); err == nil || !strings.Contains(err.Error(), "there are sample, side.ttft") {
		t.Errorf("a table that is not there: %v", err)
	}
	if err := d.Choose("side.ttft"); err != nil {
		t.Fatal(err)
	}
	if got, want := write(t, d, table.FormatCSV), "took_ns\n3\n\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// The text has the tables in order, unless the document has its own text.
func TestText(t *testing.T) {
	d := sample()
	text := write(t, d, table.FormatText)
	if side, main := strings.Index(text, "side/v1"), strings.Index(text, "sample/v1"); side < 0 || main < side {
		t.Errorf("tables are not in order:\n%s", text)
	}
	d.Text = func(w io.Writer, _ table.Style) error {
		_, err := w.Write([]byte("in words"))
		return err
	}
	if got := write(t, d, table.FormatText); got != "in words" {
		t.Errorf("got %q", got)
	}
	if got := write(t, d, table.FormatMarkdown); !strings.Contains(got, "### Title of") {
		t.Errorf("Markdown without words of its own is %q", got)
	}
	if err := d.Choose("sample"); err != nil {
		t.Fatal(err)
	}
	if got := write(t, d, table.FormatText); !strings.HasPrefix(got, "Title of sgtrace.report.sample/v1") {
		t.Errorf("the chosen table alone is %q", got)
	}
}

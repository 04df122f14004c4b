package document

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
	"github.com/sgtrace/sgtrace/trace/redact"
)

// A Document is what a command reports. Tables and findings are in reading order.
type Document struct {
	Schema   string // "sgtrace.report.kernels/v2"
	Inputs   []Input
	Warnings []Warning
	Tables   []*table.Table
	// Main is the name of the table that CSV has, and that --sort and --limit arrange; "" if no table matters more than the others.
	Main string
	// LimitAll reports that --limit bounds every table, not only the main one.
	LimitAll bool
	Findings []finding.Finding
	// Failure is why the command fails after writing the document: a gate in it did not pass. It is nil if the command succeeds.
	Failure error
	// Again are the arguments that select and read the same inputs once more, for the commands of findings.
	Again []string

	// Text and Markdown write the document for people; if nil, the tables are written one after another.
	Text     func(io.Writer, table.Style) error
	Markdown func(io.Writer) error
}

// An Input is a file that was read.
type Input struct {
	Name  string
	Bytes int64 // on disk; request.Unknown for a pipe
}

// A Warning is a reason to trust a document less, or something that it can't show.
type Warning struct {
	Severity trace.Severity
	Text     string
}

// Of returns a document with some tables, the first of which is the main one.
func Of(tables ...*table.Table) *Document {
	d := &Document{}
	d.AddMain(tables[0])
	d.Add(tables[1:]...)
	return d
}

// Add appends the tables that have rows, or notes on why they have none.
func (d *Document) Add(tables ...*table.Table) {
	for _, t := range tables {
		if t.Len() > 0 || len(t.Footnotes) > 0 {
			d.Tables = append(d.Tables, t)
		}
	}
}

// AddMain appends a table, even an empty one, and makes it the main one.
func (d *Document) AddMain(t *table.Table) { d.Tables, d.Main = append(d.Tables, t), t.Name() }

// names lists the names of the tables, sorted.
func (d *Document) names() string {
	names := order.Each(d.Tables, (*table.Table).Name)
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// MainTable returns the table that CSV has. If there is none, its error lists the tables to choose from.
func (d *Document) MainTable() (*table.Table, error) {
	for _, t := range d.Tables {
		if t.Name() == d.Main {
			return t, nil
		}
	}
	return nil, fmt.Errorf("CSV has room for one table; choose it with --table: %s", d.names())
}

// Choose drops all tables but the named one, which becomes the main one.
func (d *Document) Choose(name string) error {
	i := slices.IndexFunc(d.Tables, func(t *table.Table) bool { return t.Name() == name })
	if i < 0 {
		return fmt.Errorf("no table %q; there are %s", name, d.names())
	}
	d.Tables, d.Main = d.Tables[i:i+1], name
	d.Text, d.Markdown = nil, nil
	return nil
}

// Redact replaces the names in tables by those of the redactor. Names in other parts must have been replaced before.
func (d *Document) Redact(by *redact.Redactor) {
	for _, t := range d.Tables {
		t.Redact(by)
	}
}

// Write writes the document in the given format. CSV is an error if there is no main table.
func (d *Document) Write(w io.Writer, f table.Format, s table.Style) error {
	switch {
	case f == table.FormatJSON:
		return d.writeJSON(w)
	case f == table.FormatCSV, f == table.FormatFolded:
		main, err := d.MainTable()
		if err != nil {
			return err
		}
		return main.Write(w, f, s)
	case f == table.FormatText && d.Text != nil:
		return d.Text(w, s)
	case f == table.FormatMarkdown && d.Markdown != nil:
		return d.Markdown(w)
	}
	if len(d.Tables) == 0 {
		return nil
	}
	if err := d.Tables[0].Write(w, f, s); err != nil {
		return err
	}
	return writeBehind(w, f, s, d.Tables[1:])
}

// writeBehind writes tables, each after an empty line.
func writeBehind(w io.Writer, f table.Format, s table.Style, tables []*table.Table) error {
	for _, t := range tables {
		if _, err := io.WriteString(w, "\n"); err != nil {
			return err
		}
		if err := t.Write(w, f, s); err != nil {
			return err
		}
	}
	return nil
}

// Append adds tables to the end of what Text and Markdown write.
func (d *Document) Append(tables ...*table.Table) {
	text, markdown := d.Text, d.Markdown
	d.Text = func(w io.Writer, s table.Style) error {
		if err := text(w, s); err != nil {
			return err
		}
		return writeBehind(w, table.FormatText, s, tables)
	}
	d.Markdown = func(w io.Writer) error {
		if err := markdown(w); err != nil {
			return err
		}
		return writeBehind(w, table.FormatMarkdown, table.Style{}, tables)
	}
}

// The JSON objects of a document. Fields are only ever added; docs/METRICS.md defines them.
type (
	inputJSON struct {
		Name  table.JSONText `json:"name"`
		Bytes *int64         `json:"size_bytes"`
	}
	warningJSON struct {
		Severity table.JSONText `json:"severity"`
		Text     table.JSONText `json:"text"`
	}
)

func (i Input) object() inputJSON {
	v := inputJSON{Name: table.JSONText(i.Name)}
	if i.Bytes != request.Unknown {
		v.Bytes = &i.Bytes
	}
	return v
}

// writeJSON writes one object, with every element of its arrays on a line of its own.
func (d *Document) writeJSON(w io.Writer) error {
	out := bufio.NewWriter(w)
	head := struct {
		Schema table.JSONText `json:"schema"`
		Main   table.JSONText `json:"main"`
	}{table.JSONText(d.Schema), table.JSONText(d.Main)}
	text, err := table.Codec.MarshalToString(head)
	if err != nil {
		return err
	}
	out.WriteString(text[:len(text)-1]) // without the closing brace
	arrays := []struct {
		name  string
		n     int
		write func(i int) error
	}{
		{"inputs", len(d.Inputs), func(i int) error { return writeObject(out, d.Inputs[i].object()) }},
		{"warnings", len(d.Warnings), func(i int) error {
			return writeObject(out, warningJSON{table.JSONText(d.Warnings[i].Severity.String()), table.JSONText(d.Warnings[i].Text)})
		}},
		{"tables", len(d.Tables), func(i int) error { return d.Tables[i].WriteJSON(out) }},
		{"findings", len(d.Findings), func(i int) error { return writeObject(out, d.Findings[i].Object(d.Again)) }},
	}
	for _, a := range arrays {
		out.WriteString(",\n\"" + a.name + "\":[")
		for i := range a.n {
			if i > 0 {
				out.WriteByte(',')
			} else {
				out.WriteByte('\n')
			}
			if err := a.write(i); err != nil {
				return err
			}
		}
		out.WriteByte(']')
	}
	out.WriteString("}\n")
	return out.Flush()
}

func writeObject(out *bufio.Writer, v any) error {
	text, err := table.Codec.MarshalToString(v)
	if err != nil {
		return err
	}
	out.WriteString(text)
	return out.WriteByte('\n')
}

// ofRequests are the tables that list requests, or have percentiles or counts of them.
var ofRequests = []string{
	"latency", "summary.latency", "stages", "requests", "tokens", "ranks", "ranks.share", "changes", "timeline", "slo",
	"tail.e2e", "tail.ttft", "tail.itl", "common", "transfers", "diff",
}

// SampleNotes says which requests the inputs have records of, if these are not all.
func SampleNotes(diags *trace.Diags) (notes []string) {
	if diags == nil {
		return nil
	}
	for _, m := range []*trace.Message{trace.RecordsSlowOnly, trace.RecordsFailedOnly} {
		of := order.Only(diags.All(), func(d trace.Diag) bool { return d.Message == m })
		if len(of) == 0 {
			continue
		}
		note := fmt.Sprintf("a biased sample: %s: %s", of[0].Pos, of[0].Msg)
		if n := len(of) - 1; n > 0 {
			note += fmt.Sprintf("; and so in %d more", n)
		}
		notes = append(notes, note+" ["+of[0].Code+"]")
	}
	return notes
}

// NoteSample adds a note to each table of requests if these are a biased sample.
func (d *Document) NoteSample(diags *trace.Diags) {
	notes := SampleNotes(diags)
	for _, t := range d.Tables {
		if slices.Contains(ofRequests, t.Name()) {
			for _, note := range notes {
				t.Note("%s", note)
			}
		}
	}
}

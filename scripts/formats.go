package main

import (
	"bytes"
	_ "embed"
	"os"
	"text/template"

	"github.com/sgtrace/sgtrace/trace"
)

//go:embed FORMATS.md.tmpl
var formatsTemplate string

// formats writes docs/FORMATS.md to standard output. The page is the template FORMATS.md.tmpl. What it
// says about producers is not in it but in the source: comments, under "# What is odd"; tables, whose
// rows have the reason beside them; and the table of messages of package trace.
func formats([]string) error {
	page, err := formatsPage(".")
	if err != nil {
		return err
	}
	_, err = os.Stdout.Write(page)
	return err
}

// formatsPage makes the page from the module in dir.
func formatsPage(dir string) ([]byte, error) {
	src := newSource(dir)
	t, err := template.New("FORMATS.md").Funcs(template.FuncMap{
		"odd":         src.odd,
		"table":       src.table,
		"forms":       src.forms,
		"nsysTables":  src.nsysTables,
		"diagnostics": diagnostics,
	}).Parse(formatsTemplate)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := t.Execute(&b, nil); err != nil {
		return nil, err
	}
	return append(bytes.TrimSpace(b.Bytes()), '\n'), nil
}

// diagnostics prints the table of messages.
func diagnostics() string {
	out := grid{heads: []string{"code", "severity", "says", "what to do"}}
	for _, m := range trace.Messages() {
		out.rows = append(out.rows, []string{"`" + m.Code + "`", m.Severity.String(), m.Shown(), m.Advice})
	}
	return out.String()
}

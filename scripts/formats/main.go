// Command formats writes docs/FORMATS.md: what is read of every producer, and every
// quirk that is handled, from the tables and comments of the packages that handle it.
//
// The page is the template FORMATS.md.tmpl. What it says about producers is not in it but in
// the source: package comments, under "# What is odd"; tables, whose rows have the
// reason beside them; and the table of messages of package trace.
//
// usage: go run ./scripts/formats >docs/FORMATS.md
package main

import (
	"bytes"
	_ "embed"
	"log"
	"os"
	"text/template"

	"github.com/sgtrace/sgtrace/trace"
)

//go:embed FORMATS.md.tmpl
var pageTemplate string

func main() {
	log.SetFlags(0)
	log.SetPrefix("formats: ")
	page, err := newPage(".")
	if err != nil {
		log.Fatal(err)
	}
	if _, err := os.Stdout.Write(page); err != nil {
		log.Fatal(err)
	}
}

// newPage makes the page from the module in dir.
func newPage(dir string) ([]byte, error) {
	src := newSource(dir)
	t, err := template.New("FORMATS.md").Funcs(template.FuncMap{
		"odd":         src.odd,
		"table":       src.table,
		"forms":       src.forms,
		"nsysTables":  src.nsysTables,
		"diagnostics": diagnostics,
	}).Parse(pageTemplate)
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

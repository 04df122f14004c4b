package table

import (
	"strings"

	"github.com/sgtrace/sgtrace/internal/redact"
	"github.com/sgtrace/sgtrace/trace/naming"
)

// Redact gives the texts of a report the names of r. Most were made of what has them
// already; what an inventory tells of files has not.
func (r *Table) Redact(by *redact.Redactor) {
	for _, c := range r.Columns {
		if c.Name == "host" {
			r.eachText(c.Name, func(text string) {
				host, _, _ := strings.Cut(text, naming.ServerMark)
				by.LearnHost(host)
			})
		}
	}
	r.Title = by.Scrub(r.Title)
	for i, note := range r.Footnotes {
		r.Footnotes[i] = by.Scrub(note)
	}
	inner := r.cell
	r.cell = func(row, column int) Cell {
		c := inner(row, column)
		switch {
		case r.Columns[column].Unit != Text || c.Unknown:
		case r.Columns[column].Name == "host":
			host, server, numbered := strings.Cut(c.Text, naming.ServerMark)
			if c.Text = by.Host(host); numbered {
				c.Text += naming.ServerMark + server
			}
		default:
			c.Text = by.Scrub(c.Text)
		}
		return c
	}
}

// eachText calls f for the known texts of a column.
func (r *Table) eachText(column string, f func(string)) {
	k, err := r.Column(column)
	if err != nil {
		return
	}
	for _, row := range r.order {
		if c := r.cell(int(row), k); !c.Unknown {
			f(c.Text)
		}
	}
}

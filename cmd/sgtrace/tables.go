package main

import (
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/cmd/sgtrace/internal/commandline"
)

// ReportTables are the tables of one report, in the order in which people read them.
type reportTables struct {
	tables []*table.Table
	// main is the one that --sort and --limit are about, that CSV has, and that JSON
	// begins with.
	main *table.Table
	most int // rows of main that people get to see unless told otherwise; 0 is all
}

// add puts a table that has rows, or says why it has none, behind the others.
func (b *reportTables) add(tables ...*table.Table) {
	for _, t := range tables {
		if t.Len() > 0 || len(t.Footnotes) > 0 {
			b.tables = append(b.tables, t)
		}
	}
}

// tableName is what --table calls a table: its schema without what all have.
func tableName(r *table.Table) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(r.Schema, "sgtrace.report."), "/")
	return name
}

// choose leaves the table that --table names.
func (b *reportTables) choose(name string) error {
	var names []string
	for _, t := range b.tables {
		if tableName(t) == name {
			b.tables, b.main = []*table.Table{t}, t
			return nil
		}
		names = append(names, tableName(t))
	}
	slices.Sort(names)
	return commandline.Usage("--table %q: want one of %s", name, strings.Join(slices.Compact(names), ", "))
}

// printTables prints the tables of a report as the flags say.
func (c *command) printTables(ctx *cli.Context, f table.Format, b *reportTables) error {
	if name := ctx.String("table"); name != "" {
		if err := b.choose(name); err != nil {
			return err
		}
	}
	if err := arrange(ctx, b.main, peopleOnly(f, b.most)); err != nil {
		return err
	}
	switch f {
	case table.FormatCSV:
		return c.print(f, b.main)
	case table.FormatJSON:
		beside := slices.DeleteFunc(slices.Clone(b.tables), func(t *table.Table) bool { return t == b.main })
		return b.main.WriteJSON(c.out, beside)
	}
	return c.printAll(f, b.tables)
}

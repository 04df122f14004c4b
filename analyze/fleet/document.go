package fleet

import (
	"io"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/document"
	"github.com/sgtrace/sgtrace/analyze/overview"
	"github.com/sgtrace/sgtrace/analyze/table"
)

// Document is the report: the list of what [Fleet.Look] found, and the tables behind it. People
// see so many rows of each table.
func (f *Fleet) Document(list *overview.List) *document.Document {
	d := &document.Document{LimitAll: true, Findings: list.Result.Findings, Again: list.Again()}
	d.AddMain(f.OffenderReport())
	d.Add(f.TotalReport(), f.DayReport(), f.VersionReport(), f.RunReport(), f.LossReport())
	printed := slices.Clone(d.Tables)
	d.Add(list.Report(), list.FinderReport())
	d.Text = func(w io.Writer, style table.Style) error {
		p := overview.NewPrinter(w, style)
		list.Print(p)
		if text := list.MutedText(); text != "" {
			p.Filled("", 0, "Muted: "+text)
		}
		if err := p.Out.Flush(); err != nil {
			return err
		}
		return each(w, printed, table.FormatText, style)
	}
	d.Markdown = func(w io.Writer) error {
		if err := list.Markdown(w); err != nil {
			return err
		}
		return each(w, printed, table.FormatMarkdown, table.Style{})
	}
	return d
}

// each writes tables, each behind an empty line.
func each(w io.Writer, tables []*table.Table, format table.Format, style table.Style) error {
	for _, t := range tables {
		if _, err := io.WriteString(w, "\n"); err != nil {
			return err
		}
		if err := t.Write(w, format, style); err != nil {
			return err
		}
	}
	return nil
}

package page

import (
	"bytes"
	"fmt"
	"html/template"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/page/chart"
	"github.com/sgtrace/sgtrace/trace"

	"github.com/sgtrace/sgtrace/analyze/table"
)

// A Table is a report as a table, which can be sorted and filtered.
type Table struct {
	Report *table.Table
	Rows   int // the first ones are shown; 0 is all
	// Links are where texts lead to on the page: IDs of requests.
	Links map[string]string
}

// mostName is how long a text in a table may be; the whole is under the pointer.
const mostName = 64

func (t *Table) Draw() (chart.Drawing, error) {
	rendered := t.Report.Render()
	if len(rendered.Rows) == 0 {
		return chart.Drawing{Markup: "<p>none</p>", Notes: rendered.Notes}, nil
	}
	v := tableView{Name: t.Report.Name(), Title: table.Printable(t.Report.Title), Columns: rendered.Columns}
	d := chart.Drawing{Notes: rendered.Notes, Wide: len(rendered.Columns) > 10}
	rows := rendered.Rows
	if t.Rows > 0 && len(rows) > t.Rows {
		d.Notes = append(d.Notes, fmt.Sprintf("the first %d of %d rows are shown", t.Rows, len(rows)))
		rows = rows[:t.Rows]
	}
	v.Rows = make([][]cellView, len(rows))
	for c, column := range rendered.Columns {
		texts := make([]string, len(rows))
		for i, row := range rows {
			texts[i] = row[c]
		}
		for i, short := range table.Shorten(texts, mostName) {
			cell := cellView{Text: short, Right: column.Right, Href: t.Links[texts[i]]}
			if short != texts[i] {
				cell.Whole = texts[i]
			}
			v.Rows[i] = append(v.Rows[i], cell)
		}
	}
	v.Filter, v.Long = len(v.Rows) > 10, len(v.Rows) > firstRows
	v.Times = t.times(len(v.Rows))
	var b bytes.Buffer
	if err := tableTemplate().Execute(&b, v); err != nil {
		return d, err
	}
	d.Markup = template.HTML(b.String()) // escaped by the template
	return d, nil
}

// firstRows is how many rows of a table the script leaves at first.
const firstRows = 15

// times are the times of the first rows in ms, by the first column that has any; nil
// without one.
func (t *Table) times(rows int) []string {
	c := slices.IndexFunc(t.Report.Columns, func(c table.Column) bool { return c.Unit == table.Instant && !c.Detail })
	if c < 0 {
		return nil
	}
	list := make([]string, rows)
	for i := range list {
		if cell := t.Report.Cell(i, c); !cell.Unknown {
			list[i] = chart.Milliseconds(trace.Time(cell.N))
		}
	}
	return list
}

type tableView struct {
	Name    string
	Title   string
	Columns []table.RenderedColumn
	Rows    [][]cellView
	Times   []string // of the rows, for the script; nil if they have none
	Filter  bool
	Long    bool // the script shows the first rows until asked for more
}

type cellView struct {
	Text, Whole, Href string
	Right             bool
}

var tableTemplate = parsed("table", template.FuncMap{"rowID": rowID}, `<div class="table">
{{- if .Filter}}<input class="filter script" type="search" placeholder="filter rows" aria-label="show rows that contain" hidden>{{end -}}
<div class="scroll" tabindex="0"><table><caption class="unseen">{{.Title}}</caption><thead><tr>
{{- range .Columns}}<th scope="col"{{if .Right}} class="right"{{end}} title="{{.Doc}}"><button type="button">{{.Header}}</button></th>{{end -}}
</tr></thead><tbody>
{{- $name := .Name}}{{$times := .Times}}{{range $i, $row := .Rows}}
<tr id="{{rowID $name $i}}"{{with $times}} data-t="{{index . $i}}"{{end}}>{{range $row}}<td{{if .Right}} class="right"{{end}}{{with .Whole}} title="{{.}}"{{end}}>{{if .Href}}<a href="{{.Href}}">{{.Text}}</a>{{else}}{{.Text}}{{end}}</td>{{end}}</tr>{{end}}
</tbody></table></div>{{if .Long}}<button type="button" class="more" hidden>all rows</button>{{end}}</div>`)

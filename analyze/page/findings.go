package page

import (
	"bytes"
	"fmt"
	"html/template"
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/load"
	"github.com/sgtrace/sgtrace/analyze/page/chart"
	"github.com/sgtrace/sgtrace/analyze/requests"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/trace"
)

// Findings lists the findings by cost, largest first.
type Findings struct {
	List []Finding
	Sum  string // how their costs add up; "" if they do not
}

// A Finding is a finding as the page shows it: a sentence, its cost, and links to evidence.
type Finding struct {
	ID         string // its anchor
	Kind       string
	Severity   string // critical, warning or info
	Confidence string
	Text       Text
	// Cost is a share, 0 to 1, of what the finding counts; CostText is the same in words.
	Cost     float64
	CostText string
	Without  string  // what latencies would have been without it; "" if not asked for
	Links    []Piece // to figures that show it
	Evidence []Text
	Command  string // prints details
}

// maxEvidence is the number of sentences of evidence shown at first; a click shows the others.
const maxEvidence = 2

func (f *Findings) Draw() (chart.Drawing, error) {
	var b bytes.Buffer
	if err := findingsTemplate().Execute(&b, f); err != nil {
		return chart.Drawing{}, err
	}
	return chart.Drawing{Markup: template.HTML(b.String()), Wide: true}, nil // escaped by the template
}

// Percent returns the length of the cost bar, 1 to 100.
func (f *Finding) Percent() int { return max(1, min(100, int(100*f.Cost+0.5))) }

// First and More return the evidence shown at first and the rest.
func (f *Finding) First() []Text { return f.Evidence[:min(maxEvidence, len(f.Evidence))] }
func (f *Finding) More() []Text  { return f.Evidence[min(maxEvidence, len(f.Evidence)):] }

var findingsTemplate = parsed("findings", functions, textTemplate+`<ol class="findings">
{{- range .List}}
<li class="finding {{.Severity}}"{{with .ID}} id="{{.}}"{{end}}>
<p class="cost"><svg viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true"><rect class="track" width="100" height="6"/>{{if gt .Cost 0.0}}<rect class="part" width="{{.Percent}}" height="6"/>{{end}}</svg><span>{{.CostText}}</span></p>
<p class="says">{{range .Text}}{{if .Href}}<a href="{{.Href}}">{{printable .Text}}</a>{{else}}{{explained .Text}}{{end}}{{end}}</p>
{{with .Without}}<p class="without">{{printable .}}</p>{{end}}
<p class="tags"><span class="severity">{{.Severity}}</span><span>{{.Kind}}</span><span>{{.Confidence}}</span>{{range .Links}}<a href="{{.Href}}">{{.Text}}</a>{{end}}</p>
{{- if .Evidence}}<ul class="evidence">{{range .First}}<li>{{template "text" .}}</li>{{end}}</ul>
{{- with .More}}<details><summary>{{len .}} more</summary><ul class="evidence">{{range .}}<li>{{template "text" .}}</li>{{end}}</ul></details>{{end}}{{end}}
{{- with .Command}}<code class="command">{{printable .}}</code>{{end}}</li>{{end}}
</ol>{{with .Sum}}<p class="notes">{{explained .}}</p>{{end}}`)

// Goodput makes the section about the share of requests that meet the objectives, and why the others miss them. The
// section Over time shows its course.
func Goodput(g *requests.Goodput, src Source) Section {
	s := Section{ID: "goodput", Title: "Goodput", Lead: g.Words()}
	s.addTables(src, "--slo="+requests.FormatObjectives(g.Objectives), "Goodput", g.Report(), g.CauseReport(), g.RankReport())
	return s
}

// goodputTile returns the share of requests that meet all objectives.
func goodputTile(g *requests.Goodput) Tile {
	t := Tile{Name: "Goodput", Value: "–", Detail: "no request can be judged", State: Neutral, Href: "#goodput"}
	if g.All.Judged() == 0 {
		return t
	}
	t.Follows = "goodput"
	t.Value = chart.InUnit(table.Share, wholePercent(g.All.Share()))
	t.Detail = fmt.Sprintf("%s /s meet %s", words.ThreeDigits(g.PerSecond()), requests.ObjectivesInWords(g.Objectives))
	if t.State = Good; g.All.Missed > 0 {
		t.State = Bad
	}
	return t
}

// goodputPanel returns the share of the requests arriving in each bucket that met all objectives. The panel has no
// curve if none were judged.
func goodputPanel(s *load.Series) chart.Panel {
	p := chart.Panel{Title: "goodput: part of arrivals that meet the SLO", Unit: table.Share}
	if s.Good == nil {
		return p
	}
	values := make([]float64, len(s.Good))
	for i, good := range s.Good {
		values[i] = math.NaN()
		if good.Judged > 0 {
			values[i] = float64(good.Met) / float64(good.Judged)
		}
	}
	p.Curves = []chart.Curve{{Name: "all", Values: values}}
	return p
}

// A Table is a report as a table that can be sorted and filtered.
type Table struct {
	Report *table.Table
	Rows   int // number of first rows shown; 0 is all
	// Links are the targets on the page of texts in cells: request IDs.
	Links map[string]string
}

// maxName limits the letters of a text in a table; the pointer shows the whole.
const maxName = 64

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
		texts := order.Each(rows, func(row []string) string { return row[c] })
		for i, short := range table.Shorten(texts, maxName) {
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

// firstRows is the number of rows of a table that the script shows at first.
const firstRows = 15

// times returns the times of the first rows in ms, from the first column of instants; nil if there is none.
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
	Times   []string // of the rows, for the script; nil if they have no times
	Filter  bool
	Long    bool // the script shows only the first rows at first
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

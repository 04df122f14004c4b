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

// Findings lists what an engineer should know about, the one that costs most first.
type Findings struct {
	List []Finding
	Sum  string // how what they cost adds up; "" if nothing does
}

// A Finding is a sentence, what it costs, and what shows it.
type Finding struct {
	ID         string // anchor of the finding
	Kind       string
	Severity   string // critical, warning or info
	Confidence string
	Text       Text
	// Cost is the part that it costs, 0 to 1, and CostText the same in words.
	Cost     float64
	CostText string
	Without  string  // what would have been without it; "" is that nobody asked
	Links    []Piece // to figures that show it
	Evidence []Text
	Command  string // prints more
}

// maxEvidence is how many sentences of evidence are open; a click shows the others.
const maxEvidence = 2

func (f *Findings) Draw() (chart.Drawing, error) {
	var b bytes.Buffer
	if err := findingsTemplate().Execute(&b, f); err != nil {
		return chart.Drawing{}, err
	}
	return chart.Drawing{Markup: template.HTML(b.String()), Wide: true}, nil // escaped by the template
}

// Percent returns the length of the bar of the cost, 1 to 100.
func (f *Finding) Percent() int { return max(1, min(100, int(100*f.Cost+0.5))) }

// First and More divide the evidence.
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

// Goodput makes the section about how many requests meet objectives, and why the others
// do not. Over time, the section about that has it.
func Goodput(g *requests.Goodput, src Source) Section {
	s := Section{ID: "goodput", Title: "Goodput", Lead: g.Words()}
	s.addTables(src, "--slo="+requests.FormatObjectives(g.Objectives), "Goodput", g.Report(), g.CauseReport(), g.RankReport())
	return s
}

// goodputTile returns the part of the requests that meet all objectives.
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

// goodputPanel returns the part of the requests that arrived in each bucket and met all
// objectives; without any, the panel has no curve.
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

// A Table is a report as a table, which can be sorted and filtered.
type Table struct {
	Report *table.Table
	Rows   int // the first ones are shown; 0 is all
	// Links are where texts lead to on the page: IDs of requests.
	Links map[string]string
}

// maxName is how long a text in a table may be; the whole is under the pointer.
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

// firstRows is how many rows of a table the script leaves at first.
const firstRows = 15

// times returns the times of the first rows in ms, by the first column that has any; nil
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

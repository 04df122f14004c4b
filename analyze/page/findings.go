package page

import (
	"bytes"
	"html/template"

	"github.com/sgtrace/sgtrace/analyze/page/chart"

	"github.com/sgtrace/sgtrace/analyze/table"
)

// Findings are what an engineer should know about, the heaviest first.
type Findings struct {
	List []Finding
}

// A Finding is a sentence, with what shows it.
type Finding struct {
	Kind     string
	Text     string
	Remark   string // how sure it is, and what it costs
	Evidence []string
	Command  string // prints more
}

func (f *Findings) Draw() (chart.Drawing, error) {
	list := make([]Finding, len(f.List))
	for i, one := range f.List {
		list[i] = Finding{one.Kind, table.Printable(one.Text), one.Remark, table.PrintableAll(one.Evidence), table.Printable(one.Command)}
	}
	var b bytes.Buffer
	if err := findingsTemplate.Execute(&b, list); err != nil {
		return chart.Drawing{}, err
	}
	return chart.Drawing{Markup: template.HTML(b.String()), Wide: true}, nil // escaped by the template
}

var findingsTemplate = template.Must(template.New("findings").Parse(`<ol class="findings">
{{- range .}}<li><p><span class="kind">{{.Kind}}</span> {{.Text}} ({{.Remark}})</p>
{{- if .Evidence}}<ul>{{range .Evidence}}<li>{{.}}</li>{{end}}</ul>{{end}}
{{- with .Command}}<code class="command">{{.}}</code>{{end}}</li>{{end -}}
</ol>`))

package page

import (
	"bytes"
	"html/template"

	"github.com/sgtrace/sgtrace/analyze/page/chart"
)

// Findings are what an engineer should know about, the one that costs most first.
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
	Links    []Piece // to figures that show it
	Evidence []Text
	Command  string // prints more
}

// mostEvidence is how many sentences of evidence are open; a click shows the others.
const mostEvidence = 2

func (f *Findings) Draw() (chart.Drawing, error) {
	var b bytes.Buffer
	if err := findingsTemplate().Execute(&b, f); err != nil {
		return chart.Drawing{}, err
	}
	return chart.Drawing{Markup: template.HTML(b.String()), Wide: true}, nil // escaped by the template
}

// Percent is the length of the bar of the cost, 1 to 100.
func (f *Finding) Percent() int { return max(1, min(100, int(100*f.Cost+0.5))) }

// First and More divide the evidence.
func (f *Finding) First() []Text { return f.Evidence[:min(mostEvidence, len(f.Evidence))] }
func (f *Finding) More() []Text  { return f.Evidence[min(mostEvidence, len(f.Evidence)):] }

var findingsTemplate = parsed("findings", functions, textTemplate+`<ol class="findings">
{{- range .List}}
<li class="finding {{.Severity}}"{{with .ID}} id="{{.}}"{{end}}>
<p class="cost"><svg viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true"><rect class="track" width="100" height="6"/>{{if gt .Cost 0.0}}<rect class="part" width="{{.Percent}}" height="6"/>{{end}}</svg><span>{{.CostText}}</span></p>
<p class="says">{{range .Text}}{{if .Href}}<a href="{{.Href}}">{{printable .Text}}</a>{{else}}{{explained .Text}}{{end}}{{end}}</p>
<p class="tags"><span class="severity">{{.Severity}}</span><span>{{.Kind}}</span><span>{{.Confidence}}</span>{{range .Links}}<a href="{{.Href}}">{{.Text}}</a>{{end}}</p>
{{- if .Evidence}}<ul class="evidence">{{range .First}}<li>{{template "text" .}}</li>{{end}}</ul>
{{- with .More}}<details><summary>{{len .}} more</summary><ul class="evidence">{{range .}}<li>{{template "text" .}}</li>{{end}}</ul></details>{{end}}{{end}}
{{- with .Command}}<code class="command">{{printable .}}</code>{{end}}</li>{{end}}
</ol>{{with .Sum}}<p class="notes">{{explained .}}</p>{{end}}`)

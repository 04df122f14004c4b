package page

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/page/chart"

	"github.com/sgtrace/sgtrace/analyze/overview"
	"github.com/sgtrace/sgtrace/analyze/table"
)

var (
	//go:embed assets/page.html
	pageText string
	//go:embed assets/report.css
	lightCSS string
	//go:embed assets/dark.css
	darkCSS string
	//go:embed assets/report.js
	script string

	pageTemplate = template.Must(template.New("page").Parse(pageText))
)

// style is the style sheet. The dark colors stand in it twice: for readers whose
// system is dark, and for those who choose them. Paper is always light.
var style = lightCSS +
	"@media screen and (prefers-color-scheme: dark) { :root:not([data-theme=light]) {\n" + darkCSS + "} }\n" +
	"@media screen { :root[data-theme=dark] {\n" + darkCSS + "} }\n"

// A pageView is a page as the template has it.
type pageView struct {
	Policy   string
	Title    string
	Facts    []overview.Fact
	Notes    []string
	Sections []sectionView
	Style    template.CSS
	Script   template.JS
}

type sectionView struct {
	ID          string
	Title, Lead string
	Note        string
	Points      []string
	Figures     []figureView
}

// A figureView is a figure with its drawing; its Notes are those of both.
type figureView struct {
	ID                               string
	Title, Caption, Defined, Command string
	Notes                            []string
	Markup                           template.HTML
	Legend                           []chart.LegendEntry
	Hover                            any
	Wide                             bool
}

func newPageView(p *Page) (*pageView, error) {
	v := &pageView{
		Policy: policy(), Title: table.Printable(p.Title), Notes: table.PrintableAll(p.Notes),
		Style: template.CSS(style), Script: template.JS(script),
	}
	for _, f := range p.Facts {
		v.Facts = append(v.Facts, overview.Fact{Name: f.Name, Text: table.Printable(f.Text)})
	}
	for i := range p.Sections {
		s := &p.Sections[i]
		section := sectionView{ID: fmt.Sprintf("s%d", i+1), Title: table.Printable(s.Title), Lead: table.Printable(s.Lead), Points: table.PrintableAll(s.Points), Note: table.Printable(s.Note)}
		for k, f := range s.Figures {
			d, err := f.Body.Draw()
			if err != nil {
				return nil, fmt.Errorf("drawing %s: %w", f.Title, err)
			}
			section.Figures = append(section.Figures, figureView{
				ID: fmt.Sprintf("f%d-%d", i+1, k+1), Title: table.Printable(f.Title), Caption: f.Caption,
				Defined: f.Defined, Command: table.Printable(f.Command), Notes: table.PrintableAll(slices.Concat(f.Notes, d.Notes)),
				Markup: d.Markup, Legend: d.Legend, Hover: d.Hover, Wide: d.Wide,
			})
		}
		v.Sections = append(v.Sections, section)
	}
	return v, nil
}

// policy allows the style sheet and the script of this package, and nothing else.
func policy() string {
	return fmt.Sprintf("default-src 'none'; style-src %s; script-src %s; base-uri 'none'; form-action 'none'", hash(style), hash(script))
}

func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

package page

import (
	"cmp"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"slices"
	"sync"

	"github.com/sgtrace/sgtrace/analyze/page/chart"

	"github.com/sgtrace/sgtrace/analyze/table"
)

var (
	//go:embed assets/page.html
	pageText string
	//go:embed assets/report.css
	lightCSS string
	//go:embed assets/dark.css
	darkCSS string
	//go:embed assets/tip.js
	tipScript string
	//go:embed assets/charts.js
	chartScript string
	//go:embed assets/tables.js
	tableScript string
	//go:embed assets/range.js
	rangeScript string
	//go:embed assets/tiles.js
	tileScript string
	//go:embed assets/time.js
	timeScript string
	//go:embed assets/address.js
	addressScript string

	// What comes from traces is printable in the page.
	pageTemplate = parsed("page", functions, pageText)

	// functions are what templates call.
	functions = template.FuncMap{"printable": table.Printable, "explained": explained}
)

// parsed parses a template when it is first needed: most runs write no page.
func parsed(name string, calls template.FuncMap, text string) func() *template.Template {
	return sync.OnceValue(func() *template.Template { return template.Must(template.New(name).Funcs(calls).Parse(text)) })
}

// script is the parts of the script, in one block so that their names are their own. A
// later part uses what the earlier ones define.
var script = "\"use strict\";\n{\n" + tipScript + chartScript + tableScript + rangeScript + tileScript + timeScript + addressScript + "}\n"

// style is the style sheet. The dark colors stand in it twice: for readers whose
// system is dark, and for those who choose them. Paper is always light.
var style = lightCSS +
	"@media screen and (prefers-color-scheme: dark) { :root:not([data-theme=light]) {\n" + darkCSS + "} }\n" +
	"@media screen { :root[data-theme=dark] {\n" + darkCSS + "} }\n"

// A pageView is a page as the template has it.
type pageView struct {
	Page
	Policy   string
	Sections []sectionView
	Style    template.CSS
	Script   template.JS
}

type sectionView struct {
	Section
	Figures []figureView
}

// A figureView is a figure with its drawing; its Notes are those of both.
type figureView struct {
	Figure
	chart.Drawing
	Notes []string
}

func newPageView(p *Page) (*pageView, error) {
	v := &pageView{Page: *p, Policy: policy(), Style: template.CSS(style), Script: template.JS(script)}
	for i := range p.Sections {
		section := sectionView{Section: p.Sections[i]}
		section.ID = cmp.Or(section.ID, fmt.Sprintf("s%d", i+1))
		for k, f := range p.Sections[i].Figures {
			d, err := f.Body.Draw()
			if err != nil {
				return nil, fmt.Errorf("drawing %s: %w", f.Title, err)
			}
			drawn := figureView{*f, d, slices.Concat(f.Notes, d.Notes)}
			drawn.ID = cmp.Or(f.ID, fmt.Sprintf("f%d-%d", i+1, k+1))
			section.Figures = append(section.Figures, drawn)
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

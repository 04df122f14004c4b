package page

import (
	"cmp"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/gpu"
	"github.com/sgtrace/sgtrace/analyze/metric"
	"github.com/sgtrace/sgtrace/analyze/overview"
	"github.com/sgtrace/sgtrace/analyze/page/chart"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/telemetry"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/series"
)

// A Tile is a number on the first screen.
type Tile struct {
	Name   string
	Value  string
	Unit   string // small, after the value
	Detail string // one line
	State  State
	Href   string // link to details, such as "#latency"; "" if none
	// Follows names the number that the script shows for a range of time: "requests", "goodput", or the name of a
	// latency curve such as "TTFT". "" means the tile always shows the whole run.
	Follows string
}

// State says whether the number of a tile is good or bad.
type State string

const (
	Neutral State = "neutral" // unknown, or no objective to judge by
	Good    State = "good"
	Bad     State = "bad"
)

// Tiles returns the key numbers: how requests ended, their latencies, goodput, the highest logged load, device
// utilization, and whether clocks can be trusted.
func Tiles(o *overview.Overview) []Tile {
	var list []Tile
	if o.Requests != nil {
		list = append(list, outcomes(o))
		for _, m := range metric.At(metric.Headline) {
			list = append(list, latencyTile(o, m))
		}
	}
	if o.Goodput != nil {
		list = append(list, goodputTile(o.Goodput))
	}
	if o.Requests == nil && o.Logged != nil {
		list = append(list, loggedTiles(o.Logged)...)
	}
	if o.GPUs != nil && len(o.GPUs.GPUs) > 0 {
		list = append(list, busyTile(o.GPUs))
	}
	if len(o.Clocks) > 0 {
		list = append(list, clockTile(o.Clocks))
	}
	return list
}

// outcomes returns the number of requests by status.
func outcomes(o *overview.Overview) Tile {
	t := Tile{Name: "Requests", Value: words.Thousands(int64(len(o.Requests.Requests))), State: Good, Href: "#requests", Follows: "requests"}
	var parts []string
	for status, n := range o.Statuses {
		if n > 0 {
			parts = append(parts, words.Thousands(int64(n))+" "+request.Status(status).String())
		}
	}
	t.Detail = strings.Join(parts, ", ")
	if o.Statuses[request.Failed] > 0 {
		t.State = Bad
	} else if len(o.Requests.Requests) == 0 {
		t.State = Neutral
	}
	return t
}

// latencyTile returns a latency metric of finished requests.
func latencyTile(o *overview.Overview, m *metric.Metric) Tile {
	t := Tile{Name: m.Title, Value: "–", Detail: "of no request known", State: Neutral, Href: "#latency"}
	seen := o.UserLatencies()
	for i := range seen {
		if l := &seen[i]; (l.Metric == m.Name || l.Metric == m.AsSeen().Name) && l.N > 0 {
			t.Name = overview.LatencyName(l)
			t.Value, t.Unit, t.Detail = words.Nearly(l.P50), "p50", "p99 "+words.Nearly(l.P99)
			t.Follows = t.Name
		}
	}
	return t
}

// loggedTiles returns the highest value of each logged load metric, with its rank.
func loggedTiles(l *telemetry.Logged) (list []Tile) {
	for _, x := range []struct {
		name   string
		metric series.MetricID
	}{{"Running", series.Running}, {"Waiting", series.Queued}, {"KV cache", series.KVUsage}} {
		most, at := math.Inf(-1), -1
		for i := range l.Ranks {
			if v := l.Ranks[i].Most(x.metric); v > most {
				most, at = v, i
			}
		}
		if at < 0 {
			continue
		}
		name := x.name
		if pool := l.Ranks[at].Pool(); x.metric == series.KVUsage && pool != name {
			name = strings.ToUpper(pool[:1]) + pool[1:]
		}
		_, unit, size := axisOf("", l.Set.Metric(x.metric).Unit)
		list = append(list, Tile{Name: name, Value: chart.InUnit(unit, most/size), Unit: "at most", Detail: "on " + l.Ranks[at].Where.String(), State: Neutral, Href: "#time"})
	}
	return list
}

// busyTile returns the share of time that devices were busy.
func busyTile(g *gpu.GPUs) Tile {
	t := Tile{Name: metric.Busy.Long, State: Neutral, Href: "#gpus"}
	share := func(d *gpu.GPU) float64 { return distribution.Fraction(d.Busy(), d.Length()) }
	t.Value = chart.InUnit(table.Share, wholePercent(distribution.Fraction(g.Total((*gpu.GPU).Busy), g.Length())))
	least := slices.MinFunc(g.GPUs, func(a, b gpu.GPU) int { return cmp.Compare(share(&a), share(&b)) })
	if len(g.GPUs) > 1 {
		t.Unit = "mean"
		t.Detail = fmt.Sprintf("least: %s, %s", chart.InUnit(table.Share, wholePercent(share(&least))), least.Rank)
	} else {
		t.Detail = least.Rank
	}
	return t
}

// wholePercent rounds a share to whole percent.
func wholePercent(share float64) float64 { return float64(int(100*share+0.5)) / 100 }

// clockTile says whether times on different hosts can be compared.
func clockTile(clocks []overview.HostClock) Tile {
	t := Tile{Name: "Clocks", Value: "trusted", State: Good, Href: "#inputs"}
	alone, worst := 0, int64(0)
	for i := range clocks {
		if !clocks[i].Trusted() {
			alone++
		}
		worst = max(worst, clocks[i].Bound)
	}
	hosts := words.Counted(len(clocks), "host")
	switch {
	case alone > 0 && len(clocks) > 1:
		t.Value, t.State = "not trusted", Bad
		t.Detail = fmt.Sprintf("%d of %s taken as they are", alone, hosts)
	case worst > 0:
		t.Detail = fmt.Sprintf("%s, within %s", hosts, words.Nearly(worst))
	default:
		t.Detail = hosts
	}
	return t
}

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

	// Text from traces is made printable by the template.
	pageTemplate = parsed("page", functions, pageText)

	// functions are available to templates.
	functions = template.FuncMap{"printable": table.Printable, "explained": explained}
)

// parsed parses a template on first use, because most runs write no page.
func parsed(name string, calls template.FuncMap, text string) func() *template.Template {
	return sync.OnceValue(func() *template.Template { return template.Must(template.New(name).Funcs(calls).Parse(text)) })
}

// script joins the parts of the script in one block, which keeps their names local. Later parts use definitions of
// earlier ones.
var script = "\"use strict\";\n{\n" + tipScript + chartScript + tableScript + rangeScript + tileScript + timeScript + addressScript + "}\n"

// style is the style sheet. It has the dark colors twice: for readers whose system is dark, and for those who choose
// them. Print is always light.
var style = lightCSS +
	"@media screen and (prefers-color-scheme: dark) { :root:not([data-theme=light]) {\n" + darkCSS + "} }\n" +
	"@media screen { :root[data-theme=dark] {\n" + darkCSS + "} }\n"

// A pageView is a page in the form that the template needs.
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

// A figureView is a figure with its drawing; Notes combines both their notes.
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

// policy allows only the style sheet and the script of this package.
func policy() string {
	return fmt.Sprintf("default-src 'none'; style-src %s; script-src %s; base-uri 'none'; form-action 'none'", hash(style), hash(script))
}

func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

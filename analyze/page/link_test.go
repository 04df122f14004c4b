package page

import (
	"fmt"
	"html"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/overview"
	"github.com/sgtrace/sgtrace/golden/simulator"
)

// planted is the overview of the incident, which tests share.
var planted *overview.Overview

// incident returns a simulated incident with a slow rank, and a new page of it.
func incident(t *testing.T) (*overview.Overview, Page) {
	t.Helper()
	if planted == nil {
		planted = plant(t)
	}
	p, err := Overview(planted, made, nil)
	if err != nil {
		t.Fatal(err)
	}
	return planted, p
}

func plant(t *testing.T) *overview.Overview {
	t.Helper()
	config := simulator.DefaultConfig(1)
	config.Straggler = simulator.Straggler{TP: 1, Delay: 4 * time.Millisecond}
	return overview.New(overview.Input{Inputs: []string{"otel.jsonl"}, Requests: simulate(t, config)})
}

var (
	anchors = regexp.MustCompile(` id="([^"]*)"`)
	hrefs   = regexp.MustCompile(` href="#([^"]*)"`)
)

// Every link in the page has exactly one target.
func TestLinksLeadSomewhere(t *testing.T) {
	_, p := incident(t)
	if n := checkLinks(t, p); n < 20 {
		t.Errorf("only %d links", n)
	}
}

// checkLinks checks that every link in a page has exactly one target, and returns the number of links.
func checkLinks(t *testing.T, p Page) int {
	t.Helper()
	text := render(t, p)
	known := map[string]bool{}
	for _, m := range anchors.FindAllStringSubmatch(text, -1) {
		if known[m[1]] {
			t.Errorf("two elements are called %s", m[1])
		}
		known[m[1]] = true
	}
	targets := hrefs.FindAllStringSubmatch(text, -1)
	for _, m := range targets {
		if !known[html.UnescapeString(m[1])] {
			t.Errorf("nothing is called %s", m[1])
		}
	}
	return len(targets)
}

// A finding links to a figure, and its evidence to the row with its number.
func TestFindingsLeadToRows(t *testing.T) {
	o, p := incident(t)
	text := html.UnescapeString(render(t, p))
	rows, charts := 0, 0
	l := newLinks(p.Sections[2:])
	for i := range o.Findings {
		f := &o.Findings[i]
		if !strings.Contains(text, fmt.Sprintf(`id="finding-%d"`, i+1)) {
			t.Errorf("finding %d has no anchor", i+1)
		}
		for _, link := range l.ofFinding(f) {
			if strings.HasPrefix(link.Text, "chart: ") {
				charts++
			}
		}
		for k := range f.Evidence {
			e := &f.Evidence[k]
			linked := l.ofEvidence(e)
			row := linked[len(linked)-1]
			if row.Text != "row" {
				continue
			}
			rows++
			from := strings.Index(text, `<tr id="`+strings.TrimPrefix(row.Href, "#")+`"`)
			if from < 0 {
				t.Errorf("%s: there is no row %s", e.Text, row.Href)
				continue
			}
			markup, _, _ := strings.Cut(text[from:], "</tr>")
			for _, key := range e.Row {
				if !strings.Contains(markup, key.Text) {
					t.Errorf("%s: the row is %s", e.Text, markup)
				}
			}
		}
	}
	if rows < 2 || charts < 2 {
		t.Errorf("%d links to rows and %d to charts", rows, charts)
	}
}

// Every kind of finding has a chart if the input is requests and such a chart exists.
func TestChartOfFinding(t *testing.T) {
	decode := &Figure{ID: "decode", Shows: []finding.Kind{finding.Limit}, Role: "decode"}
	whole := &Figure{ID: "all", Shows: []finding.Kind{finding.Limit}}
	l := newLinks([]Section{{Figures: []*Figure{whole, decode}}})
	f := finding.Finding{Kind: finding.Limit}
	if got := l.chart(&f); got != whole {
		t.Errorf("everywhere: %v", got)
	}
	f.At.Scope = 1
	if got := l.chart(&f); got != whole {
		t.Errorf("of another role: %v", got)
	}
	f.Kind = finding.Errors
	if got := l.chart(&f); got != nil {
		t.Errorf("of another kind: %v", got)
	}
}

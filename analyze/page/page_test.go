package page

import (
	"encoding/json"
	"html"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sgtrace/sgtrace/analyze/finders"
	"github.com/sgtrace/sgtrace/analyze/gpu"
	"github.com/sgtrace/sgtrace/analyze/load"
	"github.com/sgtrace/sgtrace/analyze/overview"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/golden/simulator"
	"github.com/sgtrace/sgtrace/testkit/testinput"
)

func TestPageIsTheSameEveryTime(t *testing.T) {
	one, two := render(t, samplePage(t)), render(t, samplePage(t))
	if one != two {
		at := 0
		for one[at] == two[at] {
			at++
		}
		t.Errorf("two pages about the same differ at %d: %q", at, one[max(0, at-80):at+80])
	}
}

// The content security policy matches the page: if a template changed one byte of
// the script, browsers would refuse it.
func TestPolicyIsOfWhatThePageHas(t *testing.T) {
	page := render(t, Page{Title: "empty"})
	for _, of := range []struct{ directive, from, to string }{
		{"style-src", "<style>", "</style>"},
		{"script-src", "<script>", "</script>"},
	} {
		_, rest, _ := strings.Cut(page, of.from)
		text, _, _ := strings.Cut(rest, of.to)
		want := of.directive + " " + hash(text)
		policy := regexp.MustCompile(`Content-Security-Policy" content="([^"]*)"`).FindStringSubmatch(page)
		if len(text) < 100 || policy == nil || !strings.Contains(strings.ReplaceAll(policy[1], "&#39;", "'"), strings.ReplaceAll(want, "+", "&#43;")) {
			t.Errorf("the policy %q lacks %q, which is of %d bytes", policy, want, len(text))
		}
	}
}

var (
	tags       = regexp.MustCompile(`<([a-zA-Z]+)((?:\s+[a-zA-Z:-]+(?:="[^"]*")?)*)\s*/?>`)
	values     = regexp.MustCompile(`"[^"]*"`)
	attributes = regexp.MustCompile(`\s([a-zA-Z:-]+)(?:=|\s|$)`)
)

// No name becomes an element or an attribute: the page has only its own markup.
func TestHostileNamesAreText(t *testing.T) {
	page := render(t, samplePage(t))
	if n := strings.Count(page, "hacked"); n < 100 {
		t.Fatalf("hostile names are in the page %d times only", n)
	}
	if scripts, closed := strings.Count(page, "<script"), strings.Count(page, "</script>"); scripts != closed || strings.Contains(page, "<!--") {
		t.Errorf("%d scripts are opened and %d closed", scripts, closed)
	}
	for _, tag := range tags.FindAllStringSubmatch(page, -1) {
		switch tag[1] {
		case "img", "iframe", "b", "object", "embed", "link", "base":
			t.Fatalf("the page has %s", tag[0])
		}
		for _, a := range attributes.FindAllStringSubmatch(values.ReplaceAllString(tag[2], ""), -1) {
			if strings.HasPrefix(a[1], "on") || a[1] == "style" || a[1] == "src" || a[1] == "srcdoc" {
				t.Fatalf("the page has %s", tag[0])
			}
		}
	}
	for _, forbidden := range []string{"http:", "https:", "url(", "@import", "\u2028", "\u202e"} {
		if rest := strings.ReplaceAll(page, "http://www.w3.org/2000/svg", ""); strings.Contains(rest, forbidden) {
			t.Errorf("the page has %q", forbidden)
		}
	}
}

// The data for the script is JSON, and contains the names unchanged.
func TestHoverDataHasNames(t *testing.T) {
	page := render(t, samplePage(t))
	blocks := regexp.MustCompile(`(?s)<script type="application/json" class="hover">(.*?)</script>`).FindAllStringSubmatch(page, -1)
	found := map[string]bool{}
	for _, block := range blocks {
		var data struct {
			Rows   []string
			Groups []struct{ Names []string }
		}
		if err := json.Unmarshal([]byte(block[1]), &data); err != nil {
			t.Fatalf("%v in %.200s", err, block[1])
		}
		for _, name := range data.Rows {
			found[name] = true
		}
		for _, g := range data.Groups {
			for _, name := range g.Names {
				found[name] = true
			}
		}
	}
	for _, name := range hostile {
		if want := table.Printable(name); !found[want] {
			t.Errorf("no hover data has %q", want)
		}
	}
}

var made = Provenance{Version: "v1.2.3", Command: "sgtrace report -o page.html dumps/otel.jsonl", Time: time.Unix(1_787_000_000, 0)}

// The page of an overview contains everything in the overview.
func TestOverview(t *testing.T) {
	o := overview.New(overview.Input{Inputs: []string{"dumps/otel.jsonl"}, Requests: simulate(t, simulator.DefaultConfig(1))})
	p, err := Overview(o, made, nil)
	if err != nil {
		t.Fatal(err)
	}
	page := html.UnescapeString(regexp.MustCompile(`</?(?:abbr|a)\b[^>]*>`).ReplaceAllString(render(t, p), ""))
	says := func(text string) {
		if !strings.Contains(page, text) {
			t.Errorf("the page does not say %q", text)
		}
	}
	if len(o.Findings) < 2 || len(o.Facts()) < 4 {
		t.Fatalf("%d findings and %d facts are no overview of an incident", len(o.Findings), len(o.Facts()))
	}
	says("sgtrace report on otel.jsonl")
	for _, f := range o.Facts() {
		says(f.Text)
	}
	for _, d := range o.Warnings {
		says(d.Text)
	}
	for _, f := range o.Findings {
		says(f.Text)
		says(f.CostText())
		says(f.Command(slices.Concat(o.Select, o.Inputs)))
		for _, e := range f.Evidence {
			says(e.Text)
		}
	}
	says("sgtrace v1.2.3, 2026-08-17 20:53 UTC")
	says("sgtrace report -o page.html dumps/otel.jsonl")
	for i := range o.Changes.List {
		says(o.Changes.List[i].Sentence())
	}
}

// Pages are not larger than promised.
func TestPageSize(t *testing.T) {
	const most = 3 << 20
	set := readDump(t, testinput.ReadZstd(t, testinput.Shared(t, "data", "otel", "d_big_tp2.jsonl.zst")))
	timeline, err := load.New(set, 0)
	if err != nil {
		t.Fatal(err)
	}
	page := render(t, Page{Sections: Requests(measured(set), timeline, Source{})})
	if len(page) > most {
		t.Errorf("%d requests make a page of %d bytes", len(set.Requests), len(page))
	}
}

// A dump without a finished request, and ranks without kernels, make a page that says so.
func TestNothingToDraw(t *testing.T) {
	config := simulator.DefaultConfig(1)
	config.Requests = 1
	set := simulate(t, config)
	set.Requests = nil
	timeline, err := load.New(set, 0)
	if err != nil {
		t.Fatal(err)
	}
	sections := Requests(measured(set), timeline, Source{})
	page := render(t, Page{Sections: append(sections, Ranks(&finders.Measured{GPUs: &gpu.GPUs{}}, Source{})...)})
	for _, want := range []string{"No kernel or copy was recorded", "Changes were not searched"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	if strings.Contains(page, "NaN") {
		t.Error("the page has NaN")
	}
}

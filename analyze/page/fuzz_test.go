package page

import (
	"encoding/binary"
	"encoding/json"
	"html"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/finders"
	"github.com/sgtrace/sgtrace/analyze/page/chart"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/overview"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/trace"
)

// fuzzPage makes a page with every figure from names and numbers: any number may be
// any duration, time, or share.
func fuzzPage(names []string, numbers []int64) Page {
	next := 0
	number := func() int64 {
		next++
		return numbers[next%len(numbers)]
	}
	duration := func() int64 { n := number(); return max(n, -n, 0) }
	share := func() float64 { return float64(number()%1001) / 1000 }
	src := Source{Inputs: names}
	waits := make([][]int64, len(names))
	dots, lines := &chart.Scatter{Value: "E2E"}, &chart.Percentiles{}
	bars := &chart.Bars{Unit: table.Duration, Parts: []chart.Part{{Name: names[0], Color: 1}, {Name: "rest", Color: 2}}}
	panels := &chart.Panels{From: 1000, To: trace.Time(1000 + duration()/2), Times: []trace.Time{1000, trace.Time(1000 + duration()/2)}}
	var findings []finding.Finding
	for i, name := range names {
		for range names {
			waits[i] = append(waits[i], duration())
		}
		values := []int64{duration(), duration(), duration()}
		slices.Sort(values)
		lines.Lines = append(lines.Lines, chart.Distribution{Name: name, Values: values, Color: i})
		dots.Groups = append(dots.Groups, chart.Group{Name: name, Color: i, All: 1, Dots: []chart.Dot{{Name: name, Time: trace.Time(duration()), Dur: duration()}}})
		bars.Rows = append(bars.Rows, chart.Bar{Name: name, Values: []float64{float64(number()), float64(number())}, Texts: []string{name, ""}, Total: name[:min(len(name), 30)]})
		values2 := []float64{share(), math.NaN()}
		panels.Panels = append(panels.Panels, chart.Panel{Title: name, Unit: []table.Unit{table.Duration, table.Share, table.Number}[i%3], Curves: []chart.Curve{{Name: name, Color: i, Values: values2}}})
		panels.Marks = append(panels.Marks, chart.Mark{First: 1000, Time: trace.Time(1000 + duration()/2), Last: 2000, Label: "1", Text: name})
		findings = append(findings, finding.Finding{Kind: finding.Tail, Text: name, Evidence: []finding.Evidence{{Text: name}}, Show: [][]string{{name}}})
	}
	gpus := sampleGPUs(2, len(names), func(i int) string { return names[i] })
	for i := range gpus.Kernels {
		k := &gpus.Kernels[i]
		k.Summary.Total, k.Summary.P50, k.RelTotal = duration(), duration(), share()*10
	}
	p := Page{Title: names[0], Subtitle: names[0], Tiles: []Tile{{Name: "Requests", Value: names[0], Detail: names[0], Href: "#findings"}}, Sections: []Section{
		Summary(lookedAt(findings, names), src, newLinks(nil)), {Title: "read", Facts: []overview.Fact{{Name: "read", Text: names[0]}}, Notes: names},
	}}
	p.Sections = append(p.Sections, Ranks(&finders.Measured{GPUs: gpus}, src)...)
	p.Sections = append(p.Sections, Section{Title: names[0], Lead: names[0], Points: names, Note: names[0], Figures: []*Figure{
		WaitMatrix(names, waits, src),
		{Title: names[0], Command: src.Command(names[0]), Notes: names, Body: dots},
		{Title: "curves", Body: lines}, {Title: "bars", Body: bars}, {Title: "panels", Body: panels}, {Title: "lateness", Body: heatOf(names)},
	}})
	return p
}

// FuzzPage renders pages with arbitrary names and numbers: the result is
// deterministic, has all names as text only, and no number that browsers cannot parse.
func FuzzPage(f *testing.F) {
	for i, name := range hostile {
		f.Add(name+"\n"+hostile[(i+1)%len(hostile)]+"\nTP0", []byte("\x00\x00\x00\x00\x00\x00\x00\x01\xff\xff\xff\xff\xff\xff\xff\x7f"))
		f.Add(name, []byte{})
	}
	known := markup(f, render(f, samplePage(f)))
	f.Fuzz(func(t *testing.T, text string, data []byte) {
		var names []string
		for _, name := range strings.SplitN(text, "\n", 5) {
			names = append(names, name[:min(len(name), 400)])
		}
		numbers := []int64{0}
		for ; len(data) >= 8 && len(numbers) < 40; data = data[8:] {
			numbers = append(numbers, int64(binary.LittleEndian.Uint64(data)))
		}
		page := render(t, fuzzPage(names, numbers))
		if again := render(t, fuzzPage(names, numbers)); again != page {
			t.Fatal("the page is different the second time")
		}
		for what := range markup(t, page) {
			if !known[what] {
				t.Errorf("the page has %s", what)
			}
		}
		all := html.UnescapeString(page)
		for _, name := range names {
			if !strings.Contains(all, table.Printable(name)) {
				t.Errorf("the page does not have %q", name)
			}
		}
	})
}

var (
	oneTag    = regexp.MustCompile(`^<(/?)([a-zA-Z][a-zA-Z0-9]*)((?:\s+[a-zA-Z0-9:-]+(?:="[^"<>]*")?)*)\s*(/?)>`)
	attribute = regexp.MustCompile(`([a-zA-Z0-9:-]+)(?:="([^"]*)")?`)
	coords    = regexp.MustCompile(`^(x|y|x1|x2|y1|y2|d|width|height|cx|cy|r|points|transform|viewBox)$`)
)

// markup returns the elements of a page with their attribute names. It checks that elements
// are closed in order, that each < begins one, and that the data for scripts is valid.
func markup(t testing.TB, page string) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	var open []string
	page = strings.TrimPrefix(page, "<!doctype html>")
	for {
		at := strings.IndexByte(page, '<')
		if at < 0 {
			break
		}
		page = page[at:]
		m := oneTag.FindStringSubmatch(page)
		if m == nil {
			t.Fatalf("no element: %.200q", page)
		}
		page = page[len(m[0]):]
		name := m[2]
		if m[1] == "/" {
			if len(open) == 0 || open[len(open)-1] != name {
				t.Fatalf("</%s> within %v", name, open)
			}
			open = open[:len(open)-1]
			continue
		}
		for _, a := range attribute.FindAllStringSubmatch(m[3], -1) {
			found[name+" "+a[1]] = true
			if coords.MatchString(a[1]) && regexp.MustCompile(`NaN|Inf|e\+`).MatchString(a[2]) {
				t.Fatalf("%.200q is no place", m[0])
			}
		}
		found[name] = true
		switch {
		case name == "script" || name == "style":
			content, rest, _ := strings.Cut(page, "</"+name+">")
			if page = rest; strings.Contains(m[3], "application/json") && !json.Valid([]byte(content)) {
				t.Fatalf("no data: %.300s", content)
			}
		case m[4] != "/" && name != "meta" && name != "input":
			open = append(open, name)
		}
	}
	if len(open) > 0 {
		t.Fatalf("%v are not closed", open)
	}
	return found
}

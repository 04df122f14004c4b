package page

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/finders"
	"github.com/sgtrace/sgtrace/analyze/page/chart"
	"github.com/sgtrace/sgtrace/testkit/readback"

	"github.com/sgtrace/sgtrace/analyze/load"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/golden/simulator"
)

// browser is shared by all tests; nil until the first one needs it.
var browser *readback.Browser

func TestMain(m *testing.M) {
	code := m.Run()
	if browser != nil {
		if err := browser.Close(); err != nil {
			fmt.Fprintln(os.Stderr, "closing the browser:", err)
		}
	}
	os.Exit(code)
}

// browse opens a new page and returns a function that shows a report there. Without
// a browser, the test is skipped, visibly.
func browse(t *testing.T) (b *readback.Browser, open func(Page)) {
	t.Helper()
	path, err := readback.FindChromium()
	if err != nil {
		t.Skip(err)
	}
	if browser == nil {
		browser, err = readback.StartChromium(path)
		must(t, err)
	}
	b = browser
	must(t, b.NewPage())
	t.Cleanup(func() {
		for _, p := range b.TakeProblems() {
			t.Errorf("the browser complains: %.600s", p)
		}
	})
	dir := t.TempDir()
	return b, func(p Page) {
		t.Helper()
		file := filepath.Join(dir, "report.html")
		if err := os.WriteFile(file, []byte(render(t, p)), 0o600); err != nil {
			t.Fatal(err)
		}
		must(t, b.Size(1280, 900))
		must(t, b.Media("", "light"))
		must(t, b.Open("file://"+file))
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// eval evaluates a JavaScript expression in the page.
func eval[T any](t *testing.T, b *readback.Browser, format string, args ...any) (v T) {
	t.Helper()
	must(t, b.Eval(fmt.Sprintf(format, args...), &v))
	return v
}

func want[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// A page with hostile names has all its figures, runs no code from names, and shows
// them literally, under the pointer, too.
func TestHostileNamesInBrowser(t *testing.T) {
	b, open := browse(t)
	p := samplePage(t)
	open(p)
	figures := 0
	for _, s := range p.Sections {
		figures += len(s.Figures)
	}
	want(t, "figures", eval[int](t, b, `document.querySelectorAll("figure").length`), figures)
	want(t, "scripts", eval[int](t, b, `document.querySelectorAll("script:not([type='application/json'])").length`), 1)
	text := eval[string](t, b, `document.body.innerText`)
	for _, name := range hostile {
		if !strings.Contains(text, table.Printable(name)) {
			t.Errorf("the page does not show %q", name)
		}
	}
	// Point at every cell, dot, piece, mark, and name.
	tips := eval[int](t, b, `(() => {
		let shown = 0;
		for (const e of document.querySelectorAll(".for-wide svg, .for-wide g, .for-wide text")) {
			const box = e.getBoundingClientRect();
			e.dispatchEvent(new PointerEvent("pointermove", { bubbles: true, clientX: box.x + box.width / 2, clientY: box.y + box.height / 2 }));
			const tip = document.getElementById("tip");
			if (!tip.hidden && tip.textContent.includes("hacked")) shown++;
			if (tip.querySelector("img, svg, iframe, a, script, style")) return -1;
		}
		return shown;
	})()`)
	if tips < 100 {
		t.Errorf("%d tips show hostile names", tips)
	}
	want(t, "window.hacked", eval[string](t, b, `typeof window.hacked`), "undefined")
	want(t, "elements of names", eval[int](t, b, `document.querySelectorAll("img, iframe, main a, main b").length`), 0)
}

func TestTablesInBrowser(t *testing.T) {
	b, open := browse(t)
	names := []string{"b", "a", "d", "c", "f", "e", "h", "g", "j", "i", "k"}
	gpus := sampleGPUs(1, len(names), func(i int) string { return names[i] })
	for i := range gpus.Kernels {
		gpus.Kernels[i].RelTotal = []float64{-1, 2, 10, 9}[i%4]
	}
	kernels := gpus.KernelReport()
	open(Page{Title: "tables", Sections: []Section{{Title: "t", Figures: []*Figure{TableOf(kernels, 0, "", "")}}}})
	column := func(name string) string {
		return eval[string](t, b, `Array.from(document.querySelectorAll("tbody tr:not([hidden])"), r => r.cells[Array.from(document.querySelectorAll("th"), h => h.textContent).findIndex(h => h.startsWith(%q))].textContent).join(" ")`, name)
	}
	click := func(name string) {
		must(t, b.Eval(fmt.Sprintf(`Array.from(document.querySelectorAll("th button")).find(e => e.textContent.startsWith(%q)).click()`, name), nil))
	}
	before := column("kernel")
	want(t, "order of the report", before, strings.Join(names, " "))
	click("of median")
	want(t, "numbers down, unknown last", column("of median"), "10.0 10.0 10.0 9.00 9.00 2.00 2.00 2.00 - - -")
	click("of median")
	want(t, "numbers up, unknown last", column("of median"), "2.00 2.00 2.00 9.00 9.00 10.0 10.0 10.0 - - -")
	want(t, "equal ones stay in order", column("kernel"), "a e i c g d h k b f j")
	want(t, "aria-sort", eval[string](t, b, `document.querySelector("th[aria-sort]").getAttribute("aria-sort")`), "ascending")
	click("of median")
	want(t, "order of the report again", column("kernel"), before)
	click("kernel")
	want(t, "texts", column("kernel"), "a b c d e f g h i j k")
	must(t, b.Eval(`{ const f = document.querySelector(".filter"); f.value = "G"; f.dispatchEvent(new Event("input")); }`, nil))
	want(t, "filter", column("kernel"), "g")
}

// The theme is the system's until the reader chooses one, and prints are white.
func TestThemesInBrowser(t *testing.T) {
	b, open := browse(t)
	open(samplePage(t))
	background := func() string { return eval[string](t, b, `getComputedStyle(document.documentElement).backgroundColor`) }
	const white, dark = "rgb(255, 255, 255)", "rgb(18, 22, 28)"
	want(t, "light system", background(), white)
	must(t, b.Media("", "dark"))
	want(t, "dark system", background(), dark)
	must(t, b.Media("print", "dark"))
	want(t, "paper of a dark system", background(), white)
	must(t, b.Media("", "dark"))
	toggle := func() { must(t, b.Eval(`document.getElementById("theme").click()`, nil)) }
	toggle()
	want(t, "light chosen", background(), white)
	must(t, b.Media("", "light"))
	toggle()
	want(t, "dark chosen", background(), dark)
	must(t, b.Media("print", "light"))
	want(t, "paper of a dark theme", background(), white)
	must(t, b.Media("", "light"))
	toggle()
	want(t, "system again", background(), white)
	var pdf struct{ Data string }
	must(t, b.Call("Page.printToPDF", nil, &pdf))
	if !strings.HasPrefix(pdf.Data, "JVBERi0") || len(pdf.Data) < 100_000 { // %PDF-
		t.Errorf("printed are %d bytes: %.20s", len(pdf.Data), pdf.Data)
	}
}

// Legends switch curves off, arrow keys move between points, and the pointer shows values.
func TestFiguresInBrowser(t *testing.T) {
	b, open := browse(t)
	values := make([]int64, 1000)
	for i := range values {
		values[i] = int64(i+1) * 1_000_000
	}
	heat := &chart.Heatmap{Rows: []string{"r0", "r1"}, Columns: []string{"c0", "c1"}, Cells: [][]chart.HeatCell{{{Value: 1, Text: "one"}, {Value: 2, Text: "two"}}, {{Value: 3, Text: "three"}, {Value: 4, Text: "four"}}}}
	open(Page{Title: "figures", Sections: []Section{{Title: "f", Figures: []*Figure{
		{Title: "curves", Body: &chart.Percentiles{Lines: []chart.Distribution{{Name: "thousand", Values: values}, {Name: "hundred", Values: values[:100], Color: 1}}}},
		{Title: "heat", Body: heat},
	}}}})
	tip := func() string {
		return eval[string](t, b, `document.getElementById("tip").hidden ? "" : document.getElementById("tip").innerText`)
	}
	y := eval[[]float64](t, b, `(() => {
		const data = JSON.parse(document.querySelector("script.hover").textContent);
		const view = document.querySelector("svg.view").getBoundingClientRect();
		return [view.x + view.width / 2, view.y + data.at[data.labels.indexOf("p90")] * view.height];
	})()`)
	must(t, b.Point(y[0], y[1]))
	want(t, "under the pointer", strings.Join(strings.Fields(tip()), " "), "p90 thousand 900ms hundred 90ms")
	must(t, b.Eval(`document.querySelectorAll(".legend button")[0].click()`, nil))
	want(t, "a curve that is off", eval[string](t, b, `getComputedStyle(document.querySelector(".plot [data-s='0']")).display`), "none")
	must(t, b.Point(y[0]+1, y[1]))
	want(t, "without it", strings.Join(strings.Fields(tip()), " "), "p90 hundred 90ms")
	must(t, b.Point(2, 2))
	want(t, "elsewhere", tip(), "")
	press := func(key string) {
		for _, kind := range []string{"keyDown", "keyUp"} {
			must(t, b.Call("Input.dispatchKeyEvent", map[string]any{"type": kind, "key": key}, nil))
		}
	}
	must(t, b.Eval(`document.querySelector("#f1-2 .for-wide svg").focus({ preventScroll: true })`, nil))
	for _, step := range []struct{ key, want string }{{"ArrowRight", "r0 c0 one"}, {"ArrowRight", "r0 c1 two"}, {"ArrowDown", "r1 c1 four"}, {"ArrowDown", "r1 c1 four"}, {"ArrowLeft", "r1 c0 three"}} {
		press(step.key)
		want(t, step.key, strings.Join(strings.Fields(tip()), " "), step.want)
	}
	press("Escape")
	want(t, "Escape", tip(), "")
}

// layouts are pages whose labels need different amounts of space.
func layouts(t *testing.T) map[string]Page {
	pages := map[string]Page{"hostile": samplePage(t)}
	for _, n := range []int{2, 8, 64} {
		long := func(i int) string {
			return fmt.Sprintf("void cutlass::device_kernel<sm90_xmma_gemm_bf16_%d_%s>(Params)", i, strings.Repeat("WW", 2*i))
		}
		gpus := sampleGPUs(n, 30, long)
		waits := make([][]int64, n)
		var ranks []string
		for i := range waits {
			waits[i] = make([]int64, n)
			waits[i][n-1] = 123_456_789
			ranks = append(ranks, gpus.GPUs[i].Rank)
		}
		sections := append(Ranks(&finders.Measured{GPUs: gpus}, Source{}), Section{Title: "waits", Figures: []*Figure{WaitMatrix(ranks, waits, Source{})}})
		pages[fmt.Sprintf("%d ranks", n)] = Page{Title: "ranks", Sections: sections}
	}
	config := simulator.DefaultConfig(1)
	config.Mode, config.Unified = simulator.Unified, simulator.Parallel{TP: 2, PP: 2, DP: 4}
	set := simulate(t, config)
	timeline, err := load.New(set, 0)
	must(t, err)
	pages["16 ranks of a server"] = Page{Title: "requests", Sections: Requests(measured(set), timeline, Source{})}
	return pages
}

// Labels neither overlap nor leave their drawing, and a page is no wider than its window.
func TestLayoutInBrowser(t *testing.T) {
	b, open := browse(t)
	for name, page := range layouts(t) {
		open(page)
		for _, width := range []int{400, 800, 1280, 2500} {
			must(t, b.Size(width, 900))
			want(t, fmt.Sprintf("%s at %d: is wider by", name, width), eval[int](t, b, `Math.max(0, document.documentElement.scrollWidth - innerWidth)`), 0)
		}
		for _, width := range []int{400, 1280} {
			must(t, b.Size(width, 900))
			for _, bad := range eval[[]string](t, b, `(() => {
			const bad = [];
			for (const svg of document.querySelectorAll(".plot svg[role=img]")) {
				const frame = svg.getBoundingClientRect();
				const boxes = Array.from(svg.querySelectorAll("text"), e => [e.textContent, e.getBoundingClientRect()]).filter(([, r]) => r.width > 0);
				const figure = svg.closest("figure").id;
				boxes.forEach(([text, r], i) => {
					if (r.left < frame.left - 1 || r.right > frame.right + 1 || r.top < frame.top - 1 || r.bottom > frame.bottom + 1)
						bad.push(figure + ": outside: " + text);
					for (const [other, q] of boxes.slice(i + 1)) {
						const wide = Math.min(r.right, q.right) - Math.max(r.left, q.left), high = Math.min(r.bottom, q.bottom) - Math.max(r.top, q.top);
						if (wide > 1 && high > 4) bad.push(figure + ": " + text + " and " + other + " overlap by " + wide.toFixed(1) + " x " + high.toFixed(1));
					}
				});
			}
			return bad.slice(0, 20);
		})()`) {
				t.Errorf("%s at %d: %s", name, width, bad)
			}
		}
	}
}

// The parts of a finding do not overlap, with a what-if result as well.
func TestFindingsInBrowser(t *testing.T) {
	b, open := browse(t)
	open(samplePage(t))
	for _, width := range []int{400, 1280} {
		must(t, b.Size(width, 900))
		want(t, fmt.Sprintf("at %d: parts of findings that overlap", width), eval[int](t, b, `(() => {
			let bad = 0;
			for (const f of document.querySelectorAll(".finding")) {
				const boxes = Array.from(f.children, e => e.getBoundingClientRect()).filter(r => r.width > 0);
				boxes.forEach((r, i) => {
					for (const q of boxes.slice(i + 1))
						if (Math.min(r.right, q.right) - Math.max(r.left, q.left) > 1 && Math.min(r.bottom, q.bottom) - Math.max(r.top, q.top) > 1) bad++;
				});
			}
			return document.querySelectorAll(".finding .without").length ? bad : -1;
		})()`), 0)
	}
}

// Without scripts, everything is there except what scripts add.
func TestWithoutScriptInBrowser(t *testing.T) {
	b, open := browse(t)
	must(t, b.Call("Emulation.setScriptExecutionDisabled", map[string]any{"value": true}, nil))
	open(samplePage(t))
	var root struct{ Root struct{ NodeID int } }
	must(t, b.Call("DOM.getDocument", map[string]any{"depth": 0}, &root))
	for _, c := range []struct {
		selector string
		least    int
	}{{"svg .curve path", 10}, {"svg .cell title", 20}, {"tbody tr", 50}, {".script[hidden]", 2}} {
		var found struct{ NodeIDs []int }
		must(t, b.Call("DOM.querySelectorAll", map[string]any{"nodeId": root.Root.NodeID, "selector": c.selector}, &found))
		if len(found.NodeIDs) < c.least {
			t.Errorf("%d %s, want %d", len(found.NodeIDs), c.selector, c.least)
		}
	}
}

// Probabilities sort as numbers in any notation: 9.4e-05 comes before 0.006. Long tables begin with their first
// rows, and a button shows all.
func TestProbabilitiesInBrowser(t *testing.T) {
	b, open := browse(t)
	rows := []float64{0.006, 9.4e-05, 0.04, math.NaN(), 1e-12, 0.5}
	for len(rows) < 40 {
		rows = append(rows, 1)
	}
	r := table.New("sgtrace.report.toys/v1", "Toys", rows, []table.Field[float64]{
		table.TextColumn("toy", "", func(p *float64) string { return fmt.Sprint(*p) }),
		table.NumberColumn("p", "probability", func(p *float64) float64 { return *p }),
	})
	open(Page{Title: "p", Sections: []Section{{Title: "t", Figures: []*Figure{TableOf(r, 0, "", "")}}}})
	shown := `Array.from(document.querySelectorAll("tbody tr:not([hidden])"), r => r.cells[1].textContent)`
	want(t, "rows at first", eval[int](t, b, "%s.length", shown), firstRows)
	click := `document.querySelectorAll("th button")[1].click()`
	must(t, b.Eval(click, nil))
	must(t, b.Eval(click, nil))
	want(t, "up", eval[string](t, b, "%s.slice(0, 5).join(' ')", shown), "1e-12 9.4e-05 0.006 0.040 0.500")
	must(t, b.Eval(`document.querySelector(".more").click()`, nil))
	want(t, "all rows", eval[int](t, b, "%s.length", shown), len(rows))
	want(t, "unknown comes last", eval[string](t, b, "%s.at(-1)", shown), "-")
}

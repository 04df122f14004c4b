package page

import (
	"fmt"
	"math"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/page/chart"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/testkit/readback"
	"github.com/sgtrace/sgtrace/trace"
)

// pointEverywhere moves the pointer over all charts of the page. It returns errors:
// dots that are off the curve of their color or outside of the panel that the tooltip
// names, and tooltips whose number of values differs from the number of dots.
func pointEverywhere(t *testing.T, b *readback.Browser) (shown int, wrong []string) {
	t.Helper()
	type seen struct {
		Shown int
		Wrong []string
	}
	s := eval[seen](t, b, `(() => {
		const seen = { Shown: 0, Wrong: [] }, tip = document.getElementById("tip");
		for (const svg of document.querySelectorAll(".plot svg[role=img]")) {
			const box = svg.getBoundingClientRect(), figure = svg.closest("figure");
			if (!box.width) continue;
			const bad = (text) => { if (seen.Wrong.length < 20) seen.Wrong.push(figure.id + ": " + text); };
			const views = Array.from(svg.querySelectorAll("svg.view:not(.marks)"));
			const curves = figure.data && figure.data.lines;
			// pixels of the points of a curve
			const kept = new Map();
			const points = (path) => {
				if (!kept.has(path)) {
					const m = path.getScreenCTM();
					kept.set(path, (path.getAttribute("d").match(/[-\d.]+ [-\d.]+/g) || []).map((p) => {
						const [x, y] = p.split(" ").map(Number);
						return [m.a * x + m.e, m.d * y + m.f];
					}));
				}
				return kept.get(path);
			};
			for (let i = 0; i < 8; i++) for (const view of views.length ? views : [svg]) {
				const of = view === svg ? box : { x: 0, y: 0, width: 0, height: 0 };
				if (view !== svg) {
					const at = (k) => +view.getAttribute(k), m = svg.getScreenCTM();
					const p = new DOMPoint(at("x"), at("y")).matrixTransform(m), q = new DOMPoint(at("x") + at("width"), at("y") + at("height")).matrixTransform(m);
					Object.assign(of, { x: p.x, y: p.y, width: q.x - p.x, height: q.y - p.y });
				}
				const across = (i + 0.5) / 8, down = curves && figure.data.axis === "x" ? 0.5 : (5 * i %% 8 + 0.5) / 8;
				const x = of.x + across * of.width, y = of.y + down * of.height;
				svg.dispatchEvent(new PointerEvent("pointermove", { bubbles: true, clientX: x, clientY: y }));
				if (tip.hidden) continue;
				seen.Shown++;
				if (tip.scrollWidth > tip.clientWidth + 1) bad("the tip is cut: " + tip.textContent);
				let inPanel = 0;
				for (const dot of svg.querySelectorAll(".cross circle")) {
					const m = dot.getScreenCTM(), p = new DOMPoint(+dot.getAttribute("cx"), +dot.getAttribute("cy")).matrixTransform(m);
					const paths = Array.from(svg.querySelectorAll((curves ? ".curve." : ".dots.") + dot.getAttribute("class") + " path"));
					if (!paths.some((path) => points(path).some(([x, y]) => Math.abs(p.x - x) + Math.abs(p.y - y) < 1.5))) bad("a dot at " + p.x.toFixed(1) + ", " + p.y.toFixed(1) + " is on no curve: " + tip.textContent);
					if (p.y > of.y - 1.5 && p.y < of.y + of.height + 1.5) inPanel++;
				}
				if (!curves) continue;
				const title = tip.querySelector("b").textContent, name = (figure.data.panels || [])[views.indexOf(view)];
				if (name && !title.endsWith(" · " + name)) bad("the tip over " + name + " is " + title);
				const values = Array.from(tip.querySelectorAll("div span:last-child"), (e) => e.textContent).filter((text) => text !== "-").length;
				if (values !== inPanel) bad(values + " values and " + inPanel + " dots: " + tip.textContent);
			}
			for (const e of svg.querySelectorAll("[aria-label]")) {
				e.dispatchEvent(new PointerEvent("pointermove", { bubbles: true, clientX: box.x + box.width / 2, clientY: box.y }));
				if (tip.scrollWidth > tip.clientWidth + 1) bad("the tip is cut: " + tip.textContent);
			}
			svg.dispatchEvent(new PointerEvent("pointerleave"));
		}
		return seen;
	})()`)
	return s.Shown, s.Wrong
}

// The dots under the pointer lie on the curves whose values the tooltip prints, in wide and narrow
// windows, for the whole time and for a range. A group without any drawn dot does not break the script.
func TestDotsAreOnTheirCurvesInBrowser(t *testing.T) {
	b, open := browse(t)
	o, p := incident(t)
	p.Sections = append(p.Sections, Section{Title: "thinned", Figures: []*Figure{{Title: "dots", Body: &chart.Scatter{Value: "E2E", Groups: []chart.Group{
		{Name: "none of them drawn", All: 7}, {Name: "one", Color: 1, All: 1, Dots: []chart.Dot{{Name: "r", Time: 5_000_000, Dur: 1_000_000}}},
	}}}, {Title: "no dots", Body: &chart.Scatter{Value: "E2E", Groups: []chart.Group{{Name: "none", All: 7}}}}}})
	begin, end, _ := o.Requests.Bounds()
	open(p)
	for _, width := range []int{400, 1400} {
		must(t, b.Size(width, 900))
		check := func(what string) {
			shown, wrong := pointEverywhere(t, b)
			if shown < 150 {
				t.Errorf("%s at %d: %d tips", what, width, shown)
			}
			for _, text := range wrong {
				t.Errorf("%s at %d: %s", what, width, text)
			}
		}
		check("whole run")
		chooseRange(t, b, begin+(end-begin)/3, begin+(end-begin)/2)
		check("range")
		must(t, b.Eval(`document.dispatchEvent(new KeyboardEvent("keydown", { key: "Escape", bubbles: true }))`, nil))
	}
	must(t, b.Eval(`for (const svg of document.querySelectorAll(".plot svg[role=img]")) for (const key of ["ArrowRight", "ArrowUp", "ArrowDown", "ArrowLeft", "Enter"])
		svg.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }))`, nil))
}

// In a time range, requests outside of it are hidden, and figures that do not follow it
// say "whole run". Escape cancels the drawing of a range, and then the range itself.
func TestRangeIsSaidInBrowser(t *testing.T) {
	b, open := browse(t)
	o, p := incident(t)
	open(p)
	begin, end, _ := o.Requests.Bounds()
	from, to := (begin+(end-begin)/3)/1000*1000, (begin+(end-begin)/2)/1000*1000
	const waterfalls = `Array.from(document.querySelectorAll("details.request")).filter(e => !e.hidden).length`
	all := eval[int](t, b, waterfalls)
	chooseRange(t, b, from, to)
	within := 0
	for i := range p.Sections {
		for _, f := range p.Sections[i].Figures {
			list, _ := f.Body.(*RequestList)
			for k := 0; list != nil && k < len(list.List); k++ {
				if v := &list.List[k]; v.To >= from && v.From <= to {
					within++
				}
			}
		}
	}
	want(t, "waterfalls in the range", eval[int](t, b, waterfalls), within)
	want(t, "note", eval[string](t, b, `document.querySelector("#waterfalls .range-note").textContent`), fmt.Sprintf("In the range of time: %d of %d requests.", within, all))
	want(t, "heading of the findings", eval[string](t, b, `getComputedStyle(document.querySelector("#findings h2"), "::after").content`), `" · whole run"`)
	want(t, "figures that neither follow nor say so", eval[int](t, b, `Array.from(document.querySelectorAll("figure")).filter(f => {
		const says = (e) => e && getComputedStyle(e, "::after").content.includes("whole run");
		const follows = f.querySelector("svg[data-from], tr[data-t], .range-note");
		return !follows && !says(f.querySelector("h3")) && !says(f.closest("section").querySelector("h2"));
	}).length`), 0)
	press := func() {
		must(t, b.Call("Input.dispatchKeyEvent", map[string]any{"type": "keyDown", "key": "Escape"}, nil))
	}
	press()
	want(t, "range after Escape", eval[string](t, b, `location.hash`), "")
	want(t, "waterfalls of all", eval[int](t, b, waterfalls), all)

	box := eval[[]float64](t, b, `(() => { const e = document.querySelector("#load .for-wide svg"); e.scrollIntoView({ block: "start" }); const r = e.getBoundingClientRect(); return [r.x, r.y, r.width]; })()`)
	mouse := func(kind string, part float64) {
		must(t, b.Call("Input.dispatchMouseEvent", map[string]any{"type": kind, "x": box[0] + part*box[2], "y": box[1] + 100, "button": "left", "buttons": 1, "clickCount": 1}, nil))
	}
	mouse("mousePressed", 0.3)
	mouse("mouseMoved", 0.4)
	mouse("mouseMoved", 0.5)
	want(t, "brushes", eval[int](t, b, `document.querySelectorAll(".brush").length`), 1)
	press()
	want(t, "brushes after Escape", eval[int](t, b, `document.querySelectorAll(".brush").length`), 0)
	mouse("mouseReleased", 0.5)
	want(t, "range after Escape while drawing", eval[string](t, b, `location.hash`), "")
}

// Dragging over the chart of layers zooms only that chart, with times since its beginning, and the tooltip names
// the kernel.
func TestLayers(t *testing.T) {
	b, open := browse(t)
	open(Page{Title: "p", Sections: []Section{{Title: "s", Figures: []*Figure{{ID: "layers", Title: "Layers", Body: stripOf([]string{"layer 0", "layer 1"})}}}}})
	frame := eval[[]float64](t, b, `(() => { const r = document.querySelector("#layers .for-wide svg.view").getBoundingClientRect(); return [r.x, r.y, r.width, r.height]; })()`)
	mouse := func(kind string, part float64) {
		must(t, b.Call("Input.dispatchMouseEvent", map[string]any{"type": kind, "x": frame[0] + part*frame[2], "y": frame[1] + 0.75*frame[3], "button": "left", "buttons": 1, "clickCount": 1}, nil))
	}
	must(t, b.Call("Input.dispatchMouseEvent", map[string]any{"type": "mouseMoved", "x": frame[0] + 0.6*frame[2], "y": frame[1] + 0.75*frame[3]}, nil))
	want(t, "tip", eval[bool](t, b, `document.body.textContent.includes("GEMM: layer 1") && document.body.textContent.includes("30us")`), true)
	mouse("mousePressed", 0.5)
	mouse("mouseMoved", 0.6)
	mouse("mouseMoved", 0.75)
	mouse("mouseReleased", 0.75)
	box := eval[[]float64](t, b, `(() => { const v = document.querySelector("#layers .for-wide svg.view"), w = +v.getAttribute("width"); return [v.viewBox.baseVal.x / w, v.viewBox.baseVal.width / w]; })()`)
	if math.Abs(box[0]-0.5) > 0.01 || math.Abs(box[1]-0.25) > 0.01 {
		t.Errorf("shown are %v of the layers, want a quarter from their half on", box)
	}
	want(t, "ticks", eval[bool](t, b, `Array.from(document.querySelectorAll("#layers .for-wide .ticks text")).every(e => /^\d+(\.\d+)? us$/.test(e.textContent)) && document.querySelectorAll("#layers .for-wide .ticks text").length > 1`), true)
	want(t, "range of the page", eval[string](t, b, `location.hash`), "")
	must(t, b.Call("Input.dispatchMouseEvent", map[string]any{"type": "mousePressed", "x": frame[0] + 0.5*frame[2], "y": frame[1] + 5, "button": "left", "buttons": 1, "clickCount": 2}, nil))
	must(t, b.Call("Input.dispatchMouseEvent", map[string]any{"type": "mouseReleased", "x": frame[0] + 0.5*frame[2], "y": frame[1] + 5, "button": "left", "clickCount": 2}, nil))
	want(t, "shown after a double click", eval[float64](t, b, `document.querySelector("#layers .for-wide svg.view").viewBox.baseVal.x`), 0)
}

// Every table has a caption.
func TestTablesHaveCaptions(t *testing.T) {
	b, open := browse(t)
	open(samplePage(t))
	want(t, "tables without a caption", eval[int](t, b, `Array.from(document.querySelectorAll("table")).filter(e => !e.caption || !e.caption.textContent).length`), 0)
	r := table.New("sgtrace.report.toys/v1", "Toys", []trace.Time{1}, []table.Field[trace.Time]{table.TextColumn("toy", "", func(*trace.Time) string { return "a" })})
	open(Page{Title: "p", Sections: []Section{{Title: "t", Figures: []*Figure{TableOf(r, 0, "", "")}}}})
	want(t, "caption", eval[string](t, b, `document.querySelector("caption").textContent`), "Toys")
}

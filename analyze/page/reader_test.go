package page

import (
	"fmt"
	"math"
	"strings"
	"testing"
)

// viewRect is the rectangle of the first view of svg in the window. The view's own
// bounding rectangle would be that of its content.
const viewRect = `(() => {
	const view = svg.querySelector("svg.view"), [x, y, width, height] = ["x", "y", "width", "height"].map(k => +view.getAttribute(k));
	const a = new DOMPoint(x, y).matrixTransform(svg.getScreenCTM()), b = new DOMPoint(x + width, y + height).matrixTransform(svg.getScreenCTM());
	return { left: a.x, top: a.y, width: b.x - a.x, height: b.y - a.y };
})()`

// A reader clicks a finding, brushes a time range, and opens the waterfall of a
// request in every possible way.
func TestReaderInBrowser(t *testing.T) {
	b, open := browse(t)
	o, p := incident(t)
	open(p)
	click := func(selector string) {
		t.Helper()
		must(t, b.Eval(fmt.Sprintf(`document.querySelector(%q).click()`, selector), nil))
	}
	top := func(selector string) float64 {
		return eval[float64](t, b, `document.querySelector(%q).getBoundingClientRect().top`, selector)
	}
	hash := func() string { return eval[string](t, b, `location.hash`) }

	chart := newLinks(p.Sections[2:]).ofFinding(&o.Findings[0])[0]
	click("#finding-1 .tags a")
	want(t, "address", hash(), chart.Href)
	if y := top(chart.Href); y < 0 || y > 200 {
		t.Errorf("the chart of the finding is at %g px", y)
	}

	// Drag over the middle third of the first chart over time.
	f := eval[[]float64](t, b, `(() => {
		const svg = document.querySelector("#load .for-wide svg[data-from]");
		svg.scrollIntoView();
		scrollBy(0, -100);
		const view = `+viewRect+`;
		return [view.left, view.left + view.width, view.top + 60, +svg.dataset.from, +svg.dataset.to];
	})()`)
	left, right, y, from, to := f[0], f[1], f[2], f[3], f[4]
	mouse := func(kind string, x float64) {
		must(t, b.Call("Input.dispatchMouseEvent", map[string]any{"type": kind, "x": x, "y": y, "button": "left", "buttons": 1, "clickCount": 1}, nil))
	}
	third := (right - left) / 3
	mouse("mousePressed", left+third)
	mouse("mouseMoved", left+1.5*third)
	mouse("mouseMoved", left+2*third)
	mouse("mouseReleased", left+2*third)
	chosen := eval[[]float64](t, b, `Array.from(document.querySelectorAll("#time-range input"), i => Date.parse(i.value))`)
	for i, ms := range []float64{from + (to-from)/3, from + (to-from)*2/3} {
		if off := math.Abs(chosen[i] - ms); off > (to-from)/100 {
			t.Errorf("end %d of the range is off by %g ms", i, off)
		}
	}
	want(t, "flags", eval[string](t, b, `document.querySelector("#time-range code").textContent.replace(/T\S+Z/g, "T")`), "--from 2026-08-17T --to 2026-08-17T")
	if h := hash(); !strings.Contains(h, "from=2026-08-17T") || !strings.HasPrefix(h, chart.Href+"&") {
		t.Errorf("address %s", h)
	}
	zoomed := eval[[]bool](t, b, `Array.from(document.querySelectorAll("svg[data-from] svg.view"), v => v.viewBox.baseVal.width < +v.getAttribute("width"))`)
	for i, is := range zoomed {
		if !is {
			t.Errorf("view %d of %d is not zoomed", i, len(zoomed))
		}
	}
	late := eval[int](t, b, `Array.from(document.querySelectorAll("tr[data-t]:not([hidden])")).filter(r => r.dataset.t && (+r.dataset.t < %f || +r.dataset.t > %f)).length`, chosen[0], chosen[1])
	want(t, "rows outside of the range", late, 0)
	must(t, b.Eval(`{ const h = location.href; location.hash = ""; location.href = h; }`, nil))
	click("#time-all")
	want(t, "range", eval[bool](t, b, `document.getElementById("time-range").hidden`), true)

	// By a row of a table, and by a permalink with just the ID.
	list := p.Sections[5].Figures[0].Body.(*RequestList).List
	opened := func() string {
		return eval[string](t, b, `Array.from(document.querySelectorAll("details.request[open]"), d => d.dataset.rid).join(" ")`)
	}
	shut := func() { must(t, b.Eval(`for (const d of document.querySelectorAll("details")) d.open = false`, nil)) }
	click(fmt.Sprintf(`td a[href="#%s"]`, list[0].Anchor))
	must(t, b.Eval(`new Promise(r => setTimeout(r, 50))`, nil))
	want(t, "opened by a row", opened(), list[0].RID)
	shut()
	must(t, b.Eval(fmt.Sprintf(`location.hash = %q; new Promise(r => setTimeout(r, 50))`, list[7].RID), nil))
	want(t, "opened by its ID", opened(), list[7].RID)
	shut()
	// By a dot: the pointer moves to its position in the hover data.
	must(t, b.Eval(fmt.Sprintf(`(() => {
		const figure = document.getElementById("arrivals"), svg = figure.querySelector(".for-wide svg[role=img]");
		svg.scrollIntoView();
		const data = JSON.parse(figure.querySelector("script.hover").textContent);
		const view = `+viewRect+`;
		for (const g of data.groups) {
			const i = g.names.indexOf(%q);
			if (i < 0) continue;
			const at = { bubbles: true, clientX: view.left + g.x[i] * view.width, clientY: view.top + g.y[i] * view.height };
			svg.dispatchEvent(new PointerEvent("pointermove", at));
			svg.dispatchEvent(new MouseEvent("click", at));
		}
	})()`, list[0].RID), nil))
	want(t, "opened by a dot", opened(), list[0].RID)
	if y := top("#" + list[0].Anchor); y < 0 || y > 300 {
		t.Errorf("the waterfall is at %g px", y)
	}
	want(t, "stages drawn", eval[bool](t, b, `document.querySelectorAll("details.request[open] .bar").length > 5`), true)
}

// One axis of time: dragging over a chart, or + and - on it, chooses a range that all
// charts over time zoom to and tables keep to. It is in the address, and in flags to copy.
const timeCharts = all("svg[data-from]").map((svg) => ({ svg, from: +svg.dataset.from, to: +svg.dataset.to }));
const timeBar = document.getElementById("time-range");
let range = null; // { from, to }, ms
let endBrush = null; // ends the drawing of a range, which is under way

const clockSteps = [1e-3, 2e-3, 5e-3, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 1.5e4, 3e4,
	6e4, 12e4, 3e5, 6e5, 9e5, 18e5, 36e5, 72e5, 108e5, 216e5, 432e5, 864e5];
const wholeMicros = (ms) => Math.round(ms * 1000) / 1000;
const timeText = (ms, step) => {
	const text = wallTime(ms);
	if (step >= 864e5) return text.slice(5, 10);
	if (step >= 6e4) return text.slice(11, 16);
	if (step >= 1e3) return text.slice(11, 19);
	const micros = Math.round((ms - Math.floor(ms)) * 1000);
	return text.slice(11, 23) + (step < 1 ? String(Math.min(999, micros)).padStart(3, "0") : "");
};
const timeFlag = (ms) => {
	const micros = Math.round((ms - Math.floor(ms)) * 1000);
	return wallTime(ms) + String(micros).padStart(3, "0") + (zoneText(ms) || "Z"); // as --from and --to take it
};

// timeFlags are the flags that choose a range.
const timeFlags = (r) => `--from ${timeFlag(r.from)} --to ${timeFlag(r.to)}`;

// parseTime reads a time with the microseconds that Date.parse leaves out.
const parseTime = (text) => {
	const micros = /\.\d{3}(\d{1,3})/.exec(text);
	return Date.parse(text) + (micros ? micros[1].padEnd(3, "0") / 1000 : 0);
};

// sinceText writes a time since something began, given in ms.
const sinceText = (ms, step) => (step < 1 ? Math.round(ms * 1000) + " us" : ms + " ms");

// drawTicks replaces the lines and labels of an axis of time; since tells that it is no clock.
const drawTicks = (group, frame, from, to, since) => {
	group.replaceChildren();
	const count = Math.max(2, Math.floor(frame.width / 98));
	const step = clockSteps.find((s) => to - from <= count * s) || 864e5;
	const { top, bottom, labels } = group.dataset;
	const offset = since ? 0 : zoneOffset(from); // ticks are round on the clock that people read
	for (let t = Math.ceil((from + offset) / step) * step - offset; t <= to; t += step) {
		const x = frame.left + (t - from) / (to - from) * frame.width;
		svgElement(group, "line", { class: "grid", x1: x, x2: x, y1: top, y2: bottom });
		if (labels === "true") svgElement(group, "text", { class: "mid", x: Math.min(x, frame.right - 20), y: +bottom + 16 }).textContent = since ? sinceText(t, step) : timeText(t, step);
	}
};

// zoom shows a range in a chart, as far as the chart reaches.
const zoom = ({ svg, from, to, since }, r) => {
	let a = r ? Math.max(from, r.from) : from, b = r ? Math.min(to, r.to) : to;
	const outside = !(b > a);
	if (outside) [a, b] = [from, to];
	svg.classList.toggle("outside", outside && to > from);
	const views = all("svg.view", svg);
	for (const view of views) {
		const width = +view.getAttribute("width"), box = view.viewBox.baseVal;
		const span = to - from || 1;
		view.setAttribute("viewBox", `${(a - from) / span * width} ${box.y} ${(b - a || span) / span * width} ${box.height}`);
	}
	if (!views.length || !(to > from)) return;
	const frame = frameOf(views[0]);
	for (const group of all(".ticks", svg)) drawTicks(group, frame, a, b, since);
	let free = -Infinity;
	for (const pin of all(".pin", svg)) {
		const x = frame.x(+pin.dataset.at);
		const off = x < frame.left || x > frame.right || x <= free;
		pin.classList.toggle("off", off);
		if (!off) free = x + +pin.dataset.wide;
		pin.setAttribute("transform", pin.getAttribute("transform").replace(/\([-\d.e]+/, "(" + x));
	}
};

// setRange chooses a range; null is all of the time. It has whole microseconds, as the flags
// do, so that both choose the same.
const setRange = (r) => {
	if (r) r = { from: wholeMicros(r.from), to: wholeMicros(r.to) };
	range = r;
	for (const chart of timeCharts) zoom(chart, r);
	for (const box of all(".table, figure, .tiles li")) if (box.setRange) box.setRange(r);
	timeBar.hidden = !r;
	document.body.classList.toggle("ranged", !!r);
	if (r) {
		const [from, to] = all("input", timeBar);
		from.value = timeFlag(r.from);
		to.value = timeFlag(r.to);
		timeBar.querySelector("code").textContent = timeFlags(r);
	}
	writeAddress();
};

for (const input of all("#time-range input")) {
	input.addEventListener("change", () => {
		const [from, to] = all("input", timeBar).map((i) => parseTime(i.value));
		if (to > from) setRange({ from, to });
	});
}
document.getElementById("time-all").addEventListener("click", () => setRange(null));
document.getElementById("time-copy").addEventListener("click", (e) => {
	const code = timeBar.querySelector("code");
	const selection = getSelection();
	selection.selectAllChildren(code);
	const copied = document.execCommand("copy"); // works for files, where navigator.clipboard does not
	e.target.textContent = copied ? "copied" : "selected";
	setTimeout(() => { e.target.textContent = "copy"; }, 1500);
});

// Charts of what begins again in each row zoom by themselves.
const rowCharts = all("svg[data-span]").map((svg) => ({ svg, from: 0, to: +svg.dataset.span, since: true, now: null }));

for (const chart of timeCharts.concat(rowCharts)) {
	const { svg, from, to } = chart;
	if (!(to > from)) continue;
	const choose = chart.since ? (r) => { chart.now = r; zoom(chart, r); } : setRange;
	const frame = () => frameOf(svg.querySelector("svg.view"));
	const timeAt = (x) => from + frame().part(x) * (to - from);
	let start = null, brush = null;
	const stop = () => {
		if (brush) {
			brush.remove();
			svg.addEventListener("click", (e) => e.preventDefault(), { once: true, capture: true });
		}
		start = brush = endBrush = null;
	};
	svg.addEventListener("pointerdown", (e) => {
		const x = toDrawing(svg, e).x, f = frame();
		if (e.button !== 0 || e.pointerType === "touch" || x < f.left || x > f.right) return;
		start = x;
	});
	svg.addEventListener("pointermove", (e) => {
		if (start === null) return;
		const f = frame(), x = Math.max(f.left, Math.min(f.right, toDrawing(svg, e).x));
		if (!brush && Math.abs(x - start) < 4) return;
		if (!brush) {
			brush = svgElement(svg, "rect", { class: "brush" });
			svg.setPointerCapture(e.pointerId);
			endBrush = stop;
		}
		const views = framesOf(svg);
		for (const [k, v] of Object.entries({ x: Math.min(x, start), width: Math.abs(x - start), y: views[0].top, height: views[views.length - 1].bottom - views[0].top })) brush.setAttribute(k, v);
	});
	svg.addEventListener("pointerup", () => {
		const chosen = brush && [0, +brush.getAttribute("width")].map((more) => timeAt(+brush.getAttribute("x") + more));
		stop();
		if (chosen) choose({ from: chosen[0], to: chosen[1] });
	});
	svg.addEventListener("pointercancel", stop);
	svg.addEventListener("dblclick", () => choose(null));
	svg.addEventListener("keydown", (e) => {
		const now = (chart.since ? chart.now : range) || { from, to }, span = now.to - now.from;
		const next = {
			"+": [now.from + span / 4, now.to - span / 4], "-": [now.from - span / 2, now.to + span / 2],
			ArrowLeft: e.shiftKey && [now.from - span / 4, now.to - span / 4], ArrowRight: e.shiftKey && [now.from + span / 4, now.to + span / 4],
		}[e.key];
		if (e.key === "0") choose(null);
		else if (next) choose({ from: next[0], to: next[1] });
		else return;
		e.preventDefault();
		e.stopImmediatePropagation();
	}, true);
}

// Charts: values under the pointer, arrow keys, and legends that switch curves off.

// toDrawing and toScreen change between pixels of the window and of a drawing.
const toDrawing = (svg, e) => new DOMPoint(e.clientX, e.clientY).matrixTransform(svg.getScreenCTM().inverse());
const toScreen = (svg, x, y) => new DOMPoint(x, y).matrixTransform(svg.getScreenCTM());

// A frame is a view of a drawing: where it is, and which part of it is to be seen.
// x and y return the pixel of a part of it, 0 to 1, as the hover data have it.
const frameOf = (view) => {
	const [left, top, width, height] = ["x", "y", "width", "height"].map((k) => +view.getAttribute(k));
	const box = view.viewBox.baseVal;
	return {
		left, top, width, height, right: left + width, bottom: top + height,
		x: (part) => left + (part * width - box.x) / box.width * width,
		y: (part) => top + part * height,
		part: (x) => (box.x + (x - left) / width * box.width) / width,
	};
};
const framesOf = (svg) => all("svg.view:not(.marks)", svg).map(frameOf);

// nearest returns the index of the number closest to v.
const nearest = (list, v) => {
	let best = 0;
	for (let i = 1; i < list.length; i++) if (Math.abs(list[i] - v) < Math.abs(list[best] - v)) best = i;
	return best;
};
const isOff = (figure, series) => all(`.legend [data-s="${series}"]`, figure).some((b) => b.getAttribute("aria-pressed") === "false");

const onLeave = (svg, leave) => {
	svg.addEventListener("pointerleave", leave);
	svg.addEventListener("blur", leave);
};
// Arrow keys move by rows and columns; with Shift they are for the range of time.
const onArrows = (svg, move) => svg.addEventListener("keydown", (e) => {
	const by = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] }[e.key];
	if (!by || e.shiftKey) return;
	e.preventDefault();
	move(...by);
});

// Curves: a line across all panels, and the values of the panel under the pointer.
const hoverCurves = (figure, svg, data) => {
	const cross = svgElement(svg, "g", { class: "cross" });
	const alongX = data.axis === "x";
	let at = -1, panel = 0;
	const show = (x, y) => {
		cross.replaceChildren();
		const frames = framesOf(svg), f = frames[panel], first = frames[0], last = frames[frames.length - 1];
		const here = alongX ? f.x(data.at[at]) : f.y(data.at[at]);
		svgElement(cross, "line", alongX ? { x1: here, x2: here, y1: first.top, y2: last.bottom } : { x1: f.left, x2: f.right, y1: here, y2: here });
		const rows = [];
		for (const line of data.lines) {
			if (isOff(figure, line.series)) continue;
			const place = line.place[at], of = frames[line.panel];
			if (place !== null) svgElement(cross, "circle", { class: line.class, r: 3.5, cx: alongX ? here : of.x(place), cy: alongX ? of.y(place) : here });
			if (line.panel === panel) rows.push({ color: line.class, name: line.name, value: line.text[at] });
		}
		showTip(x, y, data.labels[at] + (data.panels[panel] ? " · " + data.panels[panel] : ""), rows);
	};
	const leave = () => { cross.replaceChildren(); hideTip(); };
	svg.addEventListener("pointermove", (e) => {
		const q = toDrawing(svg, e), frames = framesOf(svg);
		const first = frames[0], last = frames[frames.length - 1];
		if (!first || q.x < first.left - 8 || q.x > first.right + 8 || q.y < first.top - 8 || q.y > last.bottom + 8) return leave();
		at = nearest(data.at.map((part) => (alongX ? first.x(part) : first.y(part))), alongX ? q.x : q.y);
		panel = nearest(frames.map((f) => (f.top + f.bottom) / 2), q.y);
		show(e.clientX, e.clientY);
	});
	onLeave(svg, leave);
	svg.addEventListener("keydown", (e) => {
		const step = { ArrowRight: 1, ArrowUp: alongX ? 0 : 1, ArrowLeft: -1, ArrowDown: alongX ? 0 : -1 }[e.key];
		if (step === undefined || e.shiftKey) return;
		e.preventDefault();
		const frames = framesOf(svg);
		if (alongX && step === 0) panel = Math.max(0, Math.min(frames.length - 1, panel + (e.key === "ArrowDown" ? 1 : -1)));
		if (alongX || step !== 0) at = Math.max(0, Math.min(data.at.length - 1, at + step));
		const f = frames[panel];
		const q = toScreen(svg, alongX ? f.x(data.at[at]) : (f.left + f.right) / 2, alongX ? (f.top + f.bottom) / 2 : f.y(data.at[at]));
		show(q.x, q.y);
	});
};

// Dots: the nearest one. A click, or Enter, opens the request.
const hoverDots = (figure, svg, data) => {
	const cross = svgElement(svg, "g", { class: "cross" });
	const near = 14;
	const dots = data.groups.flatMap((g) => g.x.map((_, i) => ({ g, i }))).sort((a, b) => a.g.x[a.i] - b.g.x[b.i]);
	const within = (f, { g, i }) => f.x(g.x[i]) >= f.left && f.x(g.x[i]) <= f.right;
	let chosen = null;
	const show = (dot, x, y) => {
		const f = framesOf(svg)[0], { g, i } = dot;
		chosen = dot;
		cross.replaceChildren();
		svgElement(cross, "circle", { class: g.class, r: 5, cx: f.x(g.x[i]), cy: f.y(g.y[i]) });
		const ms = data.from + g.times[i];
		showTip(x, y, g.names[i], [
			{ name: "arrived", value: wallTime(ms).slice(11) + " UTC" + zoneText(ms) }, { name: data.value, value: g.texts[i] }, { color: g.class, name: g.name }]);
	};
	const leave = () => { cross.replaceChildren(); hideTip(); };
	const open = () => { if (chosen) openRequest(chosen.g.names[chosen.i]); };
	svg.addEventListener("pointermove", (e) => {
		const q = toDrawing(svg, e), f = framesOf(svg)[0];
		let best = near * near, found = null;
		for (const dot of dots) {
			if (isOff(figure, dot.g.series)) continue;
			if (!within(f, dot)) continue;
			const d = (f.x(dot.g.x[dot.i]) - q.x) ** 2 + (f.y(dot.g.y[dot.i]) - q.y) ** 2;
			if (d < best) [best, found] = [d, dot];
		}
		if (found) show(found, e.clientX, e.clientY);
		else { chosen = null; leave(); }
	});
	onLeave(svg, leave);
	svg.addEventListener("click", (e) => { if (!e.defaultPrevented) open(); });
	svg.addEventListener("keydown", (e) => {
		if (e.key === "Enter") return open();
		const step = { ArrowRight: 1, ArrowLeft: -1 }[e.key];
		if (!step || e.shiftKey) return;
		e.preventDefault();
		const f = framesOf(svg)[0], seen = dots.filter((dot) => !isOff(figure, dot.g.series) && within(f, dot));
		const next = seen[Math.max(0, Math.min(seen.length - 1, seen.indexOf(chosen) + step))];
		if (!next) return leave();
		const q = toScreen(svg, f.x(next.g.x[next.i]), f.y(next.g.y[next.i]));
		show(next, q.x, q.y);
	});
};

// Cells: the names of row and column with what the cell says; arrow keys move.
const hoverCells = (svg, data) => {
	let chosen = null;
	const show = (cell, x, y) => {
		if (chosen) chosen.classList.remove("at");
		chosen = cell;
		cell.classList.add("at");
		const row = data.rows[cell.dataset.r], column = data.columns[cell.dataset.c];
		showTip(x, y, row, [{ name: column }].concat(cell.tipText ? cell.tipText.split("\n").map((t) => ({ name: t })) : []));
	};
	const leave = () => { if (chosen) chosen.classList.remove("at"); hideTip(); };
	for (const cell of all(".cell", svg)) {
		cell.tipText = takeTitle(cell);
		cell.addEventListener("pointermove", (e) => show(cell, e.clientX, e.clientY));
	}
	onLeave(svg, leave);
	onArrows(svg, (down, right) => {
		const r = chosen ? +chosen.dataset.r + down : 0, c = chosen ? +chosen.dataset.c + right : 0;
		const next = svg.querySelector(`[data-r="${r}"][data-c="${c}"]`);
		if (!next) return;
		const box = next.getBoundingClientRect();
		show(next, box.right, box.bottom);
	});
};

// Cells over time: the pointer, or arrow keys, choose a row and a part of the time.
const hoverHeat = (svg, groups) => {
	const cross = svgElement(svg, "g", { class: "cross" });
	let group = 0, row = 0, cell = -1;
	const box = () => {
		const f = framesOf(svg)[group], g = groups[group], wide = (g.to - g.from) / g.texts[row].length, high = f.height / g.rows.length;
		return { f, x: f.x(g.from + cell * wide), x2: f.x(g.from + (cell + 1) * wide), y: f.top + row * high, high };
	};
	const leave = () => { cross.replaceChildren(); hideTip(); };
	const show = (x, y) => {
		const b = box(), text = groups[group].texts[row][cell];
		cross.replaceChildren();
		const left = Math.max(b.x, b.f.left), right = Math.min(b.x2, b.f.right);
		if (right > left) svgElement(cross, "rect", { class: "at", x: left, y: b.y, width: right - left, height: b.high });
		showTip(x, y, groups[group].rows[row], [{ name: text || "nothing" }]);
	};
	svg.addEventListener("pointermove", (e) => {
		const q = toDrawing(svg, e), frames = framesOf(svg);
		group = frames.findIndex((f) => q.x >= f.left && q.x <= f.right && q.y >= f.top && q.y < f.bottom);
		if (group < 0) { group = 0; return leave(); }
		const f = frames[group], g = groups[group];
		row = Math.min(g.rows.length - 1, Math.floor((q.y - f.top) / f.height * g.rows.length));
		cell = Math.floor((f.part(q.x) - g.from) / (g.to - g.from) * g.texts[row].length);
		if (!(cell >= 0 && cell < g.texts[row].length)) return leave();
		show(e.clientX, e.clientY);
	});
	onLeave(svg, leave);
	onArrows(svg, (down, right) => {
		row += down;
		if (row < 0 && group > 0) row = groups[--group].rows.length - 1;
		else if (row >= groups[group].rows.length && group + 1 < groups.length) [group, row] = [group + 1, 0];
		row = Math.max(0, Math.min(groups[group].rows.length - 1, row));
		cell = Math.max(0, Math.min(groups[group].texts[row].length - 1, cell + right));
		const b = box(), q = toScreen(svg, (b.x + b.x2) / 2, b.y + b.high);
		show(q.x, q.y);
	});
};

// Pieces of rows: the one under the pointer; arrow keys move.
const hoverStrip = (svg, data) => {
	const cross = svgElement(svg, "g", { class: "cross" });
	let list = null, chosen = null;
	const pieces = () => {
		if (list) return list;
		const n = unpack(data.pieces);
		let row = 0;
		list = [];
		for (let i = 0; i < n.length; i += 5) list.push({ row: row += n[i], from: n[i + 2] / 1e6, ms: n[i + 3] / 1e6, text: data.texts[n[i + 4]] });
		return list;
	};
	const leave = () => { cross.replaceChildren(); hideTip(); };
	const show = (piece, x, y) => {
		const f = framesOf(svg)[0], high = f.height / data.strip.length, span = +svg.dataset.span;
		chosen = piece;
		cross.replaceChildren();
		const left = Math.max(f.left, f.x(piece.from / span)), right = Math.min(f.right, f.x((piece.from + piece.ms) / span));
		if (right > left) svgElement(cross, "rect", { class: "at", x: left, y: f.top + piece.row * high, width: right - left, height: high });
		showTip(x, y, data.strip[piece.row], [{ name: piece.text, value: durationText(piece.ms * 1e6) }]);
	};
	svg.addEventListener("pointermove", (e) => {
		const q = toDrawing(svg, e), f = framesOf(svg)[0];
		if (q.x < f.left || q.x > f.right || q.y < f.top || q.y >= f.bottom) return leave();
		const row = Math.floor((q.y - f.top) / f.height * data.strip.length), at = f.part(q.x) * svg.dataset.span;
		const found = pieces().find((p) => p.row === row && p.from <= at && at < p.from + p.ms);
		if (found) show(found, e.clientX, e.clientY);
		else leave();
	});
	onLeave(svg, leave);
	onArrows(svg, (down, right) => {
		const all = pieces(), i = all.indexOf(chosen);
		let next = all[Math.max(0, i + right)];
		if (chosen && down) next = all.filter((p) => p.row === chosen.row + down).reduce((best, p) => (!best || Math.abs(p.from - chosen.from) < Math.abs(best.from - chosen.from) ? p : best), null);
		if (!next) return;
		const f = framesOf(svg)[0], q = toScreen(svg, f.x((next.from + next.ms / 2) / svg.dataset.span), f.top + (next.row + 1) * f.height / data.strip.length);
		show(next, q.x, q.y);
	});
};

// takeTitle removes the title of an element, which the browser would show late and
// small, and returns its text.
const takeTitle = (e) => {
	const title = Array.from(e.children).find((c) => c.localName === "title");
	if (!title) return "";
	title.remove();
	return title.textContent;
};
// Whatever else has a title: pieces of bars, marks, names that were cut.
const hoverTitles = (svg) => {
	for (const title of all("title", svg)) {
		const e = title.parentElement, text = takeTitle(e);
		e.setAttribute("aria-label", text);
		e.addEventListener("pointermove", (event) => { event.stopPropagation(); showTip(event.clientX, event.clientY, "", [{ name: text }]); });
		e.addEventListener("pointerleave", hideTip);
	}
};

for (const figure of all("figure")) {
	const json = figure.querySelector("script.hover");
	const data = json && JSON.parse(json.textContent);
	figure.data = data;
	for (const svg of all(".plot svg[role=img]", figure)) {
		if (data && data.lines) hoverCurves(figure, svg, data);
		else if (data && data.groups) hoverDots(figure, svg, data);
		else if (data && data.heat) hoverHeat(svg, data.heat);
		else if (data && data.strip) hoverStrip(svg, data);
		else if (data) hoverCells(svg, data);
		hoverTitles(svg);
	}
	for (const button of all(".legend button", figure)) {
		button.addEventListener("click", () => {
			const on = button.getAttribute("aria-pressed") === "false";
			button.setAttribute("aria-pressed", on);
			for (const e of all(`.plot [data-s="${button.dataset.s}"]`, figure)) e.classList.toggle("off", !on);
		});
	}
}

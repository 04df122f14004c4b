// What needs a hand: the theme, values under the pointer, legends, sorting, filters.
// Text from traces is only ever set as textContent.
"use strict";
(() => {
	const all = (selector, from) => Array.from((from || document).querySelectorAll(selector));
	for (const e of all(".script")) e.hidden = false;

	// The theme: as the system has it, light, dark.
	const themes = ["system", "light", "dark"];
	const themeButton = document.getElementById("theme");
	const setTheme = (name) => {
		if (name === "system") delete document.documentElement.dataset.theme;
		else document.documentElement.dataset.theme = name;
		themeButton.textContent = "theme: " + name;
	};
	const store = (f) => { try { return f(window.localStorage); } catch { return null; } }; // some browsers refuse for files
	let theme = Math.max(0, themes.indexOf(store((s) => s.getItem("sgtrace-theme"))));
	setTheme(themes[theme]);
	themeButton.addEventListener("click", () => {
		theme = (theme + 1) % themes.length;
		setTheme(themes[theme]);
		store((s) => s.setItem("sgtrace-theme", themes[theme]));
	});

	// The tip: a bold line, and rows of a color, a name and a value.
	const tip = document.getElementById("tip");
	const element = (name, className, text) => {
		const e = document.createElement(name);
		if (className) e.className = className;
		if (text) e.textContent = text;
		return e;
	};
	const hideTip = () => { tip.hidden = true; };
	const showTip = (x, y, head, rows) => {
		tip.replaceChildren();
		if (head) tip.append(element("b", "", head));
		for (const r of rows) {
			const line = element("div");
			if (r.color) line.append(element("i", r.color));
			line.append(element("span", "", r.name));
			if (r.value) line.append(element("span", "", r.value));
			tip.append(line);
		}
		tip.hidden = false;
		const box = tip.getBoundingClientRect();
		const left = x + 16 + box.width > innerWidth ? x - box.width - 12 : x + 16;
		tip.style.left = Math.max(4, left) + "px";
		tip.style.top = Math.max(4, Math.min(y + 14, innerHeight - box.height - 6)) + "px";
	};
	addEventListener("scroll", hideTip, true);
	addEventListener("keydown", (e) => { if (e.key === "Escape") hideTip(); });

	const svgNS = "http://www.w3.org/2000/svg";
	const draw = (parent, name, attributes) => {
		const e = document.createElementNS(svgNS, name);
		for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v);
		parent.append(e);
		return e;
	};
	// toDrawing and toScreen change between pixels of the window and of a drawing.
	const toDrawing = (svg, e) => new DOMPoint(e.clientX, e.clientY).matrixTransform(svg.getScreenCTM().inverse());
	const toScreen = (svg, x, y) => new DOMPoint(x, y).matrixTransform(svg.getScreenCTM());
	// nearest returns the index of the number closest to v.
	const nearest = (list, v) => {
		let best = 0;
		for (let i = 1; i < list.length; i++) if (Math.abs(list[i] - v) < Math.abs(list[best] - v)) best = i;
		return best;
	};
	const isOff = (figure, series) => all(`.legend [data-s="${series}"]`, figure).some((b) => b.getAttribute("aria-pressed") === "false");

	// Curves: a line across all panels, and the values of the panel under the pointer.
	const hoverCurves = (figure, svg, data) => {
		const cross = draw(svg, "g", { class: "cross" });
		const alongX = data.axis === "x";
		let at = -1, panel = 0;
		const show = (x, y) => {
			cross.replaceChildren();
			const p = data.panels[panel], first = data.panels[0], last = data.panels[data.panels.length - 1], here = data.at[at];
			draw(cross, "line", alongX ? { x1: here, x2: here, y1: first.from, y2: last.to } : { x1: p.left, x2: p.right, y1: here, y2: here });
			const rows = [];
			for (const line of data.lines) {
				if (isOff(figure, line.series)) continue;
				const place = line.place[at];
				if (place !== null) draw(cross, "circle", { class: line.class, r: 3.5, cx: alongX ? here : place, cy: alongX ? place : here });
				if (line.panel === panel) rows.push({ color: line.class, name: line.name, value: line.text[at] });
			}
			showTip(x, y, data.labels[at] + (p.title ? " · " + p.title : ""), rows);
		};
		svg.addEventListener("pointermove", (e) => {
			const q = toDrawing(svg, e);
			const first = data.panels[0], last = data.panels[data.panels.length - 1];
			if (q.x < first.left - 8 || q.x > first.right + 8 || q.y < first.from - 8 || q.y > last.to + 8) return leave();
			at = nearest(data.at, alongX ? q.x : q.y);
			panel = nearest(data.panels.map((p) => (p.from + p.to) / 2), q.y);
			show(e.clientX, e.clientY);
		});
		const leave = () => { cross.replaceChildren(); hideTip(); };
		svg.addEventListener("pointerleave", leave);
		svg.addEventListener("blur", leave);
		svg.addEventListener("keydown", (e) => {
			const step = { ArrowRight: 1, ArrowUp: alongX ? 0 : 1, ArrowLeft: -1, ArrowDown: alongX ? 0 : -1 }[e.key];
			if (step === undefined) return;
			e.preventDefault();
			if (alongX && step === 0) panel = Math.max(0, Math.min(data.panels.length - 1, panel + (e.key === "ArrowDown" ? 1 : -1)));
			if (alongX || step !== 0) at = Math.max(0, Math.min(data.at.length - 1, at + step));
			const p = data.panels[panel];
			const q = toScreen(svg, alongX ? data.at[at] : (p.left + p.right) / 2, alongX ? (p.from + p.to) / 2 : data.at[at]);
			show(q.x, q.y);
		});
	};

	// Dots: the nearest one.
	const hoverDots = (figure, svg, data) => {
		const cross = draw(svg, "g", { class: "cross" });
		const near = 14;
		svg.addEventListener("pointermove", (e) => {
			const q = toDrawing(svg, e);
			let best = near * near, group = null, k = 0;
			for (const g of data.groups) {
				if (isOff(figure, g.series)) continue;
				for (let i = 0; i < g.x.length; i++) {
					const d = (g.x[i] - q.x) ** 2 + (g.y[i] - q.y) ** 2;
					if (d < best) [best, group, k] = [d, g, i];
				}
			}
			cross.replaceChildren();
			if (!group) return hideTip();
			draw(cross, "circle", { class: group.class, r: 5, cx: group.x[k], cy: group.y[k] });
			const time = new Date(data.from + group.times[k]).toISOString().slice(11, 23);
			showTip(e.clientX, e.clientY, group.names[k], [
				{ name: "arrived", value: time + " UTC" }, { name: data.value, value: group.texts[k] }, { color: group.class, name: group.name }]);
		});
		svg.addEventListener("pointerleave", () => { cross.replaceChildren(); hideTip(); });
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
		svg.addEventListener("pointerleave", leave);
		svg.addEventListener("blur", leave);
		svg.addEventListener("keydown", (e) => {
			const move = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] }[e.key];
			if (!move) return;
			e.preventDefault();
			const r = chosen ? +chosen.dataset.r + move[0] : 0, c = chosen ? +chosen.dataset.c + move[1] : 0;
			const next = svg.querySelector(`[data-r="${r}"][data-c="${c}"]`);
			if (!next) return;
			const box = next.getBoundingClientRect();
			show(next, box.right, box.bottom);
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
		const svg = figure.querySelector(".plot > svg"), json = figure.querySelector("script.hover");
		if (svg && json) {
			const data = JSON.parse(json.textContent);
			if (data.lines) hoverCurves(figure, svg, data);
			else if (data.groups) hoverDots(figure, svg, data);
			else hoverCells(svg, data);
		}
		if (svg) hoverTitles(svg);
		for (const button of all(".legend button", figure)) {
			button.addEventListener("click", () => {
				const on = button.getAttribute("aria-pressed") === "false";
				button.setAttribute("aria-pressed", on);
				for (const e of all(`.plot [data-s="${button.dataset.s}"]`, figure)) e.classList.toggle("off", !on);
			});
		}
	}

	// Tables: a click sorts down, another one up, a third one brings the order of the
	// report back. What is unknown comes last.
	const number = (text) => parseFloat(text.replace("−", "-"));
	const sortTable = (table, column, direction) => {
		const body = table.tBodies[0], right = table.tHead.rows[0].cells[column].classList.contains("right");
		const key = (row) => row.cells[column].title || row.cells[column].textContent;
		const compare = (a, b) => {
			const x = key(a), y = key(b);
			if ((x === "-") !== (y === "-")) return x === "-" ? 1 : -1;
			const byNumber = right && /^-?[\d.]+$/.test(x) && /^-?[\d.]+$/.test(y);
			const c = byNumber ? number(x) - number(y) : x < y ? -1 : x > y ? 1 : 0;
			return direction * c || a.place - b.place;
		};
		const rows = Array.from(body.rows);
		if (direction === 0) rows.sort((a, b) => a.place - b.place);
		else rows.sort(compare);
		body.append(...rows);
	};
	for (const table of all("table")) {
		Array.from(table.tBodies[0].rows).forEach((row, i) => { row.place = i; });
		const heads = Array.from(table.tHead.rows[0].cells);
		heads.forEach((head, column) => head.firstElementChild.addEventListener("click", () => {
			const first = head.classList.contains("right") ? "descending" : "ascending";
			const second = first === "descending" ? "ascending" : "descending";
			const now = head.getAttribute("aria-sort");
			const next = now === first ? second : now === second ? "" : first;
			for (const h of heads) h.removeAttribute("aria-sort");
			if (next) head.setAttribute("aria-sort", next);
			sortTable(table, column, { ascending: 1, descending: -1, "": 0 }[next]);
		}));
	}
	for (const input of all(".filter")) {
		const rows = Array.from(input.parentElement.querySelector("tbody").rows);
		input.addEventListener("input", () => {
			const want = input.value.toLowerCase();
			for (const row of rows) {
				const text = Array.from(row.cells, (c) => c.title || c.textContent).join(" ").toLowerCase();
				row.hidden = !text.includes(want);
			}
		});
	}
})();

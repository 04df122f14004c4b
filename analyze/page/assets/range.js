// What a range of time leaves of figures that have no axis of time: percentiles and sums are
// computed anew, from numbers that the program packed, as it computes them for --from and --to.

const enough = 30; // requests, or collectives, that numbers of a range need

// unpack reads packed numbers: digits of five bits, the lowest first.
const packedDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const unpack = (text) => {
	const list = [];
	let n = 0, scale = 1;
	for (const letter of text) {
		const digit = packedDigits.indexOf(letter);
		n += digit % 32 * scale;
		scale *= 32;
		if (digit >= 32) continue;
		list.push(n);
		n = 0;
		scale = 1;
	}
	return list;
};

// durationOf returns a duration with a reading, in ns.
const durationOf = (reading) => {
	if (reading < 1000) return reading;
	let n = reading - 1000;
	for (const [unit, powers] of [[1e3, 3], [1e6, 3], [1e9, 4]]) {
		const power = Math.floor(n / 9000);
		if (power < powers) return (n % 9000 + 1000) * (unit / 10 ** (3 - power));
		if (n === powers * 9000) return unit * 10 ** powers - 1; // 1000us
		n -= powers * 9000 + 1;
	}
	return (n + 1e4) * 1e9;
};

// durationText prints a duration in ns as the program does.
const durationText = (ns) => {
	if (ns < 1e3) return ns + "ns";
	if (ns >= 1e13) return Math.floor(ns / 1e9) + "s";
	const [size, unit] = ns < 1e6 ? [1e3, "us"] : ns < 1e9 ? [1e6, "ms"] : [1e9, "s"];
	return +(ns / size).toPrecision(4) + unit;
};

// nearestRank returns a percentile, in thousandths of a percent, of ascending values.
const nearestRank = (values, thousandths) => values[Math.max(1, Math.ceil(thousandths * values.length / 1e5)) - 1];

const counted = (n, what) => `${n.toLocaleString("en-US")} ${what}${n === 1 ? "" : "s"}`;

const sum = (list) => list.reduce((all, one) => all + one, 0);

// noteOf adds a note to a figure, below its caption, which a range of time needs.
const noteOf = (figure) => {
	const note = element("p", "range-note");
	note.setAttribute("role", "status");
	figure.querySelector(".plot").before(note);
	return note;
};

// requestsIn tells which requests overlap a range: 1 at the number of each, which begins at 1.
const requestsIn = (times, r) => {
	if (!times.list) times.list = unpack(times.spans);
	const from = Math.round(r.from * 1000) - times.from, to = Math.round(r.to * 1000) - times.from;
	const chosen = new Uint8Array(times.list.length / 2 + 1);
	for (let i = 1; i < chosen.length; i++) {
		const start = times.list[2 * i - 2], end = start + times.list[2 * i - 1] - 1;
		if (start <= to && end >= from) chosen[i] = 1;
	}
	return chosen;
};

// valuesIn returns the values of a line of requests that are chosen, ascending, and marks those
// requests in seen; null if the values are not in the page.
const valuesIn = (l, chosen, seen) => {
	if (!l.packed) return null;
	if (!l.list) l.list = unpack(l.packed);
	const values = [];
	for (let i = 0, reading = 0; i < l.list.length; i += 2) {
		reading += l.list[i];
		const request = l.list[i + 1];
		if (!chosen[request]) continue;
		seen[request] = 1;
		values.push(durationOf(reading));
	}
	return values;
};

// followPercentiles draws the curves of a figure anew where a range is chosen.
const followPercentiles = (figure, data, times) => {
	const note = noteOf(figure);
	const lines = data.lines.map((line, i) => ({
		line, place: line.place, text: line.text, packed: data.packed[i], label: figure.querySelector(`.legend [data-s="${line.series}"]`).lastChild,
		paths: all(`.curve[data-s="${line.series}"] path`, figure).map((path) => ({ path, d: path.getAttribute("d") })),
		cells: Array.from(figure.querySelectorAll(".numbers tbody tr")[i].cells).slice(1).map((cell) => ({ cell, text: cell.textContent })),
	}));
	for (const l of lines) l.legend = l.label.textContent;
	figure.lines = lines;
	const percents = data.labels.map((label) => Math.round(label.slice(1) * 1000));
	const place = (ns) => Math.log(Math.max(ns, data.low) / data.low) / Math.log(data.high / data.low);

	// draw draws a line; without values that are enough, nothing.
	const draw = (l, values, requests) => {
		const known = values !== null && requests >= enough;
		const curve = known ? percents.map((p) => nearestRank(values, p)) : [];
		l.line.place = percents.map((_, i) => (known ? place(curve[i]) : null));
		l.line.text = percents.map((_, i) => (known ? durationText(curve[i]) : "-"));
		for (const { path } of l.paths) {
			const view = path.closest("svg.view"), width = +view.getAttribute("width"), height = +view.getAttribute("height");
			path.setAttribute("d", curve.map((_, i) => `${i ? "L" : "M"}${(l.line.place[i] * width).toFixed(1)} ${(data.at[i] * height).toFixed(1)}`).join(""));
		}
		const n = values === null ? "not in the page" : known ? values.length : `${counted(requests, "request")}, ${enough} needed`;
		l.label.textContent = `${l.line.name} (${n})`;
		const numbers = [50e3, 90e3, 95e3, 99e3, 100e3].map((p) => (known ? durationText(nearestRank(values, p)) : "-"));
		[values === null ? "-" : values.length, ...numbers].forEach((text, i) => { l.cells[i].cell.textContent = text; });
	};
	const restore = (l) => {
		[l.line.place, l.line.text, l.label.textContent] = [l.place, l.text, l.legend];
		for (const { path, d } of l.paths) path.setAttribute("d", d);
		for (const { cell, text } of l.cells) cell.textContent = text;
	};
	figure.setRange = (r) => {
		note.textContent = "";
		if (!r) return lines.forEach(restore);
		const chosen = requestsIn(times, r), any = new Uint8Array(chosen.length);
		let most = 0;
		for (const l of lines) {
			const seen = new Uint8Array(chosen.length), values = valuesIn(l, chosen, seen), requests = sum(seen);
			draw(l, values, requests);
			most = Math.max(most, requests);
			seen.forEach((one, i) => { any[i] |= one; });
		}
		const n = counted(sum(any), "request");
		note.textContent = most >= enough ? `In the range of time: ${n}.` : `Not enough data: ${n}, ${enough} needed.`;
	};
};

// Colors of sums: h0 is nothing, h1 to h5 are fifths of the largest.
const sumClass = (v, most) => (v > 0 ? "h" + Math.min(5, 1 + Math.floor(5 * v / most)) : "none");
const cellRoom = 38, letterWidth = 6.7; // as the program draws cells

// followSums sums up the cells of a heat map anew, in the parts of the time that overlap a range.
const followSums = (figure, course) => {
	const note = noteOf(figure), counts = unpack(course.counts), sums = unpack(course.sums);
	const wide = (course.to - course.from) / counts.length || 1;
	const cells = all(".cell", figure).map((cell) => ({ cell, name: cell.getAttribute("class"), tip: cell.tipText, text: (cell.querySelector("text") || {}).textContent }));
	const legend = all(".legend span", figure).map((entry) => ({ label: entry.lastChild, text: entry.textContent }));
	const numbers = all(".numbers tbody tr", figure).map((row) => Array.from(row.cells).slice(1).map((cell) => ({ cell, text: cell.textContent })));

	// write puts a text into a cell if it has room there.
	const write = (cell, text) => {
		const old = cell.querySelector("text"), rect = cell.querySelector("rect");
		if (old) old.remove();
		const width = +rect.getAttribute("width") + 1, y = +rect.getAttribute("y") + (+rect.getAttribute("height") + 1) / 2;
		if (!text || width < cellRoom || text.length * letterWidth >= width - 2) return;
		svgElement(cell, "text", { x: +rect.getAttribute("x") + width / 2 - 0.5, y: y + 3.5, class: "mid" }).textContent = text;
	};
	const restore = () => {
		note.textContent = "";
		for (const { cell, name, tip, text } of cells) {
			cell.setAttribute("class", name);
			cell.tipText = tip;
			write(cell, text);
		}
		for (const { label, text } of legend) label.textContent = text;
		for (const { cell, text } of numbers.flat()) cell.textContent = text;
	};
	// sumUp returns the sum of each cell, by row and column, in parts of the time.
	const sumUp = (first, last) => {
		const of = {};
		for (let i = 0, part = 0; i < sums.length; i += 4) {
			part += sums[i];
			const key = sums[i + 1] + " " + sums[i + 2];
			if (part >= first && part <= last) of[key] = (of[key] || 0) + sums[i + 3];
		}
		return of;
	};
	figure.setRange = (r) => {
		restore();
		if (!r) return;
		const first = Math.max(0, Math.floor((r.from - course.from) / wide)), last = Math.min(counts.length - 1, Math.floor((r.to - course.from) / wide));
		const n = sum(counts.slice(first, Math.max(first, last + 1)));
		const known = n >= enough, of = known ? sumUp(first, last) : {}, most = Math.max(0, ...Object.values(of));
		const time = (part) => timeText(wholeMicros(course.from + part * wide), wide);
		note.textContent = known ? `Sums of ${counted(n, course.of)} from ${time(first)} to ${time(last + 1)}.`
			: `Not enough data: ${counted(n, course.of)}, ${enough} needed.`;
		for (const { cell } of cells) {
			const value = of[cell.dataset.r + " " + cell.dataset.c] || 0;
			cell.setAttribute("class", "cell " + sumClass(value, most));
			cell.tipText = value ? course.text + durationText(value) : "";
			write(cell, value ? durationText(value) : "");
		}
		legend.forEach(({ label }, i) => { label.textContent = known ? "from " + (i ? durationText(Math.round(most * i / 5)) : "0") : "-"; });
		numbers.forEach((row, i) => row.forEach(({ cell }, k) => {
			const value = of[i + " " + k] || 0;
			cell.textContent = value ? durationText(value) : "-";
		}));
	};
};

// followRequests leaves the waterfalls of requests that overlap a range.
const followRequests = (figure) => {
	const note = noteOf(figure), requests = all("details.request", figure);
	figure.setRange = (r) => {
		for (const d of requests) {
			const { from, to } = d.querySelector(".zoom-request").dataset;
			d.hidden = !!r && (+to < r.from || +from > r.to);
		}
		const seen = requests.filter((d) => !d.hidden).length;
		note.textContent = r ? `In the range of time: ${seen} of ${counted(requests.length, "request")}.` : "";
	};
};

// followCommand gives a command the flags that print a range.
const followCommand = (figure, command) => {
	const whole = command.textContent, before = figure.setRange;
	figure.setRange = (r) => {
		if (before) before(r);
		command.textContent = r ? `${whole.replace(/ --(from|to)[ =]\S+/g, "")} ${timeFlags(r)}` : whole;
	};
};

for (const figure of all("figure")) {
	if (figure.data && figure.data.course) followSums(figure, figure.data.course);
	if (figure.data && figure.data.packed) {
		const section = figure.closest("section");
		section.times = section.times || JSON.parse(section.querySelector("script.requests").textContent);
		followPercentiles(figure, figure.data, section.times);
	}
	if (figure.querySelector("details.request")) followRequests(figure);

	// Whatever shows the whole run whatever range is chosen says so: a figure, the table below a
	// chart that zooms, and a section whose figure has no heading of its own.
	const numbers = figure.querySelector(".numbers");
	if (numbers && !figure.setRange) numbers.classList.add("whole");
	if (!figure.setRange && !figure.querySelector("svg[data-from], tr[data-t]")) (figure.querySelector("h3") ? figure : figure.closest("section")).classList.add("whole");
	const command = figure.querySelector(":scope > .source .command");
	if (command) followCommand(figure, command);
}

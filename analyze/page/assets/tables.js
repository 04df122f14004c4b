// Tables: a click sorts down, another one up, a third one brings the order of the report
// back. What is unknown comes last. Long tables show their first rows until asked for all.
const number = (text) => parseFloat(text.replace("−", "-").replace(/^[<>≤≥~] ?/, ""));
const isNumber = (text) => /^[<>≤≥~]? ?[-−]?[\d.]+(e[-+]?\d+)?$/i.test(text);
const sortTable = (table, column, direction) => {
	const body = table.tBodies[0], right = table.tHead.rows[0].cells[column].classList.contains("right");
	const key = (row) => row.cells[column].title || row.cells[column].textContent;
	const compare = (a, b) => {
		const x = key(a), y = key(b);
		if ((x === "-") !== (y === "-")) return x === "-" ? 1 : -1;
		const byNumber = right && isNumber(x) && isNumber(y);
		const c = byNumber ? number(x) - number(y) : x < y ? -1 : x > y ? 1 : 0;
		return direction * c || a.place - b.place;
	};
	const rows = Array.from(body.rows);
	if (direction === 0) rows.sort((a, b) => a.place - b.place);
	else rows.sort(compare);
	body.append(...rows);
};

const firstRows = 15;
for (const box of all(".table")) {
	const table = box.querySelector("table"), filter = box.querySelector(".filter"), more = box.querySelector(".more");
	const rows = Array.from(table.tBodies[0].rows);
	rows.forEach((row, i) => { row.place = i; });
	let whole = false, range = null;
	// show hides what the filter and the range of time leave out, and what is beyond the first rows.
	const show = () => {
		const want = filter ? filter.value.toLowerCase() : "";
		let shown = 0, left = 0;
		for (const row of Array.from(table.tBodies[0].rows)) {
			const text = want && Array.from(row.cells, (c) => c.title || c.textContent).join(" ").toLowerCase();
			const out = (want && !text.includes(want)) || (range && row.dataset.t && (row.dataset.t < range.from || row.dataset.t > range.to));
			row.hidden = out || (!whole && shown >= firstRows && !row.matches(":target"));
			if (!out) shown++;
			if (!out && row.hidden) left++;
		}
		if (!more) return;
		more.hidden = !left && !whole;
		more.textContent = whole ? "first rows only" : `all ${shown} rows`;
	};
	box.show = show;
	box.setRange = (r) => { range = r; show(); };
	if (filter) filter.addEventListener("input", show);
	if (more) more.addEventListener("click", () => { whole = !whole; show(); });
	const heads = Array.from(table.tHead.rows[0].cells);
	heads.forEach((head, column) => head.querySelector("button").addEventListener("click", () => {
		const first = head.classList.contains("right") ? "descending" : "ascending";
		const second = first === "descending" ? "ascending" : "descending";
		const now = head.getAttribute("aria-sort");
		const next = now === first ? second : now === second ? "" : first;
		for (const h of heads) h.removeAttribute("aria-sort");
		if (next) head.setAttribute("aria-sort", next);
		sortTable(table, column, { ascending: 1, descending: -1, "": 0 }[next]);
		show();
	}));
	show();
}

// The address: which element is shown, and which range of time, "#finding-1&from=...&to=...".
const readAddress = () => {
	const [id, ...rest] = location.hash.slice(1).split("&");
	const given = Object.fromEntries(rest.concat(id).map((part) => part.split("=")));
	const from = parseTime(given.from), to = parseTime(given.to);
	return { id: id.includes("=") ? "" : decodeURIComponent(id), range: to > from ? { from, to } : null };
};
let shownID = "";
const writeAddress = () => {
	const parts = shownID ? [encodeURIComponent(shownID)] : [];
	if (range) parts.push("from=" + timeFlag(range.from), "to=" + timeFlag(range.to));
	const hash = parts.length ? "#" + parts.join("&") : "";
	if (hash !== location.hash) history.replaceState(null, "", hash || location.pathname);
};

// requestOf returns the waterfall of a request; nothing if the page has none.
const requestOf = (rid) => all("details.request").find((d) => d.dataset.rid === rid);

// reveal shows an element: opens what it is in, and scrolls to it.
const reveal = (id) => {
	shownID = id;
	const e = id && (document.getElementById(id) || requestOf(id));
	if (!e) return;
	for (let d = e; d; d = d.parentElement) if (d.localName === "details") d.open = true;
	for (const old of all(".shown")) old.classList.remove("shown");
	e.classList.add("shown");
	if (e.hidden) e.hidden = false; // a row beyond the first ones
	e.scrollIntoView();
};
const follow = () => {
	const to = readAddress();
	if (to.range) setRange(to.range);
	reveal(to.id);
	writeAddress();
};
addEventListener("hashchange", follow);

// openRequest shows the waterfall of a request, or says how to see it if the page has none.
const openRequest = (rid) => {
	const e = requestOf(rid);
	if (e) {
		reveal(e.id);
		writeAddress();
		return;
	}
	const quoted = /^[\w.:@%+=\/-]+$/.test(rid) ? rid : "'" + rid.replaceAll("'", "'\\''") + "'"; // for a shell
	const box = document.getElementById("no-waterfall");
	box.querySelector("strong").textContent = rid;
	for (const code of all("code", box)) code.textContent = code.dataset.command.replace("RID", () => quoted);
	box.hidden = false;
};
document.getElementById("close-no-waterfall").addEventListener("click", (e) => { e.target.parentElement.hidden = true; });
// Escape closes what is in front: a range that is being drawn, the dialog, the chosen range.
addEventListener("keydown", (e) => {
	if (e.key !== "Escape" || e.target.type === "search") return;
	const box = document.getElementById("no-waterfall");
	if (endBrush) endBrush();
	else if (!box.hidden) box.hidden = true;
	else setRange(null);
});
for (const button of all("button.zoom-request")) {
	button.hidden = !timeCharts.length;
	button.addEventListener("click", () => setRange({ from: +button.dataset.from, to: +button.dataset.to }));
}
addEventListener("beforeprint", () => { for (const d of all("li.finding details")) d.open = true; });
follow();

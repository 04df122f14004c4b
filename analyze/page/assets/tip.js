// What all parts of the script share: finding elements, and the tip beside the pointer.
// Text from traces is only ever set as textContent.
const all = (selector, from) => Array.from((from || document).querySelectorAll(selector));
const element = (name, className, text) => {
	const e = document.createElement(name);
	if (className) e.className = className;
	if (text) e.textContent = text;
	return e;
};
const svgElement = (parent, name, attributes) => {
	const e = document.createElementNS("http://www.w3.org/2000/svg", name);
	for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v);
	parent.append(e);
	return e;
};
for (const e of all(".script")) e.hidden = false;

// How far the clock that people read is ahead of UTC, in ms, and from when on: as the charts
// over time say, which the program drew by that clock.
const zoneOffsets = all("svg[data-zone]").flatMap((svg) => svg.dataset.zone.split(" ").map((pair) => pair.split(",").map(Number)))
	.sort((a, b) => a[0] - b[0]);
const zoneOffset = (ms) => {
	const [, offset] = zoneOffsets.findLast(([from]) => from <= ms) || zoneOffsets[0] || [0, 0];
	return offset;
};
// wallTime is a time on that clock as ISO 8601, without its zone.
const wallTime = (ms) => new Date(Math.floor(ms) + zoneOffset(ms)).toISOString().slice(0, 23);
// zoneText is the zone at a time: "+02:00", and "" in UTC.
const zoneText = (ms) => {
	const offset = zoneOffset(ms);
	return offset && (offset < 0 ? "-" : "+") + new Date(Math.abs(offset)).toISOString().slice(11, 16) || "";
};

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

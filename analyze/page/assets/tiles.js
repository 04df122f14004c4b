// Tiles: in a range of time, each shows what the program counts with --from and --to. Tiles that
// have no numbers of a range say that theirs are of the whole run.

// numbersIn returns the value, the detail, and the state of a tile in a range; the state of ""
// stays as it is.
const numbersIn = {
	requests: (chosen, times) => {
		const ended = times.statuses.map(() => 0);
		for (let i = 1; i < chosen.length; i++) ended[times.ended[i - 1]] += chosen[i];
		const parts = times.statuses.map((status, i) => [ended[i], status]).filter(([n]) => n);
		const detail = parts.map(([n, status]) => `${n.toLocaleString("en-US")} ${status}`).join(", ");
		return [sum(ended).toLocaleString("en-US"), detail, ended[times.statuses.indexOf("failed")] ? "bad" : "good"];
	},
	goodput: (chosen, times) => {
		const [, met, missed] = [0, 1, 2].map((state) => sum(Array.from(times.met, (digit, i) => +(chosen[i + 1] && +digit === state))));
		if (!(met + missed)) return ["–", "no request can be judged", "neutral"];
		const percent = Math.floor(100 * met / (met + missed) + 0.5);
		return [percent ? percent + " %" : "0", `${met.toLocaleString("en-US")} of ${counted(met + missed, "request")}`, missed ? "bad" : "good"];
	},
};
const latencyIn = (line) => (chosen) => {
	const values = valuesIn(line, chosen, []);
	if (!values.length) return ["–", "of no request known", ""];
	const [p50, p99] = [50e3, 99e3].map((p) => durationText(nearestRank(values, p)).replace(/[a-z]/, " $&"));
	return [p50, "p99 " + p99, ""];
};

for (const tile of all(".tiles li")) {
	const figure = document.getElementById("requests-percentiles"), section = figure && figure.closest("section"), follows = tile.dataset.follows;
	const line = figure && figure.lines && figure.lines.find((l) => l.packed && l.line.name === follows);
	const numbers = section && section.times && (line ? latencyIn(line) : numbersIn[follows]);
	if (!numbers) {
		tile.classList.add("whole");
		continue;
	}
	const value = tile.querySelector(".value").firstChild, detail = tile.querySelector(".detail");
	const whole = [value.data, detail.textContent, tile.className], unit = tile.querySelector(".value small");
	tile.setRange = (r) => {
		const [text, more, state] = r ? numbers(requestsIn(section.times, r), section.times) : whole;
		[value.data, detail.textContent, tile.className] = [text + (r && unit ? " " : ""), more, state || whole[2]];
	};
}

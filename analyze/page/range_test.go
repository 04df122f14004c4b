package page

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/finders"
	"github.com/sgtrace/sgtrace/analyze/metric"
	"github.com/sgtrace/sgtrace/analyze/overview"
	"github.com/sgtrace/sgtrace/analyze/page/chart"
	"github.com/sgtrace/sgtrace/analyze/requests"
	"github.com/sgtrace/sgtrace/golden/simulator"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/testkit/readback"
	"github.com/sgtrace/sgtrace/testkit/testset"
	"github.com/sgtrace/sgtrace/trace"
)

// chooseRange opens a time range through the page's address.
func chooseRange(t *testing.T, b *readback.Browser, from, to trace.Time) {
	t.Helper()
	text := func(at trace.Time) string { return time.Unix(0, int64(at)).UTC().Format("2006-01-02T15:04:05.000000Z") }
	must(t, b.Eval(fmt.Sprintf(`location.hash = "#from=%s&to=%s"; new Promise(r => setTimeout(r, 50))`, text(from), text(to)), nil))
}

// numbersOf returns the numbers below a figure: the cells of each row, by the name of the row.
func numbersOf(t *testing.T, b *readback.Browser, figure string) map[string]string {
	t.Helper()
	return eval[map[string]string](t, b, `Object.fromEntries(Array.from(document.getElementById(%q).querySelectorAll(".numbers tbody tr"),
		r => [r.cells[0].textContent, Array.from(r.cells).slice(1).map(c => c.textContent).join(" ")]))`, figure)
}

// summaryText formats a summary of requests like the numbers below percentile curves.
func summaryText(s *distribution.Summary, requests int) string {
	if requests < 30 {
		return fmt.Sprintf("%d - - - - -", s.N)
	}
	text := fmt.Sprint(s.N)
	for _, ns := range []int64{s.P50, s.P90, s.P95, s.P99, s.Max} {
		text += " " + trace.FormatDuration(ns)
	}
	return text
}

// printedIn returns the percentiles that the program prints for --from and --to, by
// the title of their figure and the name of the curve.
func printedIn(t *testing.T, from, to trace.Time) map[[2]string]string {
	t.Helper()
	config := simulator.DefaultConfig(1)
	config.Straggler = simulator.Straggler{TP: 1, Delay: 4_000_000}
	set := simulate(t, config)
	must(t, set.Select(request.Selection{From: from, To: to}))
	printed := map[[2]string]string{}
	names := map[string]string{"e2e": "E2E", "user_ttft": "user TTFT", "tpot": "TPOT", "queue": "queue", "transfer": "transfer", "itl": "ITL"}
	for _, l := range requests.MeasureLatencies(set).Rows {
		if l.Of == requests.Finished && names[l.Metric] != "" {
			printed[[2]string{"Finished requests", names[l.Metric]}] = summaryText(&l.Summary, withMetric(set, l.Metric))
		}
	}
	by, err := requests.ParseDimensions("role,stage")
	must(t, err)
	for _, g := range requests.GroupStages(set, by).Groups {
		printed[[2]string{"Stages of " + g.Key[0] + " servers", g.Key[1]}] = summaryText(&g.Summary, withStage(set, g.Key[0], g.Key[1]))
	}
	return printed
}

// withMetric counts the finished requests with a known metric.
func withMetric(set *request.Set, name string) int {
	n := 0
	for i := range set.Requests {
		r := &set.Requests[i]
		known := len(cmp.Or(metric.Named(name), metric.UserTTFT).Values(nil, set, r)) > 0
		if known && r.Status == request.Finished {
			n++
		}
	}
	return n
}

// withStage counts the requests that have a stage on servers of a role.
func withStage(set *request.Set, role, stage string) int {
	seen := map[int]bool{}
	for i := range set.Len() {
		if set.Kind(i) == request.Stage && set.Name(i) == stage && set.ProcOf(i) != request.None && set.Procs[set.ProcOf(i)].Role.String() == role {
			seen[set.RequestOf(i)] = true
		}
	}
	return len(seen)
}

// A time range in the page has the same percentiles as the program prints for that --from and --to.
func TestPercentilesOfARangeInBrowser(t *testing.T) {
	b, open := browse(t)
	o, p := incident(t)
	open(p)
	whole := eval[string](t, b, `document.getElementById("latency").innerHTML`)
	begin, end, _ := o.Requests.Bounds()
	from := (begin + (end-begin)/3) / 1000 * 1000
	to := (from + (end-begin)/4) / 1000 * 1000
	chooseRange(t, b, from, to)
	printed := printedIn(t, from, to)
	figures := eval[map[string]string](t, b, `Object.fromEntries(Array.from(document.querySelectorAll("#latency figure:has(.curve)"), f => [f.querySelector("h3").textContent, f.id]))`)
	compared, known := 0, 0
	for title, id := range figures {
		for name, got := range numbersOf(t, b, id) {
			asked := [2]string{title, name}
			wanted, any := printed[asked]
			if !any {
				wanted = "0 - - - - -"
			}
			want(t, fmt.Sprint(asked), got, wanted)
			compared++
			if !strings.Contains(wanted, "-") {
				known++
			}
		}
	}
	if compared < 15 || known < 10 {
		t.Errorf("%d curves are compared, %d of them known", compared, known)
	}
	note := func() string {
		return eval[string](t, b, `document.querySelector("#requests-percentiles .range-note").textContent`)
	}
	if text := note(); !strings.HasPrefix(text, "In the range of time: ") {
		t.Errorf("note %q", text)
	}
	chooseRange(t, b, from, from+1000)
	if text := note(); !strings.HasPrefix(text, "Not enough data: ") || !strings.HasSuffix(text, " requests, 30 needed.") {
		t.Errorf("note %q of a short range", text)
	}
	want(t, "curves of a short range", eval[int](t, b, `document.querySelectorAll("#requests-percentiles .curve path:not([d=''])").length`), 0)
	must(t, b.Eval(`document.getElementById("time-all").click()`, nil))
	want(t, "note of the whole time", note(), "")
	want(t, "the whole is as before", eval[string](t, b, `document.getElementById("latency").innerHTML`) == whole, true)
}

// The script formats a packed duration as the program does.
func TestPackedDurationsInBrowser(t *testing.T) {
	b, open := browse(t)
	open(Page{Title: "empty"})
	random := rand.New(rand.NewPCG(3, 4))
	list := []int64{0, 1, 999, 1000, 999_949, 999_950, 999_999, 12_125_000, 999_950_000, 999_999_999, 1_000_500_000_000, 1e13, 3e14}
	for range 2000 {
		list = append(list, random.Int64N(1<<(4+random.IntN(38))))
	}
	slices.Sort(list)
	packed := chart.PackDurations(list, make([]int32, len(list)))
	texts := eval[[]string](t, b, `(() => { const all = () => []; %s
		let reading = 0;
		return unpack(%q).filter((_, i) => i %% 2 === 0).map(n => durationText(durationOf(reading += n)));
	})()`, rangeScript, packed)
	for i, ns := range list {
		want(t, fmt.Sprintf("%d ns", ns), texts[i], trace.FormatDuration(ns))
	}
}

// The wait matrix of a time range has the sums over the collectives in it; for the
// whole time, over all collectives.
func TestWaitsOfARangeInBrowser(t *testing.T) {
	b, open := browse(t)
	met := &testset.CollectiveMatches{}
	set := &profile.Set{Syms: trace.NewSymbols(), Ranks: []string{"a", "b", "c"}, Collectives: met}
	random := rand.New(rand.NewPCG(5, 6))
	const step = 10_000_000 // ns between collectives, which end 2 ms into it
	begin := trace.Time(1_787_000_000_000_000_000)
	const n = 1001
	var waits [n][3]int64 // of each rank for the last one, which is the collective's number modulo 3
	for i := range n {
		at := begin + trace.Time(i*step)
		x := profile.CollectiveMatch{Name: set.Syms.Intern("ncclDevKernel_AllReduce"), Op: set.Syms.Intern("allreduce"), GroupSize: 3, Sync: true}
		for r := range 3 {
			if r != i%3 {
				waits[i][r] = 1000 + random.Int64N(1_000_000)
			}
			x.Arrivals = append(x.Arrivals, profile.Arrival{Rank: int32(r), Start: at + trace.Time(1_500_000-waits[i][r]), End: at + 2_000_000})
		}
		met.Points = append(met.Points, x)
	}
	m := finders.Measure(finders.Inputs{Profiles: set, Drawn: true})
	m.GPUs = sampleGPUs(3, 1, hostileName)
	open(Page{Title: "waits", Sections: []Section{Collectives(&m, Source{})}})
	sums := func(from, to int) string {
		var of [3][3]int64
		for i := from; i < to; i++ {
			for r := range 3 {
				of[r][i%3] += waits[i][r]
			}
		}
		var cells []string
		for r := range 3 {
			for s := range 3 {
				text := "-"
				if of[r][s] > 0 {
					text = trace.FormatDuration(of[r][s])
				}
				cells = append(cells, text)
			}
		}
		return strings.Join(cells, " ")
	}
	shown := func() string {
		numbers := numbersOf(t, b, "waits")
		return numbers["a"] + " " + numbers["b"] + " " + numbers["c"]
	}
	want(t, "waits of the whole time", shown(), sums(0, n))
	// The range has 5 collectives: from the end of the first one on, 50 ms.
	first := begin + 2_000_000
	chooseRange(t, b, first+40*5*step+1_000_000, first+80*5*step-1_000_000)
	want(t, "waits of 200 collectives", shown(), sums(200, 400))
	want(t, "cells", eval[string](t, b, `Array.from(document.querySelectorAll("#waits .for-wide .cell"), c => c.textContent || "-").join(" ")`), sums(200, 400))
	note := func() string { return eval[string](t, b, `document.querySelector("#waits .range-note").textContent`) }
	want(t, "note", note(), "Sums of 200 collectives from 20:53:22.002 to 20:53:24.002.")
	chooseRange(t, b, first+40*5*step+1_000_000, first+42*5*step-1_000_000)
	want(t, "note of a short range", note(), "Not enough data: 10 collectives, 30 needed.")
	want(t, "waits of a short range", shown(), "- - - - - - - - -")
	chooseRange(t, b, begin-step, begin+n*step)
	want(t, "waits of more than the time", shown(), sums(0, n))
	must(t, b.Eval(`document.getElementById("time-all").click()`, nil))
	want(t, "waits of the whole time again", shown(), sums(0, n))
}

// tileIn returns the value and the detail of a tile.
func tileIn(t *testing.T, b *readback.Browser, name string) string {
	t.Helper()
	return eval[string](t, b, `(() => {
		const tile = Array.from(document.querySelectorAll(".tiles li")).find(e => e.querySelector(".name").textContent === %q);
		return tile.querySelector(".value").firstChild.data.trim() + "; " + tile.querySelector(".detail").textContent;
	})()`, name)
}

// spaced formats a duration with a space before its unit.
func spaced(ns int64) string {
	text := trace.FormatDuration(ns)
	at := strings.IndexAny(text, "munps")
	return text[:at] + " " + text[at:]
}

// The tiles of a time range equal what the program counts for that --from and --to.
// Tiles without data for a range say so, and the commands below figures get both flags.
func TestTilesOfARangeInBrowser(t *testing.T) {
	b, open := browse(t)
	objectives, err := requests.ParseObjectives("ttft=200ms")
	must(t, err)
	o := overview.New(overview.Input{Inputs: []string{"otel.jsonl"}, Requests: simulate(t, simulator.DefaultConfig(1)), SLO: objectives})
	p, err := Overview(o, made, nil)
	must(t, err)
	p.Tiles = append(p.Tiles, Tile{Name: "GPU busy", Value: "90 %", Detail: "least: 80 %"})
	open(p)
	names := []string{"Requests", "user TTFT", "ITL", "E2E", "Goodput"}
	var whole []string
	for _, name := range names {
		whole = append(whole, tileIn(t, b, name))
	}
	begin, end, _ := o.Requests.Bounds()
	from := (begin + (end-begin)/3) / 1000 * 1000
	to := (from + (end-begin)/4) / 1000 * 1000
	chooseRange(t, b, from, to)

	set := simulate(t, simulator.DefaultConfig(1))
	must(t, set.Select(request.Selection{From: from, To: to}))
	in := overview.New(overview.Input{Requests: set, SLO: objectives})
	want(t, "requests", tileIn(t, b, "Requests"), outcomes(in).Value+"; "+outcomes(in).Detail)
	for _, l := range in.Latencies {
		if name := strings.ToUpper(l.Metric); slices.Contains(names, name) {
			want(t, name, tileIn(t, b, name), spaced(l.P50)+"; p99 "+spaced(l.P99))
		}
	}
	good := &in.Goodput.All
	want(t, "goodput", tileIn(t, b, "Goodput"), fmt.Sprintf("%s; %d of %d requests", goodputTile(in.Goodput).Value, good.Met, good.Judged()))
	mark := `getComputedStyle(document.querySelector(".tiles li:%s-child .detail"), "::after").content`
	want(t, "mark of GPU busy", eval[string](t, b, mark, "last"), `" · whole run"`)
	want(t, "mark of requests", eval[string](t, b, mark, "first"), "none")
	command := func() string {
		return eval[string](t, b, `document.querySelector("#tail-ttft .source code").textContent`)
	}
	if text := command(); !strings.Contains(text, " --from 20") || !strings.Contains(text, " --to 20") {
		t.Errorf("command of a figure of the whole run: %s", text)
	}
	must(t, b.Eval(`document.getElementById("time-all").click()`, nil))
	for i, name := range names {
		want(t, name+" of the whole run", tileIn(t, b, name), whole[i])
	}
	if text := command(); strings.Contains(text, "--from") {
		t.Errorf("command of a figure: %s", text)
	}
}

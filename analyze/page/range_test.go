package page

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/page/chart"
	"github.com/sgtrace/sgtrace/analyze/requests"
	"github.com/sgtrace/sgtrace/golden/simulator"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// chooseRange opens a range of time by the address of the page.
func chooseRange(t *testing.T, b *chromium, from, to trace.Time) {
	t.Helper()
	text := func(at trace.Time) string { return time.Unix(0, int64(at)).UTC().Format("2006-01-02T15:04:05.000000Z") }
	must(t, b.eval(fmt.Sprintf(`location.hash = "#from=%s&to=%s"; new Promise(r => setTimeout(r, 50))`, text(from), text(to)), nil))
}

// numbersOf are the numbers below a figure: the cells of each row, by the name of the row.
func numbersOf(t *testing.T, b *chromium, figure string) map[string]string {
	t.Helper()
	return eval[map[string]string](t, b, `Object.fromEntries(Array.from(document.getElementById(%q).querySelectorAll(".numbers tbody tr"),
		r => [r.cells[0].textContent, Array.from(r.cells).slice(1).map(c => c.textContent).join(" ")]))`, figure)
}

// summaryText is a summary of values of some requests as the numbers below percentiles have it.
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

// printedIn are the percentiles that the program prints for --from and --to, by the title of
// the figure that shows them and the name of the curve.
func printedIn(t *testing.T, from, to trace.Time) map[[2]string]string {
	t.Helper()
	config := simulator.DefaultConfig(1)
	config.Straggler = simulator.Straggler{TP: 1, Delay: 4_000_000}
	set := simulate(t, config)
	must(t, set.Select(request.Selection{From: from, To: to}))
	printed := map[[2]string]string{}
	names := map[string]string{"e2e": "E2E", "ttft": "TTFT", "tpot": "TPOT", "queue": "queue", "transfer": "transfer", "itl": "ITL"}
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

// withMetric counts the finished requests of which a metric is known.
func withMetric(set *request.Set, metric string) int {
	n := 0
	for i := range set.Requests {
		r := &set.Requests[i]
		known := metric == "itl" && len(set.Gaps(r)) > 0
		for _, m := range requests.RequestMetrics {
			known = known || m.Name == metric && m.Of(&r.Metrics) >= 0
		}
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

// A range of time that a reader chooses has the percentiles that the program prints for the
// same --from and --to.
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
	must(t, b.eval(`document.getElementById("time-all").click()`, nil))
	want(t, "note of the whole time", note(), "")
	want(t, "the whole is as before", eval[string](t, b, `document.getElementById("latency").innerHTML`) == whole, true)
}

// The script reads a packed duration as the program prints it.
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

package diff

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sgtrace/sgtrace/analyze/change"
	"github.com/sgtrace/sgtrace/analyze/diff/compare"
	"github.com/sgtrace/sgtrace/analyze/diff/setup"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/golden/cluster"
	"github.com/sgtrace/sgtrace/golden/simulator"
	"github.com/sgtrace/sgtrace/internal/significance"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/testkit/testset"
	"github.com/sgtrace/sgtrace/trace"
)

// onset is the start of the first request of the incident.
func onset(s *request.Set, c *simulator.Config) trace.Time {
	return s.Requests[int(c.Incident.Onset*float64(len(s.Requests)))].Start
}

// A balancer that begins to prefer one rank is found if one capture is split at that
// time: the shares of the ranks change, and requests take longer to their first token.
func TestDiffAcrossAnOnset(t *testing.T) {
	config := simulator.DefaultConfig(1)
	set, _ := testset.Simulated(t, config)
	at := onset(set, &config)
	before, after := collect(Capture{Requests: set, To: at}), collect(Capture{Requests: set, From: at})
	d := Compare(before, after, Options{})
	if d.Before.Requests+d.After.Requests != int64(len(set.Requests)) || d.Before.Requests != int64(config.Incident.Onset*float64(len(set.Requests))) {
		t.Errorf("%d and %d of %d requests", d.Before.Requests, d.After.Requests, len(set.Requests))
	}
	shares := 0
	for _, l := range d.Load {
		if strings.HasPrefix(l.Name, "share of requests on ") && l.Change.Matters() {
			shares++
			want := config.Incident.DPShare
			if !strings.Contains(l.Name, "DP1") {
				want = 1 - want
			}
			if math.Abs(l.After-want) > 0.1 || math.Abs(l.Before-0.5) > 0.1 {
				t.Errorf("%s: %.2f to %.2f, planted is 0.5 to %.2f", l.Name, l.Before, l.After, want)
			}
		}
	}
	if shares != 2 {
		t.Errorf("%d shares changed: %s", shares, d.verdict)
	}
	if ttft := find(t, d, "ttft"); !ttft.Changed() || !strings.Contains(d.verdict, "ttft ") {
		t.Errorf("%+v: %s", ttft, d.verdict)
	}
}

// If one rank is compared with four, totals are per request and rank: four ranks that each take as
// long as the one did are not four times as slow. The verdict begins with the difference in setup.
func TestDiffOfOtherLayouts(t *testing.T) {
	capture := func(tp int) *Collected {
		config := simulator.DefaultConfig(3)
		testset.Quiet(&config)
		config.Mode, config.Unified = simulator.Unified, simulator.Parallel{TP: tp, PP: 1, DP: 1}
		set, _ := testset.Simulated(t, config)
		return collect(Capture{Requests: set})
	}
	d := Compare(capture(1), capture(4), Options{})
	row := find(t, d, "decode_loop")
	if row.After.N < 3*row.Before.N || row.Total.Change.Ratio > 1.3 || row.Total.Change.Ratio < 0.7 {
		t.Errorf("%+v", row)
	}
	if i := slices.IndexFunc(d.Setup, func(s setup.Setting) bool { return s.Name == "layout" }); i < 0 || d.Setup[i].Before != "unified TP1 on 1 host" || d.Setup[i].After != "unified TP4 on 1 host" {
		t.Errorf("setup: %+v", d.Setup)
	}
	if !strings.HasPrefix(d.verdict, "Setup differs: layout unified TP1 on 1 host -> unified TP4 on 1 host") {
		t.Error(d.verdict)
	}
	for _, l := range d.Load {
		if strings.Contains(l.Name, "TP3") {
			t.Errorf("a rank that one of them lacks has no share to compare: %+v", l)
		}
	}
}

// A gateway that holds requests changes neither what the server measures nor, by much, how long requests take: the time in it is
// compared by itself. Rows that only one capture has because it records more are no change.
func TestDiffBesideServers(t *testing.T) {
	capture := func(seed uint64, level int, held time.Duration) *Collected {
		config := simulator.DefaultConfig(seed)
		testset.Quiet(&config)
		config.Level = level
		set, _ := testset.Simulated(t, config)
		for i := range set.Requests {
			m := &set.Requests[i].Metrics
			m.Outside, m.E2E, m.UserTTFT = m.Outside+int64(held), m.E2E+int64(held), m.UserTTFT+int64(held)
		}
		return collect(Capture{Requests: set})
	}
	before := capture(1, 2, 0)
	held := Compare(before, capture(2, 2, 60*time.Millisecond), Options{})
	if r := find(t, held, "outside"); !r.Changed() || !strings.Contains(held.verdict, "time outside the server p50 ") || r.After.P50-r.Before.P50 < 50e6 || r.After.P50-r.Before.P50 > 70e6 {
		t.Errorf("%+v: %s", r, held.verdict)
	}
	if !held.isRequest(find(t, held, "smg:http_request")) || held.isRequest(find(t, held, "prefill_forward")) {
		t.Error("the gateway's span is the request")
	}
	finer := Compare(before, capture(2, 3, 0), Options{})
	if r := find(t, finer, "decode_loop"); r.Changed() || r.words(&r.Total) != "new" {
		t.Errorf("%+v", r)
	}
	if want := "Setup differs: trace level 2 -> 3; 5 rows are in one capture only, perhaps because of that; no significant difference; p50 of e2e "; !strings.HasPrefix(finer.verdict, want) {
		t.Errorf("%s, want %s", finer.verdict, want)
	}
}

// Without decode steps in the dumps, what requests took for each token says whether servers are slower, or have more to do.
func TestDiffOfTokens(t *testing.T) {
	capture := func(seed uint64, alter func(*simulator.Config)) *Collected {
		config := simulator.DefaultConfig(seed)
		testset.Quiet(&config)
		config.Level, config.Requests = 2, 600
		config.Mode, config.Unified = simulator.Unified, simulator.Parallel{TP: 2, PP: 1, DP: 1}
		config.Rate, config.MaxQueued, config.Output.Median = 4, 1000, 60
		alter(&config)
		set, _ := testset.Simulated(t, config)
		return collect(Capture{Requests: set})
	}
	before := capture(1, func(*simulator.Config) {})
	for _, c := range []struct {
		name  string
		alter func(*simulator.Config)
		ratio float64
		says  string
	}{
		{"the same", func(*simulator.Config) {}, 1, "output tokens take as long for the same work"},
		{"slower", func(c *simulator.Config) { c.Pace = 1.06 }, 1.06, "output tokens take longer for the same work: "},
		{"busier", func(c *simulator.Config) { c.Rate *= 1.5 }, 1, "for the same work they take as long"},
	} {
		d := Compare(before, capture(2, c.alter), Options{})
		if len(d.Paces) == 0 || math.Abs(d.Paces[0].Change.Change.Ratio-c.ratio) > 0.015 || !strings.Contains(d.verdict, c.says) {
			t.Errorf("%s: %+v: %s", c.name, d.Paces, d.verdict)
		}
	}
}

// What keeps a prefill from beginning does not make it slower: here, KV caches take longer to decode servers that then notice late
// that they have room.
func TestPaceOfPrefillsThatWait(t *testing.T) {
	scenario := cluster.Find("slow_links")
	config := scenario.Config(2)
	slow, _ := testset.ClusteredAs(t, scenario, config)
	calm, _ := testset.ClusteredAs(t, scenario, config.Calm())
	d := Compare(collect(Capture{Requests: calm}), collect(Capture{Requests: slow}), Options{})
	for _, p := range d.Paces {
		if p.Steps == "prefill steps" && math.Abs(p.Change.Change.Ratio-1) < 0.005 {
			return
		}
	}
	t.Errorf("%+v: %s", d.Paces, d.verdict)
}

// The stage that explains most of a longer time to the first token is reported, however short it is beside the request; the span of a
// gateway, which is the request, explains nothing.
func TestCauseOfFirstToken(t *testing.T) {
	row := func(kind Kind, name string, before, after int64, sure finding.Confidence) Row {
		stat := func(ns int64) Stat { return Stat{N: 1000, P50: ns, P99: ns, Mean: 10 * ns, PerUnit: 10 * ns} }
		ratio := float64(after) / float64(before)
		c := compare.Change{Change: significance.Change{Ratio: ratio, Low: ratio, High: ratio, P: 0.001}, Sure: sure}
		return Row{diffKey: diffKey{Kind: kind, Name: name}, Before: stat(before), After: stat(after), P50: c, P99: c, Mean: c, Total: c}
	}
	for _, c := range []struct {
		e2e  int64
		want string
	}{
		{1_002_000_000, "ttft p50 30.0 -> 40.0 ms (+33.3 %, CI +33.3 to +33.3; certain); tokenize p50 1.00 -> 10.00 ms (x10, CI x10 to x10; certain); 1 other row changed, by less than 1 % of the total each"},
		{1_100_000_000, "e2e p50 1.00 -> 1.10 s (+10.0 %, CI +10.0 to +10.0; certain); ttft p50 30.0 -> 40.0 ms (+33.3 %, CI +33.3 to +33.3; certain); tokenize p50 1.00 -> 10.00 ms (x10, CI x10 to x10; certain); 2 other rows changed"},
	} {
		sure := finding.Certain
		if c.e2e < 1_030_000_000 {
			sure = ""
		}
		d := &Diff{Rows: []Row{
			row(Request, "e2e", 1_000_000_000, c.e2e, sure), row(Request, "ttft", 30_000_000, 40_000_000, finding.Certain),
			row(Stage, "http_request", 1_000_000_000, c.e2e, sure), row(Stage, "prefill_forward", 20_000_000, 21_000_000, finding.Certain), row(Stage, "tokenize", 1_000_000, 10_000_000, finding.Certain),
		}, locate: newDiffRows([2]*Collected{NewCollected(0), NewCollected(0)}, new(int))}
		d.Before.Requests, d.After.Requests = 1000, 1000
		d.locate.sides[0].outermost["http_request"] = true
		sortRows(d.Rows)
		d.addUp()
		if got := d.words(d.locate); got != c.want {
			t.Errorf("%s\nwant %s", got, c.want)
		}
	}
}

// What changed by too little to matter is named all the same.
func TestSlightChange(t *testing.T) {
	slight := compare.Change{Change: significance.Change{Ratio: 1.025, Low: 1.02, High: 1.03, P: 0.001}, Sure: finding.Certain}
	r := Row{diffKey: diffKey{Kind: Request, Name: "tpot"}, Before: Stat{N: 1000, P50: 40_000_000, Mean: 400_000_000, PerUnit: 400_000_000}, P50: slight, Mean: slight, Total: slight}
	r.After = Stat{N: 1000, P50: 41_000_000, Mean: 410_000_000, PerUnit: 410_000_000}
	d := &Diff{Rows: []Row{r}, locate: newDiffRows([2]*Collected{NewCollected(0), NewCollected(0)}, new(int))}
	if got, want := d.words(d.locate), "No difference of 3 % or more: tpot p50 40.0 -> 41.0 ms (+2.5 %, CI +2.0 to +3.0; certain)"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// An empty window is reported differently from one with little data.
func TestEmptyWindow(t *testing.T) {
	set, _ := testset.Simulated(t, simulator.DefaultConfig(1))
	_, end, _ := set.Bounds()
	if c := collect(Capture{Requests: set, From: end + 1}); c.size() != 0 || c.side.Requests != 0 {
		t.Errorf("%+v", c.side)
	}
}

// If requests take equally long on both sides, a shift of load within a capture is not worth mentioning, but a
// server that became slower and stays so is.
func TestPaceWithin(t *testing.T) {
	d := &Diff{}
	for _, m := range []change.Metric{change.ArrivalsChanged, change.PaceChanged, change.MedianChanged} {
		d.After.Within = append(d.After.Within, Within{Text: m.String(), What: Changing{Metric: m}, Cause: m != change.MedianChanged, Stays: m == change.PaceChanged})
	}
	d.keepWithin()
	if list := d.After.Within; len(list) != 1 || list[0].Text != "pace" {
		t.Errorf("%+v", list)
	}
}

package change

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/testkit/testset"
	"github.com/sgtrace/sgtrace/trace"
	"github.com/sgtrace/sgtrace/trace/naming"
)

const second = trace.Time(1_000_000_000)

// stageMeanings are the meanings of the stages in the tests below.
var stageMeanings = map[string]request.Meaning{
	"prefill_waiting": request.Queueing, "decode_transferred": request.Receiving,
	"decode_waiting": request.DecodeQueueing, "decode_loop": request.Stepping,
}

func duration(stage string, at trace.Time, before, after int64) Shift {
	f := Shift{Location: place.Location{Scope: place.OneRank, Role: request.Decode, Host: "c94b1e02", Rank: trace.Rank{TP: 0, PP: -1, DP: 1, EP: -1, Global: -1}},
		Name: "decode DP1", Metric: MedianChanged, Stage: stage, Means: stageMeanings[stage], Time: at, First: at - second/2, Last: at + second/2, Searched: true, P: 1e-5,
		Before: newLevel(100), After: newLevel(100)}
	f.Before.P50, f.Before.P99, f.After.P50, f.After.P99 = before, before, after, after
	return f
}

func shareOf(at trace.Time, before, after float64) Shift {
	f := duration("", at, 0, 0)
	f.Metric, f.Before, f.After = ShareChanged, newLevel(200), newLevel(300)
	f.Before.Share, f.After.Share = before, after
	return f
}

func rate(at trace.Time, before, after float64) Shift {
	f := Shift{Location: place.Location{Scope: place.Everywhere}, Name: "all", Metric: ArrivalsChanged, Time: at, First: at - second/5, Last: at + second/5,
		Searched: true, P: 2e-8, Before: newLevel(200), After: newLevel(300)}
	f.Before.Rate, f.After.Rate = before, after
	return f
}

// exampleChanges are the changes of an example in docs/METRICS.md.
func exampleChanges() *Changes {
	at := trace.Time(testset.Epoch) + 50_187*second + second/5
	lead := shareOf(at, 0.25, 0.6)
	lead.First, lead.Last, lead.P = at-second/4, at+second/10, 3e-14
	ttft := duration("ttft", at, 90_000_000, 415_000_000)
	ttft.Location, ttft.Name, ttft.Searched = place.Location{Scope: place.Everywhere}, "all", false
	tail := duration("decode_transferred", at+second, 0, 0)
	tail.Metric, tail.Limit, tail.Before.Share, tail.After.Share = TailChanged, 300_000_000, 0.002, 0.17
	late := duration("decode_loop", at, 4_250_000, 4_250_000)
	c := &Changes{Requests: 3000, From: at - 200*second, To: at + 100*second, Series: 61}
	late.Name, late.Metric, late.Searched, late.P, late.Time = "decode DP0 TP1", LatenessChanged, false, math.NaN(), c.From
	found := []Shift{duration("prefill_waiting", at+second/2, 190_000, 330_000_000), rate(at+second/10, 12.1, 36.4), ttft, tail, lead}
	back := rate(at+20*second, 36.4, 11.8)
	back.Back = true
	c.List = groupShifts(append(found, back), int64(2*second))
	for i := range c.List {
		c.List[i].sort()
	}
	c.Edges = []Shift{rate(at-190*second, 2, 12.1)}
	c.Late = []Shift{late}
	return c
}

func TestGoldenChanges(t *testing.T) {
	c := exampleChanges()
	for name, style := range map[string]table.Style{"changes.text": {}, "changes_ascii.text": {ASCII: true}} {
		var b bytes.Buffer
		if err := c.Write(&b, style); err != nil {
			t.Fatal(err)
		}
		testset.CompareGolden(t, name, b.String())
	}
	for _, f := range []table.Format{table.FormatMarkdown, table.FormatCSV, table.FormatJSON} {
		testset.CompareGolden(t, "changes."+string(f), testset.Text(t, c.Report(), f, table.Style{}))
	}
}

func TestSentence(t *testing.T) {
	want := "decode DP1's share of requests rose from 25 to 60 % at 10:49:47.2 ± 0.3 s; arrivals rose from 12.1 to 36.4 /s; " +
		"TTFT p50 rose from 90 to 415 ms; its prefill_waiting p50 rose from 0.190 to 330 ms"
	if got := exampleChanges().List[0].Sentence(); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

// Shifts at about the same time are one change, which the load leads if it explains the latency.
// Latency that the load does not explain, or that shifts too late, is a change of its own.
func TestGroupFindings(t *testing.T) {
	at := trace.Time(testset.Epoch)
	for _, c := range []struct {
		name  string
		found []Shift
		want  string
	}{
		{"load leads", []Shift{duration("ttft", at, 1, 2), duration("decode_loop", at+second, 1, 2), rate(at, 1, 2)}, "arrivals decode_loop ttft"},
		{"share leads load", []Shift{rate(at, 1, 2), shareOf(at, 0.25, 0.6)}, "share arrivals"},
		{"steps lead waits", []Shift{duration("decode_waiting", at, 1, 2), duration("decode_loop", at, 1, 2)}, "decode_loop decode_waiting"},
		{"less load makes nothing slower", []Shift{duration("decode_loop", at, 1, 2), rate(at, 2, 1)}, "arrivals | decode_loop"},
		{"too late", []Shift{rate(at, 1, 2), duration("decode_loop", at+10*second, 1, 2)}, "arrivals | decode_loop"},
		{"twice", []Shift{duration("ttft", at, 1, 2), duration("ttft", at+second, 2, 1)}, "ttft | ttft"},
	} {
		var groups []string
		for _, change := range groupShifts(c.found, int64(2*second)) {
			var words []string
			for _, f := range change.Shifts {
				word := f.Stage
				if f.Metric.isLoad() {
					word = f.Metric.String()
				}
				words = append(words, word)
			}
			groups = append(groups, strings.Join(words, " "))
		}
		if got := strings.Join(groups, " | "); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// Load that rises at the beginning of a capture or falls at its end is an edge and no change,
// and so is the end of a shift that began at an edge. A shift in a share is never an edge.
func TestEdges(t *testing.T) {
	c := &Changes{From: trace.Time(testset.Epoch), To: trace.Time(testset.Epoch) + 100*second}
	at := func(s float64) trace.Time { return c.From + trace.Time(s*float64(second)) }
	rise := duration("ttft", at(8), 10, 30)
	fall := duration("ttft", at(40), 30, 12)
	c.Edges = []Shift{rise}
	found := []Shift{rise, fall}
	markReturns(found)
	for _, k := range []struct {
		name string
		f    Shift
		want bool
	}{
		{"rise at the beginning", rate(at(10), 1, 2), true},
		{"fall at the beginning", rate(at(10), 2, 1), false},
		{"rise in the middle", rate(at(50), 1, 2), false},
		{"fall at the end", rate(at(90), 2, 1), true},
		{"rise at the end", rate(at(90), 1, 2), false},
		{"share at the beginning", shareOf(at(5), 0.25, 0.6), false},
		{"fall back after a rise at the beginning", found[1], true},
	} {
		if got := c.edge(&k.f); got != k.want {
			t.Errorf("%s: edge is %v", k.name, got)
		}
	}
}

func TestWhen(t *testing.T) {
	at := trace.Time(testset.Epoch) + 187_654_321 // 20:53:20.187654321
	for _, c := range []struct {
		within trace.Time
		want   string
	}{
		{0, "20:53:20.188 ± 0.001 s"}, {4_000_000, "20:53:20.188 ± 0.004 s"}, {42_000_000, "20:53:20.19 ± 0.05 s"},
		{300_000_000, "20:53:20.2 ± 0.3 s"}, {310_000_000, "20:53:20.2 ± 0.4 s"}, {12 * second, "20:53:20 ± 12 s"},
		{119 * second, "20:53:20 ± 119 s"}, {121 * second, "20:53 ± 3 min"}, {43199 * second, "2026-08-17 20:53 ± 12 h"}, {172801 * second, "2026-08-17 21:00 ± 3 days"},
	} {
		if got := words.When(at, at-c.within, at); got != c.want {
			t.Errorf("within %d: %s, want %s", c.within, got, c.want)
		}
	}
}

func TestThreeDigits(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 0.1234: "0.123", 1.236: "1.24", 12.34: "12.3", 123.4: "123", 35512: "35512", math.Inf(1): "-"} {
		if got := words.ThreeDigits(v); got != want {
			t.Errorf("%g: %s, want %s", v, got, want)
		}
	}
}

// The name of a lead rank stands for all ranks that work with it; only lateness names a single rank.
func TestNames(t *testing.T) {
	rank := func(tp, dp int16) trace.Rank { return trace.Rank{TP: tp, PP: 0, DP: dp, EP: -1, Global: -1} }
	s := &request.Set{Procs: []request.Proc{
		{Role: request.Prefill, Host: "aaaa", Schedules: true, Rank: rank(0, -1)}, {Role: request.Prefill, Host: "aaaa", Schedules: true, Rank: rank(1, -1)},
		{Role: request.Decode, Host: "bbbb", Schedules: true, Rank: rank(1, 0)}, {Role: request.Decode, Host: "cccc", Schedules: true, Rank: rank(0, 1)},
	}}
	names := func(metric Metric) (got []string) {
		s.Names = naming.New(s.Places(), nil)
		for proc := range s.Procs {
			f := Shift{Location: place.NewLocation(s, proc), Metric: metric}
			got = append(got, f.name())
		}
		return got
	}
	if got, want := names(MedianChanged), []string{"prefill", "prefill", "decode DP0", "decode DP1"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := names(LatenessChanged), []string{"prefill TP0", "prefill TP1", "decode DP0 TP1", "decode DP1 TP0"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	s.Procs[2].Rank = s.Procs[3].Rank
	if got, want := names(MedianChanged)[2:], []string{"decode DP1 (bbbb)", "decode DP1 (cccc)"}; !slices.Equal(got, want) {
		t.Errorf("with two servers: %q, want %q", got, want)
	}
}

// The dumps of steady load have no changes.
func TestNoChangesInSteadyDumps(t *testing.T) {
	for _, name := range []string{"a_unified_tp2.jsonl", "b_pd_smg_tp2.jsonl.zst", "c_pp2_dp2.jsonl.zst", "d_big_tp2.jsonl.zst", "i_vllm_llm_request.jsonl"} {
		t.Run(name, func(t *testing.T) {
			if c := Find(place.Of(testset.LoadDump(t, name))); c.Series == 0 || len(c.List) > 0 {
				t.Errorf("%d series, %d changes", c.Series, len(c.List))
			}
		})
	}
}

// Workers that all start at one time cause a burst. If the rate after the burst is higher than before,
// that is the change; else the burst is a change of its own, with a start and an end.
func TestWithoutBursts(t *testing.T) {
	at := trace.Time(testset.Epoch)
	for after, want := range map[float64]int{10: 1, 5: 2} {
		found := withoutBursts([]Shift{rate(at, 5, 90), rate(at+second/5, 90, after)}, int64(second))
		if len(found) != want || want == 1 && (found[0].Time != at || found[0].Before.Rate != 5 || found[0].After.Rate != after) {
			t.Errorf("%v /s afterward: %+v", after, found)
		}
	}
}

package requests_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/sgtrace/sgtrace/analyze/cause"
	"github.com/sgtrace/sgtrace/analyze/load"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/requests"
	"github.com/sgtrace/sgtrace/golden/simulator"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/testkit/testset"
)

func parse(t *testing.T, text string) []requests.Objective {
	t.Helper()
	list, err := requests.ParseObjectives(text)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func TestParse(t *testing.T) {
	list := parse(t, " ttft=500ms, itl = 1.5s")
	if got := requests.ObjectivesInWords(list); got != "ttft <= 500 ms, itl <= 1.50 s" {
		t.Error(got)
	}
	if again := parse(t, requests.FormatObjectives(list)); requests.ObjectivesInWords(again) != requests.ObjectivesInWords(list) {
		t.Errorf("%s is read as %s", requests.FormatObjectives(list), requests.ObjectivesInWords(again))
	}
	for text, says := range map[string]string{
		"": "want METRIC=DURATION", "ttft": "want METRIC=DURATION", "queue=1s": "Known: e2e, ttft, tpot, itl", "ttft=1": "want a duration",
		"ttft=-1s": "above 0", "ttft=0s": "above 0", "ttft=1s,ttft=2s": "twice", "ttft=1s,": "want METRIC=DURATION",
	} {
		if _, err := requests.ParseObjectives(text); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, want %q", text, err, says)
		}
	}
}

// Whether a request counts, and meets its SLO, for each way in which it can end.
func TestJudge(t *testing.T) {
	const ms = int64(time.Millisecond)
	metrics := func(ttft, tpot, e2e, tokens int64) request.Metrics {
		return request.Metrics{UserTTFT: ttft, TPOT: tpot, E2E: e2e, CompletionTokens: tokens}
	}
	const none = request.Unknown
	for _, test := range []struct {
		name   string
		status request.Status
		m      request.Metrics
		want   requests.State
	}{
		{"good", request.Finished, metrics(100*ms, 10*ms, 500*ms, 9), requests.Met},
		{"at the limit", request.Finished, metrics(200*ms, 20*ms, 500*ms, 9), requests.Met},
		{"late", request.Finished, metrics(200*ms+1, 10*ms, 500*ms, 9), requests.Missed},
		{"slow", request.Finished, metrics(100*ms, 21*ms, 500*ms, 9), requests.Missed},
		{"failed", request.Failed, metrics(100*ms, 10*ms, 500*ms, 9), requests.Missed},
		{"aborted", request.Aborted, metrics(none, none, 50*ms, none), requests.Missed},
		{"one token", request.Finished, metrics(100*ms, none, 100*ms, 1), requests.Met},
		{"no steps", request.Finished, metrics(100*ms, none, 100*ms, none), requests.Undecided},
		{"no first token known", request.Finished, metrics(none, 10*ms, 100*ms, 9), requests.Undecided},
		{"running", request.Unfinished, metrics(100*ms, none, none, none), requests.Undecided},
		{"running, and late already", request.Unfinished, metrics(300*ms, none, none, none), requests.Missed},
	} {
		r := request.Request{Status: test.status, Metrics: test.m}
		if got := requests.Judge(parse(t, "ttft=200ms,itl=20ms"), &r); got != test.want {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
	r := request.Request{Status: request.Finished, Metrics: metrics(100*ms, 30*ms, 500*ms, 9)}
	r.Metrics.ITL = request.ITL{N: 8, Mean: 19 * ms, Max: 300 * ms}
	if got := requests.Judge(parse(t, "itl=20ms"), &r); got != requests.Met {
		t.Errorf("a request whose mean gap is known: %v", got)
	}
}

// The requests that meet an SLO are those of the simulator's truth, and the blame falls on what it planted.
func TestGoodputOfAnIncident(t *testing.T) {
	set, truth := testset.Simulated(t, simulator.DefaultConfig(1))
	const ttft, e2e = 500 * time.Millisecond, time.Second
	good := int64(0)
	for i := range truth.Requests {
		r := &truth.Requests[i]
		if r.Outcome == "finished" && r.TTFTNs <= int64(ttft) && r.E2ENs <= int64(e2e) {
			good++
		}
	}
	g := requests.MeasureGoodput(set, parse(t, "ttft=500ms,e2e=1s"))
	if g.All.Met != good || g.All.Judged() != int64(len(truth.Requests)) || g.All.Undecided != 0 {
		t.Errorf("%+v, want %d of %d", g.All, good, len(truth.Requests))
	}
	if want := float64(good) / (float64(truth.EndNs-truth.StartNs) / 1e9); math.Abs(g.PerSecond()-want) > 0.01*want {
		t.Errorf("%g good requests per second, want %g", g.PerSecond(), want)
	}
	addsUp(t, set, g)

	attributor := cause.NewAttributor(place.Of(set))
	list := attributor.All()
	cause.SplitSizes(set, list, attributor.Peers.Len())
	g.Blame(list)
	missed := int64(0)
	for i := range g.Causes {
		missed += int64(len(g.Causes[i].Requests))
	}
	if missed != g.All.Missed {
		t.Errorf("%d of %d requests have a cause", missed, g.All.Missed)
	}
	// A full KV cache makes requests wait for room, and a slow rank makes its replica slow.
	if c := &g.Causes[0]; c.Cause != cause.DecodeBootstrap.String() || c.Objective != "ttft" {
		t.Errorf("most miss it for %+v", c)
	}
	g = requests.MeasureGoodput(set, parse(t, "itl=24ms"))
	g.Blame(list)
	if c := &g.Causes[0]; c.Cause != cause.SlowRank.String() || c.Objective != "itl" {
		t.Errorf("most miss it for %+v", c)
	}
	for _, r := range g.Ranks {
		slow := truth.Straggler.Rank == "TP1-PP0-DP0" && r.Location.Role == request.Decode && r.Location.Rank.DP == 0
		if share := r.Share(); slow != (share < 0.5) && r.Location.Role == request.Decode {
			t.Errorf("%s: %.2f", r.Location.String(), share)
		}
	}
}

// addsUp checks that the decode ranks, and the buckets of a timeline, add up to the total.
func addsUp(t *testing.T, set *request.Set, g *requests.Goodput) {
	t.Helper()
	decode := int64(0)
	for i := range g.Ranks {
		if g.Ranks[i].Location.Role == request.Decode {
			decode += g.Ranks[i].Met
		}
	}
	timeline, err := load.New(set, 0)
	if err != nil {
		t.Fatal(err)
	}
	g.Mark(timeline)
	var met, judged int64
	for _, b := range timeline.Series[0].Good {
		met, judged = met+b.Met, judged+b.Judged
	}
	if decode != g.All.Met || met != g.All.Met || judged != g.All.Judged() {
		t.Errorf("%d on the ranks, %d of %d over time, %+v in all", decode, met, judged, g.All)
	}
}

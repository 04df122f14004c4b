package tail

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/cause"
	"github.com/sgtrace/sgtrace/analyze/load"
	"github.com/sgtrace/sgtrace/analyze/metric"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/golden/simulator"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/testkit/testinput"
	"github.com/sgtrace/sgtrace/testkit/testset"
)

// tailFixture returns 40 requests to a unified server: prompts of 100, 110, ... tokens that take
// 5 ms and 20 us per token, and ten tokens of 8 ms each. Three of the requests wait for 150 ms.
func tailFixture(t testing.TB) *request.Set {
	var d testset.Dump
	for i := range 40 {
		start := float64(i) * 400_000
		prompt := 100 + 10*i
		queued := start + 3000
		if i%15 == 7 {
			queued += 150_000
		}
		at := queued + 5000 + 20*float64(prompt)
		stages := []testset.Span{
			{Name: "request_process", From: start + 1500, To: start + 2000},
			{Name: "prefill_waiting", From: start + 2000, To: queued},
			{Name: "prefill_forward", From: queued, To: at},
			{Name: "decode_forward", From: at, To: at + 80_000},
		}
		first := at + 500 - start
		for range 10 {
			stages = append(stages, testset.Span{Name: "decode_loop", Parent: "^", From: at, To: at + 8000})
			at += 8000
		}
		root := testset.Span{Trace: fmt.Sprintf("%032x", i+1), Name: " Req 7777", From: start, To: at + 1000,
			Attrs: testset.Attrs{"rid": fmt.Sprintf("request%02d", i), "module": "sglang::request", "gen_ai.usage.prompt_tokens": prompt,
				"gen_ai.usage.completion_tokens": 11, "gen_ai.latency.time_to_first_token": first / 1e6}}
		id := d.Add(root)
		d.Thread(root, id, testset.DecodeHost, "Tokenizer", -1, 88, testset.Span{Name: "tokenize", From: start, To: start + 1000})
		d.Thread(root, id, testset.DecodeHost, "Scheduler", 0, 245, stages...)
	}
	return d.Set(t)
}

func TestGoldenTail(t *testing.T) {
	s := tailFixture(t)
	for _, f := range table.Formats {
		t.Run(string(f), func(t *testing.T) {
			got := ""
			for _, r := range New(place.Of(s), Options{Percent: 95, Slowest: 3, All: f == table.FormatCSV || f == table.FormatJSON}).Reports() {
				got += testset.Text(t, r, f, table.Style{Width: 120}) + "\n"
			}
			testset.CompareGolden(t, "tail."+string(f), got)
		})
	}
	var d testset.Dump
	testset.DisaggregatedRequest(&d)
	one := d.Set(t)
	t.Run("disaggregated", func(t *testing.T) {
		got := ""
		for _, r := range New(place.Of(one), Options{}).Reports() {
			got += testset.Text(t, r, table.FormatText, table.Style{Width: 120}) + "\n"
		}
		testset.CompareGolden(t, "tail_disaggregated.text", got)
	})
}

// The numbers of the fixture match those by hand.
func TestTailByHand(t *testing.T) {
	tail := New(place.Of(tailFixture(t)), Options{Metrics: []*metric.Metric{metric.E2E}})
	if p := tail.Sizes.Prompt[0]; p.N != 40 || math.Abs(p.Base-5e6) > 1 || math.Abs(p.PerToken-20e3) > 1 {
		t.Errorf("usual prefill: %+v, want 5 ms + 20 us per token", p)
	}
	c := tail.Comparisons[0]
	// The slowest five are three that waited, with 170, 320, and 470 tokens, and the
	// two longest others, with 480 and 490.
	if c.Slow.N != 5 || c.Around.N != 9 {
		t.Fatalf("%d against %d requests, want 5 against 9", c.Slow.N, c.Around.N)
	}
	rows := map[cause.Cause]*Difference{}
	sum := int64(0)
	for i := range c.Rows {
		rows[c.Rows[i].Cause] = &c.Rows[i]
		sum += c.Rows[i].More
	}
	if sum != c.Slow.Mean-c.Around.Mean {
		t.Errorf("the differences add up to %d ns, want %d", sum, c.Slow.Mean-c.Around.Mean)
	}
	queue := rows[cause.Queue]
	if queue.More != 90_000_000 || queue.Main != 3 || !queue.StandsOut || queue.Where.Name != "TP0" || !queue.Where.Only {
		t.Errorf("queue: %+v, want 90 ms more in 3 requests", queue)
	}
	// They have 386 tokens on average, compared with requests 16 to 24 without number 22.
	if size := rows[cause.PromptSize]; size.Slow != 5_000_000+386*20_000 || size.StandsOut {
		t.Errorf("prompt size: %+v, want 12.72 ms", size)
	}
	d := tail.Delays
	if d.Rows == nil || len(d.Rows) != 1 || d.Rows[0].Cause != cause.Queue || len(d.Rows[0].Requests) != 3 || d.Rows[0].Max != 150_000_000 {
		t.Errorf("delays: %+v, want three requests by 150 ms", d.Rows)
	}
	if what, _ := outstanding(tail); !slices.Equal(what, []string{"e2e: prefill queue", "delays: prefill queue"}) {
		t.Errorf("%q stand out", what)
	}
}

// Means by cause add up to the mean of the totals, despite rounding.
func TestMeansAddUp(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for range 200 {
		var g tailGroup
		for range 1 + rng.IntN(30) {
			u := tailUnit{n: 1 + rng.Int64N(3)}
			for c := range cause.Count {
				u.sum[c] = rng.Int64N(1000) - 100
			}
			g.add(u)
		}
		means, total := g.means()
		if means.Total() != total {
			t.Fatalf("means add up to %d, want %d", means.Total(), total)
		}
		for c := range cause.Count {
			if exact := float64(g.sum[c]) / float64(g.n); math.Abs(float64(means[c])-exact) > 1 {
				t.Fatalf("mean %d, want %f", means[c], exact)
			}
		}
	}
}

// The confidence interval contains the true difference about as often as it promises.
func TestIntervals(t *testing.T) {
	held, runs := 0, 200
	for seed := range uint64(runs) {
		rng := rand.New(rand.NewPCG(seed, 9))
		side := func(n int, mean float64) *tailGroup {
			g := new(tailGroup)
			for range n {
				u := tailUnit{n: 1}
				u.sum[cause.Queue] = int64(mean + rng.NormFloat64()*100)
				g.add(u)
			}
			return g
		}
		low, high := intervals(side(40, 1500), side(100, 1000))
		if low[cause.Queue] <= 500 && 500 <= high[cause.Queue] {
			held++
		}
		if low[cause.Prefill] != 0 || high[cause.Prefill] != 0 {
			t.Fatal("a cause without time has an interval")
		}
	}
	if held < runs*90/100 {
		t.Errorf("the truth is within the interval in %d of %d runs", held, runs)
	}
}

func TestChooseSides(t *testing.T) {
	for _, x := range []struct {
		n, percent     int
		slow, from, to int
		ok             bool
	}{
		{0, 99, 0, 0, 0, false}, {19, 99, 0, 0, 0, false}, {20, 99, 15, 7, 12, true},
		{100, 99, 95, 39, 60, true}, {1000, 99, 989, 399, 600, true}, {1000, 61, 609, 399, 600, true},
	} {
		sorted := make([]int64, x.n)
		for i := range sorted {
			sorted[i] = int64(i)
		}
		c := &Comparison{Percent: x.percent}
		slow, from, to, ok := c.choose(sorted)
		if slow != x.slow || from != x.from || to != x.to || ok != x.ok {
			t.Errorf("p%d of %d: slow %d, around %d to %d, %v; want %+v", x.percent, x.n, slow, from, to, ok, x)
		}
	}
}

func TestParseTail(t *testing.T) {
	for text, want := range map[string]int{"p99": 99, "P90": 90, "95": 95, "p61": 61, "p60": 0, "p100": 0, "p99.9": 0, "": 0, "x": 0} {
		if got, err := ParsePercent(text); got != want || (err == nil) != (want != 0) {
			t.Errorf("ParsePercent(%q) is %d, %v; want %d", text, got, err, want)
		}
	}
	if m, err := ParseMetric("TTFT"); m != metric.TTFT || err != nil {
		t.Errorf("ParseMetric(TTFT) is %q, %v", m, err)
	}
	if _, err := ParseMetric("tpot"); err == nil {
		t.Error("tpot has a tail")
	}
}

func BenchmarkTail(b *testing.B) {
	s := testset.LoadDump(b, "d_big_tp2.jsonl.zst")
	b.ReportAllocs()
	for b.Loop() {
		New(place.Of(s), Options{})
	}
}

// Forged times do no harm, and the causes still add up.
func TestCausesOfForgedTimes(t *testing.T) {
	for seed := range uint64(12) {
		c := testset.Deployment(seed, simulator.DefaultConfig(seed))
		c.Requests, c.KVTokens = 30, 3200
		dump, _ := testinput.Simulate(t, c)
		rng := rand.New(rand.NewPCG(seed, 1))
		forged := testset.TimeText.ReplaceAllFunc(dump, func(text []byte) []byte {
			n := [...]int64{0, 1, math.MaxInt64, math.MaxInt64 - 5, rng.Int64(), testset.Epoch + rng.Int64N(20e9)}[rng.IntN(6)]
			if rng.IntN(15) > 0 {
				return text
			}
			return fmt.Appendf(nil, `imeUnixNano":"%d"`, n)
		})
		s := testset.BuildSet(t, "forged", bytes.NewReader(forged))
		for _, a := range cause.NewAttributor(place.Of(s)).All() {
			if m := &s.Requests[a.Request].Metrics; a.E2E.Total() != m.E2E || a.TTFT.Total() != max(0, m.TTFT) {
				t.Fatalf("e2e %d, ttft %d ns, want %d, %d", a.E2E.Total(), a.TTFT.Total(), m.E2E, m.TTFT)
			}
		}
		for _, r := range New(place.Of(s), Options{}).Reports() {
			testset.Text(t, r, table.FormatText, table.Style{})
		}
	}
}

// Requests that arrive at random wait half as long as a prefill takes for a server that is busy for half of the time, if
// all prefills take as long: that is no saturation. Far longer waits are, and so is a server that is always busy.
func TestWaitsByChance(t *testing.T) {
	const ms = int64(1e6)
	byChance := load.WaitByChance(0.5, []request.Interval{{From: 0, To: 100e6}, {From: 200e6, To: 300e6}})
	if byChance != 50e6 {
		t.Errorf("the wait by chance is %v ns, want 50 ms", byChance)
	}
	for _, x := range []struct {
		busy  float64
		waits int64 // per request
		full  bool
	}{{0.5, 60 * ms, false}, {0.5, 300 * ms, true}, {0.95, 60 * ms, true}} {
		d := &Disaggregation{Ranks: []SideRank{{Role: request.Prefill, Busy: x.busy, Requests: 100, Waited: 100 * x.waits, chance: byChance}}}
		if got := d.full(request.Prefill); got != x.full {
			t.Errorf("busy for %v of the time, %d ns of waits: full: %v", x.busy, x.waits, got)
		}
	}
}

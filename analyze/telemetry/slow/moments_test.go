package slow

import (
	"math"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/telemetry"
	"github.com/sgtrace/sgtrace/analyze/telemetry/held"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// A vLLM server is prefill-bound if it takes in more and more waiting requests and its KV cache has room. If the number
// of running requests does not rise, something else keeps requests out; if the cache is full, that is reported instead.
func TestVLLMWithManyPrompts(t *testing.T) {
	const begin = trace.Time(1_700_000_000e9)
	for _, c := range []struct {
		more, full float64
		want       string
	}{
		{4, 50, "DP0 is prefill-bound: 40 requests wait at 22:13:20 and 28 at 22:13:50, while it computes 8,000 prompt tokens a second or more"},
		{0, 50, ""},
		{4, 97, "the KV cache of DP0 is full (97 % at most) while 40 requests wait at 22:13:20 and 28 at 22:13:50, in 4 of its last 4 lines"},
	} {
		set := series.New(trace.NewSymbols(), &trace.Diags{})
		f := set.Fill("a.log", "server log")
		p := f.Place(series.Place{Server: f.Server(series.Server{Name: "a", Engine: "vLLM"}), Rank: trace.Rank{DP: 0, PP: -1, TP: -1, EP: -1}, GPU: series.NoGPU})
		for k := range 4 {
			f.Line(int64(k) + 1)
			for m, v := range map[series.MetricID]float64{series.PrefillRate: 8000 + float64(k), series.Generation: 50, series.Running: 8 + c.more*float64(k), series.Queued: 40 - c.more*float64(k), series.KVUsage: c.full} {
				f.Add(f.Series(m, p), begin+trace.Time(k)*10e9, v)
			}
		}
		set.Finish(series.Known{})
		var got string
		found, _ := Limits(telemetry.Measure(set, telemetry.Options{}))
		for _, f := range found {
			got += f.Text
		}
		if got != c.want {
			t.Errorf("%+v: %q", c, got)
		}
	}
}

// A few lines of SGLang show what keeps requests waiting: a batch that every prefill fills to the same size, prompts
// that take all of the time, or a server that takes nothing in. If the queue is gone at the end, nothing is reported.
func TestFewLinesOfWaiting(t *testing.T) {
	const begin = trace.Time(1_700_000_000e9)
	no := math.NaN()
	type line struct{ seqs, runs, waits float64 } // seqs is NaN in a line about a decode batch
	for _, c := range []struct {
		name, want string
		tokens     float64 // of each prompt, or of a piece of one
		lines      []line
	}{
		{"limit", "TP0 is stuck at 8 running requests (max running requests?): each of its 3 prefill batches from 22:13:22 on brings it to that many, while 20 requests wait at 22:13:22 and 14 at 22:13:28", 100,
			[]line{{1, 0, 0}, {7, 1, 20}, {no, 8, 20}, {4, 4, 16}, {2, 6, 14}}},
		{"one batch is smaller", "", 100, []line{{7, 1, 20}, {no, 8, 20}, {3, 4, 16}, {2, 6, 14}}},
		{"prefill", "TP0 is prefill-bound: 9 requests wait at 22:13:20 and 7 at 22:13:24, while it computes 4,000 prompt tokens a second or more", 100, []line{{1, 0, 9}, {1, 0, 8}, {1, 1, 7}}},
		{"one long prompt in pieces", "TP0 is prefill-bound: 3 requests wait at 22:13:20 and 2 at 22:13:26, while it computes 4,000 prompt tokens a second or more", 4096, []line{{1, 3, 3}, {1, 3, 3}, {1, 3, 3}, {1, 3, 2}}},
		{"prompts of one length", "TP0 is stuck at 4 running requests (max running requests?): each of its 4 prefill batches from 22:13:20 on brings it to that many, while 3 requests wait at 22:13:20 and 2 at 22:13:26", 100, []line{{1, 3, 3}, {1, 3, 3}, {1, 3, 3}, {1, 3, 2}}},
		{"more and more", "", 100, []line{{no, 3, 1}, {no, 4, 2}, {no, 5, 3}, {no, 6, 4}, {no, 7, 5}}},
		{"blocked", "5 requests wait on TP0 from 22:13:20 to 22:13:24, and none of them is taken in, while 3 run", 100, []line{{no, 3, 5}, {no, 3, 5}, {no, 3, 5}}},
		{"two batches of many", "TP0 is prefill-bound: 40 requests wait at 22:13:20 and 56 at 22:13:22, while it computes 4,000 prompt tokens a second or more", 5000, []line{{3, 7, 40}, {3, 10, 56}}},
		{"two batches that take in much", "", 5000, []line{{3, 7, 9}, {3, 10, 6}}},
		{"gone", "", 100, []line{{1, 0, 9}, {1, 0, 8}, {1, 1, 7}, {7, 2, 0}}},
	} {
		set := series.New(trace.NewSymbols(), &trace.Diags{})
		f := set.Fill("a.log", "server log")
		p := f.Place(series.Place{Server: f.Server(series.Server{Name: "a", Role: "unified", Engine: "SGLang"}), Rank: trace.Rank{DP: -1, PP: -1, TP: 0, EP: -1}, GPU: series.NoGPU})
		for k, x := range c.lines {
			f.Line(int64(k) + 1)
			values := map[series.MetricID]float64{series.Generation: 50, series.Running: x.runs, series.Queued: x.waits, series.KVUsage: 30}
			if !math.IsNaN(x.seqs) {
				delete(values, series.Generation)
				values[series.NewSeqs], values[series.NewTokens], values[series.PrefillRate] = x.seqs, c.tokens*x.seqs, 4000
			}
			for m, v := range values {
				f.Add(f.Series(m, p), begin+trace.Time(k)*2e9, v)
			}
		}
		set.Finish(series.Known{})
		var got string
		found, _ := Limits(telemetry.Measure(set, telemetry.Options{}))
		for _, f := range found {
			got += f.Text
		}
		if got != c.want {
			t.Errorf("%s: %q", c.name, got)
		}
	}
}

// Between two lines, the smaller of both queue lengths counts.
func TestQueueBetweenLines(t *testing.T) {
	set := series.New(trace.NewSymbols(), &trace.Diags{})
	f := set.Fill("a.log", "server log")
	p := f.Place(series.Place{Server: f.Server(series.Server{Name: "a", Role: "unified", Engine: "SGLang"}), Rank: trace.NoRank, GPU: series.NoGPU})
	for k, n := range []float64{5, 7, 0, 3} {
		f.Line(int64(k) + 1)
		f.Add(f.Series(series.Queued, p), 1_700_000_000e9+trace.Time(k)*6e9, n)
	}
	set.Finish(series.Known{})
	l := telemetry.Measure(set, telemetry.Options{})
	got := added(l, []*telemetry.Rank{&l.Ranks[0]}, series.Queued)
	for b, want := range []float64{5, 5, 5, 7, 0, 0, 0, 0, 0, 3} {
		if got[b] != want {
			t.Errorf("bucket %d: %g, want %g", b, got[b], want)
		}
	}
}

// A vLLM server whose lines all show waiting requests, and no prompt tokens, takes nothing in.
func TestShortLogsOfVLLM(t *testing.T) {
	for _, test := range []struct {
		name                             string
		tokens, prompts, running, queued []float64
		want                             string
	}{
		{"nothing is taken in", []float64{5, 5, 5}, []float64{0, 0, 0}, []float64{1, 1, 1}, []float64{14, 14, 15}, "14 requests wait on "},
		{"a prompt is computed", []float64{5, 5, 5}, []float64{0, 9, 0}, []float64{1, 1, 1}, []float64{14, 14, 15}, ""},
		{"one ends", []float64{5, 5, 5}, []float64{0, 0, 0}, []float64{2, 1, 1}, []float64{14, 14, 15}, ""},
		{"nothing runs", []float64{5, 0, 0}, []float64{9, 0, 0}, []float64{0, 0, 0}, []float64{12, 22, 22}, "22 requests wait on "},
		{"two lines", []float64{5, 5}, []float64{0, 0}, []float64{1, 1}, []float64{14, 14}, ""},
	} {
		set := series.New(trace.NewSymbols(), &trace.Diags{})
		f := set.Fill("a.log", "server log")
		p := f.Place(series.Place{Server: f.Server(series.Server{Name: "a", Role: "unified", Engine: "vLLM"}), Rank: trace.NoRank, GPU: series.NoGPU})
		for metric, values := range map[series.MetricID][]float64{series.Generation: test.tokens, series.PrefillRate: test.prompts, series.Running: test.running, series.Queued: test.queued} {
			for i, v := range values {
				f.Line(int64(i + 1))
				f.Add(f.Series(metric, p), 1_700_000_000e9+trace.Time(i)*10e9, v)
			}
		}
		set.Finish(series.Known{})
		found, _ := Limits(telemetry.Measure(set, telemetry.Options{}))
		if len(found) > 1 || len(found) == 1 != (test.want != "") || len(found) == 1 && !strings.Contains(found[0].Text, test.want) {
			t.Errorf("%s: found %v", test.name, found)
		}
	}
}

// For a prefill server with a full KV cache, the finding mentions prompts that are computed but not sent yet.
func TestWhatPrefillKeeps(t *testing.T) {
	for _, role := range []string{"prefill", "unified"} {
		set := series.New(trace.NewSymbols(), &trace.Diags{})
		f := set.Fill("a.log", "server log")
		p := f.Place(series.Place{Server: f.Server(series.Server{Name: "a", Role: role, Engine: "SGLang"}), Rank: trace.NoRank, GPU: series.NoGPU})
		for m, v := range map[series.MetricID]float64{series.KVUsage: 95, series.Queued: 105, series.Sending: 990} {
			f.Add(f.Series(m, p), 1_700_000_000e9, v)
		}
		set.Finish(series.Known{})
		found, _ := Limits(telemetry.Measure(set, telemetry.Options{}))
		if len(found) != 1 || strings.HasPrefix(found[0].Evidence[0].Text, "up to 990 prefilled requests keep ") != (role == "prefill") {
			t.Errorf("%s: %v", role, found)
		}
	}
}

// A queue that grows in each of 5 lines is reported. One that shrinks once, or has fewer lines, is not.
func TestQueueThatRises(t *testing.T) {
	for want, queue := range map[string][]float64{"ever more requests wait for their decode server on prefill: 18 at 22:13:20, 35 at 22:13:24": {18, 22, 27, 28, 35}, "": {18, 22, 21, 28, 35}} {
		for _, n := range []int{4, 5} {
			set := series.New(trace.NewSymbols(), &trace.Diags{})
			f := set.Fill("a.log", "server log")
			p := f.Place(series.Place{Server: f.Server(series.Server{Name: "a", Role: "prefill", Engine: "SGLang"}), Rank: trace.NoRank, GPU: series.NoGPU})
			for k, v := range queue[:n] {
				f.Line(int64(k) + 1)
				f.Add(f.Series(series.Bootstrapping, p), 1_700_000_000e9+trace.Time(k)*1e9, v)
				f.Add(f.Series(series.Queued, p), 1_700_000_000e9+trace.Time(k)*1e9, 0)
			}
			set.Finish(series.Known{})
			found, _ := Changes(telemetry.Measure(set, telemetry.Options{}))
			if told := want != "" && n == 5; len(found) != 0 != told || told && found[0].Text != want {
				t.Errorf("%v: %v", queue[:n], found)
			}
		}
	}
}

// A full KV cache is the reason for waiting requests from when they began to wait, if it was full in at least half of the lines since then
// with no more requests waiting; otherwise, only from when it became full. A pool of states may be full even if that of tokens is not.
func TestFullWhileWaiting(t *testing.T) {
	const begin = trace.Time(1_700_000_000e9)
	type line struct{ full, waits, mamba float64 }
	for _, c := range []struct {
		want  string
		lines []line
	}{
		{"the KV cache of unified is full (96 % at most) while 9 requests wait at 22:13:20 and 5 at 22:13:50, in 3 of its last 4 lines", []line{{95, 9, 0}, {80, 7, 0}, {94, 6, 0}, {96, 5, 0}}},
		{"the KV cache of unified is full (96 %) while 1 request waits, at 22:13:50", []line{{60, 9, 0}, {61, 7, 0}, {62, 6, 0}, {96, 1, 0}}},
		{"the pool of states (Mamba) of unified is full (100 %) while 6 requests wait, at 22:13:30", []line{{50, 0, 50}, {100, 6, 100}}},
		{"", []line{{96, 5, 0}, {80, 5, 0}}},
	} {
		set := series.New(trace.NewSymbols(), &trace.Diags{})
		f := set.Fill("a.log", "server log")
		p := f.Place(series.Place{Server: f.Server(series.Server{Name: "a", Engine: "SGLang"}), Rank: trace.NoRank, GPU: series.NoGPU})
		for k, x := range c.lines {
			f.Line(int64(k) + 1)
			for m, v := range map[series.MetricID]float64{series.Generation: 50, series.Running: 8 + float64(k%2), series.Queued: x.waits, series.KVUsage: x.full, series.MambaUsage: x.mamba} {
				f.Add(f.Series(m, p), begin+trace.Time(k)*10e9, v)
			}
		}
		set.Finish(series.Known{})
		var got string
		found, _ := Limits(telemetry.Measure(set, telemetry.Options{}))
		for _, f := range found {
			got += f.Text
		}
		if got != c.want {
			t.Errorf("%q, not %q", got, c.want)
		}
	}
}

// In a single scrape, several times as many waiting as running requests are reported, even if the
// KV cache has room. A few waiting requests are not.
func TestManyWaitInOneScrape(t *testing.T) {
	for waiting, want := range map[float64]string{60: "60 requests wait on unified at 20:53:20 while 3 run: as many as run must end 20 times before the last of them is taken in", 20: ""} {
		set := series.New(trace.NewSymbols(), &trace.Diags{})
		f := set.Fill("x", "Prometheus text")
		place := f.Place(series.Place{Server: f.Server(series.Server{Name: "a"}), Rank: trace.NoRank, GPU: series.NoGPU})
		for m, v := range map[series.MetricID]float64{series.Running: 3, series.Queued: waiting, series.KVUsage: 28} {
			f.Add(f.Series(m, place), 1787000000e9, v)
		}
		set.Finish(series.Known{})
		got := ""
		found, _ := Limits(telemetry.Measure(set, telemetry.Options{}))
		for _, f := range found {
			got += f.Text
		}
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// A prefill batch of a minute and a half in a short log is reported, unless decoding is just as slow.
func TestSlowBatchOfFew(t *testing.T) {
	const begin = trace.Time(1_700_000_000e9)
	for rate, want := range map[float64]string{50: "TP0 took 90 s to prefill a batch of 8,000 tokens, from 22:13:20 to 22:14:50", 0.5: ""} {
		set := series.New(trace.NewSymbols(), &trace.Diags{})
		f := set.Fill("a.log", "server log")
		p := f.Place(series.Place{Server: f.Server(series.Server{Name: "a", Role: "unified", Engine: "SGLang"}), Rank: trace.Rank{DP: -1, PP: -1, TP: 0, EP: -1}, GPU: series.NoGPU})
		line := int64(0)
		add := func(at trace.Time, values map[series.MetricID]float64) {
			line++
			f.Line(line)
			for m, v := range values {
				f.Add(f.Series(m, p), begin+at*1e9, v)
			}
		}
		add(0, map[series.MetricID]float64{series.NewSeqs: 1, series.NewTokens: 8000, series.Running: 0, series.Queued: 0})
		for k := range trace.Time(4) {
			add(90+k, map[series.MetricID]float64{series.Generation: rate, series.Running: 1, series.Queued: 0})
		}
		set.Finish(series.Known{})
		got := ""
		found, _ := held.Pauses(telemetry.Measure(set, telemetry.Options{}))
		for _, f := range found {
			got += f.Text
		}
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// vLLM logs prompt tokens per second, and counts a prompt when all of it is computed. If far more prompt tokens are computed than
// ever before, it is unknown how long a token would have taken without them. If they are as many as before, the server is slower.
func TestTokensOfVLLMBesidePrompts(t *testing.T) {
	const begin = trace.Time(1_700_000_000e9)
	for _, c := range []struct {
		name          string
		prompts, rate float64 // from the middle on
		slower        bool
	}{
		{"long prompts", 1500, 10, false},
		{"a slower server", 20, 50, true},
		{"nothing changes", 20, 200, false},
	} {
		set := series.New(trace.NewSymbols(), &trace.Diags{})
		f := set.Fill("a.log", "server log")
		p := f.Place(series.Place{Server: f.Server(series.Server{Name: "a", Engine: "vLLM"}), Rank: trace.Rank{DP: 0, PP: -1, TP: -1, EP: -1}, GPU: series.NoGPU})
		for k := range 240 {
			prompts, rate := 20.0, 200.0
			if k >= 120 {
				prompts, rate = c.prompts, c.rate
			}
			if k%2 == 1 {
				prompts = 0 // counted in the next line
			}
			f.Line(int64(k) + 1)
			for m, v := range map[series.MetricID]float64{series.PrefillRate: prompts, series.Generation: rate + float64(k%3), series.Running: 4 + float64(k%2), series.Queued: 0, series.KVUsage: 5} {
				f.Add(f.Series(m, p), begin+trace.Time(k)*10e9, v)
			}
		}
		set.Finish(series.Known{})
		found, _ := Slower(telemetry.Measure(set, telemetry.Options{}))
		if (len(found) > 0) != c.slower {
			t.Errorf("%s: %v", c.name, found)
		}
	}
}

// In a single scrape, a KV cache that is full while requests wait is reported as of that moment, without a cost. A
// full one without waiting requests is not.
func TestMoments(t *testing.T) {
	for waiting, want := range map[float64]string{7: "the KV cache of a is full (99 %) while 7 requests wait, at 20:53:20", 0: ""} {
		set := series.New(trace.NewSymbols(), &trace.Diags{})
		f := set.Fill("x", "Prometheus text")
		place := f.Place(series.Place{Server: f.Server(series.Server{Name: "a"}), Rank: trace.NoRank, GPU: series.NoGPU})
		for m, v := range map[series.MetricID]float64{series.Running: 3, series.Queued: waiting, series.KVUsage: 99} {
			f.Add(f.Series(m, place), 1787000000e9, v)
		}
		set.Finish(series.Known{})
		found, check := Limits(telemetry.Measure(set, telemetry.Options{}))
		got := ""
		for _, f := range found {
			got += f.Text
			if f.Cost != 0 || check.N < check.Needed {
				t.Errorf("%+v, %+v", f, check)
			}
		}
		if strings.Replace(got, "unified", "a", 1) != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

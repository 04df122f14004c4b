package slow_test

import (
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/sgtrace/sgtrace/analyze/telemetry"
	"github.com/sgtrace/sgtrace/analyze/telemetry/held"
	"github.com/sgtrace/sgtrace/analyze/telemetry/slow"
	"github.com/sgtrace/sgtrace/format"
	"github.com/sgtrace/sgtrace/format/serverlog"
	"github.com/sgtrace/sgtrace/profile/recorder"
	"github.com/sgtrace/sgtrace/request/spantable"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// measured parses and measures the log of a server.
func measured(t *testing.T, texts ...string) *telemetry.Logged {
	t.Helper()
	diags := &trace.Diags{}
	set := series.New(trace.NewSymbols(), diags)
	for i, text := range texts {
		in := &format.Input{Name: fmt.Sprintf("s%d.log", i+1), Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(text)), nil }}
		if _, err := serverlog.Format.Index(in, &format.Options{Syms: set.Syms, Diags: diags, Series: set, Records: spantable.NewRequestRecords(set), Flight: recorder.NewInFlight(set.Syms)}); err != nil {
			t.Fatal(err)
		}
	}
	set.Finish(series.Known{})
	return telemetry.Measure(set, telemetry.Options{})
}

// More running requests are normal for a server. They are reported only if it was in a
// steady state before, and its requests become slower or wait, although no more arrive.
func TestRunningRequestsGrow(t *testing.T) {
	type second struct{ came, running, queued, speed int }
	for _, test := range []struct {
		name string
		at   func(i int) second
		want string
	}{
		{"a batch fills up at the start, then stays", func(i int) second {
			if i < 16 {
				return second{4, 4 * i, 60 - 4*i, 0}
			}
			return second{0, 64, 0, 8000}
		}, ""},
		{"answers get longer, nobody waits and no token takes longer", func(i int) second {
			if i < 40 {
				return second{4, 16, 0, 1600}
			}
			return second{4, 64, 0, 6400}
		}, ""},
		{"tokens take four times as long", func(i int) second {
			if i < 40 {
				return second{4, 16, 0, 1600}
			}
			return second{4, 64, 0, 1600}
		}, "a token takes"},
		{"the batch grows, and then requests wait", func(i int) second {
			if i < 40 {
				return second{4, 16, 0, 1600}
			}
			return second{4, 64, 30, 6400}
		}, "wait, 0 before"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var text strings.Builder
			begin := time.Date(2026, 6, 6, 13, 44, 0, 0, time.UTC)
			for i := range 100 {
				s, stamp := test.at(i), begin.Add(time.Duration(i)*time.Second).Format(time.DateTime)
				if s.came > 0 && i%4 == 0 {
					fmt.Fprintf(&text, "[%s TP0] Prefill batch, #new-seq: %d, #new-token: 400, #cached-token: 0, token usage: 0.10, #running-req: %d, #queue-req: %d, \n", stamp, 4*s.came, s.running, s.queued)
				}
				if s.speed > 0 {
					for range 2 {
						fmt.Fprintf(&text, "[%s TP0] Decode batch, #running-req: %d, #token: 9000, token usage: 0.10, cuda graph: True, gen throughput (token/s): %d.00, #queue-req: %d, \n", stamp, s.running, s.speed, s.queued)
					}
				}
			}
			found, _ := slow.Changes(measured(t, text.String()))
			said := ""
			for _, f := range found {
				said += f.Text
				for _, e := range f.Evidence {
					said += "; " + e.Text
				}
			}
			if (said == "") != (test.want == "") || !strings.Contains(said, test.want) {
				t.Errorf("says %q, want %q", said, test.want)
			}
		})
	}
}

// Requests arrive on three ranks, and one of them becomes slower long after that: the common load is not the reason.
func TestLoadThatOneRankSuffersFrom(t *testing.T) {
	for _, test := range []struct {
		slowRanks int
		want      string
	}{{1, ""}, {3, "a token takes"}} {
		var text strings.Builder
		begin := time.Date(2026, 6, 6, 13, 44, 0, 0, time.UTC)
		for i := range 240 {
			for rank := range 3 {
				running, speed := 1, 80
				if i >= 40 {
					running, speed = 12, 960
				}
				if i >= 60 && rank < test.slowRanks {
					speed = 500
				}
				stamp := begin.Add(time.Duration(i) * time.Second).Format(time.DateTime)
				if i%2 == 0 {
					fmt.Fprintf(&text, "[%s DP%d TP0] Prefill batch, #new-seq: %d, #new-token: %d, #cached-token: 0, token usage: 0.10, #running-req: %d, #queue-req: 0, \n", stamp, rank, running, 300+i, running)
				}
				fmt.Fprintf(&text, "[%s DP%d TP0] Decode batch, #running-req: %d, #token: 9000, token usage: 0.10, cuda graph: True, gen throughput (token/s): %d.00, #queue-req: 0, \n", stamp, rank, running, speed)
			}
		}
		found, _ := slow.Changes(measured(t, text.String()))
		said := ""
		for _, f := range found {
			for _, e := range f.Evidence {
				said += e.Text + "; "
			}
		}
		if (said == "") != (test.want == "") || !strings.Contains(said, test.want) {
			t.Errorf("%d slow ranks: says %q, want %q", test.slowRanks, said, test.want)
		}
	}
}

// A queue that keeps growing has no point of change, but is still reported. While
// its decode server is away, a prefill server takes prompts in and passes none on.
func TestQueueGrowsFromTheBeginning(t *testing.T) {
	for _, test := range []struct {
		name   string
		queued func(i int) int
		want   string
	}{
		{"none goes on", func(i int) int { return 4 * i }, "ever more requests wait for their decode server on prefill"},
		{"some wait", func(i int) int { return 12 + i%3 }, ""},
		{"as many as before go on in the end", func(i int) int { return min(4*i, 160-4*i) }, ""},
		{"some more wait in the end", func(i int) int { return 100 + i/2 }, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			var text strings.Builder
			begin := time.Date(2026, 6, 6, 13, 44, 0, 0, time.UTC)
			for i := range 40 {
				fmt.Fprintf(&text, "[%s TP0] Prefill batch, #new-seq: 1, #new-token: 1, #cached-token: 0, token usage: 0.00, #running-req: 0, #queue-req: 0, #prealloc-req: %d, #inflight-req: 1, \n",
					begin.Add(time.Duration(i)*time.Second).Format(time.DateTime), test.queued(i))
			}
			list, _ := slow.Changes(measured(t, text.String()))
			said := ""
			for i := range list {
				said += list[i].Text
			}
			if test.want == "" && strings.Contains(said, "ever more") || !strings.Contains(said, test.want) {
				t.Errorf("found %q, want %q", said, test.want)
			}
		})
	}
}

// Two lines before a retraction show how long a token takes, if they agree.
func TestRetractionSaysWhatTokensTook(t *testing.T) {
	const batch = "[%s TP0] Decode batch, #running-req: 40, #token: 9000, token usage: 0.99, cuda graph: True, gen throughput (token/s): %d.00, #queue-req: 9, \n"
	for _, test := range []struct {
		before []int // tokens/s before the retraction
		tells  bool
	}{{[]int{4000, 3800}, true}, {[]int{4000, 900}, false}, {[]int{4000}, false}, {[]int{4000, 900, 3900}, true}} {
		var text strings.Builder
		at := time.Date(2026, 6, 6, 13, 44, 0, 0, time.UTC)
		stamp := func() string { at = at.Add(time.Second); return at.Format(time.DateTime) }
		for _, speed := range test.before {
			fmt.Fprintf(&text, batch, stamp(), speed)
		}
		fmt.Fprintf(&text, "[%s TP0] KV cache pool is full. Retract requests. #retracted_reqs: 4, #new_token_ratio: 0.0980 -> 0.3487\n", stamp())
		for range 5 {
			fmt.Fprintf(&text, batch, stamp(), 400)
		}
		found, _ := held.Retractions(measured(t, text.String()))
		if len(found) != 1 {
			t.Fatalf("%v: %d findings", test.before, len(found))
		}
		if tells := strings.HasPrefix(found[0].Evidence[0].Text, "a token takes 10"); tells != test.tells {
			t.Errorf("%v tokens/s before: %s", test.before, found[0].Evidence[0].Text)
		}
	}
}

// A server that is slow for some seconds of every minute is reported, unless it then has more to do.
func TestSlowAgainAndAgain(t *testing.T) {
	for _, test := range []struct {
		name           string
		slower, fuller float64
		want           string
	}{
		{"slow", 2, 1, "s every 60 s, 25 ms otherwise with as much to do: 15 times between"},
		{"fuller batches", 2, 2, ""},
		{"steady", 1, 1, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			var text strings.Builder
			begin, r := time.Date(2026, 6, 6, 13, 44, 0, 0, time.UTC), rand.New(rand.NewPCG(1, 1))
			for i := range 900 {
				running, speed := float64(30+r.IntN(5)), 40*(0.98+0.04*r.Float64())
				if i%60 >= 20 && i%60 < 29 {
					running, speed = running*test.fuller, speed/test.slower
				}
				fmt.Fprintf(&text, "[%s TP0] Decode batch, #running-req: %.0f, #token: %.0f, token usage: 0.30, cuda graph: True, gen throughput (token/s): %.2f, #queue-req: 0, \n",
					begin.Add(time.Duration(i)*time.Second).Format(time.DateTime), running, 1800*running, running*speed)
			}
			said := ""
			found, _ := slow.Slower(measured(t, text.String()))
			for _, f := range found {
				said += f.Text
			}
			if (said == "") != (test.want == "") || !strings.Contains(said, test.want) {
				t.Errorf("says %q, want %q", said, test.want)
			}
		})
	}
}

// A slow rank is found by comparison with its peers, however many there are: in a crowd, they share one standard.
func TestSlowInACrowd(t *testing.T) {
	for _, ranks := range []int{8, 40} {
		var text strings.Builder
		begin, r := time.Date(2026, 6, 6, 13, 44, 0, 0, time.UTC), rand.New(rand.NewPCG(2, uint64(ranks)))
		for i := range 120 * ranks {
			running, speed := float64(30+r.IntN(5)), 40*(0.98+0.04*r.Float64())
			if i%ranks == 5 {
				speed /= 1.6
			}
			fmt.Fprintf(&text, "[%s DP%d TP%[2]d] Decode batch, #running-req: %.0f, #token: %.0f, token usage: 0.30, cuda graph: True, gen throughput (token/s): %.2f, #queue-req: 0, \n",
				begin.Add(time.Duration(i/ranks)*time.Second).Format(time.DateTime), i%ranks, running, 1800*running, running*speed)
		}
		found, _ := slow.Slower(measured(t, text.String()))
		if len(found) != 1 || !regexp.MustCompile(fmt.Sprintf(`DP5 TP5, 1\.(5[89]|6[012]) times as long as on the other %d of its role`, ranks-1)).MatchString(found[0].Text) {
			t.Errorf("%d ranks: %v", ranks, found)
		}
	}
}

// If all ranks of a server are slow, it is compared with other servers, and they are one finding.
func TestSlowServerOfSeveralRanks(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 5))
	var logs []string
	for server := range 3 {
		var text strings.Builder
		for i := range 120 * 4 {
			running, speed := float64(30+r.IntN(5)), 40*(0.98+0.04*r.Float64())
			if server == 1 && i/4 >= 60 {
				speed /= 1.5
			}
			if i == 102 { // while a long prompt is computed, the KV cache is fuller than in any line that has its tokens
				text.WriteString("[2026-06-06 13:44:25 DP2 TP2] Prefill batch, #new-seq: 1, #new-token: 60000, #cached-token: 0, token usage: 0.60, #running-req: 33, #queue-req: 0, \n")
			}
			fmt.Fprintf(&text, "[%s DP%d TP%[2]d] Decode batch, #running-req: %.0f, #token: %.0f, token usage: 0.30, cuda graph: True, gen throughput (token/s): %.2f, #queue-req: 0, \n",
				time.Date(2026, 6, 6, 13, 44, i/4, 0, time.UTC).Format(time.DateTime), i%4, running, 1800*running, running*speed)
		}
		logs = append(logs, text.String())
	}
	found, _ := slow.Slower(measured(t, logs...))
	if len(found) != 1 || !regexp.MustCompile(`^since 13:4(4:5[5-9]|5:0\d), a token takes 37\.?\d* ms on all 4 ranks of s2, 1\.(49|5\d?) times as long as on the 8 of other servers`).MatchString(found[0].Text) {
		t.Error(found)
	}
}

// vLLM names the engine in the first line of its statistics. The line about drafts that follows belongs to that engine.
func TestDraftsAreOfTheEngineBefore(t *testing.T) {
	var text strings.Builder
	begin := time.Date(2026, 6, 6, 13, 44, 0, 0, time.UTC)
	for i := range 80 {
		stamp, accepted := begin.Add(time.Duration(i)*10*time.Second).Format("01-02 15:04:05"), 2.6
		if i >= 40 {
			accepted = 1.2
		}
		for engine := range 2 {
			if engine == 1 {
				accepted = 2.6
			}
			fmt.Fprintf(&text, "(APIServer pid=41) INFO %s [loggers.py:310] Engine 00%d: Avg prompt throughput: 900.0 tokens/s, Avg generation throughput: %.1f tokens/s, Running: 12 reqs, Waiting: 0 reqs, GPU KV cache usage: 33.1%%, Prefix cache hit rate: 41.4%%\n", stamp, engine, 12*30*accepted)
			fmt.Fprintf(&text, "(APIServer pid=41) INFO %s [metrics.py:120] SpecDecoding metrics: Mean acceptance length: %.2f, Accepted throughput: 15.58 tokens/s, Drafted throughput: 28.77 tokens/s, Accepted: 156 tokens, Drafted: 288 tokens, Per-position acceptance rate: 0.639, 0.444, Avg Draft acceptance rate: 48.6%%\n", stamp, accepted)
		}
	}
	found, _ := slow.Worsened(measured(t, text.String()))
	if len(found) != 1 || found[0].At.Rank.DP != 0 || !strings.Contains(found[0].Text, "1.20 tokens come out of a decode step of DP0, 2.60 before") {
		t.Errorf("found %+v", found)
	}
}

// Requests that a decode server does not take in wait for its KV cache only if that is full.
func TestWhatRequestsOfDecodeServersWaitFor(t *testing.T) {
	for _, test := range []struct {
		usage float64
		want  string
	}{{0.97, "wait for room in the KV cache"}, {0.04, "wait to be taken in"}} {
		var text strings.Builder
		begin := time.Date(2026, 6, 6, 13, 44, 0, 0, time.UTC)
		for i := range 200 {
			fmt.Fprintf(&text, "[%s TP0] Decode batch, #running-req: 40, #token: 9000, token usage: %.2f, pre-allocated usage: 0.00, #prealloc-req: %d, #transfer-req: 3, #retracted-req: 0, cuda graph: True, gen throughput (token/s): 1600.00, #queue-req: 0, \n",
				begin.Add(time.Duration(i)*time.Second).Format(time.DateTime), test.usage, 50*(i/100))
		}
		found, _ := slow.Changes(measured(t, text.String()))
		if len(found) != 1 || !strings.Contains(found[0].Text, test.want) {
			t.Errorf("usage %v: found %+v", test.usage, found)
		}
	}
}

// A server at its limit costs the time that requests wait for it, as a share of the time of all requests. By
// Little's law, that is the share of waiting requests among all requests present.
func TestLimitsCostWhatRequestsWait(t *testing.T) {
	for _, full := range []int{1, 2} {
		set := series.New(trace.NewSymbols(), &trace.Diags{})
		for k, name := range []string{"a", "b"} {
			f := set.Fill(name+".log", "server log")
			p := f.Place(series.Place{Server: f.Server(series.Server{Name: name, Role: "unified", Engine: "SGLang"}), Rank: trace.NoRank, GPU: series.NoGPU})
			for s := range 600 {
				f.Line(int64(s) + 1)
				at, usage, queued := trace.Time(1_700_000_000e9)+trace.Time(s)*1e9, 40.0, 0.0
				if k < full {
					usage, queued = 99.5, 7
				}
				f.Add(f.Series(series.Running, p), at, 10)
				f.Add(f.Series(series.KVUsage, p), at, usage)
				f.Add(f.Series(series.Queued, p), at, queued)
			}
		}
		set.Finish(series.Known{})
		found, _ := slow.Limits(telemetry.Measure(set, telemetry.Options{}))
		if want := float64(7*full) / float64(7*full+2*10); len(found) != 1 || found[0].Subkind != held.KVCache || math.Abs(found[0].Cost-want) > 0.01 {
			t.Errorf("%d full: found %+v", full, found)
		}
	}
}

// Two retractions in a log without batches span all of its time, but have no cost: it is unknown what ran meanwhile.
func TestRetractionsAloneTellNoCost(t *testing.T) {
	const line = "[2026-06-06 13:44:%02d TP0] KV cache pool is full. Retract requests. #retracted_reqs: 1, #new_token_ratio: 0.0980 -> 0.3487\n"
	found, _ := held.Retractions(measured(t, fmt.Sprintf(line, 3)+fmt.Sprintf(line, 15)))
	if len(found) != 1 || found[0].Cost != 0 || !strings.Contains(found[0].Text, "retracts 2 requests") {
		t.Errorf("%+v", found)
	}
}

// A KV cache may be full of what is between prefill and decode servers, or of what a server works on.
func TestFullOfCachesOnTheWay(t *testing.T) {
	decode := "Decode batch, #running-req: 40, #token: 117000, token usage: 0.98, pre-allocated usage: %.2f, #prealloc-req: 160, #transfer-req: 59, #retracted-req: 0, cuda graph: True, gen throughput (token/s): 125.00, #queue-req: 0, "
	prefill := "Prefill batch, #new-seq: %d, #new-token: 630, #cached-token: 0, token usage: 0.98, #running-req: 0, #queue-req: 80, #prealloc-req: 0, #inflight-req: 9, input throughput (token/s): 5000.00, "
	for _, test := range []struct{ line, want string }{
		{fmt.Sprintf(decode, 0.93), held.OnTheWay}, {fmt.Sprintf(decode, 0.02), held.KVCache},
		{fmt.Sprintf(prefill, 1), held.OnTheWay}, {fmt.Sprintf(prefill, 40), held.KVCache},
	} {
		l := busyLog{now: time.Date(2026, 6, 6, 13, 44, 0, 0, time.UTC)}
		for range 120 {
			l.say(" TP0", "%s", test.line)
			l.now = l.now.Add(time.Second)
		}
		if found, _ := slow.Limits(measured(t, l.String())); len(found) != 1 || found[0].Subkind != test.want {
			t.Errorf("%s: finds %+v, want %s", test.line, found, test.want)
		}
	}
}

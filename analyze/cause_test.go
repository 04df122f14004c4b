package analyze

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sgtrace/sgtrace/golden/simulator"
	"github.com/sgtrace/sgtrace/internal/testinput"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// inMicros fills in causes by hand, in us.
func inMicros(times map[Cause]int64) (c Causes) {
	for cause, t := range times {
		c[cause] = t * 1000
	}
	return c
}

func compareCauses(t *testing.T, what string, got, want *Causes) {
	t.Helper()
	for c := range causeCount {
		if got[c] != want[c] {
			t.Errorf("%s: %v is %d ns, want %d", what, c, got[c], want[c])
		}
	}
}

// disaggregatedRequest is one request through gateway, prefill and decode server,
// in us. The second TP rank of the decode server is 500 us late with step 3.
func disaggregatedRequest(d *dumpWriter) {
	const id = "00000000000000000000000000000001"
	gateway := d.add(wireSpan{service: "smg", trace: id, name: "http_request", from: 0, to: 200_000, attrs: attrs{"module": "smg", "status_code": "200"}})

	prefill := wireSpan{trace: id, parent: gateway, name: "prefill Req 11111111", from: 1000, to: 60_000,
		attrs: attrs{"rid": "11111111aaaa", "module": "sglang::request", "bootstrap_room": "0x7c54"}}
	root := d.add(prefill)
	d.thread(prefill, root, prefillHost, "PrefillTokenizer", -1, 88,
		wireSpan{name: "tokenize", from: 1000, to: 2000}, wireSpan{name: "api_server_dispatch", from: 2000, to: 2500})
	d.thread(prefill, root, prefillHost, "Prefill Scheduler", 0, 245,
		wireSpan{name: "prefill_prepare", from: 4000, to: 4100}, wireSpan{name: "prefill_bootstrap", from: 4100, to: 9000},
		wireSpan{name: "prefill_waiting", from: 9000, to: 19_000}, wireSpan{name: "prefill_forward", from: 19_000, to: 39_000},
		wireSpan{name: "prefill_transfer_kv_cache", from: 39_100, to: 59_000})

	decode := wireSpan{trace: id, parent: gateway, name: "decode Req 22222222", from: 3000, to: 199_000,
		attrs: attrs{"rid": "22222222bbbb", "module": "sglang::request", "bootstrap_room": "0x7c54",
			"gen_ai.usage.completion_tokens": 18, "gen_ai.latency.time_to_first_token": 0.0593}}
	root = d.add(decode)
	d.thread(decode, root, decodeHost, "DecodeTokenizer", -1, 88, wireSpan{name: "tokenize", from: 3000, to: 4000})
	for tp := range 2 {
		stages := []wireSpan{
			{name: "decode_prepare", from: 5000, to: 5100}, {name: "decode_bootstrap", from: 5100, to: 8800},
			{name: "decode_transferred", from: 8800, to: 60_000}, {name: "decode_waiting", from: 60_000, to: 60_500},
			{name: "decode_forward", from: 60_500, to: 198_000}, {name: "fake_output", parent: "^", from: 60_500, to: 61_000},
		}
		for step := range 17 {
			from := float64(61_000 + 8000*step)
			to := from + 8000
			if tp == 1 && step == 3 {
				to += 500
			}
			stages = append(stages, wireSpan{name: "decode_loop", parent: "^", from: from, to: to})
		}
		d.thread(decode, root, decodeHost, "Decode Scheduler", tp, 245+tp, stages...)
	}
}

func TestCausesByHand(t *testing.T) {
	var d dumpWriter
	disaggregatedRequest(&d)
	s := d.set(t)
	list := newAttributor(s).all()
	if len(list) != 1 {
		t.Fatalf("%d requests, want 1", len(list))
	}
	a := &list[0]
	before := map[Cause]int64{
		CauseDispatch: 1000, CausePrefillBootstrap: 1200, CauseDecodeBootstrap: 3800, CauseQueue: 10_000,
		CausePrefill: 20_000, CauseTransfer: 21_000, CauseDecodeQueue: 500, CauseFirstStep: 500, CauseReturn: 1300,
	}
	ttft := inMicros(before)
	compareCauses(t, "ttft", &a.TTFT, &ttft)
	before[CauseRouter], before[CauseIntake], before[CauseDispatch] = 1000, 500, 2500
	first := inMicros(before)
	compareCauses(t, "first", &a.First, &first)
	before[CauseRouter], before[CauseReturn], before[CauseDecode], before[CauseSlowRank] = 2000, 2000, 135_500, 500
	e2e := inMicros(before)
	compareCauses(t, "e2e", &a.E2E, &e2e)
	if got := s.Procs[a.Slow].Rank.TP; got != 1 || a.Gaps != 17 {
		t.Errorf("slow TP rank %d of %d gaps, want 1 of 17", got, a.Gaps)
	}
	if s.Procs[a.Prefill].Host != prefillHost || s.Procs[a.Answer].Host != decodeHost {
		t.Errorf("prefilled on %s, answered on %s", s.Procs[a.Prefill].Host, s.Procs[a.Answer].Host)
	}
}

// addEvent adds an event, at a time in us, to the span on line i.
func (d *dumpWriter) addEvent(i int, name string, at float64, a attrs) {
	event, err := json.Marshal(map[string]any{"name": name, "timeUnixNano": fmt.Sprint(epoch + int64(at*1000)), "attributes": keyValues(a)})
	if err != nil {
		panic(err)
	}
	d.lines[i] = strings.Replace(d.lines[i], `"status":{}`, `"events":[`+string(event)+`],"status":{}`, 1)
}

// A chunk waits until its batch is scheduled.
func TestChunkWaitByHand(t *testing.T) {
	var d dumpWriter
	root := wireSpan{trace: "00000000000000000000000000000004", name: " Req 4444", from: 0, to: 100_000, attrs: attrs{"rid": "4444", "module": "sglang::request"}}
	id := d.add(root)
	d.thread(root, id, decodeHost, "Scheduler", 0, 245,
		wireSpan{name: "prefill_waiting", from: 0, to: 10_000}, wireSpan{name: "prefill_forward", from: 10_000, to: 60_000},
		wireSpan{name: "chunked_prefill", parent: "^", from: 10_000, to: 30_000}, wireSpan{name: "chunked_prefill", parent: "^", from: 30_000, to: 60_000})
	d.addEvent(4, "schedule", 10_100, attrs{"batch_size": 2, "forward_mode": "prefill"})
	d.addEvent(5, "schedule", 38_000, attrs{"batch_size": 1, "forward_mode": "prefill"})
	a := newAttributor(d.set(t)).all()[0]
	want := inMicros(map[Cause]int64{CauseQueue: 10_000, CausePrefill: 42_000, CauseChunkWait: 8000, CauseReturn: 40_000})
	compareCauses(t, "e2e", &a.E2E, &want)
	if !a.Shared {
		t.Error("the first chunk was not alone in its batch")
	}
}

// On a unified server a step waits for the prefill of another request, and a
// retraction lasts until the next token that is computed.
func TestGapsByHand(t *testing.T) {
	var d dumpWriter
	unified := func(n int, to float64, stages ...wireSpan) {
		root := wireSpan{trace: fmt.Sprintf("%032x", n), name: " Req 3333", from: 0, to: to,
			attrs: attrs{"rid": fmt.Sprintf("3333%d", n), "module": "sglang::request", "gen_ai.usage.completion_tokens": len(stages) - 2}}
		id := d.add(root)
		d.thread(root, id, decodeHost, "Scheduler", 0, 245, stages...)
	}
	stages := []wireSpan{{name: "prefill_waiting", from: 1000, to: 2000}, {name: "prefill_forward", from: 2000, to: 20_000}}
	at := 20_000.0
	for step := range 10 {
		to := at + 8000
		switch step {
		case 4:
			to += 30_000 // another prefill goes first
		case 7:
			to += 50_000 // thrown out after 3 ms
		}
		stages = append(stages, wireSpan{name: "decode_loop", from: at, to: to})
		at = to
	}
	unified(1, at+1000, stages...)
	d.addEvent(1, "retract", stages[9].from+3000, nil) // on the thread span
	// With the overlap scheduler, it begins while step 3 still runs.
	unified(2, 90_000, wireSpan{name: "prefill_waiting", from: 40_000, to: 50_000}, wireSpan{name: "prefill_forward", from: 50_000, to: 82_000})

	s := d.set(t)
	list := newAttributor(s).all()
	at1 := slices.IndexFunc(list, func(a Attribution) bool { return s.Requests[a.Request].RID == "33331" })
	want := inMicros(map[Cause]int64{CauseUnaccounted: 1000, CauseQueue: 1000, CausePrefill: 18_000, CauseDecode: 75_000,
		CauseInterference: 30_000, CauseRetraction: 55_000, CauseReturn: 1000})
	compareCauses(t, "e2e", &list[at1].E2E, &want)
}

// addUp checks that the causes of every request are its time, to the ns, and that
// none is negative.
func addUp(t *testing.T, s *request.Set) []Attribution {
	t.Helper()
	list := newAttributor(s).all()
	finished := 0
	for i := range s.Requests {
		if s.Requests[i].Status == request.Finished {
			finished++
		}
	}
	if len(list) != finished {
		t.Errorf("%d of %d finished requests are divided", len(list), finished)
	}
	for i := range list {
		a := &list[i]
		m := &s.Requests[a.Request].Metrics
		if a.E2E.Total() != m.E2E || a.TTFT.Total() != max(0, m.TTFT) {
			t.Fatalf("%s: e2e %d, ttft %d ns, want %d, %d", s.Requests[a.Request].RID, a.E2E.Total(), a.TTFT.Total(), m.E2E, m.TTFT)
		}
		for c := range causeCount {
			if a.E2E[c] < 0 || a.TTFT[c] < 0 || a.First[c] < 0 {
				t.Fatalf("%s: %v is negative: %d, %d, %d ns", s.Requests[a.Request].RID, c, a.E2E[c], a.TTFT[c], a.First[c])
			}
		}
	}
	return list
}

func TestCausesAddUpInSharedDumps(t *testing.T) {
	root := filepath.Dir(sharedFile(t, "a_unified_tp2.jsonl"))
	n := 0
	err := filepath.WalkDir(root, func(path string, e os.DirEntry, err error) error {
		name, _ := filepath.Rel(root, path)
		if err != nil || e.IsDir() || strings.HasSuffix(name, ".truth.json") || strings.HasSuffix(name, ".yaml") {
			return err
		}
		n++
		t.Run(name, func(t *testing.T) { addUp(t, load(t, name)) })
		return nil
	})
	if err != nil || n < 10 {
		t.Errorf("%d dumps: %v", n, err)
	}
}

// deployment makes the seed-th of all shapes of deployments.
func deployment(seed uint64, c simulator.Config) simulator.Config {
	switch c.Mode = simulator.Mode(seed % 4); seed % 4 {
	case 3:
		c.Mode, c.Unified, c.Straggler.Factor = simulator.Unified, simulator.Parallel{TP: 1, PP: 2, DP: 2}, 0
	}
	return c
}

func simulated(t testing.TB, c simulator.Config) (*request.Set, *simulator.Truth) {
	t.Helper()
	dump, truth := testinput.Simulate(t, c)
	return build(t, "sim", bytes.NewReader(dump)), truth
}

func TestCausesAddUpInSimulatedRuns(t *testing.T) {
	for seed := range uint64(8) {
		c := deployment(seed, simulator.DefaultConfig(seed))
		c.Requests, c.Level = 60, int(1+seed/2)
		c.KVTokens = 3200 // retractions
		dump, _ := testinput.Simulate(t, c)
		s := build(t, "sim", bytes.NewReader(dump))
		addUp(t, s)
		damaged := build(t, "damaged", bytes.NewReader(withoutSpans(dump, seed)))
		if lost := s.Len() - damaged.Len(); lost < s.Len()/20 {
			t.Errorf("only %d spans of %d were left out", lost, s.Len())
		}
		addUp(t, damaged)
	}
}

var spanText = regexp.MustCompile(`\{"traceId":"[^\n]*?"status":\{[^}]*\}\}`)

// withoutSpans leaves out every tenth span of a dump.
func withoutSpans(dump []byte, seed uint64) []byte {
	rng := rand.New(rand.NewPCG(seed, 0))
	dump = spanText.ReplaceAllFunc(dump, func(span []byte) []byte {
		if rng.IntN(10) == 0 {
			return nil
		}
		return span
	})
	for _, list := range [...]struct{ from, to string }{{",,", ","}, {"[,", "["}, {",]", "]"}} {
		for bytes.Contains(dump, []byte(list.from)) {
			dump = bytes.ReplaceAll(dump, []byte(list.from), []byte(list.to))
		}
	}
	return dump
}

var timeText = regexp.MustCompile(`imeUnixNano":"(\d+)"`)

// Forged times do no harm, and nothing that is divided is lost.
func TestCausesOfForgedTimes(t *testing.T) {
	for seed := range uint64(12) {
		c := deployment(seed, simulator.DefaultConfig(seed))
		c.Requests, c.KVTokens = 30, 3200
		dump, _ := testinput.Simulate(t, c)
		rng := rand.New(rand.NewPCG(seed, 1))
		forged := timeText.ReplaceAllFunc(dump, func(text []byte) []byte {
			n := [...]int64{0, 1, math.MaxInt64, math.MaxInt64 - 5, rng.Int64(), epoch + rng.Int64N(20e9)}[rng.IntN(6)]
			if rng.IntN(15) > 0 {
				return text
			}
			return fmt.Appendf(nil, `imeUnixNano":"%d"`, n)
		})
		s := build(t, "forged", bytes.NewReader(forged))
		for _, a := range newAttributor(s).all() {
			if m := &s.Requests[a.Request].Metrics; a.E2E.Total() != m.E2E || a.TTFT.Total() != max(0, m.TTFT) {
				t.Fatalf("e2e %d, ttft %d ns, want %d, %d", a.E2E.Total(), a.TTFT.Total(), m.E2E, m.TTFT)
			}
		}
		for _, r := range NewTail(s, TailOptions{}).Reports() {
			text(t, r, FormatText, Style{})
		}
	}
}

// What the time of day is does not matter, to the ns.
func TestCausesDoNotDependOnTheTimeOfDay(t *testing.T) {
	for seed := range uint64(4) {
		c := deployment(seed, simulator.DefaultConfig(seed))
		c.Requests = 100
		dump, _ := testinput.Simulate(t, c)
		want := newAttributor(build(t, "sim", bytes.NewReader(dump))).all()
		later := timeText.ReplaceAllFunc(dump, func(text []byte) []byte {
			n, err := strconv.ParseInt(string(timeText.FindSubmatch(text)[1]), 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return fmt.Appendf(nil, `imeUnixNano":"%d"`, n+987_654_321_012_345)
		})
		got := newAttributor(build(t, "sim", bytes.NewReader(later))).all()
		if !slices.Equal(got, want) {
			t.Errorf("seed %d: a shift of all times changes something", seed)
		}
	}
}

// How far the clocks of hosts are apart hardly matters: requests tell.
func TestCausesDoNotDependOnClocks(t *testing.T) {
	const tolerance = 3_000_000 // ns: what requests leave open
	for seed := range uint64(2) {
		c := simulator.DefaultConfig(seed)
		c.Mode, c.Requests = simulator.Mode(seed), 150
		c.PrefillSkew, c.DecodeSkew = 0, 0
		exact, _ := simulated(t, c)
		want := map[string]*Attribution{}
		for _, a := range newAttributor(exact).all() {
			want[exact.Requests[a.Request].RID] = &a
		}
		for _, skew := range []time.Duration{4 * time.Millisecond, -900 * time.Millisecond, 17 * time.Minute} {
			c.PrefillSkew, c.DecodeSkew = skew, -2*skew
			c.PrefillDrift, c.DecodeDrift = 20, -30
			s, _ := simulated(t, c)
			got := addUp(t, s)
			for i := range got {
				for k := range causeCount {
					rid := s.Requests[got[i].Request].RID
					if is, was := got[i].E2E[k], want[rid].E2E[k]; is-was > tolerance || was-is > tolerance {
						t.Fatalf("skew %v: %s: %v is %d ns, want %d", skew, rid, k, is, was)
					}
				}
			}
		}
	}
}

func TestCoverage(t *testing.T) {
	c := newCoverage([]Interval{{30, 40}, {10, 20}, {15, 25}, {25, 26}, {50, 60}})
	for _, x := range []struct{ from, to, want int64 }{
		{0, 100, 36}, {0, 10, 0}, {12, 13, 1}, {20, 35, 11}, {26, 30, 0}, {35, 55, 10}, {60, 70, 0}, {55, 54, 0},
	} {
		if got := c.overlap(trace.Time(x.from), trace.Time(x.to)); got != x.want {
			t.Errorf("overlap(%d, %d) is %d, want %d", x.from, x.to, got, x.want)
		}
	}
}

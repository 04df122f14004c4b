package cause

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/golden/simulator"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/testkit/testinput"
	"github.com/sgtrace/sgtrace/testkit/testset"
	"github.com/sgtrace/sgtrace/trace"
)

// inMicros makes causes from times in us.
func inMicros(times map[Cause]int64) (c Causes) {
	for cause, t := range times {
		c[cause] = t * 1000
	}
	return c
}

func compareCauses(t *testing.T, what string, got, want *Causes) {
	t.Helper()
	for c := range Count {
		if got[c] != want[c] {
			t.Errorf("%s: %v is %d ns, want %d", what, c, got[c], want[c])
		}
	}
}

func TestCausesByHand(t *testing.T) {
	var d testset.Dump
	testset.DisaggregatedRequest(&d)
	s := d.Set(t)
	list := NewAttributor(place.Of(s)).All()
	if len(list) != 1 {
		t.Fatalf("%d requests, want 1", len(list))
	}
	a := &list[0]
	before := map[Cause]int64{
		Dispatch: 1000, PrefillBootstrap: 1200, DecodeBootstrap: 3800, Queue: 10_000,
		Prefill: 20_000, Transfer: 21_000, DecodeQueue: 500, FirstStep: 500, Return: 1300,
	}
	ttft := inMicros(before)
	compareCauses(t, "ttft", &a.TTFT, &ttft)
	before[Router], before[Intake], before[Dispatch] = 1000, 500, 2500
	first := inMicros(before)
	compareCauses(t, "first", &a.First, &first)
	before[Router], before[Return], before[Decode], before[SlowRank] = 2000, 2000, 135_500, 500
	e2e := inMicros(before)
	compareCauses(t, "e2e", &a.E2E, &e2e)
	if got := s.Procs[a.Slow].Rank.TP; got != 1 || a.Gaps != 17 {
		t.Errorf("slow TP rank %d of %d gaps, want 1 of 17", got, a.Gaps)
	}
	if s.Procs[a.Prefill].Host != testset.PrefillHost || s.Procs[a.Answer].Host != testset.DecodeHost {
		t.Errorf("prefilled on %s, answered on %s", s.Procs[a.Prefill].Host, s.Procs[a.Answer].Host)
	}
}

// While a decode server has no room yet, nothing is sent, even though the prefill server is in its transfer stage.
func TestNoTransferWithoutRoom(t *testing.T) {
	var d testset.Dump
	part := func(role, label, host string, pid int, to float64, stages ...testset.Span) {
		root := testset.Span{Trace: "00000000000000000000000000000004", Name: role + " Req 4444", From: 0, To: to,
			Attrs: testset.Attrs{"rid": "4444" + role, "module": "sglang::request", "bootstrap_room": "0x44"}}
		id := d.Add(root)
		d.Thread(root, id, host, label, 0, pid, stages...)
	}
	part("prefill", "Prefill Scheduler", testset.PrefillHost, 245, 80_000,
		testset.Span{Name: "prefill_waiting", From: 0, To: 5000}, testset.Span{Name: "prefill_forward", From: 5000, To: 20_000},
		testset.Span{Name: "prefill_transfer_kv_cache", From: 20_000, To: 74_000})
	part("decode", "Decode Scheduler", testset.DecodeHost, 713, 100_000,
		testset.Span{Name: "decode_bootstrap", From: 0, To: 70_000}, testset.Span{Name: "decode_transferred", From: 70_000, To: 74_000},
		testset.Span{Name: "decode_forward", From: 74_000, To: 100_000})
	a := NewAttributor(place.Of(d.Set(t))).All()[0]
	want := inMicros(map[Cause]int64{Queue: 5000, Prefill: 15_000, DecodeBootstrap: 50_000, Transfer: 4000, Decode: 26_000})
	compareCauses(t, "e2e", &a.E2E, &want)
}

// While the tokenizer of a prefill server is too busy to begin, the decode server waits for the KV cache, but no transfer is slow,
// whether the span of the prefill server begins with its turn at the tokenizer, or when the request arrives.
func TestNoTransferBeforeThePrefillServerBegins(t *testing.T) {
	for _, begins := range []float64{61_000, 1500} {
		var d testset.Dump
		const id = "00000000000000000000000000000004"
		call := d.Add(testset.Span{Service: "smg", Trace: id, Name: "http_request", From: 0, To: 100_000, Attrs: testset.Attrs{"module": "smg", "status_code": "200"}})
		d.AddEvent(0, "Sending concurrent requests", 1000, testset.Attrs{})
		part := func(role, label, host string, pid int, from, to float64, stages ...testset.Span) (testset.Span, string) {
			root := testset.Span{Trace: id, Parent: call, Name: role + " Req 4444", From: from, To: to,
				Attrs: testset.Attrs{"rid": "4444" + role, "module": "sglang::request", "bootstrap_room": "0x44"}}
			at := d.Add(root)
			d.Thread(root, at, host, label, 0, pid, stages...)
			return root, at
		}
		root, at := part("prefill", "Prefill Scheduler", testset.PrefillHost, 245, begins, 80_000,
			testset.Span{Name: "prefill_forward", From: 61_000, To: 70_000}, testset.Span{Name: "prefill_transfer_kv_cache", From: 70_000, To: 74_000})
		d.Thread(root, at, testset.PrefillHost, "PrefillTokenizer", -1, 244, testset.Span{Name: "tokenize", From: 60_500, To: 61_000})
		part("decode", "Decode Scheduler", testset.DecodeHost, 713, 1000, 100_000,
			testset.Span{Name: "decode_transferred", From: 1000, To: 74_000}, testset.Span{Name: "decode_forward", From: 74_000, To: 100_000})
		a := NewAttributor(place.Of(d.Set(t))).All()[0]
		want := inMicros(map[Cause]int64{Router: 1000, Dispatch: 60_000, Prefill: 9000, Transfer: 4000, Decode: 26_000})
		compareCauses(t, "e2e", &a.E2E, &want)
	}
}

// If neither steps nor a TTFT show when the first token came, decoding does not count as the first step.
func TestDecodeWithoutFirstToken(t *testing.T) {
	var d testset.Dump
	root := testset.Span{Trace: "00000000000000000000000000000004", Name: " Req 4444", From: 0, To: 100_000, Attrs: testset.Attrs{"rid": "4444", "module": "sglang::request"}}
	id := d.Add(root)
	d.Thread(root, id, testset.DecodeHost, "Scheduler", 0, 245,
		testset.Span{Name: "decode_waiting", From: 0, To: 10_000}, testset.Span{Name: "decode_forward", From: 10_000, To: 100_000})
	a := NewAttributor(place.Of(d.Set(t))).All()[0]
	want := inMicros(map[Cause]int64{DecodeQueue: 10_000, Decode: 90_000})
	compareCauses(t, "e2e", &a.E2E, &want)
}

// A server that traces only whole requests does not show that it answers late: what comes after the first token is decoding.
func TestWithoutStages(t *testing.T) {
	for tokens, want := range map[int]Causes{
		8: inMicros(map[Cause]int64{Unaccounted: 30_000, Decode: 70_000}),
		1: inMicros(map[Cause]int64{Unaccounted: 30_000, Return: 70_000}),
	} {
		var d testset.Dump
		d.Add(testset.Span{Trace: "00000000000000000000000000000004", Name: " Req 4444", From: 0, To: 100_000,
			Attrs: testset.Attrs{"rid": "4444", "module": "sglang::request", "gen_ai.latency.time_to_first_token": 0.03, "gen_ai.usage.completion_tokens": tokens}})
		a := NewAttributor(place.Of(d.Set(t))).All()[0]
		compareCauses(t, "e2e", &a.E2E, &want)
	}
}

// A call for two answers ends with the longer one, and the shorter one waits for it. The gateway adds time only after that.
func TestOtherAnswersOfACall(t *testing.T) {
	var d testset.Dump
	const id = "00000000000000000000000000000004"
	call := d.Add(testset.Span{Service: "smg", Trace: id, Name: "http_request", From: 0, To: 100_000, Attrs: testset.Attrs{"module": "smg", "status_code": "200"}})
	answer := func(rid string, from, to float64) {
		root := testset.Span{Trace: id, Parent: call, Name: " Req " + rid, From: from, To: to, Attrs: testset.Attrs{"rid": rid, "module": "sglang::request"}}
		d.Thread(root, d.Add(root), testset.DecodeHost, "Scheduler", 0, 245, testset.Span{Name: "decode_forward", From: from, To: to})
	}
	answer("11111111", 1000, 40_000)
	answer("22222222", 2000, 99_000)
	list := NewAttributor(place.Of(d.Set(t))).All()
	if len(list) != 2 {
		t.Fatalf("%d requests, want 2", len(list))
	}
	for i, want := range []Causes{
		inMicros(map[Cause]int64{Router: 2000, Decode: 39_000, Siblings: 59_000}),
		inMicros(map[Cause]int64{Router: 2000, Siblings: 1000, Decode: 97_000}),
	} {
		compareCauses(t, "e2e", &list[i].E2E, &want)
	}
}

// A chunk waits until its batch is scheduled.
func TestChunkWaitByHand(t *testing.T) {
	var d testset.Dump
	root := testset.Span{Trace: "00000000000000000000000000000004", Name: " Req 4444", From: 0, To: 100_000, Attrs: testset.Attrs{"rid": "4444", "module": "sglang::request"}}
	id := d.Add(root)
	d.Thread(root, id, testset.DecodeHost, "Scheduler", 0, 245,
		testset.Span{Name: "prefill_waiting", From: 0, To: 10_000}, testset.Span{Name: "prefill_forward", From: 10_000, To: 60_000},
		testset.Span{Name: "chunked_prefill", Parent: "^", From: 10_000, To: 30_000}, testset.Span{Name: "chunked_prefill", Parent: "^", From: 30_000, To: 60_000})
	d.AddEvent(4, "schedule", 10_100, testset.Attrs{"batch_size": 2, "forward_mode": "prefill"})
	d.AddEvent(5, "schedule", 38_000, testset.Attrs{"batch_size": 1, "forward_mode": "prefill"})
	a := NewAttributor(place.Of(d.Set(t))).All()[0]
	want := inMicros(map[Cause]int64{Queue: 10_000, Prefill: 42_000, ChunkWait: 8000, Return: 40_000})
	compareCauses(t, "e2e", &a.E2E, &want)
	if !a.Shared {
		t.Error("the first chunk was not alone in its batch")
	}
}

// On a unified server, a step waits for the prefill of another request, and a
// retraction lasts until the next computed token.
func TestGapsByHand(t *testing.T) {
	var d testset.Dump
	unified := func(n int, to float64, stages ...testset.Span) {
		root := testset.Span{Trace: fmt.Sprintf("%032x", n), Name: " Req 3333", From: 0, To: to,
			Attrs: testset.Attrs{"rid": fmt.Sprintf("3333%d", n), "module": "sglang::request", "gen_ai.usage.completion_tokens": len(stages) - 2}}
		id := d.Add(root)
		d.Thread(root, id, testset.DecodeHost, "Scheduler", 0, 245, stages...)
	}
	stages := []testset.Span{{Name: "prefill_waiting", From: 1000, To: 2000}, {Name: "prefill_forward", From: 2000, To: 20_000}}
	at := 20_000.0
	for step := range 10 {
		to := at + 8000
		switch step {
		case 4:
			to += 30_000 // another prefill runs first
		case 7:
			to += 50_000 // retracted after 3 ms
		}
		stages = append(stages, testset.Span{Name: "decode_loop", From: at, To: to})
		at = to
	}
	unified(1, at+1000, stages...)
	d.AddEvent(1, "retract", stages[9].From+3000, nil) // on the thread span
	// With the overlap scheduler, the other prefill begins while step 3 still runs.
	unified(2, 90_000, testset.Span{Name: "prefill_waiting", From: 40_000, To: 50_000}, testset.Span{Name: "prefill_forward", From: 50_000, To: 82_000})

	s := d.Set(t)
	list := NewAttributor(place.Of(s)).All()
	at1 := slices.IndexFunc(list, func(a Attribution) bool { return s.Text(s.Requests[a.Request].RID) == "33331" })
	want := inMicros(map[Cause]int64{Unaccounted: 1000, Queue: 1000, Prefill: 18_000, Decode: 75_000,
		Interference: 30_000, Retraction: 55_000, Return: 1000})
	compareCauses(t, "e2e", &list[at1].E2E, &want)
}

// addUp checks that the causes of every request add up to its time, to the ns, and that none is negative.
func addUp(t *testing.T, s *request.Set) []Attribution {
	t.Helper()
	list := NewAttributor(place.Of(s)).All()
	finished := 0
	for i := range s.Requests {
		r := &s.Requests[i] // only the gateway shows that some of them finished
		if r.Status == request.Finished && r.Complete() && s.Parts[s.Answering(r)].Root != request.None {
			finished++
		}
	}
	if len(list) != finished {
		t.Errorf("%d of %d finished and complete requests are divided", len(list), finished)
	}
	for i := range list {
		a := &list[i]
		m := &s.Requests[a.Request].Metrics
		if a.E2E.Total() != m.E2E || a.TTFT.Total() != max(0, m.TTFT) {
			t.Fatalf("%s: e2e %d, ttft %d ns, want %d, %d", s.Text(s.Requests[a.Request].RID), a.E2E.Total(), a.TTFT.Total(), m.E2E, m.TTFT)
		}
		for c := range Count {
			if a.E2E[c] < 0 || a.TTFT[c] < 0 || a.First[c] < 0 {
				t.Fatalf("%s: %v is negative: %d, %d, %d ns", s.Text(s.Requests[a.Request].RID), c, a.E2E[c], a.TTFT[c], a.First[c])
			}
		}
	}
	return list
}

func TestCausesAddUpInSharedDumps(t *testing.T) {
	root := filepath.Dir(testset.SharedFile(t, "a_unified_tp2.jsonl"))
	n := 0
	err := filepath.WalkDir(root, func(path string, e os.DirEntry, err error) error {
		name, _ := filepath.Rel(root, path)
		if err != nil || e.IsDir() || strings.HasSuffix(name, ".truth.json") || strings.HasSuffix(name, ".yaml") {
			return err
		}
		n++
		t.Run(name, func(t *testing.T) { addUp(t, testset.LoadDump(t, name)) })
		return nil
	})
	if err != nil || n < 10 {
		t.Errorf("%d dumps: %v", n, err)
	}
}

func TestCausesAddUpInSimulatedRuns(t *testing.T) {
	for seed := range uint64(8) {
		c := testset.Deployment(seed, simulator.DefaultConfig(seed))
		c.Requests, c.Level = 60, int(1+seed/2)
		c.KVTokens = 3200 // enough for retractions
		dump, _ := testinput.Simulate(t, c)
		s := testset.BuildSet(t, "sim", bytes.NewReader(dump))
		addUp(t, s)
		damaged := testset.BuildSet(t, "damaged", bytes.NewReader(testset.WithoutSpans(dump, seed)))
		if lost := s.Len() - damaged.Len(); lost < s.Len()/20 {
			t.Errorf("only %d spans of %d were left out", lost, s.Len())
		}
		for i := range damaged.Requests { // causes add up even in damaged data
			damaged.Requests[i].Flags &^= request.MissingRows
		}
		addUp(t, damaged)
	}
}

// The time of day does not change the causes, to the ns.
func TestCausesDoNotDependOnTheTimeOfDay(t *testing.T) {
	for seed := range uint64(4) {
		c := testset.Deployment(seed, simulator.DefaultConfig(seed))
		c.Requests = 100
		dump, _ := testinput.Simulate(t, c)
		want := NewAttributor(place.Of(testset.BuildSet(t, "sim", bytes.NewReader(dump)))).All()
		later := testset.TimeText.ReplaceAllFunc(dump, func(text []byte) []byte {
			n, err := strconv.ParseInt(string(testset.TimeText.FindSubmatch(text)[1]), 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return fmt.Appendf(nil, `imeUnixNano":"%d"`, n+987_654_321_012_345)
		})
		got := NewAttributor(place.Of(testset.BuildSet(t, "sim", bytes.NewReader(later)))).All()
		if !slices.Equal(got, want) {
			t.Errorf("seed %d: a shift of all times changes something", seed)
		}
	}
}

// Offsets between the clocks of hosts hardly change the causes, since requests reveal the offsets.
func TestCausesDoNotDependOnClocks(t *testing.T) {
	const tolerance = 3_000_000 // ns: how exactly requests determine the clocks
	for seed := range uint64(2) {
		c := simulator.DefaultConfig(seed)
		c.Mode, c.Requests = simulator.Mode(seed), 150
		c.PrefillSkew, c.DecodeSkew = 0, 0
		exact, _ := testset.Simulated(t, c)
		want := map[string]*Attribution{}
		for _, a := range NewAttributor(place.Of(exact)).All() {
			want[exact.Text(exact.Requests[a.Request].RID)] = &a
		}
		for _, skew := range []time.Duration{4 * time.Millisecond, -900 * time.Millisecond, 17 * time.Minute} {
			c.PrefillSkew, c.DecodeSkew = skew, -2*skew
			c.PrefillDrift, c.DecodeDrift = 20, -30
			s, _ := testset.Simulated(t, c)
			got := addUp(t, s)
			for i := range got {
				for k := range Count {
					rid := s.Text(s.Requests[got[i].Request].RID)
					if is, was := got[i].E2E[k], want[rid].E2E[k]; is-was > tolerance || was-is > tolerance {
						t.Fatalf("skew %v: %s: %v is %d ns, want %d", skew, rid, k, is, was)
					}
				}
			}
		}
	}
}

func TestCoverage(t *testing.T) {
	c := request.NewCoverage([]request.Interval{{From: 30, To: 40}, {From: 10, To: 20}, {From: 15, To: 25}, {From: 25, To: 26}, {From: 50, To: 60}})
	for _, x := range []struct{ from, to, want int64 }{
		{0, 100, 36}, {0, 10, 0}, {12, 13, 1}, {20, 35, 11}, {26, 30, 0}, {35, 55, 10}, {60, 70, 0}, {55, 54, 0},
	} {
		if got := c.Overlap(trace.Time(x.from), trace.Time(x.to)); got != x.want {
			t.Errorf("overlap(%d, %d) is %d, want %d", x.from, x.to, got, x.want)
		}
	}
}

// Every cause has words, and no layer maps to a cause that is derived only later, such as PromptSize.
func TestCausesHaveWords(t *testing.T) {
	for c := range Count {
		if causeTexts[c].name == "" || causeTexts[c].phrase == "" {
			t.Errorf("cause %d has no words", c)
		}
	}
	for l, causes := range layerCauses {
		for _, c := range [...]Cause{causes.before, causes.after} {
			if c == PromptSize || c == SharedBatch || c == OutputLength {
				t.Errorf("layer %d is %v", l, c)
			}
		}
	}
}

// In a dump of decode servers only, the wait for the KV cache includes the prefill, so that it counts
// as PrefillSide and not as Transfer. If both halves are in the dump, nothing counts as PrefillSide.
func TestPrefillSideThatIsNotThere(t *testing.T) {
	c := testset.Deployment(1, testset.Calm(1))
	c.Requests = 60
	dump, _ := testinput.Simulate(t, c)
	prefills := map[string]bool{} // their trace ids
	for _, m := range prefillRoot.FindAllSubmatch(dump, -1) {
		prefills[string(m[1])] = true
	}
	decodeOnly := spansOf.ReplaceAllFunc(dump, func(span []byte) []byte {
		if prefills[string(spansOf.FindSubmatch(span)[1])] {
			return nil
		}
		return span
	})
	for _, list := range [...][2]string{{",,", ","}, {"[,", "["}, {",]", "]"}} {
		for bytes.Contains(decodeOnly, []byte(list[0])) {
			decodeOnly = bytes.ReplaceAll(decodeOnly, []byte(list[0]), []byte(list[1]))
		}
	}
	whole, half := testset.BuildSet(t, "whole", bytes.NewReader(dump)), testset.BuildSet(t, "half", bytes.NewReader(decodeOnly))
	for _, set := range []*request.Set{whole, half} {
		var transfer, side int64
		for _, a := range NewAttributor(place.Of(set)).All() {
			transfer += a.First[Transfer]
			side += a.First[PrefillSide]
		}
		if known := set == whole; known != (transfer > 0) || known == (side > 0) {
			t.Errorf("%s: %d ns of transfers, %d ns on the prefill side", set.Files[0].Name, transfer, side)
		}
	}
}

var (
	spansOf     = regexp.MustCompile(`\{"traceId":"([0-9a-f]+)"[^\n]*?"status":\{[^}]*\}\}`)
	prefillRoot = regexp.MustCompile(`\{"traceId":"([0-9a-f]+)"[^{}]*"name":"prefill Req`)
)

// A request spent 60 and 30 ns on two causes, and would have been 45 ns faster on a fast server: 30 and 15
// of these remain. What another claim took already counts once, but a second slowdown of the server adds up.
func TestSlower(t *testing.T) {
	b := &Costs{finished: []Attribution{{Request: 7}}}
	b.finished[0].E2E[Decode], b.finished[0].E2E[Interference] = 60, 30
	claim, once := b.Slower(map[int]int64{7: 45}, true, Decode, Interference), b.Slower(map[int]int64{7: 12}, false, Decode)
	for _, x := range []struct{ before, after, again int64 }{{60, 30, 18}, {20, 20, 18}} {
		left := budgetOf(&b.finished[0].E2E)
		left[Decode] = x.before
		if claim(0, left[:]); left[Decode] != x.after || left[Interference] != 15 {
			t.Errorf("of %v, %v are left, and %v", x.before, left[Decode], left[Interference])
		}
		if once(0, left[:]); left[Decode] != x.again || left[Interference] != 15 {
			t.Errorf("of %v, %v are left at last, and %v", x.before, left[Decode], left[Interference])
		}
	}
}

// If a request has no time except unaccounted time, all of that belongs to its server. Otherwise, time outside of all stages has no place.
func TestAllUnaccountedIsOfTheServer(t *testing.T) {
	a := Attribution{Answer: 3}
	a.E2E[Unaccounted] = 5
	if got := a.ProcOf(Unaccounted); got != 3 {
		t.Errorf("all of it is on %d", got)
	}
	a.E2E[Decode] = 1
	if got := a.ProcOf(Unaccounted); got != request.None {
		t.Errorf("a part of it is on %d", got)
	}
}

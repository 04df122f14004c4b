package golden

import (
	"math"
	"strconv"
	"testing"
)

// near reports whether two times, or durations that were put on the grid twice,
// are the same but for the grid.
func near(a, b int64) bool { return a-b < 512 && b-a < 512 }

// rootsOf returns the roots of a dump by rid.
func rootsOf(d *dump) map[string]*wireSpan {
	roots := map[string]*wireSpan{}
	for _, s := range d.spans {
		if s.layer() == layerRoot {
			roots[s.Attributes.text("rid")] = s
		}
	}
	return roots
}

func TestTruthMatchesTheSpans(t *testing.T) {
	for _, test := range configs {
		t.Run(test.name, func(t *testing.T) {
			r := simulateSmall(t, 17, test.change)
			d, truth := readBack(t, r), r.Truth()
			roots := rootsOf(d)
			stages := stageTimes(d)
			for i := range truth.Requests {
				for _, h := range truth.Requests[i].Halves {
					compareHalf(t, d, &h, roots[h.RID], stages)
				}
				compareRequest(t, d, &truth.Requests[i], roots)
			}
			compareCounts(t, d, &truth.Counts)
		})
	}
}

// stageKey is a stage of one half on one rank.
type stageKey struct{ rid, stage, rank string }

// stageTimes sums up the slices of a dump.
func stageTimes(d *dump) map[stageKey]StageTime {
	sums := map[stageKey]StageTime{}
	for _, s := range d.spans {
		if s.layer() != layerSlice {
			continue
		}
		k := stageKey{s.root().Attributes.text("rid"), s.Name, wireRank(s)}
		sum := sums[k]
		sum.N++
		sum.SumNs += s.End - s.Start
		sums[k] = sum
	}
	return sums
}

// wireRank returns the rank of a slice's thread as truth.json prints it.
func wireRank(s *wireSpan) string {
	k := noRank
	for _, part := range []struct {
		key string
		to  *int
	}{{"tp_rank", &k.tp}, {"pp_rank", &k.pp}, {"dp_rank", &k.dp}} {
		if n, err := strconv.Atoi(s.thread().Attributes.text(part.key)); err == nil {
			*part.to = n
		}
	}
	return k.String()
}

func compareHalf(t *testing.T, d *dump, h *HalfTruth, root *wireSpan, stages map[stageKey]StageTime) {
	t.Helper()
	skew := d.skew(root)
	if !near(root.Start-skew, h.StartNs) || !near(root.End-skew, h.EndNs) {
		t.Errorf("%s: root [%d, %d], truth [%d, %d]", h.RID, root.Start-skew, root.End-skew, h.StartNs, h.EndNs)
	}
	ttft, _ := strconv.ParseFloat(root.Attributes.text("gen_ai.latency.time_to_first_token"), 64)
	if !near(int64(math.Round(ttft*1e9)), h.TTFTNs) {
		t.Errorf("%s: TTFT %v s in the span, %d ns in truth", h.RID, ttft, h.TTFTNs)
	}
	for _, want := range h.Stages {
		got := stages[stageKey{h.RID, want.Stage, want.Rank}]
		if off := got.SumNs - want.SumNs; got.N != want.N || max(off, -off) > 512*int64(want.N) {
			t.Errorf("%s: %s on %s is %d times %d ns, truth %d times %d ns",
				h.RID, want.Stage, want.Rank, got.N, got.SumNs, want.N, want.SumNs)
		}
		waiting := want.Stage == "prefill_waiting" || want.Stage == "decode_waiting" && h.Role == "decode"
		if first := want.Rank == "TP0-PP0" || len(want.Rank) > 7 && want.Rank[:8] == "TP0-PP0-"; waiting && first {
			if off := got.SumNs - h.QueueNs; max(off, -off) > 512 {
				t.Errorf("%s: queued %d ns, truth %d ns", h.RID, got.SumNs, h.QueueNs)
			}
		}
	}
}

// compareRequest checks what the user saw against the spans, put on one clock.
func compareRequest(t *testing.T, d *dump, q *RequestTruth, roots map[string]*wireSpan) {
	t.Helper()
	arrival := int64(math.MaxInt64)
	for _, h := range q.Halves {
		root := roots[h.RID]
		if root.parent != nil {
			root = root.parent // the gateway
			if root.Start-d.skew(root) != q.ArrivalNs || root.End-d.skew(root) != q.EndNs {
				t.Errorf("%s: gateway [%d, %d], truth [%d, %d]", q.RID, root.Start, root.End, q.ArrivalNs, q.EndNs)
			}
		}
		arrival = min(arrival, root.Start-d.skew(root))
	}
	root := roots[q.RID]
	if !near(arrival, q.ArrivalNs) {
		t.Errorf("%s: arrived %d, truth %d", q.RID, arrival, q.ArrivalNs)
	}
	if got := root.Attributes.text("gen_ai.response.finish_reasons"); got != "" && got != `["`+q.FinishReason+`"]` {
		t.Errorf("%s: finish reasons %s, truth %s", q.RID, got, q.FinishReason)
	}
	if q.TTFTNs != 0 && q.FinishReason != "" {
		ttft, err := strconv.ParseFloat(root.Attributes.text("gen_ai.latency.time_to_first_token"), 64)
		if err != nil || !near(root.Start-d.skew(root)+int64(ttft*1e9)-arrival, q.TTFTNs) {
			t.Errorf("%s: TTFT %v after its root, truth %d ns after arrival", q.RID, ttft, q.TTFTNs)
		}
	}
	if q.ITL != nil && q.ITL.N != q.CompletionTokens-1 {
		t.Errorf("%s: %d gaps between %d tokens", q.RID, q.ITL.N, q.CompletionTokens)
	}
}

func compareCounts(t *testing.T, d *dump, c *CountTruth) {
	t.Helper()
	if len(d.spans) != c.Spans {
		t.Errorf("%d spans, truth %d", len(d.spans), c.Spans)
	}
	kinds, slices, events, errors := map[string]int{}, map[string]int{}, map[string]int{}, map[string]int{}
	for _, s := range d.spans {
		kinds[s.layer()]++
		if s.layer() == layerSlice {
			slices[s.Name]++
		}
		for _, e := range s.Events {
			events[e.Name]++
		}
		if s.Status.Code != 0 {
			switch reason := s.Attributes.text("reason"); {
			case reason == "The request queue is full.":
				errors["queue_full"]++
			case reason == "have unclosed span, auto closed":
				errors["auto_closed"]++
			default:
				errors["transfer_failed"]++
			}
		}
	}
	for _, table := range []struct {
		want []NameCount
		got  map[string]int
	}{{c.SpanKinds, kinds}, {c.Slices, slices}, {c.Events, events}, {c.Errors, errors}} {
		for _, row := range table.want {
			if table.got[row.Name] != row.Count {
				t.Errorf("%d %s, truth %d", table.got[row.Name], row.Name, row.Count)
			}
		}
	}
}

// TestStragglerEndsLast looks for the straggler as a user would: which rank is the
// last of its TP group to end a token?
func TestStragglerEndsLast(t *testing.T) {
	for _, test := range configs {
		r := simulateSmall(t, 19, test.change)
		truth := r.Truth().Straggler
		if truth == nil || truth.Steps < 100 || r.config.Level < 3 || r.config.Straggler.PP < r.serving().size.PP-1 {
			continue // nothing to see; on an early stage, as documented
		}
		t.Run(test.name, func(t *testing.T) {
			type token struct{ rid, group, count string }
			last := map[token]*wireSpan{}
			d := readBack(t, r)
			for _, s := range d.spans {
				if s.Name != "decode_loop" {
					continue
				}
				a := s.thread().Attributes
				k := token{s.root().Attributes.text("rid"), a.text("pp_rank") + "/" + a.text("dp_rank"), s.Attributes.text("decode_ct")}
				if last[k] == nil || s.End-d.skew(s) > last[k].End-d.skew(last[k]) {
					last[k] = s
				}
			}
			of, hit := 0, 0
			plant := r.config.Straggler
			group := strconv.Itoa(plant.PP) + "/"
			if r.serving().size.DP > 1 {
				group += strconv.Itoa(plant.DP)
			}
			for k, s := range last {
				if k.group == group {
					of++
					if s.thread().Attributes.text("tp_rank") == strconv.Itoa(plant.TP) {
						hit++
					}
				}
			}
			if of < 100 || float64(hit) < 0.95*float64(of) {
				t.Errorf("the straggler is the last for %d of %d tokens", hit, of)
			}
			if share := float64(truth.LastSteps) / float64(truth.Steps); share < 0.95 || truth.MeanLatenessNs < 1e6 {
				t.Errorf("truth: last in %.3f of the steps, by %d ns", share, truth.MeanLatenessNs)
			}
		})
	}
}

// TestImbalanceIsAsPlanted counts the requests of each DP rank in the spans.
func TestImbalanceIsAsPlanted(t *testing.T) {
	for _, mode := range []Mode{PDGateway, PDDirect, Unified} {
		r := simulate(t, 23, func(c *Config) { c.Mode = mode })
		d, truth := readBack(t, r), r.Truth()
		im := truth.Imbalance
		roots := rootsOf(d)
		var before, after [2]int
		dp := map[*wireSpan]int{}
		for _, s := range d.spans {
			if s.layer() == layerThread && s.Attributes.text("dp_rank") != "" {
				dp[s.parent], _ = strconv.Atoi(s.Attributes.text("dp_rank"))
			}
		}
		for _, q := range truth.Requests {
			if q.ArrivalNs < im.OnsetNs {
				before[dp[roots[q.RID]]]++
			} else {
				after[dp[roots[q.RID]]]++
			}
		}
		if before != [2]int(im.Before) || after != [2]int(im.After) {
			t.Errorf("%v: spans have %v and %v, truth %v and %v", mode, before, after, im.Before, im.After)
		}
		planted := r.config.Incident.DPShare
		if math.Abs(im.ShareBefore-0.5) > 0.01 || math.Abs(im.ShareAfter-planted) > 0.02 {
			t.Errorf("%v: shares %.3f and %.3f, planted 0.5 and %.3f", mode, im.ShareBefore, im.ShareAfter, planted)
		}
	}
}

// TestSlowTransfersAreBlamed checks the one cause that is planted request by
// request, in a run where nothing else is slow.
func TestSlowTransfersAreBlamed(t *testing.T) {
	c := DefaultConfig(29)
	c.Incident, c.Straggler, c.Cancels, c.Impatient, c.FailedTransfers = Incident{}, Straggler{}, 0, 0, 0
	c.SlowTransfers, c.Rate = 0.1, 4
	r, err := Simulate(c)
	if err != nil {
		t.Fatal(err)
	}
	blamed := map[int]bool{}
	for _, s := range r.Truth().Slow {
		blamed[s.Request] = s.Cause == "kv_transfer"
	}
	planted := 0
	for i, q := range r.requests {
		if q.slowTransfer {
			planted++
		}
		if q.slowTransfer != blamed[i] {
			t.Errorf("request %d: slow transfer %v, blamed %v", i, q.slowTransfer, blamed[i])
		}
	}
	if planted == 0 {
		t.Error("nothing was planted")
	}
}

func TestSummarize(t *testing.T) {
	for _, test := range []struct {
		of   []int64
		want Summary
	}{
		{[]int64{5}, Summary{1, 5, 5, 5, 5, 5}},
		{[]int64{4, 1, 2}, Summary{3, 2, 2, 4, 4, 4}},
		{[]int64{10, 9, 8, 7, 6, 5, 4, 3, 2, 1}, Summary{10, 6, 5, 9, 10, 10}},
	} {
		if got := summarize(test.of); *got != test.want {
			t.Errorf("summarize(%v) = %+v, want %+v", test.of, *got, test.want)
		}
	}
	if summarize(nil) != nil {
		t.Error("no durations have a summary")
	}
}

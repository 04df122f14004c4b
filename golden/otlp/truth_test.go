package otlp_test

import (
	"math"
	"strconv"
	"testing"

	"github.com/sgtrace/sgtrace/golden/simulator"
	"github.com/sgtrace/sgtrace/testkit/testinput"
)

// near reports whether two times are equal up to the time grid, or two durations that were rounded
// to it twice.
func near(a, b int64) bool { return a-b < 512 && b-a < 512 }

// rootsOf returns the roots of a dump by rid.
func rootsOf(d *testinput.Dump) map[string]*testinput.Span {
	roots := map[string]*testinput.Span{}
	for _, s := range d.Spans {
		if s.Layer() == testinput.LayerRoot {
			roots[s.Attributes.Text("rid")] = s
		}
	}
	return roots
}

func TestTruthMatchesTheSpans(t *testing.T) {
	for _, test := range testinput.Configs {
		t.Run(test.Name, func(t *testing.T) {
			d := testinput.ReadSmall(t, test.Name)
			truth := d.Run.Truth()
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

// A stageKey identifies a stage of one half on one rank.
type stageKey struct{ rid, stage, rank string }

// stageTimes sums up the slices of a dump by stage.
func stageTimes(d *testinput.Dump) map[stageKey]simulator.StageTime {
	sums := map[stageKey]simulator.StageTime{}
	for _, s := range d.Spans {
		if s.Layer() != testinput.LayerSlice {
			continue
		}
		k := stageKey{s.Root().Attributes.Text("rid"), s.Name, wireRank(s)}
		sum := sums[k]
		sum.N++
		sum.SumNs += s.End - s.Start
		sums[k] = sum
	}
	return sums
}

// wireRank returns the rank of a slice's thread as truth.json prints it.
func wireRank(s *testinput.Span) string {
	k := simulator.NoRank
	for _, part := range []struct {
		key string
		to  *int
	}{{"tp_rank", &k.TP}, {"pp_rank", &k.PP}, {"dp_rank", &k.DP}} {
		if n, err := strconv.Atoi(s.Thread().Attributes.Text(part.key)); err == nil {
			*part.to = n
		}
	}
	return k.String()
}

func compareHalf(t *testing.T, d *testinput.Dump, h *simulator.HalfTruth, root *testinput.Span, stages map[stageKey]simulator.StageTime) {
	t.Helper()
	skew := d.Skew(root)
	if !near(root.Start-skew, h.StartNs) || !near(root.End-skew, h.EndNs) {
		t.Errorf("%s: root [%d, %d], truth [%d, %d]", h.RID, root.Start-skew, root.End-skew, h.StartNs, h.EndNs)
	}
	ttft, _ := strconv.ParseFloat(root.Attributes.Text("gen_ai.latency.time_to_first_token"), 64)
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

// compareRequest checks the user's view of a request against its spans, on one clock.
func compareRequest(t *testing.T, d *testinput.Dump, q *simulator.RequestTruth, roots map[string]*testinput.Span) {
	t.Helper()
	arrival := int64(math.MaxInt64)
	for _, h := range q.Halves {
		root := roots[h.RID]
		if root.Parent != nil {
			root = root.Parent // the gateway
			if root.Start-d.Skew(root) != q.ArrivalNs || root.End-d.Skew(root) != q.EndNs {
				t.Errorf("%s: gateway [%d, %d], truth [%d, %d]", q.RID, root.Start, root.End, q.ArrivalNs, q.EndNs)
			}
		}
		arrival = min(arrival, root.Start-d.Skew(root))
	}
	root := roots[q.RID]
	if !near(arrival, q.ArrivalNs) {
		t.Errorf("%s: arrived %d, truth %d", q.RID, arrival, q.ArrivalNs)
	}
	if got := root.Attributes.Text("gen_ai.response.finish_reasons"); got != "" && got != `["`+q.FinishReason+`"]` {
		t.Errorf("%s: finish reasons %s, truth %s", q.RID, got, q.FinishReason)
	}
	if q.TTFTNs != 0 && q.FinishReason != "" {
		ttft, err := strconv.ParseFloat(root.Attributes.Text("gen_ai.latency.time_to_first_token"), 64)
		if err != nil || !near(root.Start-d.Skew(root)+int64(ttft*1e9)-arrival, q.TTFTNs) {
			t.Errorf("%s: TTFT %v after its root, truth %d ns after arrival", q.RID, ttft, q.TTFTNs)
		}
	}
	if q.ITL != nil && q.ITL.N != q.CompletionTokens-1 {
		t.Errorf("%s: %d gaps between %d tokens", q.RID, q.ITL.N, q.CompletionTokens)
	}
}

func compareCounts(t *testing.T, d *testinput.Dump, c *simulator.CountTruth) {
	t.Helper()
	if len(d.Spans) != c.Spans {
		t.Errorf("%d spans, truth %d", len(d.Spans), c.Spans)
	}
	kinds, slices, events, errors := map[string]int{}, map[string]int{}, map[string]int{}, map[string]int{}
	for _, s := range d.Spans {
		kinds[s.Layer()]++
		if s.Layer() == testinput.LayerSlice {
			slices[s.Name]++
		}
		for _, e := range s.Events {
			events[e.Name]++
		}
		if s.Status.Code != 0 {
			switch reason := s.Attributes.Text("reason"); {
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
		want []simulator.NameCount
		got  map[string]int
	}{{c.SpanKinds, kinds}, {c.Slices, slices}, {c.Events, events}, {c.Errors, errors}} {
		for _, row := range table.want {
			if table.got[row.Name] != row.Count {
				t.Errorf("%d %s, truth %d", table.got[row.Name], row.Name, row.Count)
			}
		}
	}
}

// TestStragglerEndsLast looks for the straggler as a user would: which rank is the last in its TP
// group to finish a token?
func TestStragglerEndsLast(t *testing.T) {
	for _, test := range testinput.Configs {
		d := testinput.ReadSmall(t, test.Name)
		r := d.Run
		truth := r.Truth().Straggler
		if truth == nil || truth.Steps < 100 || r.Config.Level < 3 || r.Config.Straggler.PP < r.Serving().Size.PP-1 {
			continue // not visible on an early stage, as documented
		}
		t.Run(test.Name, func(t *testing.T) {
			type token struct{ rid, group, count string }
			last := map[token]*testinput.Span{}
			for _, s := range d.Spans {
				if s.Name != "decode_loop" {
					continue
				}
				a := s.Thread().Attributes
				k := token{s.Root().Attributes.Text("rid"), a.Text("pp_rank") + "/" + a.Text("dp_rank"), s.Attributes.Text("decode_ct")}
				if last[k] == nil || s.End-d.Skew(s) > last[k].End-d.Skew(last[k]) {
					last[k] = s
				}
			}
			of, hit := 0, 0
			plant := r.Config.Straggler
			group := strconv.Itoa(plant.PP) + "/"
			if r.Serving().Size.DP > 1 {
				group += strconv.Itoa(plant.DP)
			}
			for k, s := range last {
				if k.group == group {
					of++
					if s.Thread().Attributes.Text("tp_rank") == strconv.Itoa(plant.TP) {
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
	for _, mode := range []simulator.Mode{simulator.PDGateway, simulator.PDDirect, simulator.Unified} {
		r := testinput.Play(t, 23, func(c *simulator.Config) { c.Mode = mode })
		d, truth := testinput.ReadSpans(t, r), r.Truth()
		im := truth.Imbalance
		roots := rootsOf(d)
		var before, after [2]int
		dp := map[*testinput.Span]int{}
		for _, s := range d.Spans {
			if s.Layer() == testinput.LayerThread && s.Attributes.Text("dp_rank") != "" {
				dp[s.Parent], _ = strconv.Atoi(s.Attributes.Text("dp_rank"))
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
		planted := r.Config.Incident.DPShare
		if math.Abs(im.ShareBefore-0.5) > 0.01 || math.Abs(im.ShareAfter-planted) > 0.02 {
			t.Errorf("%v: shares %.3f and %.3f, planted 0.5 and %.3f", mode, im.ShareBefore, im.ShareAfter, planted)
		}
	}
}

package place

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/testkit/testset"
	"github.com/sgtrace/sgtrace/trace"
)

// A vLLM server is a rank although its requests' stages are on no thread that would identify it.
func TestServersOfStagesOnly(t *testing.T) {
	var d testset.Dump
	for i := range 8 {
		at := float64(100_000 * i)
		d.Add(testset.Span{Service: fmt.Sprint("vllm-", i%2), Trace: fmt.Sprintf("%032x", i+1), Name: "llm_request", From: at, To: at + 500_000, Attrs: testset.Attrs{
			"gen_ai.request.id": fmt.Sprint("cmpl-", i), "gen_ai.latency.time_to_first_token": 0.1, "gen_ai.latency.time_in_queue": 0.01,
			"gen_ai.latency.time_in_model_prefill": 0.08, "gen_ai.latency.time_in_model_decode": 0.3, "gen_ai.usage.completion_tokens": 31}})
	}
	s := d.Set(t)
	ranks, n := NewRankSet(s), 0
	if len(ranks.Places) != 2 {
		t.Fatalf("%d ranks, want 2: %+v", len(ranks.Places), ranks.Places)
	}
	for p := range s.ServingParts {
		thread, rank := ranks.Lead(p)
		if n++; rank < 0 || !ranks.Leads[rank] || thread < 0 || len(s.StagesOf(thread)) != 3 {
			t.Errorf("part %d: rank %d, thread %d", n, rank, thread)
			continue
		}
		if got, want := ranks.Places[rank].String(), fmt.Sprint("vllm-", (n-1)%2); got != want {
			t.Errorf("part %d is on %q, want %q", n, got, want)
		}
		if at, want := ranks.Places[rank], fmt.Sprint("vllm-", (n-1)%2); at.ServerName() != want || at.DP() != "unified ("+want+")" { // the service is all that is known
			t.Errorf("part %d is on %q, %q, want %q", n, at.ServerName(), at.DP(), want)
		}
	}
}

// Processes that are only known by name are places of their own.
func TestNamed(t *testing.T) {
	x, y, rank := Named("python3 144"), Named("python3 145"), Named("TP1")
	if x.RankName() != "python3 144" || rank.RankName() != "TP1" || x.Overlaps(&y) || !x.Overlaps(&x) || !x.Overlaps(&rank) {
		t.Errorf("%+v, %+v, %+v", x, y, rank)
	}
	for _, name := range []string{"TP1", "decode DP1 TP0", "python3 144"} { // as figures and --mute name it
		if at := Named(name); at.String() != name {
			t.Errorf("%q is called %q", name, at.String())
		}
	}
}

// If scheduler thread spans of a request are missing, it was sent to the server of its tokenizer: of two
// servers on a host, the one that this tokenizer feeds.
func TestPartsOfLostThreads(t *testing.T) {
	var d testset.Dump
	for i := range 12 {
		from, server := float64(i)*10_000, i%2
		root := testset.Span{Trace: fmt.Sprintf("%032x", i+1), Name: fmt.Sprint(" Req 1234567", i), From: from, To: from + 8000,
			Attrs: testset.Attrs{"rid": fmt.Sprint("1234567", i), "module": "sglang::request"}}
		id := d.Add(root)
		d.Thread(root, id, testset.DecodeHost, "Tokenizer", -1, 100*server+40, testset.Span{Name: "tokenize", From: from, To: from + 500})
		for tp := range 2 {
			forward := testset.Span{Name: "prefill_forward", From: from + 1000, To: from + 7000}
			if i < 10 {
				d.Thread(root, id, testset.DecodeHost, "Scheduler", tp, 100*server+50+tp, forward)
				continue
			}
			forward.Trace, forward.Parent = root.Trace, fmt.Sprintf("%016x", 1000+tp)
			d.Add(forward)
		}
	}
	s := d.Set(t)
	ranks := NewRankSet(s)
	var got []string
	for p := range s.ServingParts {
		if rank := ranks.Route(p); rank >= 0 {
			got = append(got, ranks.Places[rank].String())
		} else {
			got = append(got, "nowhere")
		}
	}
	if len(got) != 12 {
		t.Fatal(got)
	}
	for i, at := range got {
		if at != got[i%2] || got[0] == got[1] || at == "nowhere" {
			t.Errorf("request %d went to %q: %q", i, at, got)
		}
	}
}

// DP ranks that divide the TP ranks of a server take each step together; replicas, which have the same TP ranks, do not.
func TestEnginesOfDPAttention(t *testing.T) {
	for _, c := range []struct{ attention, named, split bool }{{false, true, false}, {true, true, false}, {true, false, false}, {true, true, true}} {
		var d testset.Dump
		for i := range 40 {
			from, dp, host := float64(i)*10_000, i%4, []string{testset.PrefillHost, testset.DecodeHost}[i/20]
			root := testset.Span{Trace: fmt.Sprintf("%032x", i+1), Name: fmt.Sprint(" Req 1234567", i), From: from, To: from + 8000,
				Attrs: testset.Attrs{"rid": fmt.Sprint("1234567", i), "module": "sglang::request"}}
			id, tp := d.Add(root), 0
			if c.attention {
				tp = dp
			}
			d.Thread(root, id, host, "Tokenizer", -1, 40, testset.Span{Name: "tokenize", From: from, To: from + 500})
			on := host
			if c.split && dp >= 2 { // the server has a second host
				on = fmt.Sprintf("%d%s", i/20, host[1:])
			}
			attrs := testset.Attrs{"host_id": on, "thread_label": "Scheduler", "pid": 50 + dp, "tp_rank": tp}
			if c.named {
				attrs["dp_rank"] = dp
			}
			thread := d.Add(testset.Span{Trace: root.Trace, Parent: id, Name: "Scheduler", From: from + 1000, To: from + 7000, Attrs: attrs})
			d.Add(testset.Span{Trace: root.Trace, Parent: thread, Name: "prefill_forward", From: from + 1000, To: from + 7000})
		}
		ranks := NewRankSet(d.Set(t))
		for i, e := range ranks.Engine {
			at := ranks.EngineAt(e)
			together := 1
			if c.attention {
				together = 4
			}
			place := &ranks.Places[i]
			if n := ranks.EngineRanks(e); n != together || ranks.Places[e].Rank.DP > 0 && c.attention || at.Host != place.Host && !c.split || c.attention != (at.Rank == trace.NoRank) || ranks.At[*place] != int32(i) {
				t.Errorf("%+v: %s is one of %d ranks of %s", c, place.String(), n, at.String())
			}
			want := fmt.Sprintf("TP%d (", place.Rank.TP)
			if c.named {
				want = fmt.Sprintf("DP%d (", place.Rank.DP)
			}
			if !strings.HasPrefix(place.DP(), want) {
				t.Errorf("%+v: the team of %s is %s", c, place.String(), place.DP())
			}
		}
	}
}

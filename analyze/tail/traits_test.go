package tail

import (
	"fmt"
	"slices"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/cause"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/testkit/testset"
	"github.com/sgtrace/sgtrace/trace"
)

// served returns 80 consecutive requests with two adapters and two priorities. Every fifth
// has the second adapter, and is prefilled for 60 ms instead of 20, and so is one more.
func served(t *testing.T) *request.Set {
	var d testset.Dump
	for i := range 80 {
		at := float64(200_000 * i)
		prefill := 20_000.0
		attrs := testset.Attrs{"rid": fmt.Sprintf("%08x", i), "module": "sglang::request", "gen_ai.response.model": "one", "lora_path": "chat", "priority": i % 2,
			"session": fmt.Sprint("session ", i), "gen_ai.usage.prompt_tokens": 100, "gen_ai.usage.cached_tokens": 0, "gen_ai.usage.completion_tokens": 7, "gen_ai.request.top_p": 0.95}
		if i%5 == 3 {
			attrs["lora_path"], attrs["customer"] = "code", "acme"
		}
		if i%5 == 3 || i == 40 {
			prefill = 60_000
		}
		attrs["gen_ai.latency.time_to_first_token"] = (prefill + 2000) / 1e6
		root := testset.Span{Trace: fmt.Sprintf("%032x", i+1), Name: fmt.Sprintf(" Req %08x", i), From: at, To: at + prefill + 70_000, Attrs: attrs}
		id := d.Add(root)
		stages := []testset.Span{
			{Name: "prefill_waiting", From: at + 1000, To: at + 2000}, {Name: "prefill_forward", From: at + 2000, To: at + 2000 + prefill},
			{Name: "decode_forward", From: at + 2000 + prefill, To: at + 66_000 + prefill},
		}
		for step := range 3 {
			from := at + 2000 + prefill + float64(20_000*step)
			stages = append(stages, testset.Span{Name: "decode_loop", Parent: "^", From: from, To: from + 20_000},
				testset.Span{Name: "spec_verify", Parent: "^", From: from + 1000, To: from + 9000, Attrs: testset.Attrs{"num_correct_drafts": 1, "accepted_tokens": 2}})
		}
		d.Thread(root, id, testset.DecodeHost, "Scheduler", 0, 245, stages...)
	}
	return d.Set(t)
}

// Attributes of requests in a dump are traits if several requests have them, but not
// nearly all. The strongest one is reported, together with others of the same requests.
func TestTraitsOfADump(t *testing.T) {
	s := served(t)
	a := New(place.Of(s), Options{})
	traits := a.Common
	var tested []string
	for i := range traits.List {
		if c := &traits.List[i]; c.Metric.Name == "ttft" {
			tested = append(tested, c.String())
		}
	}
	slices.Sort(tested)
	if want := []string{"customer acme", "lora_path code", "priority 0", "priority 1"}; !slices.Equal(tested, want) {
		t.Errorf("%q are tested, want %q", tested, want)
	}
	c := &traits.List[0]
	if !c.StandsOut || c.String() != "customer acme" || len(c.Also) != 1 || c.Also[0].String() != "lora_path code" || traits.List[1].StandsOut {
		t.Errorf("%+v", traits.List)
	}
	if c.N != 16 || c.All != 80 || c.With != 62_000_000 || c.Others != 22_000_000 || c.Slowest != 16.0/17 {
		t.Errorf("%d of %d, %d and %d ns, %v of the slowest", c.N, c.All, c.With, c.Others, c.Slowest)
	}
	found, check := traits.Findings(cause.NewCosts(s, a.List, a.Usual))
	const want = "requests with customer acme take 62 ms to the first token, the others 22 ms (p50); 100 % of the difference is prefill slower than its size explains; they also have lora_path code"
	if len(found) != 1 || found[0].Text != want || found[0].Affected.N != 16 || check.State() != finding.LookedAt {
		t.Errorf("%+v %+v", found, check)
	}
}

// Accepted tokens are counted if the dump has them.
func TestAcceptedTokens(t *testing.T) {
	s := served(t)
	for i := range s.Requests {
		if m := &s.Requests[i].Metrics; m.Verified != 3 || m.Accepted != 6 {
			t.Fatalf("request %d: %+v", i, m)
		}
	}
	m := request.Metrics{CompletionTokens: 7, ITL: request.ITL{N: 3}}
	if tokens, steps := m.StepYield(); tokens != 6 || steps != 3 {
		t.Errorf("%d in %d", tokens, steps)
	}
	m.Retractions = 1
	if _, steps := m.StepYield(); steps != 0 {
		t.Errorf("after a retraction, %d steps", steps)
	}
}

// vLLM's requests are distinguished by their own attributes, too: they have no
// thread spans, and none is missing.
func TestTraitsOfVLLM(t *testing.T) {
	var d testset.Dump
	for i := range 60 {
		at, model, decode := float64(100_000*i), "small", 0.3
		if i%4 == 1 {
			model, decode = "large", 0.9
		}
		d.Add(testset.Span{Service: "vllm", Trace: fmt.Sprintf("%032x", i+1), Name: "llm_request", From: at, To: at + 1e6*decode + 30_000, Attrs: testset.Attrs{
			"gen_ai.request.id": fmt.Sprint("cmpl-", i), "gen_ai.response.model": model, "gen_ai.latency.time_to_first_token": 0.02,
			"gen_ai.latency.time_in_queue": 0.001, "gen_ai.latency.time_in_model_prefill": 0.015, "gen_ai.latency.time_in_model_decode": decode,
			"gen_ai.usage.prompt_tokens": 50, "gen_ai.usage.completion_tokens": 31}})
	}
	s := d.Set(t)
	traits := New(place.Of(s), Options{}).Common
	if traits.N != 60 || len(traits.List) == 0 || !traits.List[0].StandsOut || traits.List[0].String() != "model large" || traits.List[0].Metric.Name != "tpot" {
		t.Errorf("%d requests: %+v", traits.N, traits.List)
	}
}

// A batch job runs while servers are full. Its requests take as long per token as all others at that time, but
// longer than those before. A trait stands out only if its requests are slower than others at the same time.
func TestTraitsAtTheSameTime(t *testing.T) {
	const n, ms = 400, 1_000_000
	for _, slower := range []int64{0, 10 * ms} {
		s := &request.Set{Requests: make([]request.Request, n)}
		list, of, in := make([]cause.Attribution, n), make([]int, n), make([]bool, n)
		sum := int64(0)
		for i := range n {
			m := &s.Requests[i].Metrics
			full := i >= n/2
			in[i] = i%8 == 0 || full && i%8 != 1
			m.TPOT, m.CompletionTokens = 10*ms+int64(i%7)*1000, 11
			if full {
				m.TPOT += 15 * ms
			}
			if in[i] {
				m.TPOT += slower
				sum += slower * 10
			}
			list[i], of[i] = cause.Attribution{Request: i}, i
		}
		c := measured(s, list, metrics[1], 0, of).compare(&Trait{in: in})
		if apart := c.more - float64(slower); apart > ms/10 || apart < -ms/10 || c.matters() != (slower > 0) {
			t.Errorf("%d ns slower: %v ns apart at the same time, matters: %v", slower, c.more, c.matters())
		}
		if cost := c.longer(func(int, int64) {}); cost < 0.95*float64(sum) || cost > 1.05*float64(sum)+10*ms {
			t.Errorf("%d ns slower: costs %v ns, want %d", slower, cost, sum)
		}
	}
}

// Two of three requests ask for model A: that all added ones do, too, says who sends them, but not that most others do. A trait of all says nothing,
// nor does one of two thirds if both models get twice as many requests.
func TestWhoSendsMore(t *testing.T) {
	for _, added := range []struct{ a, b int }{{300, 0}, {100, 50}} {
		tr := &Traits{set: &request.Set{}}
		model, all := Trait{Attribute: "model", Value: "A"}, Trait{Attribute: "top_p", Value: "1"}
		send := func(n int, from trace.Time, isA bool) {
			for i := range n {
				tr.list = append(tr.list, cause.Attribution{Request: len(tr.set.Requests)})
				tr.set.Requests = append(tr.set.Requests, request.Request{Start: from + trace.Time(100e9*i/n)})
				model.in, all.in = append(model.in, isA), append(all.in, true)
			}
		}
		send(100, 0, true)
		send(50, 0, false)
		send(100+added.a, 100e9, true)
		send(50+added.b, 100e9, false)
		tr.asked = []Trait{all, model}
		want := ""
		if added.b == 0 {
			want = "; 100 % of the added requests have model A"
		}
		if words, have := tr.Senders(100e9); words != want || have != nil {
			t.Errorf("%+v: %q, that %d have", added, words, len(have))
		}
	}
}

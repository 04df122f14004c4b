package tail

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/cause"
	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/metric"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/golden/simulator"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/testkit/testset"
	"github.com/sgtrace/sgtrace/trace"
)

// longPrompts configures a busy unified server that gets a few prompts of 6,000 tokens, whole or in chunks.
func longPrompts(seed uint64) simulator.Config {
	c := testset.Calm(seed)
	c.Mode, c.Unified = simulator.Unified, simulator.Parallel{TP: 2, PP: 1, DP: 1}
	c.Rate, c.Requests, c.KVTokens = 6, 200, 1<<17
	c.Prompt, c.Output = simulator.Lengths{Median: 100, Sigma: 0.5, Max: 600}, simulator.Lengths{Median: 50, Sigma: 0.3, Max: 100}
	c.LongPrompts, c.LongTokens, c.ChunkTokens = 0.03, 6000, 8192>>(seed%2*2)
	return c
}

// The prompt that held up the most decoding is a planted one, and is named with its tokens.
// The requests that it held up are those with a gap of that length in the simulator.
func TestRateOfStalls(t *testing.T) {
	seeds := testset.Seeds(t)
	right := testset.CountSeeds(seeds, func(seed uint64) bool {
		s, truth := testset.Simulated(t, longPrompts(seed))
		tail := New(place.Of(s), Options{})
		found, _ := tail.StallFindings(cause.NewCosts(s, tail.List, tail.Usual))
		if len(found) != 1 {
			t.Logf("seed %d: %d findings", seed, len(found))
			return false
		}
		long, held := map[string]bool{}, map[string]bool{}
		for i := range truth.Requests {
			q := &truth.Requests[i]
			long[q.FullID] = q.PromptTokens == 6000
			// A gap includes a usual gap in addition to the stall itself.
			held[q.FullID] = q.Outcome == string(simulator.Finished) && q.ITL != nil && q.ITL.Max >= tail.Stalls.Limit+2*tail.Comparisons[2].Median
		}
		for _, r := range tail.heldUp() {
			delete(held, s.Text(s.Requests[r].RID))
		}
		for rid, missed := range held {
			if missed {
				t.Logf("seed %d: %s is not held up", seed, rid)
				return false
			}
		}
		culprit := s.Text(s.Requests[tail.Stalls.List[0].Culprit].RID)
		alone := strings.Contains(found[0].Text, "the 6,000-token prompt of request "+culprit)
		together := strings.Contains(found[0].Text, "the longest, of request "+culprit+", has 6,000")
		chunked := strings.Contains(found[0].Text, "in 3 chunks without a decode step between them")
		if !long[culprit] || !alone && !together || alone && chunked != (seed%2 == 1) {
			t.Logf("seed %d: %s", seed, found[0].Text)
			return false
		}
		return true
	})
	testset.Rate(t, "tail: the prompt that stalls decoding", right, len(seeds), 95)
}

// Short prompts cause no stalls, and the few stalls that every unified server has are no finding.
func TestRateOfNoStalls(t *testing.T) {
	seeds := testset.Seeds(t)
	silent := testset.CountSeeds(seeds, func(seed uint64) bool {
		c := testset.Calm(seed)
		c.Mode = simulator.Unified
		s, _ := testset.Simulated(t, c)
		tail := New(place.Of(s), Options{Metrics: []*metric.Metric{metric.ITL}})
		found, _ := tail.StallFindings(cause.NewCosts(s, tail.List, tail.Usual))
		return len(found) == 0
	})
	testset.Rate(t, "tail: no stall where prompts are short", silent, len(seeds), 98)
}

// In a stall, requests of one batch wait together, and the named prompt has most of
// the tokens that were computed meanwhile.
func TestStallsAddUp(t *testing.T) {
	s, _ := testset.Simulated(t, longPrompts(3))
	x := New(place.Of(s), Options{}).Stalls
	if len(x.List) < 2 {
		t.Fatalf("%d stalls", len(x.List))
	}
	sum := int64(0)
	for i := range x.List {
		stall := &x.List[i]
		sum += stall.Total
		held := slices.Clone(stall.Held)
		slices.Sort(held)
		if len(slices.Compact(held)) != len(stall.Held) || slices.Contains(held, stall.Culprit) {
			t.Errorf("%d decodes are held up in a stall, or the culprit by itself: %v", len(stall.Held), stall.Held)
		}
		if stall.Longest < x.Limit || stall.Total < x.Limit*int64(len(stall.Held)) || int64(stall.To-stall.From) < stall.Longest {
			t.Errorf("%+v: too short for a limit of %d", *stall, x.Limit)
		}
		if stall.Share*float64(stall.Tokens)*float64(stall.Prompts) < float64(stall.Tokens)-1 {
			t.Errorf("%+v: others of %d prompts have more", *stall, stall.Prompts)
		}
	}
	if sum != x.Total {
		t.Errorf("stalls cost %d, together %d", sum, x.Total)
	}
	usual, enough := New(place.Of(s), Options{}).Sizes.Prompt[0], min(x.Limit/2, noticed)
	if x.Chunk < 256 || usual.Expected(x.Chunk) > enough || usual.Expected(2*x.Chunk) <= enough {
		t.Errorf("chunks of %d take %d, with a limit of %d", x.Chunk, usual.Expected(x.Chunk), x.Limit)
	}
}

// Prefills that overlap a time are found, in any order and of any length.
func TestWithin(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		list := make([]prompt, rng.IntN(30))
		for i := range list {
			from := trace.Time(rng.IntN(100))
			list[i].Interval = request.Interval{From: from, To: from + 1 + trace.Time(rng.IntN(1+rng.IntN(60)))}
		}
		byStart(list)
		from := trace.Time(rng.IntN(120) - 10)
		to := from + trace.Time(rng.IntN(20))
		overlaps := func(list []prompt) (out []prompt) {
			for _, p := range list {
				if max(p.From, from) < min(p.To, to) {
					out = append(out, p)
				}
			}
			return out
		}
		found := within(list, from, to)
		if want, got := overlaps(list), overlaps(found); !slices.Equal(got, want) {
			t.Fatalf("from %d to %d of %v: %v, want %v", from, to, list, got, want)
		}
		if n := len(found); n > 0 && (found[n-1].From >= to || found[0].To <= from) {
			t.Fatalf("from %d to %d of %v: too much, %v", from, to, list, found)
		}
	}
}

// A short prompt that is prefilled while its server stands still is not the reason why others wait.
func TestStallsOfOthersThanPrompts(t *testing.T) {
	const ms = 1_000_000
	x := Stall{Longest: 898 * ms}
	for usual, want := range map[float64]bool{53 * ms: false, 290 * ms: false, 310 * ms: true, 900 * ms: true, 0: true} {
		if got := x.byPrompts(usual); got != want {
			t.Errorf("prompts that take %v ms: %v, want %v", usual/ms, got, want)
		}
	}
}

// If a server stands still while it computes a prompt, that takes longer than its other prompts of
// this size. These may take longer than a linear fit over all sizes predicts.
func TestStallsBesidePrompts(t *testing.T) {
	const ms = 1_000_000
	usual := distribution.SizeFit{Base: 10 * ms, PerToken: 0.06 * ms, N: 100}
	var prompts []prompt
	for i := range 40 {
		tokens, takes := int64(500), trace.Time(40*ms)
		if i >= 30 {
			tokens, takes = 4000, 500*ms // twice the linear fit
		}
		from := trace.Time(i) * 1000 * ms
		prompts = append(prompts, prompt{Interval: request.Interval{From: from, To: from + takes}, tokens: tokens})
	}
	for longest, want := range map[int64]bool{480 * ms: true, 700 * ms: true, 1000 * ms: false} {
		x := Stall{Longest: longest, Tokens: 4000, Prompts: 1}
		if slower := newSlowness(prompts, &usual); x.asOthers(&usual, &slower) != want {
			t.Errorf("%d ms: %v, want %v", longest/ms, !want, want)
		}
	}
	few := newSlowness(prompts[33:], &usual)
	if x := (Stall{Longest: 1000 * ms, Tokens: 4000, Prompts: 1}); !x.asOthers(&usual, &few) {
		t.Error("seven prompts have no information")
	}
}

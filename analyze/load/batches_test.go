package load

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/sgtrace/sgtrace/trace"
)

func TestBatches(t *testing.T) {
	const ms = trace.Time(1e6)
	for name, c := range map[string]struct{ in, want []Prefill }{
		"none": {},
		"one after the other": {
			[]Prefill{{1, 1, 20 * ms, 30 * ms, 100, 300, 0}, {0, 1, 0, 10 * ms, 50, 150, 0}},
			[]Prefill{{0, 1, 0, 10 * ms, 50, 150, 0}, {1, 1, 20 * ms, 30 * ms, 100, 300, 0}},
		},
		"two in one, stamped one after the other": {
			[]Prefill{{0, 1, 0, 10 * ms, 50, 150, 0}, {1, 1, 1000, 10*ms + 1000, 100, 300, 0}},
			[]Prefill{{1, 2, 0, 10*ms + 1000, 150, 450, 0}},
		},
		"two in one, placed 2 ms apart": {
			[]Prefill{{0, 1, 0, 10 * ms, 50, 150, 2 * ms}, {1, 1, 2 * ms, 12 * ms, 100, 300, 2 * ms}},
			[]Prefill{{1, 2, 0, 12 * ms, 150, 450, 0}},
		},
		"one that goes on in the next, with another": {
			[]Prefill{{0, 1, 0, 10 * ms, 50, 150, 0}, {1, 1, 0, 30 * ms, 300, 900, 0}, {2, 1, 10 * ms, 30 * ms, 60, 180, 0}},
			[]Prefill{{1, 2, 0, 10 * ms, 150, 450, 0}, {2, 2, 10 * ms, 30 * ms, 260, 780, 0}},
		},
		"chunks of one, with others in all of them": {
			[]Prefill{{0, 1, 0, 30 * ms, 300, 900, 0}, {1, 1, 0, 10 * ms, 1, 3, 0}, {2, 1, 10 * ms, 20 * ms, 2, 6, 0}, {3, 1, 20 * ms, 30 * ms, 3, 9, 0}},
			[]Prefill{{1, 2, 0, 10 * ms, 101, 303, 0}, {2, 2, 10 * ms, 20 * ms, 102, 306, 0}, {3, 2, 20 * ms, 30 * ms, 103, 309, 0}},
		},
	} {
		got := Batches(c.in)
		for i := range got {
			got[i].Tokens, got[i].Pairs = math.Round(got[i].Tokens*1e6)/1e6, math.Round(got[i].Pairs*1e6)/1e6
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// However pieces overlap, all tokens are computed in some batch, and never in two batches at once.
func TestBatchesKeepTokens(t *testing.T) {
	for seed := range uint64(50) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		var list []Prefill
		tokens, requests := 0.0, 0
		for i := range rnd.IntN(200) {
			from := trace.Time(rnd.Int64N(1e9))
			p := Prefill{i, 1, from, from + 1 + trace.Time(rnd.Int64N(1e8)), float64(rnd.IntN(5000)), 0, 0}
			list, tokens = append(list, p), tokens+p.Tokens
		}
		for i, b := range Batches(list) {
			if b.To <= b.From || b.Requests == 0 {
				t.Fatalf("seed %d: batch %d: %v", seed, i, b)
			}
			tokens -= b.Tokens
			requests += b.Requests
		}
		if math.Abs(tokens) > 1e-3 || requests < len(list) {
			t.Errorf("seed %d: %v tokens are missing; %d requests in batches of %d", seed, tokens, requests, len(list))
		}
	}
}

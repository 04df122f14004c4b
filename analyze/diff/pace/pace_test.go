package pace

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/diff/compare"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/replay"
	"github.com/sgtrace/sgtrace/internal/significance"
	"github.com/sgtrace/sgtrace/trace"
)

// stepsOf makes decode steps that take (8 ms + 0.4 ms per request + 0.1 us per token of context)
// times the factor slower, within 3 %. Batches vary around the given number of requests.
func stepsOf(rng *rand.Rand, n int, requests, slower float64) *steps {
	const pieces = 20
	s := &steps{work: make([]significance.Piece, pieces), tokens: 1, steps: 1}
	running := requests
	for i := range n {
		running = max(1, running+0.1*(requests-running)+rng.NormFloat64())
		st := replay.Step{Kind: replay.Decode}
		st.Requests = int64(running)
		st.Context = st.Requests * (500 + rng.Int64N(500))
		took := (8e6 + 4e5*float64(st.Requests) + 100*float64(st.Context)) * slower * (1 + 0.03*rng.NormFloat64())
		st.Done = trace.Time(took)
		piece := i * pieces / n
		s.list = append(s.list, step{Timed: st.Timed(), size: sizeOf(replay.Decode, &st.Features, st.Context), piece: int16(piece), last: -1})
		s.work[piece].Sum, s.work[piece].Of = s.work[piece].Sum+float64(st.Requests), s.work[piece].Of+1
	}
	return s
}

func TestPaces(t *testing.T) {
	for _, c := range []struct {
		what             string
		requests, slower float64
		slow, busy       string
	}{
		{"the same", 6, 1, "", ""},
		{"slower", 6, 1.08, "decode steps take longer for the same work", ""},
		{"faster", 6, 0.9, "decode steps take less time for the same work", ""},
		{"busier", 12, 1, "", "for the same work they take as long"},
		{"slower under less load, so that all steps take as long as before", 3, 1.13, ", and all of them 1", ""},
	} {
		for seed := range uint64(10) {
			rng := rand.New(rand.NewPCG(seed, 1))
			p := compareSteps(key{kind: replay.Decode}, [2]*steps{stepsOf(rng, 1500, 6, 1), stepsOf(rng, 1500, c.requests, c.slower)}, false)
			for _, x := range []*compare.Change{&p.Change, &p.Work.Change} {
				if x.Change.P < 0.001 {
					x.Sure = finding.Certain
				}
			}
			slow, busy := p.Slower(), p.Busier()
			if !strings.Contains(slow, c.slow) || !strings.Contains(busy, c.busy) || (slow == "") != (c.slow == "") || (busy == "") != (c.busy == "") {
				t.Errorf("%s, seed %d: %q, %q", c.what, seed, slow, busy)
			}
			if ratio := p.Change.Change.Ratio; ratio < c.slower-0.01 || ratio > c.slower+0.01 {
				t.Errorf("%s, seed %d: steps take %.3f times as long, want %.3f", c.what, seed, ratio, c.slower)
			}
		}
	}
}

// If no steps of the two sides are of similar size, their speeds cannot be compared.
func TestPacesOfOtherWork(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	p := compareSteps(key{kind: replay.Decode}, [2]*steps{stepsOf(rng, 500, 5, 1), stepsOf(rng, 500, 60, 1)}, false)
	if p.Change.Tested() || p.Slower()+p.Busier() != "" {
		t.Errorf("%v, %q", p.Change.Change, p.Slower()+p.Busier())
	}
}

// A batch size that most steps reach is a limit; one that is only reached for a moment is not.
func TestCapped(t *testing.T) {
	filled := func(batches ...int64) *steps {
		p := &steps{work: make([]significance.Piece, 1)}
		for _, n := range batches {
			f := replay.Features{Requests: n, Context: 100 * n}
			p.add(&step{Timed: replay.Timed{Features: f, Took: 1e6}, size: sizeOf(replay.Decode, &f, f.Context), last: -1}, 0, n)
		}
		return p
	}
	free, full := filled(3, 9, 12, 5, 7), filled(7, 8, 8, 8)
	at := key{kind: replay.Decode}
	for _, c := range []struct {
		sides [2]*steps
		waits bool
		want  string
	}{
		{[2]*steps{free, full}, true, "decode steps have 12 -> 8 requests at most, and 75 % of them have 8: a limit, for which requests wait (likely)"},
		{[2]*steps{full, free}, true, "decode steps have 8 -> 12 requests at most, and 75 % of them had 8: a limit, for which requests wait (likely)"},
		{[2]*steps{free, full}, false, ""},
		{[2]*steps{free, filled(3, 9, 11, 5)}, true, ""},
	} {
		p := compareSteps(at, c.sides, false)
		if got := p.Capped(c.waits); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

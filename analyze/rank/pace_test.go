package rank

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/load"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/straggler"
	"github.com/sgtrace/sgtrace/golden/simulator"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/testkit/testset"
	"github.com/sgtrace/sgtrace/trace"
)

// replicas is a deployment of independent ranks. With a factor above 1, one of them is slow.
func replicas(seed uint64, factor float64) (c simulator.Config, slow int) {
	c = testset.Calm(seed)
	c.Mode = simulator.Unified
	c.Unified = simulator.Parallel{TP: 1, PP: 1, DP: 3 + int(seed%3)}
	slow = int(seed/3) % c.Unified.DP
	c.Straggler = simulator.Straggler{DP: slow, Factor: factor}
	return c, slow
}

// A rank that takes half as long again is found, with the size of the difference. If
// all are equally fast, none is.
func TestRateOfSlowServers(t *testing.T) {
	const factor = 1.5
	seeds := testset.Seeds(t)
	found := testset.CountSeeds(seeds, func(seed uint64) bool {
		c, slow := replicas(seed, factor)
		s, _ := testset.Simulated(t, c)
		r := Measure(place.Of(s))
		got, _ := r.SlowServers(nil)
		if len(got) != 1 || int(got[0].At.Rank.DP) != slow {
			t.Logf("seed %d: DP%d of %d is slow, found %+v", seed, slow, c.Unified.DP, got)
			return false
		}
		for _, x := range r.Slow {
			if by := float64(x.Own) / float64(x.Others); int(x.Location.Rank.DP) == slow && x.Kind == DecodeStep && (by < factor-0.2 || by > factor+0.2) {
				t.Errorf("seed %d: it takes %v times as long as the others, want %v", seed, by, factor)
			}
		}
		return true
	})
	testset.Rate(t, "a server that is slower by 50 %", found, len(seeds), 95)
	silent := testset.CountSeeds(seeds, func(seed uint64) bool {
		c, _ := replicas(seed, 1)
		s, _ := testset.Simulated(t, c)
		got := Measure(place.Of(s)).Slow
		for i := range got {
			t.Logf("seed %d: %s", seed, got[i].text())
		}
		return len(got) == 0
	})
	testset.Rate(t, "no slow server where all are alike", silent, len(seeds), 98)
}

// If decode steps are not traced, whole answers are compared.
func TestSlowServersByAnswers(t *testing.T) {
	for seed := range uint64(3) {
		for _, factor := range []float64{1, 1.5} {
			c, slow := replicas(seed, factor)
			c.Level = 1
			s, _ := testset.Simulated(t, c)
			got, _ := Measure(place.Of(s)).SlowServers(nil)
			if len(got) > 1 || (len(got) == 1) != (factor > 1) || len(got) == 1 && int(got[0].At.Rank.DP) != slow {
				t.Errorf("seed %d: DP%d of %d takes %v times as long, found %+v", seed, slow, c.Unified.DP, factor, got)
			}
		}
	}
}

// A server that is slow because of a straggler among its ranks is not reported in addition.
func TestSlowServerIsExplainedByItsStraggler(t *testing.T) {
	at := place.Location{Scope: place.OneRank, Role: request.Decode, Host: "a"}
	r := &Ranks{Slow: []SlowServer{{Load: &Load{Location: at}, Cost: 0.5, Own: 3_000_000, Others: 2_000_000, Peer: 3}}}
	if got, _ := r.SlowServers(nil); len(got) != 1 || !strings.Contains(got[0].Text, "3 ms per decode step, the other 3 ranks take 2 ms (+50 %)") {
		t.Errorf("%+v", got)
	}
	late := at
	late.Rank.TP = 2
	r.Groups = []*StepGroup{{Stragglers: []straggler.Straggler{{Location: late}}}}
	if got, _ := r.SlowServers(nil); len(got) != 0 {
		t.Errorf("%+v, and its TP2 is a straggler", got)
	}
	r.Groups[0].Stragglers[0].Location.Server = 2
	if got, _ := r.SlowServers(nil); len(got) != 1 {
		t.Errorf("%+v, and another server has a straggler", got)
	}
}

// A slower server has larger batches, since more requests wait or stay. Its slowness is
// measured on steps of equal size, not on its own mix.
func TestSlowServerOfLargeSteps(t *testing.T) {
	const factor, steps = 3, 200
	for kind, c := range map[StepKind]struct {
		of                 [2]int // requests per step
		base, each, tokens float64
	}{
		PrefillStep: {[2]int{1, 6}, 6e6, 60e3, 300},
		DecodeStep:  {[2]int{3, 9}, 18e6, 0.5e6, 0},
	} {
		p := &pace{kind: kind, ranks: []*Load{{}, {}}, cost: []int64{1000, 1000}}
		for rank, most := range c.of {
			var prefills []load.Prefill
			var decodes []paced
			for step := range steps {
				from, n := trace.Time(step+1)*1e9, most-step%2*(most/3)
				size := float64(n)
				if c.tokens > 0 {
					size = 0
					for k := range n {
						size += c.tokens + float64((step*n+k)%9*100)
					}
				}
				took := trace.Time(c.base+c.each*size) * trace.Time(1+(factor-1)*rank)
				for k := range n {
					at := from + trace.Time(k)*500 // stamps follow one another
					prefills = append(prefills, load.Prefill{Requests: 1, From: at, To: at + took, Tokens: c.tokens + float64((step*n+k)%9*100)})
					decodes = append(decodes, paced{at: at, ns: int64(took), size: 1})
				}
			}
			list := batches(decodes)
			if kind == PrefillStep {
				list = prefillSteps(prefills)
			}
			for _, x := range list {
				x.rank = int32(rank)
				p.steps = append(p.steps, x)
			}
		}
		slices.SortStableFunc(p.steps, func(a, b paced) int { return cmp.Compare(a.at, b.at) })
		p.equalSizes()
		got := p.slow(e2eSum{all: 10_000})
		if len(got) != 1 || got[0].Load != p.ranks[1] {
			t.Fatalf("%v: %+v", kind, got)
		}
		if by := float64(got[0].Own) / float64(got[0].Others); by < 0.95*factor || by > 1.05*factor {
			t.Errorf("%v: it takes %v times as long, want %v", kind, by, factor)
		}
	}
}

// Prefills are compared at equal prompt sizes: a server that gets the long prompts is not slow.
func TestPrefillsOfOneSize(t *testing.T) {
	p := &pace{kind: PrefillStep, ranks: []*Load{{}, {}, {}}}
	for i := range 900 {
		rank := i % 3
		tokens := int64(100 + i%7*50)
		if rank == 0 {
			tokens *= 4
		}
		ns := 1_000_000 + 10_000*tokens
		if rank == 1 {
			ns += ns * 3 / 10
		}
		p.steps = append(p.steps, paced{at: trace.Time(i) * 1_000_000, ns: ns, size: tokens, rank: int32(rank)})
	}
	p.cost = []int64{1000, 1000, 1000}
	p.equalSizes()
	got := p.slow(e2eSum{all: 10_000})
	if len(got) != 1 || got[0].Load != p.ranks[1] {
		t.Fatalf("%+v", got)
	}
	if by := float64(got[0].Own) / float64(got[0].Others); by < 1.25 || by > 1.35 {
		t.Errorf("it takes %v times as long, want 1.3", by)
	}
}

// A server that happens to get a few more requests than others has an even load; one
// that gets significantly more does not.
func TestEvenLoad(t *testing.T) {
	for _, c := range []struct {
		requests, ranks int
		times           float64 // multiple of its even share
		even            bool
	}{
		{8, 200, 1, true}, {12, 200, 1.5, true}, {20, 200, 2.5, false},
		{600, 2, 1.05, true}, {600, 2, 1.2, false}, {80, 4, 1.3, false}, {7, 4, 1.3, true},
	} {
		share := c.times / float64(c.ranks)
		s := SlowServer{Load: &Load{Requests: int64(c.requests), Share: share, TokenShare: share}}
		if got := s.evenLoad(c.ranks); got != c.even {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

// Requests of a batch end together: their steps count as one, with the shortest duration.
func TestBatchesOfServers(t *testing.T) {
	const ms = 1_000_000
	got := batches([]paced{
		{at: 80 * ms, ns: 20 * ms, cost: 20 * ms},
		{at: 30 * ms, ns: 45 * ms, cost: 45 * ms}, // includes the prefill of the next request
		{at: 55 * ms, ns: 20*ms + 50_000, cost: 20*ms + 50_000},
	})
	want := []paced{{at: 55 * ms, ns: 20*ms + 50_000, cost: 65*ms + 50_000}, {at: 80 * ms, ns: 20 * ms, cost: 20 * ms}}
	if !slices.Equal(got, want) {
		t.Errorf("%+v\nwant %+v", got, want)
	}
}

// Prefills during an answer do not count as time per token. An answer that is almost entirely
// covered by prefills is dropped.
func TestAnswersWithoutPrefills(t *testing.T) {
	const ms = 1_000_000
	answers := []paced{
		{at: 100 * ms, ns: 10 * ms, cost: 100 * ms, of: 7, whole: true},
		{at: 300 * ms, ns: 5 * ms, cost: 50 * ms, of: 8, whole: true},
		{at: 400 * ms, ns: 10 * ms, cost: 100 * ms, of: 9, whole: true},
	}
	got := withoutPrefills(answers, []request.Interval{{From: 402 * ms, To: 500 * ms}, {From: 90 * ms, To: 120 * ms}, {From: 110 * ms, To: 140 * ms}})
	want := []paced{{at: 100 * ms, ns: 6 * ms, cost: 60 * ms, held: 40 * ms, of: 7, whole: true}, {at: 300 * ms, ns: 5 * ms, cost: 50 * ms, of: 8, whole: true}}
	if !slices.Equal(got, want) {
		t.Errorf("%+v\nwant %+v", got, want)
	}
	if gross := got[0].gross(); gross != 10*ms {
		t.Errorf("with prefills, a step takes %d ns, want 10 ms", gross)
	}
	if held := heldUp(got, 250*ms, 0, 1); len(held) != 0 {
		t.Errorf("%v was held up, and nothing since then", held)
	}
	if held := heldUp(got, 0, 0, 1); len(held) != 1 || held[7] != 40*ms {
		t.Errorf("%v was held up, want 40 ms of request 7", held)
	}
}

// One of three servers takes three times as long for prefills of more than 4,000 tokens, of which few prompts have that many. It is slow
// for these only, and is charged for them and for the decoding that waits for them. With a factor of 1, none is slow.
func TestSlowForLargePrefills(t *testing.T) {
	const slow, limit = 1, 4000
	for _, factor := range []float64{3, 1} {
		r := rand.New(rand.NewPCG(9, 10))
		of := &place.RankSet{At: map[place.Location]int32{}}
		var leads []*Load
		var steps [timed][][]paced
		extra := 0.0
		for rank := range 3 {
			at := place.Location{Scope: place.OneRank, Role: request.Unified, Server: rank}
			of.At[at], leads = int32(rank), append(leads, &Load{Location: at, Requests: 600, Share: 1.0 / 3, TokenShare: 1.0 / 3})
			var list []paced
			for i := range 600 {
				size := math.Exp(6.5 + 1.2*r.NormFloat64())
				ns := (10e6 + 20e3*size) * (1 + 0.03*r.NormFloat64())
				if rank == slow && size > limit {
					extra += (factor - 1) * ns
					ns *= factor
				}
				list = append(list, paced{at: trace.Time(i) * 1e9, ns: int64(ns), cost: int64(ns), size: int64(size), of: int32(i)})
			}
			steps[PrefillStep] = append(steps[PrefillStep], list)
		}
		p := paceOf(PrefillStep, of, leads, steps, 0)
		e2e := e2eSum{all: 1e12}
		if found := p.slow(e2e); len(found) > 0 {
			t.Fatalf("prefills of all sizes: %+v", found)
		}
		found := p.slowIfLarge(of, leads, steps, e2e)
		if factor == 1 {
			if len(found) > 0 {
				t.Errorf("no server is slow: %+v", found)
			}
			continue
		}
		if len(found) != 1 || found[0].Location.Server != slow {
			t.Fatalf("%+v", found)
		}
		s := &found[0]
		if by := float64(s.Own) / float64(s.Others); s.Least < 0.7*limit || s.Least > 1.3*limit || by < 2.7 || by > 3.3 {
			t.Errorf("from %d tokens on, %.2f times as long", s.Least, by)
		}
		long := paced{at: 0, cost: 400e9, held: 200e9, of: 1000, whole: true}
		s.chargeLarge(steps[PrefillStep][slow], []paced{long})
		own := 0.0
		for _, ns := range s.own {
			own += float64(ns)
		}
		if own < 0.8*extra || own > 1.25*extra || s.held[1000] == 0 || float64(s.held[1000]) > own {
			t.Errorf("%.1f s of its own, %.1f s planted, %.1f s of another", own/1e9, extra/1e9, float64(s.held[1000])/1e9)
		}
	}
}

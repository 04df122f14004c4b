package whatif

import (
	"sync"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/collective"
	"github.com/sgtrace/sgtrace/analyze/gpu"
	"github.com/sgtrace/sgtrace/testkit/testset"
)

// The predicted intervals of profiled step times without a slow rank contain those of the
// same run without it. They are no wider than the saving plus a fiftieth of the time.
func TestRateOfStepIntervals(t *testing.T) {
	seeds := testset.Seeds(t)
	covered, narrow, all := 0, 0, 0
	for _, c := range testset.TPServers {
		var mu sync.Mutex
		testset.EachSeed(seeds, func(seed uint64) {
			s := c.TPServer
			s.Seed, s.Steps, s.Slow = seed, 40, int(seed)%s.Ranks
			slow := collective.ReadChain(s.Play())
			s.Factor, s.Lag = 1, 1
			calm := collective.ReadChain(s.Play())
			truth, _, ranks := calm.Play(&collective.Change{Rank: -1})
			want := float64(truth.Total()) / float64(len(ranks))
			steps := &Steps{chain: slow, gpus: &gpu.GPUs{}}
			answer := steps.ask(collective.Change{Rank: s.Slow})
			if len(answer) != 1 {
				t.Fatalf("%s, seed %d: %v", c.Name, seed, answer)
			}
			w := &answer[0]
			mu.Lock()
			defer mu.Unlock()
			if all++; w.Low <= want && want <= w.High {
				covered++
			} else {
				t.Logf("%s, seed %d: %s; truth %s", c.Name, seed, w, w.Value(want))
			}
			if w.High-w.Low <= w.Actual-want+0.02*w.Actual {
				narrow++
			}
		})
	}
	testset.Rate(t, named("steps of profiles: the interval covers it"), covered, all, 90)
	testset.Rate(t, named("steps of profiles: the interval is no wider than what is saved and 2 %"), narrow, all, 90)
}

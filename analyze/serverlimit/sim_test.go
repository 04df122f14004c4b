package serverlimit

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/golden/simulator"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/testkit/testset"
	"github.com/sgtrace/sgtrace/trace"
)

// plants are deployments with a shortage of one resource.
var plants = []struct {
	name  string
	modes []simulator.Mode
	plant func(c *simulator.Config)
	kind  Kind
	role  []request.Role // roles that may have the limit
}{
	{"running requests", testset.AllModes, func(c *simulator.Config) {
		c.MaxRunning, c.MaxQueued, c.Rate, c.KVTokens = 4, 100, 10, 1<<16
		c.Prompt.Median, c.Output.Median = 100, 32
	}, Running, []request.Role{request.Unified, request.Decode}},
	{"KV cache", testset.AllModes, func(c *simulator.Config) {
		c.MaxQueued, c.KVTokens, c.Rate = 100, 3200, 24 // at lower rates, few requests wait in some runs
	}, Room, []request.Role{request.Unified, request.Decode}},
	{"prefill", testset.DisaggregatedModes, func(c *simulator.Config) {
		c.KVTokens, c.Rate, c.Prompt.Median = 1<<16, 16, 1000
	}, Prefills, []request.Role{request.Prefill}},
	{"KV transfers", testset.DisaggregatedModes, func(c *simulator.Config) {
		c.KVTokens, c.LinkTokens = 1<<16, 3000
	}, Transfers, []request.Role{request.Prefill}},
}

// The planted shortage is the limit with the highest cost in at least 95 of 100
// runs, and the limit of running requests is found exactly.
func TestRateOfLimits(t *testing.T) {
	seeds := testset.Seeds(t)
	for _, p := range plants {
		t.Run(p.name, func(t *testing.T) {
			right := testset.CountSeeds(seeds, func(seed uint64) bool {
				c := testset.Calm(seed)
				p.plant(&c)
				c.Mode = p.modes[seed%uint64(len(p.modes))]
				s, _ := testset.Simulated(t, c)
				list := Find(place.NewRankSet(s)).List
				if len(list) == 0 {
					return false
				}
				l := &list[0]
				return l.Kind == p.kind && slices.Contains(p.role, l.Location.Role) && (l.Kind != Running || l.StuckAt == c.MaxRunning)
			})
			testset.Rate(t, "limits: "+p.name, right, len(seeds), 95)
		})
	}
}

// A limit that a burst reaches is reported from the burst until the backlog is gone,
// within half a second, or until the dump ends.
func TestRateOfWhenLimitsAreReached(t *testing.T) {
	const slack = trace.Time(500 * time.Millisecond)
	seeds := testset.Seeds(t)
	right := testset.CountSeeds(seeds, func(seed uint64) bool {
		c := testset.Calm(seed)
		c.Mode, c.Unified = simulator.Unified, simulator.Parallel{TP: 2, PP: 1, DP: 1}
		c.MaxRunning, c.MaxQueued, c.KVTokens, c.Rate = 8, 300, 1<<16, 5
		c.Incident = simulator.Incident{Onset: 0.4, BurstFactor: 8, BurstLength: 2 * time.Second}
		s, truth := testset.Simulated(t, c)
		list := Find(place.NewRankSet(s)).List
		if len(list) != 1 {
			return false
		}
		onset := trace.Time(0)
		for _, q := range truth.Requests[int(0.4*float64(c.Requests)):] {
			if q.QueueNs >= int64(slack) {
				onset = trace.Time(q.ArrivalNs)
				break
			}
		}
		return list[0].Kind == Running && !list[0].Always && max(onset-list[0].From, list[0].From-onset) <= 2*slack
	})
	testset.Rate(t, "limits: when one is reached", right, len(seeds), 95)
}

// At a load that the deployment can carry, at least 98 of 100 runs have no limit.
func TestRateOfNoLimits(t *testing.T) {
	seeds := testset.Seeds(t)
	var mu sync.Mutex
	var said []string
	silent := testset.CountSeeds(seeds, func(seed uint64) bool {
		s, _ := testset.Simulated(t, testset.Deployment(seed, testset.Calm(seed)))
		list := Find(place.NewRankSet(s)).List
		mu.Lock()
		defer mu.Unlock()
		for i := range list {
			said = append(said, fmt.Sprintf("seed %d: %s", seed, list[i].sentence()))
		}
		return len(list) == 0
	})
	for _, text := range said {
		t.Log(text)
	}
	testset.Rate(t, "limits: none where load is light", silent, len(seeds), 98)
}

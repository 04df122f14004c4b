package tail

import (
	"testing"
	"time"

	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/golden/simulator"
	"github.com/sgtrace/sgtrace/testkit/testset"
)

const tenantKey = "http.request.header.x-tenant-id"

// found returns the traits that stand out in a simulated run.
func found(t *testing.T, c simulator.Config) (list []TraitComparison) {
	s, _ := testset.Simulated(t, c)
	for _, one := range New(place.Of(s), Options{}).Common.List {
		if one.StandsOut {
			list = append(list, one)
		}
	}
	return list
}

func describe(list []TraitComparison) (texts []string) {
	for i := range list {
		texts = append(texts, list[i].Metric.Name+" "+list[i].String())
	}
	return texts
}

// If one of twelve tenants has its requests held back, slow requests have that
// tenant in common, and nothing else.
func TestRateOfSlowTenants(t *testing.T) {
	seeds := testset.Seeds(t)
	right := testset.CountSeeds(seeds, func(seed uint64) bool {
		c := testset.Deployment(seed, testset.Calm(seed))
		c.Tenants, c.TenantDelay = 12, 300*time.Millisecond
		list := found(t, c)
		ok := len(list) == 1 && list[0].Attribute == tenantKey && list[0].Value == "tenant-00" && list[0].Metric.Name == "ttft"
		if !ok {
			t.Logf("seed %d: %q", seed, describe(list))
		}
		return ok
	})
	testset.Rate(t, "a slow tenant is what slow requests have in common", right, len(seeds), 95)
}

// Without a planted trait, slow requests have nothing in common, and if something
// else is wrong, their tenant does not matter.
func TestRateOfNothingInCommon(t *testing.T) {
	seeds := testset.Seeds(t)
	calm := testset.CountSeeds(seeds, func(seed uint64) bool {
		c := testset.Deployment(seed, testset.Calm(seed))
		c.Tenants, c.CachedShare = 12, 0.3
		list := found(t, c)
		if len(list) > 0 {
			t.Logf("calm, seed %d: %q", seed, describe(list))
		}
		return len(list) == 0
	})
	testset.Rate(t, "slow requests have nothing in common where nothing is wrong", calm, len(seeds), 95)
	incident := testset.CountSeeds(seeds, func(seed uint64) bool {
		c := testset.Deployment(seed, simulator.DefaultConfig(seed))
		c.Tenants = 12
		for _, one := range found(t, c) {
			if one.Of == Asked {
				t.Logf("incident, seed %d: %q", seed, one.String())
				return false
			}
		}
		return true
	})
	testset.Rate(t, "no tenant is to blame for an incident of another cause", incident, len(seeds), 95)
}

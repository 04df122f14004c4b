package place

import (
	"fmt"
	"testing"

	"github.com/sgtrace/sgtrace/golden/cluster"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/testkit/testset"
)

// played returns the requests of a scenario, and the number of servers of each model.
func played(t *testing.T, c cluster.Config) (*request.Set, map[string]int) {
	t.Helper()
	run, err := cluster.Play(c)
	if err != nil {
		t.Fatal(err)
	}
	servers := map[string]int{}
	for _, p := range c.Pools {
		servers[p.Model] += p.Servers
	}
	return testset.OfCluster(t, run), servers
}

// leads counts the lead ranks in every group.
func leads(g *Groups) map[int32]int {
	counts := map[int32]int{}
	for i := range g.Ranks.Places {
		if g.Ranks.Leads[i] {
			counts[g.Group(int32(i))]++
		}
	}
	return counts
}

// Only servers of the same model are peers; the same holds for requests.
func TestModelsAreNoPeers(t *testing.T) {
	c := cluster.Find("mixed_models").Config(1)
	s, servers := played(t, c)
	g := Of(s)
	if g.Len() != len(servers) {
		t.Fatalf("%d groups, want one for each of %v", g.Len(), servers)
	}
	for group, n := range leads(g) {
		if servers[g.Name(group)] != n {
			t.Errorf("%q has %d servers, want %v", g.Name(group), n, servers)
		}
	}
	models := map[int]string{}
	for i := range s.Requests {
		r := &s.Requests[i]
		if r.Status != request.Finished {
			continue
		}
		of := fmt.Sprint(s.ModelOf(r), decodes(r))
		if p := g.Population(r); models[p] == "" {
			models[p] = of
		} else if models[p] != of {
			t.Fatalf("%s and %s are of one population", models[p], of)
		}
	}
}

// Without model names, the time per token separates models. A single slow server
// with the same work as others stays with them.
func TestWorkTellsModelsApart(t *testing.T) {
	nameless := func(s *request.Set) *Groups {
		for i := range s.Parts {
			s.Parts[i].Model = 0
		}
		return Of(s)
	}
	s, servers := played(t, cluster.Find("mixed_models").Config(2))
	if g := nameless(s); g.Len() != len(servers) {
		t.Errorf("%d groups without names, want %d", g.Len(), len(servers))
	}
	slow := cluster.DefaultConfig(3)
	slow.Faults = []cluster.Fault{{Name: "slow steps", Server: 1, Size: 2.5}}
	s, _ = played(t, slow)
	if g := nameless(s); g.Len() != 1 || g.Name(0) != "" {
		t.Errorf("a slow server is in a group of its own: %d groups", g.Len())
	}
}

// A server stays a peer if its version changes, or if nothing finished on it.
func TestSplitKeepsTheUnknownWithMost(t *testing.T) {
	set := func(values ...string) map[string]bool {
		m := map[string]bool{}
		for _, v := range values {
			m[v] = true
		}
		return m
	}
	servers := []*server{{pools: set("v1")}, {pools: set("v1", "v2")}, {pools: set("v2")}, {pools: set()}, {pools: set("gpu B")}}
	groups := sharing(func(x *server) map[string]bool { return x.pools })(servers)
	if len(groups) != 2 || len(groups[0]) != 4 || len(groups[1]) != 1 {
		t.Errorf("%d groups, the first with %d servers", len(groups), len(groups[0]))
	}
}

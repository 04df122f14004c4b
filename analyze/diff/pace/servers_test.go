package pace

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/replay"
)

// together merges the steps of servers into those of one side. In each step, the others wait for rank last, for waited ns.
func together(of map[string]*steps, last string, waited int32) *steps {
	all := &steps{tokens: 1, steps: 1}
	for _, name := range []string{"a", "b", "c"} {
		s := of[name]
		all.work = s.work
		for _, st := range s.list {
			st.server, st.last, st.waited = all.servers.index(name), all.ranks.index(last), waited
			all.list = append(all.list, st)
		}
	}
	return all
}

// If servers have other names on the other side, differences as large as those among
// servers anyway do not count as a change of one server.
func TestServersWithOtherNames(t *testing.T) {
	for _, c := range []struct {
		slower float64
		want   int
	}{{1.06, 0}, {1.2, 1}} {
		rng := rand.New(rand.NewPCG(3, 4))
		before := together(map[string]*steps{"a": stepsOf(rng, 600, 6, 1), "b": stepsOf(rng, 600, 6, 1.06), "c": stepsOf(rng, 600, 6, 1)}, "TP1", 0)
		after := together(map[string]*steps{"a": stepsOf(rng, 600, 6, 1), "b": stepsOf(rng, 600, 6, 1), "c": stepsOf(rng, 600, 6, c.slower)}, "TP1", 0)
		after.servers = names{"x", "y", "z"}
		if p := compareSteps(key{kind: replay.Decode}, [2]*steps{before, after}, false); len(p.only.names) != c.want || c.want > 0 && p.only.names[0] != "z" {
			t.Errorf("%g times as long: %q", c.slower, p.only.names)
		}
	}
}

// Of three servers, those that alone take longer are named. If all do, or none does, no server is named.
func TestServersThatAreSlowerAlone(t *testing.T) {
	for _, c := range []struct {
		what   string
		slower [3]float64
		want   []string
		says   string
	}{
		{"none", [3]float64{1, 1, 1}, nil, ""},
		{"one", [3]float64{1, 1.1, 1}, []string{"b"}, "for the same work on b only: "},
		{"one is faster", [3]float64{1, 1, 0.9}, []string{"c"}, "take less time for the same work on c only: "},
		{"two", [3]float64{1.1, 1.1, 1}, []string{"a", "b"}, "on a, b only: "},
		{"all", [3]float64{1.1, 1.1, 1.1}, nil, "take longer for the same work: "},
		{"all, one of them most", [3]float64{1.1, 1.1, 1.15}, nil, "take longer for the same work: "},
	} {
		for seed := range uint64(5) {
			rng := rand.New(rand.NewPCG(seed, 2))
			side := func(slower [3]float64, waited int32) *steps {
				of := map[string]*steps{}
				for i, name := range []string{"a", "b", "c"} {
					of[name] = stepsOf(rng, 600, 6, slower[i])
				}
				return together(of, "TP1", waited)
			}
			p := compareSteps(key{kind: replay.Decode}, [2]*steps{side([3]float64{1, 1, 1}, 10_000), side(c.slower, 700_000)}, false)
			if c.says != "" && p.Change.Change.P < 0.001 {
				p.Change.Sure = "certain"
			}
			if !slices.Equal(p.only.names, c.want) || !strings.Contains(p.Slower(), c.says) || (p.Slower() == "") != (c.says == "") {
				t.Errorf("%s, seed %d: %q: %q", c.what, seed, p.only.names, p.Slower())
			}
			// Waiting grows by 0.7 ms, which is most of 10 % of a step of 11 ms. It cannot explain steps that take less time.
			if late := strings.Contains(p.Slower(), ", as others wait 700 us in each for TP1 (10 us before)"); late != strings.Contains(p.Slower(), " longer ") {
				t.Errorf("%s, seed %d: %q", c.what, seed, p.Slower())
			}
		}
	}
}

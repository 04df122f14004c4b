package lifecycle

import (
	"bytes"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/golden/cluster"
	"github.com/sgtrace/sgtrace/testkit/testset"
)

// A server that dies is one finding, also if it does so several times, with all requests that
// failed on it: by the URL that the gateway sent them to, as the server itself lost their rows.
func TestDeathsAreOneFinding(t *testing.T) {
	for scenario, deaths := range map[string]int{"flapping": 3, "death": 1} {
		for seed := range uint64(3) {
			run, err := cluster.Play(cluster.Find(scenario).Config(seed))
			if err != nil {
				t.Fatal(err)
			}
			var dump bytes.Buffer
			if err := cluster.Write(&dump, run); err != nil {
				t.Fatal(err)
			}
			lost := 0
			for i := range run.Requests {
				if run.Requests[i].Outcome == cluster.Broken {
					lost++
				}
			}
			l := Find(testset.BuildSet(t, "cluster", &dump))
			var found []finding.Finding
			list, _ := l.Findings()
			for _, f := range list {
				if f.Cost > 0 || f.Subkind == Restart {
					found = append(found, f)
				}
			}
			if len(found) != 1 || found[0].Subkind != Death || found[0].Affected.N != lost || len(l.deaths) > deaths {
				t.Errorf("%s %d: %d requests lost; found %+v", scenario, seed, lost, found)
			}
		}
	}
}

// A rolling deployment lasts from when the first server ends until the last one serves again.
func TestRestarted(t *testing.T) {
	run, err := cluster.Play(cluster.Find("rolling_restart").Config(1))
	if err != nil {
		t.Fatal(err)
	}
	var dump bytes.Buffer
	if err := cluster.Write(&dump, run); err != nil {
		t.Fatal(err)
	}
	first, last := int64(0), int64(0) // planted
	for i := range run.Servers {
		for k, l := range run.Servers[i].Lives {
			if k > 0 {
				last = max(last, l.From)
			}
			if l.To != 0 && (first == 0 || l.To < first) {
				first = l.To
			}
		}
	}
	const slack = 10_000_000_000 // ns: nobody sees servers that have nothing to do
	from, to := Find(testset.BuildSet(t, "cluster", &dump)).Restarted()
	if d := int64(from) - first; max(d, -d) > slack {
		t.Errorf("restarts from %v, %d ns off", from, d)
	}
	if d := int64(to) - last; max(d, -d) > slack {
		t.Errorf("restarts to %v, %d ns off", to, d)
	}
}

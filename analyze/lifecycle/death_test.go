package lifecycle

import (
	"bytes"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/golden/cluster"
	"github.com/sgtrace/sgtrace/internal/testset"
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
				if f.Cost > 0 || f.Topic == Restart {
					found = append(found, f)
				}
			}
			if len(found) != 1 || found[0].Topic != Death || found[0].Affected.N != lost || len(l.deaths) > deaths {
				t.Errorf("%s %d: %d requests lost; found %+v", scenario, seed, lost, found)
			}
		}
	}
}

package requests

import (
	"bytes"
	"testing"
	"time"

	"github.com/sgtrace/sgtrace/analyze/load"
	"github.com/sgtrace/sgtrace/golden/simulator"
	"github.com/sgtrace/sgtrace/testkit/testinput"
	"github.com/sgtrace/sgtrace/testkit/testset"
)

// A timeline with one bucket has the same stages as the groups.
func TestTimelineIsGroups(t *testing.T) {
	stageAndRole, err := ParseDimensions("stage,role")
	if err != nil {
		t.Fatal(err)
	}
	for _, mode := range []simulator.Mode{simulator.PDGateway, simulator.PDDirect, simulator.Unified} {
		c := simulator.DefaultConfig(5)
		c.Mode = mode
		dump, _ := testinput.Simulate(t, c)
		s := testset.BuildSet(t, "sim", bytes.NewReader(dump))
		whole, err := load.New(s, 24*time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		series := map[string]*load.Series{}
		for i := range whole.Series {
			series[whole.Series[i].Location.String()] = &whole.Series[i]
		}
		for _, g := range GroupStages(s, stageAndRole).Groups {
			for k, stage := range whole.Stages {
				if g.Key[0] != stage {
					continue
				}
				of := series[g.Key[1]]
				if of == nil {
					t.Fatalf("no series %q", g.Key[1])
				}
				got := of.Stages[k][0]
				if want := (load.Spread{N: g.N, P50: g.P50, P99: g.P99}); got != want {
					t.Errorf("%v: %v: %+v, want %+v", mode, g.Key, got, want)
				}
			}
		}
	}
}

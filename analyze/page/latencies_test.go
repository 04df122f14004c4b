package page

import (
	"testing"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/requests"
	"github.com/sgtrace/sgtrace/golden/simulator"
	"github.com/sgtrace/sgtrace/request"
)

// The curves pass through the percentiles in the tables.
func TestCurvesAgreeWithTables(t *testing.T) {
	for _, mode := range []simulator.Mode{simulator.PDGateway, simulator.Unified} {
		config := simulator.DefaultConfig(5)
		config.Mode = mode
		set := simulate(t, config)
		by, err := requests.ParseDimensions("role,stage")
		if err != nil {
			t.Fatal(err)
		}
		curves := stageLines(set)
		compared := 0
		for _, g := range requests.GroupStages(set, by).Groups {
			role, ok := request.ParseRole(g.Key[0])
			if !ok {
				t.Fatalf("role %q", g.Key[0])
			}
			for _, line := range curves[role] {
				if line.name == g.Key[1] {
					compare(t, line, &g.Summary)
					compared++
				}
			}
		}
		for _, list := range curves {
			compared -= len(list)
		}
		if compared != 0 {
			t.Errorf("%v: %+d stages were compared", mode, compared)
		}
		names := map[string]string{"E2E": "e2e", "user TTFT": "user_ttft", "TPOT": "tpot", "queue": "queue", "transfer": "transfer", "ITL": "itl"}
		if mode != simulator.PDGateway {
			delete(names, "user TTFT")
			names["TTFT"] = "ttft"
		}
		for _, line := range requestLines(set) {
			for _, l := range requests.MeasureLatencies(set).Rows {
				if l.Of == "finished requests" && l.Metric == names[line.name] {
					compare(t, line, &l.Summary)
					delete(names, line.name)
				}
			}
		}
		if mode == simulator.PDGateway && len(names) > 0 {
			t.Errorf("no curves of %v", names)
		}
	}
}

func compare(t *testing.T, line *line, s *distribution.Summary) {
	t.Helper()
	if len(line.ns) != s.N {
		t.Errorf("%s has %d values, want %d", line.name, len(line.ns), s.N)
		return
	}
	for percent, want := range map[int]int64{50: s.P50, 90: s.P90, 99: s.P99} {
		if got := request.NearestRank(line.ns, percent); got != want {
			t.Errorf("%s: p%d is %d, want %d", line.name, percent, got, want)
		}
	}
}

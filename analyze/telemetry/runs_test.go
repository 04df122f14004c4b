package telemetry

import (
	"math"
	"testing"

	"github.com/sgtrace/sgtrace/series"
)

// A run that takes 600 s to complete what was offered in 300 s costs 300 s of all runs.
func TestCostOfOverload(t *testing.T) {
	runs := []series.Run{{Rate: 4, Completed: 1200, Duration: 300}, {Rate: 8, Completed: 2400, Duration: 600}}
	runs[0].TTFT.Median, runs[1].TTFT.Median = 0.2, 120
	found, _ := Overloads(&series.Set{Runs: runs, Sources: []series.Source{{Name: "bench.jsonl"}}})
	if len(found) != 1 || math.Abs(found[0].Cost-300.0/900) > 1e-9 {
		t.Errorf("%+v", found)
	}
}

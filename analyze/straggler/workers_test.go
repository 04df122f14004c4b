package straggler

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// planted returns 40 steps of 4 x 4 workers, each of which takes about 100 ms times of(dp, pp, step).
func planted(of func(dp, pp int, step int64) float64) (lanes []profile.LaneTime) {
	r := rand.New(rand.NewPCG(1, 2))
	for dp := range 4 {
		for pp := range 4 {
			for step := range int64(40) {
				ns := of(dp, pp, step) * (1 + 0.02*r.Float64()) * 1e8
				process := fmt.Sprintf("DP rank [%d]", dp)
				begin := trace.Time(dp)*1e12 + trace.Time(step)*3e8 // each process has a clock of its own
				lanes = append(lanes,
					profile.LaneTime{Process: process, Row: fmt.Sprintf("PP rank %d, TP rank 0, compute", pp), Name: "forward-compute", Step: step, N: 4, Time: int64(ns), First: begin, Last: begin + trace.Time(ns)},
					profile.LaneTime{Process: process, Row: fmt.Sprintf("PP rank %d, TP rank 0, pp-comm", pp), Name: "forward-recv", Step: step, N: 4, Time: int64(3e8 - ns), First: begin + trace.Time(ns), Last: begin + 3e8})
			}
		}
	}
	return lanes
}

// A slow machine, a stage with more work, and data of varying size are distinguished.
func TestSlowWorkers(t *testing.T) {
	for _, c := range []struct {
		name string
		of   func(dp, pp int, step int64) float64
		want string  // prefix of the only finding; "" is none
		cost float64 // what the steps, which take 300 ms each, would be shorter
	}{
		{"alike", func(int, int, int64) float64 { return 1 }, "", 0},
		{"a machine", func(dp, pp int, _ int64) float64 { return 1 + 1.35*float64(b(dp == 0 && pp == 2)) }, "DP 0 / PP 2 / TP 0 computes 2.35 times as long as the median of its 15 peers", 135.0 / 300},
		{"a stage", func(_, pp int, _ int64) float64 { return 1 + 0.6*float64(b(pp == 3)) }, "all 4 workers of PP 3 compute 1.59 to ", (160.0 - 115) / 300}, // even stages would take 115 ms each
		{"data", func(dp, pp int, step int64) float64 {
			return 1 + float64((int64(dp)*7+int64(pp)*3+step*5)%11)/20
		}, "", 0},
		{"half of the stages", func(_, pp int, _ int64) float64 { return 1 + 0.5*float64(pp%2) }, "", 0},
	} {
		found, check := Workers(&profile.Set{Lanes: planted(c.of)})
		switch {
		case check.N != 40:
			t.Errorf("%s: %+v", c.name, check)
		case c.want == "" && len(found) > 0, c.want != "" && (len(found) != 1 || !strings.HasPrefix(found[0].Text, c.want)):
			t.Errorf("%s: %+v, want %q", c.name, found, c.want)
		case c.want != "" && math.Abs(found[0].Cost-c.cost) > 0.02:
			t.Errorf("%s: costs %.3f of the time, want %.3f", c.name, found[0].Cost, c.cost)
		}
	}
	if _, check := Workers(&profile.Set{}); check.Reason == "" {
		t.Errorf("without lanes: %+v", check)
	}
}

func b(is bool) int {
	if is {
		return 1
	}
	return 0
}

// Workers that have no step in common cannot be compared.
func TestWorkersWithoutCommonSteps(t *testing.T) {
	var list []*worker
	for i := range int64(4) {
		list = append(list, &worker{steps: map[int64]int64{i: 5}})
	}
	if p := paceOf(list, nil); p.steps != 0 {
		t.Errorf("%+v", p)
	}
}

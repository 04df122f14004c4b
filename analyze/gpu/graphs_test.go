package gpu

import (
	"testing"

	"github.com/sgtrace/sgtrace/analyze/profilewalk"
	"github.com/sgtrace/sgtrace/profile"
)

// Steps with more requests than any that ran as a graph are counted: there is no graph for their size.
func TestStepsBeyondGraphs(t *testing.T) {
	step := func(batch int32, graph bool) profilewalk.Step {
		s := profilewalk.Step{StepLabel: profilewalk.StepLabel{StepName: profile.StepName{Kind: profile.StepDecode, Batch: batch}}, Last: 5, Kernels: 9}
		if graph {
			s.GraphKernels = 8
		}
		return s
	}
	for _, test := range []struct {
		steps                []profilewalk.Step
		eager, graph, beyond int
	}{
		{nil, 0, 0, 0},
		{[]profilewalk.Step{step(32, true), step(31, false)}, 1, 1, 0}, // the smaller one can be padded to a graph
		{[]profilewalk.Step{step(32, false), step(8, false)}, 2, 0, 0},
		{[]profilewalk.Step{step(32, true), step(33, false), step(8, true), step(200, false)}, 2, 2, 2},
	} {
		eager, graph, beyond := 0, 0, 0
		for _, u := range groupGraphs(&profile.Set{Ranks: []string{"TP0"}}, 0, test.steps) {
			eager, graph, beyond = eager+u.Eager.N, graph+u.Graph.N, beyond+u.Beyond
		}
		if eager != test.eager || graph != test.graph || beyond != test.beyond {
			t.Errorf("%d eager, %d as graphs, %d beyond; want %d, %d, %d", eager, graph, beyond, test.eager, test.graph, test.beyond)
		}
	}
}

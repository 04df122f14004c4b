package collective

import (
	"slices"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/gpu"
	"github.com/sgtrace/sgtrace/profile"
)

// gpuThat is a device of 100 ms: so many ms waiting for the host, and exposed
// communication.
func gpuThat(hostWait, exposed int64) gpu.GPU {
	const ms = 1_000_000
	g := gpu.GPU{Rank: "TP0", First: 0, Last: 100 * ms, Rows: gpu.FewRows}
	g.Idle.Time[gpu.HostWait], g.Idle.Gaps[gpu.HostWait] = hostWait*ms, 10
	g.Running[1<<profile.ClassCommunication] = exposed * ms
	g.Running[1<<profile.ClassCompute] = (100 - hostWait - exposed) * ms
	return g
}

func TestGPUFindings(t *testing.T) {
	const ms = 1_000_000
	steps := func(total int64) []gpu.StepTime {
		return []gpu.StepTime{{Host: distribution.Summary{Total: total * ms}}}
	}
	few := gpuThat(90, 0)
	few.Rows--
	for _, test := range []struct {
		name  string
		gpus  gpu.GPUs
		state finding.State
		want  []float64 // costs
	}{
		{"busy", gpu.GPUs{GPUs: []gpu.GPU{gpuThat(10, 10)}, Steps: steps(100)}, finding.LookedAt, nil},
		{"waits within steps", gpu.GPUs{GPUs: []gpu.GPU{gpuThat(40, 10)}, Steps: steps(100)}, finding.LookedAt, []float64{0.4}},
		{"nothing to do between steps", gpu.GPUs{GPUs: []gpu.GPU{gpuThat(60, 10)}, Steps: steps(50)}, finding.LookedAt, nil},
		{"waits in what steps there are", gpu.GPUs{GPUs: []gpu.GPU{gpuThat(80, 0)}, Steps: steps(50)}, finding.LookedAt, []float64{0.3}},
		{"no steps, who knows", gpu.GPUs{GPUs: []gpu.GPU{gpuThat(40, 0)}}, finding.LookedAt, nil},
		{"no steps, but more than half", gpu.GPUs{GPUs: []gpu.GPU{gpuThat(60, 0)}}, finding.LookedAt, []float64{0.6}},
		{"communicates", gpu.GPUs{GPUs: []gpu.GPU{gpuThat(0, 20), gpuThat(0, 40)}, Steps: steps(100)}, finding.LookedAt, []float64{0.3}},
		{"a try", gpu.GPUs{GPUs: []gpu.GPU{few}}, finding.TooLittle, nil},
		{"no device", gpu.GPUs{}, finding.NotApplicable, nil},
	} {
		var got []float64
		waits, judged := test.gpus.HostWaits()
		exposed, _ := test.gpus.Exposure(nil)
		for _, f := range slices.Concat(waits, exposed) {
			got = append(got, f.Cost)
		}
		if judged.State() != test.state {
			t.Errorf("%s: %s", test.name, judged.String())
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
}

// How much of exposed communication is waiting is told where ranks were seen to meet.
func TestExposedEvidence(t *testing.T) {
	g := gpu.GPUs{GPUs: []gpu.GPU{gpuThat(0, 30), gpuThat(0, 40)}}
	g.GPUs[1].Rank = "TP1"
	const shares = "from 30 % on TP0 to 40 % on TP1"
	if got := exposedEvidence(&g, nil); !slices.Equal(got, []string{shares}) {
		t.Errorf("no collectives: %q", got)
	}
	// Of 395 + 145 ns ranks wait for 290 + 40.
	s := newSyncPoints("TP0", "TP1")
	s.meet(0, 395, 290, 105)
	s.meet(1040, 40, 1000, 80)
	want := []string{shares, "ranks spend 53 % of their time in 2 collectives waiting for the last rank; the rest is data transfer"}
	if got := exposedEvidence(&g, Measure(s.Set, 0, 0).Waiting()); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func exposedEvidence(g *gpu.GPUs, waiting []finding.Evidence) []string {
	found, _ := g.Exposure(waiting)
	return finding.Sentences(found[0].Evidence)
}

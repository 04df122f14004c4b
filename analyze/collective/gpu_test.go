package collective

import (
	"slices"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/gpu"
	"github.com/sgtrace/sgtrace/analyze/gpuloss"
	"github.com/sgtrace/sgtrace/profile/kernelname"
)

// exposedFor is a device of 100 ms with ms of communication that nothing hides.
func exposedFor(rank string, ms int64) gpu.GPU {
	g := gpu.GPU{Rank: rank, Last: 100_000_000, Rows: 100}
	g.Running[1<<kernelname.ClassCommunication] = ms * 1_000_000
	g.Running[1<<kernelname.ClassCompute] = (100 - ms) * 1_000_000
	return g
}

// Evidence says how much of the exposed communication is waiting, if ranks were seen to meet.
func TestExposedEvidence(t *testing.T) {
	g := gpu.GPUs{GPUs: []gpu.GPU{exposedFor("TP0", 30), exposedFor("TP1", 40)}}
	const shares = "from 30 % on TP0 to 40 % on TP1"
	if got := exposedEvidence(&g, nil); !slices.Equal(got, []string{shares}) {
		t.Errorf("no collectives: %q", got)
	}
	// The ranks wait for 290 + 40 of 500 + 120 ns.
	s := newSyncPoints("TP0", "TP1")
	s.meet(0, 395, 290, 105)
	s.meet(1040, 40, 1000, 80)
	want := []string{shares, "ranks spend 53 % of their time in 2 collectives waiting for the last rank; the rest is data transfer"}
	if got := exposedEvidence(&g, Measure(s.Set, 0, 0).Waiting()); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	// If the groups may have more ranks than these, so may the wait.
	for i := range s.met.Points {
		s.met.Points[i].GroupSize = -1
	}
	want[1] += ", or waiting for ranks that are not in the files: how many a group has was not recorded"
	if got := exposedEvidence(&g, Measure(s.Set, 0, 0).Waiting()); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func exposedEvidence(g *gpu.GPUs, waiting []finding.Evidence) []string {
	found, _ := gpuloss.Exposure(g, waiting)
	return finding.Sentences(found[0].Evidence)
}

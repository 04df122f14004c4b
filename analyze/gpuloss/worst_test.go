package gpuloss

import (
	"testing"

	"github.com/sgtrace/sgtrace/analyze/gpu"
	"github.com/sgtrace/sgtrace/profile/kernelname"
)

// The rank to look at first is the one that loses the most time to the cause of the finding.
func TestWorst(t *testing.T) {
	g := &gpu.GPUs{GPUs: []gpu.GPU{gpuOf(40, 1, map[gpu.Reason]int64{gpu.HostWork: 10}), gpuOf(10, 30, map[gpu.Reason]int64{gpu.HostWork: 5}), gpuOf(10, 2, map[gpu.Reason]int64{gpu.HostWork: 60})}}
	for i, name := range []string{"TP0", "TP1", "TP2"} {
		g.GPUs[i].Rank = name
	}
	for _, c := range []struct {
		subkind, rank string
		shows         kernelname.Class
	}{{"communication", "TP0", kernelname.ClassCommunication}, {"copies", "TP1", kernelname.ClassMemory}, {"host", "TP2", kernelname.ClassCompute}} {
		if rank, shows := WorstRank(g, c.subkind); rank != c.rank || shows != c.shows {
			t.Errorf("%s: %s, %v", c.subkind, rank, shows)
		}
	}
}

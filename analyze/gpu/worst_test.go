package gpu

import (
	"testing"

	"github.com/sgtrace/sgtrace/profile"
)

// The rank to look at first is the one that spends most time on what a finding is about.
func TestWorst(t *testing.T) {
	g := &GPUs{GPUs: []GPU{gpuOf(40, 1, map[Reason]int64{HostWork: 10}), gpuOf(10, 30, map[Reason]int64{HostWork: 5}), gpuOf(10, 2, map[Reason]int64{HostWork: 60})}}
	for i, name := range []string{"TP0", "TP1", "TP2"} {
		g.GPUs[i].Rank = name
	}
	for _, c := range []struct {
		topic, rank string
		shows       profile.Class
	}{{"communication", "TP0", profile.ClassCommunication}, {"copies", "TP1", profile.ClassMemory}, {"host", "TP2", profile.ClassCompute}} {
		if rank, shows := g.Worst(c.topic); rank != c.rank || shows != c.shows {
			t.Errorf("%s: %s, %v", c.topic, rank, shows)
		}
	}
}

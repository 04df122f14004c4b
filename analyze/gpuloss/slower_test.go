package gpuloss

import (
	"math"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/gpu"
	"github.com/sgtrace/sgtrace/profile/kernelname"
	"github.com/sgtrace/sgtrace/trace"
)

// Two ranks run 50 kernels of each of three names in 100 ms: 10, 6, and 4 ms in total. A slower rank shows even without collectives.
func TestSlowKernels(t *testing.T) {
	type kernel struct {
		n, ms, median float64 // of the rank, as multiples of its peer
	}
	same := kernel{1, 1, 1}
	for name, c := range map[string]struct {
		of     [3]kernel
		waited int64 // ms for which the peer waited for the rank
		idle   int64 // ms for which only the peer is idle
		says   string
		cost   float64
	}{
		"the same":     {of: [3]kernel{same, same, same}},
		"a little":     {of: [3]kernel{{1, 1.05, 1.05}, {1, 1.05, 1.05}, {1, 1.05, 1.05}}},
		"all of them":  {of: [3]kernel{{1, 1.3, 1.3}, {1, 1.3, 1.3}, {1, 1.28, 1.28}}, says: "take 1.30 times as long on TP1 as on TP0: nearly all of them, as if its clock were lower", cost: 5.92 / 200},
		"waited for":   {of: [3]kernel{{1, 1.5, 1.5}, {1, 1.5, 1.5}, {1, 1.5, 1.5}}, waited: 9, says: "1.50 times", cost: 19.0 / 200},
		"idle instead": {of: [3]kernel{{1, 2, 2}, {1, 2, 2}, {1, 2, 2}}, idle: 12, says: "2 times", cost: 8.0 / 200},
		"one name":     {of: [3]kernel{{1, 1.6, 1.6}, same, same}, says: "take 1.30 times as long on TP1 as on TP0: `gemm`, 1.60 times as long, while others take as long as there", cost: 6.0 / 200},
		"a few":        {of: [3]kernel{{1, 1.6, 1}, {1, 1.6, 1}, same}},
		"other work":   {of: [3]kernel{{2, 2, 1}, {2, 2, 1}, {2, 2, 1}}},
	} {
		g := &gpu.GPUs{}
		for rank, label := range []string{"TP0", "TP1"} {
			d := gpuOf(0, 0, map[gpu.Reason]int64{gpu.HostWork: 10 + c.idle*int64(1-rank)})
			d.Rank, d.RankIndex = label, int32(rank)
			g.GPUs = append(g.GPUs, d)
			for i, ns := range []float64{10e6, 6e6, 4e6} {
				f := same
				if rank == 1 {
					f = c.of[i]
				}
				g.Kernels = append(g.Kernels, gpu.RankKernel{Rank: label, RankIndex: int32(rank), Name: []string{"gemm", "rms_norm", "silu"}[i], Sym: trace.Sym(i + 1), Class: kernelname.ClassCompute,
					Summary: distribution.Summary{N: int(50 * f.n), Total: int64(ns * f.ms), P50: int64(ns * f.median / 50)}})
			}
		}
		found, check := SlowKernels(g, func(rank int32) int64 { return c.waited * ms * int64(rank) })
		switch {
		case name == "other work" && check.Reason == "":
			t.Errorf("%s: %+v", name, check)
		case c.says == "" && len(found) > 0 || c.says != "" && (len(found) != 1 || !strings.Contains(found[0].Text, c.says) || found[0].At.RankName() != "TP1" || math.Abs(found[0].Cost-c.cost) > 1e-9):
			t.Errorf("%s: %+v, want %s for %v", name, found, c.says, c.cost)
		}
	}
}

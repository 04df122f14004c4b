package finders

import (
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/collective"
	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/gpu"
	"github.com/sgtrace/sgtrace/profile/kernelname"
)

// Pipeline stages that send and receive without computing wait for the slowest stage, or for each
// other. If most of the communication is of another kind, the finding does not say so.
func TestStagesOfPipelines(t *testing.T) {
	const ms = 1_000_000
	const in = "the 3 GPUs spend 45 % of the time on exposed communication (not overlapped by compute)"
	for name, c := range map[string]struct {
		computes [3]int64 // ms of 1 s; the rest is communication
		op       string
		kernel   string
		want     string
		at       string
		waits    int64 // ms at most of each rank's time in them
	}{
		"one is slower":   {[3]int64{450, 750, 450}, "recv", "SendRecv", in + ", in send and recv between stages of a pipeline; PP1 computes 75 % of the time, and the others 45 %, as they wait for it", "PP1", 0},
		"all are as long": {[3]int64{530, 570, 550}, "coalesced", "ncclDevKernel_SendRecv", in + ", in send and recv between stages of a pipeline, which all compute about as long, 53 % to 57 % of the time", "", 100},
		"too few batches": {[3]int64{530, 570, 550}, "recv", "SendRecv", in + ", in send and recv between stages of a pipeline, which all compute about as long, 53 % to 57 % of the time, as if too few micro-batches were in flight to keep 3 stages busy", "", 430},
		"all-reduces":     {[3]int64{450, 750, 450}, "allreduce", "AllReduce", in, "", 430},
		"gathers at once": {[3]int64{450, 750, 450}, "coalesced", "AllGather", in, "", 430},
	} {
		m := &Measured{GPUs: &gpu.GPUs{}, Collectives: &collective.Collectives{}}
		for i, computes := range c.computes {
			g := gpu.GPU{Rank: "PP" + string(rune('0'+i)), RankIndex: int32(i), Last: 1000 * ms, Rows: 1000, Kernels: 1000}
			g.Running[1<<kernelname.ClassCompute], g.Running[1<<kernelname.ClassCommunication] = computes*ms, (1000-computes)*ms
			m.GPUs.GPUs = append(m.GPUs.GPUs, g)
			m.Collectives.Parts = append(m.Collectives.Parts, collective.PartKind{Rank: g.Rank, Op: c.op, Kernel: c.kernel, Took: distribution.Summary{N: 100, Total: (1000 - computes) * ms}, MostWait: c.waits * ms})
		}
		found, _ := exposure(m)
		if len(found) != 1 || found[0].Text != c.want || c.at != "" && found[0].At.RankName() != c.at || (found[0].Confidence == finding.Likely) != (c.at != "" || name == "too few batches") {
			t.Errorf("%s: %+v, want %s", name, found, strings.TrimPrefix(c.want, in))
		}
	}
}

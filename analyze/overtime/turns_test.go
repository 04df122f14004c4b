package overtime

import (
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/testkit/testset"
	"github.com/sgtrace/sgtrace/trace"
)

// Another process on a GPU adds whole slices of 2.5 ms to kernels that run when a slice ends, which long ones do. A lower clock makes
// short ones take longer, too. Three iterations have 27 short kernels, of which one is interrupted.
func TestTurns(t *testing.T) {
	const slice, turns, clock = 2_500_000, "most that do lose 2.50 ms or more each, while 26 of 27 kernels that are shorter than that keep their time, as if another process ran on the GPU in turns", "as if the GPU clock were lower"
	for says, longer := range map[string]func(took int64, n int) int64{
		turns: func(took int64, n int) int64 {
			switch {
			case took > 3_000_000:
				return took + slice*int64(1+n%2)
			case n%32 == 9: // a kernel of 0.7 ms
				return took + slice
			}
			return took
		},
		clock: func(took int64, n int) int64 { return took * 19 / 10 },
	} {
		syms, out, at, n := trace.NewSymbols(), &testset.RowStream{}, int64(1_000_000), 0
		for iteration := range 12 {
			for _, k := range []shortKernel{{"gemm_a", 4e6}, {"norm", 60e3}, {"gemm_b", 3.7e6}, {"gelu", 90e3}, {"gemm_a", 4e6}, {"norm", 60e3}, {"gemm_b", 3.7e6},
				{"gelu", 90e3}, {"gemm_a", 4e6}, {"softmax", 0.7e6}, {"add", 40e3}, {"gemm_b", 3.7e6}, {"norm", 60e3}, {"gelu", 90e3}, {"gemm_a", 4e6}, {"add", 40e3}} {
				took := int64(k.ns) + int64(n*7%5)*1000
				if iteration == 5 || iteration == 6 || iteration == 7 {
					took = longer(took, n)
				}
				out.KernelRows = append(out.KernelRows, profile.Kernel{Event: profile.Event{Start: trace.Time(at), End: trace.Time(at + took), Name: syms.Intern(k.name)}})
				at, n = at+took+2_000, n+1
			}
		}
		if found, _ := timelineOf(testset.SetOf(syms, []string{"TP0"}, out), Options{}).Findings(); len(found) != 1 || !strings.Contains(found[0].Text, says) {
			t.Errorf("%+v, want %s", found, says)
		}
	}
}

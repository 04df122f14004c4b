package overview

import (
	"testing"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/finders"
	"github.com/sgtrace/sgtrace/analyze/gpu"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/profile/kernelname"
	"github.com/sgtrace/sgtrace/testkit/testset"
	"github.com/sgtrace/sgtrace/trace"
)

// Kernels with the same name are added up over all ranks.
func TestKernelTotals(t *testing.T) {
	of := func(sym trace.Sym, class kernelname.Class, name string, total int64, n int) gpu.RankKernel {
		return gpu.RankKernel{Sym: sym, Class: class, Name: name, Summary: distribution.Summary{Total: total, N: n}}
	}
	o := &Overview{Measured: finders.Measured{GPUs: &gpu.GPUs{Kernels: []gpu.RankKernel{
		of(1, kernelname.ClassCompute, "gemm", 36_000, 3), of(2, kernelname.ClassCommunication, "nccl", 51_000, 1),
		of(1, kernelname.ClassCompute, "gemm", 30_000, 3), of(2, kernelname.ClassCommunication, "nccl", 3_000, 1),
	}}}}
	want := `Kernels that take most

of kernels [%]  total [us]  n  class          kernel
--------------  ----------  -  -------------  ------
          55.0        66.0  6  compute        gemm
          45.0        54.0  2  communication  nccl
`
	if got := testset.Text(t, o.kernelReport(), table.FormatText, table.Style{}); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

package gpu

import (
	"math/rand/v2"
	"testing"

	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/testkit/testset"
	"github.com/sgtrace/sgtrace/trace"
)

// The time in which only kernels of one block run is counted here instant by instant.
func TestSingleBlocks(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		syms, s := trace.NewSymbols(), &testset.RowStream{}
		const length = 400
		var single, wide [length]bool
		mark := func(at *[length]bool, e profile.Event) {
			for i := e.Start; i < e.End; i++ {
				at[i] = true
			}
		}
		for range 1 + r.IntN(12) {
			from := r.IntN(length - 1)
			e := profile.Event{Start: trace.Time(from), End: trace.Time(from + r.IntN(length-from)), PID: 1, Name: syms.Intern("gemm")}
			switch r.IntN(5) {
			case 0:
				e.Name = syms.Intern("ncclDevKernel_AllReduce_Sum_bf16_RING_LL")
				s.KernelRows = append(s.KernelRows, profile.Kernel{Event: e, Stream: 20, Grid: profile.GridOf(1, int64(32))}) // communication, which uses few blocks on purpose
				mark(&wide, e)
			case 1:
				e.Name = syms.Intern("[CUDA memcpy Device-to-Host]")
				s.CopyRows = append(s.CopyRows, profile.Copy{Event: e, Stream: 21})
				mark(&wide, e)
			case 2:
				s.KernelRows = append(s.KernelRows, profile.Kernel{Event: e, Stream: uint32(r.IntN(3))})
				mark(&wide, e)
			default:
				s.KernelRows = append(s.KernelRows, profile.Kernel{Event: e, Stream: uint32(r.IntN(3)), Grid: profile.GridOf(1, int64(1+r.IntN(256)))})
				mark(&single, e)
			}
		}
		want := int64(0)
		for i := range single {
			if single[i] && !wide[i] {
				want++
			}
		}
		g := Measure(testset.SetOf(syms, []string{"TP0"}, s), Options{})
		if got := g.GPUs[0].Single; got != want {
			t.Fatalf("seed %d: %d ns, want %d", seed, got, want)
		}
	}
}

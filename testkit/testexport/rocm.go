package testexport

import (
	"fmt"
	"math/rand/v2"
)

// A ROCm is the activity of some ranks. Times are ns since the boot of the host.
type ROCm struct {
	Ranks []*Rank
	// Canary is in everything secret: environments, commands, arguments of calls.
	Canary string
	// Booted is the time of the boot, in ns since 1970, which only Perfetto traces contain.
	Booted int64
}

// A Rank is one process, with a GPU of its own.
type Rank struct {
	Number, PID int
	Begin, End  int64
	Kernels     []Kernel
	Copies      []Copy
	Calls       []Call
	Ranges      []Range // of roctx
}

// A Kernel ran on a stream, requested by a call.
type Kernel struct {
	Name       string
	Call       int // index in Calls
	Stream     int
	Start, End int64
	Blocks     int
	Waves      float64 // value of a hardware counter
}

// A Copy goes from the host to the device, or back.
type Copy struct {
	Back       bool
	Call       int
	Stream     int
	Start, End int64
	Bytes      int64
}

// A Call is a call into HIP. Several calls of a rank have the same correlation only if one launched a graph.
type Call struct {
	Name       string
	Start, End int64
}

// A Range is an annotation.
type Range struct {
	Text       string
	Start, End int64
}

// names are kernel names from hipBLASLt, PyTorch, aiter, and RCCL.
var names = []string{
	"Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT128x128x64",
	"void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, std::array<char*, 1ul> >(int, at::native::FillFunctor<float>, std::array<char*, 1ul>)",
	"void aiter::cross_device_reduce_1stage<__hip_bfloat16, 8>(aiter::RankData*, aiter::RankSignals, aiter::Signal*, __hip_bfloat16*, int, int)",
	"ncclDevKernel_Generic_1(ncclDevKernelArgsStorage<4096ul>)",
}

// NewROCm returns a run of some ranks, each with some steps.
func NewROCm(seed uint64, ranks, steps int) *ROCm {
	r := &ROCm{Canary: fmt.Sprintf("canary-%x", seed*0x9e3779b97f4a7c15), Booted: 1_763_000_000_123_456_789}
	rng := rand.New(rand.NewPCG(seed, 38))
	for n := range ranks {
		p := &Rank{Number: n, PID: 4000 + n, Begin: 63_855_948_165_371}
		at := p.Begin + 1e9
		for step := range steps {
			begin := at
			// Every other step is a graph: one call, many kernels.
			graph, kernels := -1, 6+rng.IntN(10)
			if step%2 == 1 {
				graph = len(p.Calls)
				p.Calls = append(p.Calls, Call{"hipGraphLaunch", at, at + 9000})
			}
			device := at + 12_000
			for i := range kernels {
				call := graph
				if graph < 0 {
					call = len(p.Calls)
					p.Calls = append(p.Calls, Call{"hipLaunchKernel", at, at + 2000 + rng.Int64N(3000)})
					at += 6000
				}
				lasts := 3000 + rng.Int64N(40_000)
				p.Kernels = append(p.Kernels, Kernel{Name: names[(i+step)%len(names)], Call: call, Stream: 1 + i%2, Start: max(device, at), End: max(device, at) + lasts,
					Blocks: 1 + rng.IntN(300), Waves: float64(rng.IntN(1e6))})
				device = max(device, at) + lasts + rng.Int64N(2000)
			}
			back := rng.IntN(2) == 0
			p.Copies = append(p.Copies, Copy{Back: back, Call: len(p.Calls), Stream: 1, Start: device, End: device + 5000, Bytes: 1 + rng.Int64N(1<<20)})
			p.Calls = append(p.Calls, Call{"hipMemcpyAsync", at, at + 4000})
			at = device + 5000 + rng.Int64N(100_000)
			p.Ranges = append(p.Ranges, Range{fmt.Sprintf("step[DECODE bs=%d]", 1+rng.IntN(32)), begin, at - 1})
		}
		p.End = at
		r.Ranks = append(r.Ranks, p)
	}
	return r
}

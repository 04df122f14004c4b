package testinput

import (
	"bytes"
	"fmt"
	"math/rand/v2"
)

// KinetoLike returns a trace of about n events in the layout of libkineto, with
// the mixture of a server's trace: Python functions, operators, launches with
// their arrows, kernels.
func KinetoLike(n int) []byte {
	rng := rand.New(rand.NewPCG(1, 2))
	var b bytes.Buffer
	b.WriteString("{\n  \"schemaVersion\": 1,\n  \"deviceProperties\": [\n    {\n      \"id\": 0, \"name\": \"NVIDIA H100\", \"numSms\": 132\n    }\n  ],\n" +
		"  \"distributedInfo\": {\"backend\": \"nccl\", \"rank\": 3, \"world_size\": 8},\n" +
		"  \"displayTimeUnit\": \"ms\",\n  \"baseTimeNanoseconds\": 1775078550000000000,\n  \"traceEvents\": [\n")
	kernels := make([]string, 300)
	for i := range kernels {
		kernels[i] = fmt.Sprintf("void at::native::vectorized_elementwise_kernel<4, at::native::Functor%d<c10::BFloat16>, std::array<char*, 3ul> >(int, at::native::Functor%d<c10::BFloat16>, std::array<char*, 3ul>)", i, i)
	}
	ts := func() string { return fmt.Sprintf("%d.%03d", 4909913692199+rng.Int64N(1e7), rng.IntN(1000)) }
	const x = "  {\n    \"ph\": \"X\", \"cat\": \"%s\", \"name\": \"%s\", \"pid\": %d, \"tid\": %d,\n    \"ts\": %s, \"dur\": %d.%03d,\n    \"args\": {\n      %s\n    }\n  }"
	for i := range n {
		if i > 0 {
			b.WriteString(",\n")
		}
		id := 200000 + i
		switch k := rng.IntN(10); {
		case k < 4:
			fmt.Fprintf(&b, x, "python_function", fmt.Sprintf("/sgl-workspace/sglang/python/sglang/srt/layers/module_%d.py(%d): forward", rng.IntN(60), rng.IntN(90)), 1251, 1251, ts(), rng.IntN(9999), rng.IntN(1000),
				fmt.Sprintf(`"Python parent id": %d, "Python id": %d, "Ev Idx": %d`, id, id+1, i))
		case k < 6:
			fmt.Fprintf(&b, x, "cpu_op", fmt.Sprintf("aten::op_%d", rng.IntN(200)), 1251, 1251, ts(), rng.IntN(9999), rng.IntN(1000),
				fmt.Sprintf(`"External id": %d,"Record function id": 0, "Concrete Inputs": ["", "0", "%d", ""], "Input type": ["c10::BFloat16", "Scalar", "", ""], "Input Strides": [[4096, 1], [], [], []], "Input Dims": [[%d, 4096], [], [], []], "Ev Idx": %d`, id, rng.IntN(9), rng.IntN(9999), i))
		case k < 8:
			fmt.Fprintf(&b, x, "cuda_runtime", "cudaLaunchKernel", 1251, 1251, ts(), rng.IntN(99), rng.IntN(1000),
				fmt.Sprintf(`"External id": %d, "cbid": 211, "correlation": %d`, id, id))
			fmt.Fprintf(&b, ",\n  {\n    \"ph\": \"s\", \"id\": %d, \"pid\": 1251, \"tid\": 1251, \"ts\": %s,\n    \"cat\": \"ac2g\", \"name\": \"ac2g\"\n  }", id, ts())
		default:
			fmt.Fprintf(&b, x, "kernel", kernels[rng.IntN(len(kernels))], 3, 7, ts(), rng.IntN(999), rng.IntN(1000),
				fmt.Sprintf(`"External id": %d, "queued": 0, "device": 3, "context": 1, "stream": 7, "correlation": %d, "registers per thread": 32, "shared memory": 0, "blocks per SM": %d.%d, "warps per SM": 3.878788, "grid": [%d, 1, 1], "block": [128, 1, 1], "est. achieved occupancy %%": 6`, id, id, rng.IntN(9), rng.IntN(99999), rng.IntN(9999)))
			fmt.Fprintf(&b, ",\n  {\n    \"ph\": \"f\", \"id\": %d, \"pid\": 3, \"tid\": 7, \"ts\": %s,\n    \"cat\": \"ac2g\", \"name\": \"ac2g\", \"bp\": \"e\"\n  }", id, ts())
		}
	}
	b.WriteString("\n  ],\n  \"traceName\": \"/tmp/x.json\"\n}\n")
	return b.Bytes()
}

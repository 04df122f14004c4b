package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
)

// A glooJob is a run in which each rank computes on its own device and meets the others on the host once per step, as
// PyTorch's profiler records it: the calling thread has a c10d operator, and threads of gloo have the collective.
type glooJob struct {
	Seed         uint64
	Ranks, Steps int
	Op           string // "gloo:all_reduce", or "nccl:all_reduce" for a request for a device collective
	// Late is the rank that is late by LateNs in each step from Since on; -1 is none. OnHost means
	// that its host sleeps; otherwise its device computes longer.
	Late, Since int
	LateNs      int64
	OnHost      bool
	// Ahead is how far the clock of each rank is ahead, in ns; nil means that all clocks agree.
	Ahead []int64
	// GoesOn means that the calling thread does not wait: it launches more work meanwhile.
	GoesOn bool
	// OnDevice means that the data is on the device: a gloo thread, not the calling thread, waits for it.
	OnDevice bool
	done     []int64 // when each rank's device has the data of the current step
}

// glooEvents collects the events of one rank.
type glooEvents struct {
	bytes.Buffer
	ahead int64
	pid   int
	calls int
}

func (e *glooEvents) add(category, name string, pid, tid int, at, dur int64, args string) {
	at += e.ahead
	fmt.Fprintf(e, ",\n{\"ph\": \"X\", \"cat\": %q, \"name\": %q, \"pid\": %d, \"tid\": %d, \"ts\": %d.%03d, \"dur\": %d.%03d, \"args\": {%s}}",
		category, name, pid, tid, at/1000, at%1000, dur/1000, dur%1000, args)
}

// call adds a CUDA runtime call.
func (e *glooEvents) call(name string, at, dur int64) {
	e.calls++
	e.add("cuda_runtime", name, e.pid, e.pid, at, dur, fmt.Sprintf(`"cbid": 211, "correlation": %d`, e.calls))
}

// kernel adds a kernel, and its launch.
func (e *glooEvents) kernel(name string, launch, at, dur int64) {
	e.call("cudaLaunchKernel", launch, 5_000)
	e.add("kernel", name, 0, 7, at, dur, fmt.Sprintf(`"device": 0, "stream": 7, "correlation": %d, "grid": [64, 1, 1], "block": [128, 1, 1]`, e.calls))
}

// write writes the traces of all ranks to a new folder, and returns it. Profilers start at different times,
// so each trace begins with a collective in which ranks wait for the last one to start.
func (g glooJob) write(t testing.TB) string {
	t.Helper()
	rng := rand.New(rand.NewPCG(g.Seed, 11))
	ranks := make([]glooEvents, g.Ranks)
	free := make([]int64, g.Ranks) // when each rank starts its next step
	g.done = make([]int64, g.Ranks)
	const begin = 100_000_000_000
	for r := range ranks {
		e := &ranks[r]
		if e.pid = 700 + r; g.Ahead != nil {
			e.ahead = g.Ahead[r]
		}
		free[r] = begin + int64((r*7)%g.Ranks)*90_000_000
	}
	for step := range g.Steps {
		last, batch := int64(0), rng.Int64N(1_500_000) // batch is the extra compute that all ranks share in this step, in ns
		enter := make([]int64, g.Ranks)
		for r := range ranks {
			enter[r] = ranks[r].work(&g, rng, r, step, free[r], batch)
			last = max(last, enter[r], g.done[r])
		}
		for r := range ranks {
			e := &ranks[r]
			leave := last + 800_000 + rng.Int64N(120_000)
			e.add("user_annotation", g.Op, e.pid, 9000+step%2, enter[r], leave-enter[r], `"External id": 1`)
			if g.OnDevice {
				e.calls++
				e.add("cuda_runtime", "cudaStreamSynchronize", e.pid, 9000+step%2, enter[r]+15_000, max(5_000, g.done[r]-enter[r]-15_000), fmt.Sprintf(`"cbid": 131, "correlation": %d`, e.calls))
			}
			if g.GoesOn {
				e.kernel("elementwise", enter[r]+40_000, enter[r]+50_000, 20_000)
			}
			free[r] = leave + 30_000
		}
	}
	dir := t.TempDir()
	all := "[0"
	for r := 1; r < g.Ranks; r++ {
		all += fmt.Sprintf(", %d", r)
	}
	all += "]"
	for r := range ranks {
		text := fmt.Sprintf(`{"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "NVIDIA H200", "numSms": 132}], "distributedInfo": {"backend": "gloo", "rank": %d, "world_size": %d,
"pg_config": [{"pg_name": "0", "backend_config": "cuda:nccl", "pg_size": 1, "ranks": [%d]}, {"pg_name": "1", "backend_config": "cpu:gloo,cuda:gloo", "pg_size": %d, "ranks": %s}]},
"displayTimeUnit": "ms", "baseTimeNanoseconds": 1790000000000000000, "traceEvents": [%s], "traceName": "rank%d.json"}`, r, g.Ranks, r, g.Ranks, all, bytes.TrimPrefix(ranks[r].Bytes(), []byte(",")), r)
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("rank%d.json", r)), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// work adds the work of a rank in a step before the collective, and returns when the rank enters the collective.
func (e *glooEvents) work(g *glooJob, rng *rand.Rand, rank, step int, at, batch int64) int64 {
	from := at
	late := int64(0)
	if rank == g.Late && step >= g.Since {
		late = g.LateNs
	}
	compute := 1_500_000 + batch + rng.Int64N(400_000)
	e.add("cpu_op", "aten::mm", e.pid, e.pid, at, 20_000, `"External id": 2`)
	e.kernel("gemm", at+5_000, at+15_000, compute)
	end := at + 15_000 + compute
	if late > 0 && !g.OnHost {
		e.kernel("large_gemm", at+25_000, end+1_000, late)
		end += 1_000 + late
	}
	if g.OnDevice {
		g.done[rank], at = end, at+100_000
	} else {
		e.call("cudaDeviceSynchronize", at+40_000, end-at-40_000)
		at = end + 20_000
	}
	if g.OnHost {
		at += late
	}
	e.add("user_annotation", "step[DECODE bs=8]", e.pid, e.pid, from, at-from, `"External id": 3`)
	e.add("cpu_op", "c10d::allreduce_", e.pid, e.pid, at, 30_000, `"External id": 4`)
	return at + 60_000
}

package torch

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/sgtrace/sgtrace/golden/simulator"
)

// gpuRows is the number of GPUs for which libkineto writes metadata, present or not.
const gpuRows = 16

// header writes everything before the events.
func (c *Capture) header(t *writer) {
	rng := rand.New(rand.NewPCG(c.config().Seed, simulator.StreamTorch|uint64(c.Process().PID)<<24|uint64(c.Process().Host)<<40|1<<23))
	t.text("{\n  \"schemaVersion\": 1,\n  \"deviceProperties\": [")
	in := c.instance()
	for id := range min(c.run().Config.SchedulersPerHost(in.Ranks()), in.Ranks()) {
		if id > 0 {
			t.text(",")
		}
		t.text(fmt.Sprintf(deviceProperties, id))
	}
	t.text("\n  ],\n  \"cupti_version\": 26,\n  \"cuda_runtime_version\": 12090,\n  \"cuda_driver_version\": 12090,\n")
	if c.config().Shapes {
		t.text("  \"record_shapes\": 1,\n")
	}
	if c.config().Stacks > 0 {
		t.text("  \"with_stack\": 1,\n")
	}
	t.text(`  "trace_id": "` + strings.ToUpper(simulator.HexDigits(rng, 32)) + "\",\n").
		text(`  "distributedInfo": ` + c.distributed() + ",\n")
	if c.config().RecordHost {
		t.text(`  "host_name": "` + c.run().Hosts[c.Process().Host].Name + "\",\n")
	}
	t.text("  \"displayTimeUnit\": \"ms\",\n  \"baseTimeNanoseconds\": ").integer(t.base).text(",\n  \"traceEvents\": [\n")
}

// deviceProperties is a GPU of the deployment.
const deviceProperties = `
    {
      "id": %d, "name": "NVIDIA H100 80GB HBM3", "totalGlobalMem": 85017493504,
      "computeMajor": 9, "computeMinor": 0,
      "maxThreadsPerBlock": 1024, "maxThreadsPerMultiprocessor": 2048,
      "regsPerBlock": 65536, "warpSize": 32,
      "sharedMemPerBlock": 49152, "numSms": 132,
      "regsPerMultiprocessor": 65536, "sharedMemPerBlockOptin": 232448, "sharedMemPerMultiprocessor": 233472
    }`

// distributed returns torch.distributed's description of the rank: its world, which is that of one DP rank, and its process
// groups.
func (c *Capture) distributed() string {
	size := c.Group.Size
	world := size.TP * size.PP
	var groups []string
	add := func(name int, description, backend string, from, n int) {
		all := make([]string, n)
		for i := range all {
			all[i] = fmt.Sprint(from + i)
		}
		groups = append(groups, fmt.Sprintf(`{"pg_name": "%d", "pg_desc": "%s", "backend_config": "%s", "pg_size": %d, "ranks": [%s]}`,
			name, description, backend, n, strings.Join(all, ", ")))
	}
	add(0, "default_pg", "cuda:nccl", 0, world)
	add(1, "undefined", "cuda:nccl", 0, world)
	add(2, "undefined", "cpu:gloo,cuda:gloo", 0, world)
	add(c.Group.groupName(), "undefined", "cuda:nccl", c.Group.PP*size.TP, size.TP)
	add(c.Group.groupName()+1, "undefined", "cpu:gloo,cuda:gloo", c.Group.PP*size.TP, size.TP)
	return fmt.Sprintf(`{"backend": "nccl", "rank": %d, "world_size": %d, "pg_count": %d, "pg_config": [%s], "nccl_version": "2.27.7"}`,
		c.worldRank(), world, len(groups), strings.Join(groups, ", "))
}

// trailer writes the names of the rows, the recording as a whole, and the end.
func (c *Capture) trailer(t *writer, from, to int64) {
	for _, stream := range []int{ComputeStream, CommStream, CopyStream} {
		t.metadata("thread_name", "name", fmt.Sprintf("stream %d ", stream), t.gpu, stream, from)
		t.metadata("thread_sort_index", "sort_index", stream, t.gpu, stream, from)
	}
	t.metadata("thread_name", "name", fmt.Sprintf("thread %d (python3)", t.pid), t.pid, t.pid, from)
	t.metadata("thread_sort_index", "sort_index", t.pid, t.pid, t.pid, from)
	c.processRow(t, t.pid, "CPU", t.pid, from)
	for gpu := range gpuRows {
		c.processRow(t, gpu, fmt.Sprintf("GPU %d", gpu), 5_000_000+gpu, from)
	}
	t.counts[catTrace]++
	t.text("  {\n    \"ph\": \"X\", \"cat\": \"Trace\", \"ts\": ").time(from).text(`, "dur": `).
		micros(t.shown(to) - t.shown(from)).
		text(",\n    \"pid\": \"Spans\", \"tid\": \"PyTorch Profiler\",\n    \"name\": \"PyTorch Profiler (0)\",\n    \"args\": {\n      \"Op count\": 0")
	t.end()
	t.counts[catMetadata]++
	t.text("  {\n    \"name\": \"process_sort_index\", \"ph\": \"M\", \"ts\": ").time(from).
		text(", \"pid\": \"Spans\", \"tid\": 0,\n    \"args\": {\n      \"sort_index\": 536870912")
	t.end()
	t.counts[catInstant] += 2
	t.text("  {\n    \"name\": \"Iteration Start: PyTorch Profiler\", \"ph\": \"i\", \"s\": \"g\",\n    \"pid\": \"Traces\", \"tid\": \"Trace PyTorch Profiler\", \"ts\": ").
		time(from).
		text("\n  },\n  {\n    \"name\": \"Record Window End\", \"ph\": \"i\", \"s\": \"g\",\n    \"pid\": \"\", \"tid\": \"\", \"ts\": ").
		time(to).text("\n  }\n  ],\n  \"traceName\": \"/tmp/tmp" + strings.TrimSuffix(c.name(), ".gz") + "\"\n}\n")
}

// processRow writes the metadata of a process, or of a GPU, which counts as one.
func (c *Capture) processRow(t *writer, pid int, label string, sort int, at int64) {
	t.metadata("process_name", "name", c.Title(), pid, 0, at)
	t.metadata("process_labels", "labels", label, pid, 0, at)
	t.metadata("process_sort_index", "sort_index", sort, pid, 0, at)
}

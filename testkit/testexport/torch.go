package testexport

import (
	"encoding/json"
	"fmt"
	"os"
)

// WriteTorch writes one rank of a run as PyTorch's profiler would have recorded it at the same time: in
// Unix time, with numbers of calls of its own, and without ranges of roctx. Of the run, it has what
// began from step from on.
func (r *ROCm) WriteTorch(path string, rank, from int) error {
	type m = map[string]any
	p := r.Ranks[rank]
	begin := p.Ranges[from].Start
	at := func(ns int64) json.RawMessage {
		ns -= p.Begin
		return json.RawMessage(fmt.Sprintf("%d.%03d", ns/1000, ns%1000))
	}
	lasts := func(start, end int64) json.RawMessage {
		return json.RawMessage(fmt.Sprintf("%d.%03d", (end-start)/1000, (end-start)%1000))
	}
	var events []any
	add := func(category, name string, pid, tid int, start, end int64, args m) {
		if start >= begin {
			events = append(events, m{"ph": "X", "cat": category, "name": name, "pid": pid, "tid": tid, "ts": at(start), "dur": lasts(start, end), "args": args})
		}
	}
	const apart = 7000 // between numbers of calls of both profilers
	for i, c := range p.Calls {
		add("cuda_runtime", c.Name, p.PID, p.PID, c.Start+300, c.End-200, m{"correlation": apart + i}) // its own clock readings
	}
	for _, k := range p.Kernels {
		add("kernel", k.Name, rank, k.Stream, k.Start, k.End, m{"device": rank, "stream": k.Stream, "correlation": apart + k.Call,
			"grid": []int{k.Blocks, 1, 1}, "block": []int{256, 1, 1}})
	}
	for _, c := range p.Copies {
		name := "Memcpy HtoD (Host -> Device)"
		if c.Back {
			name = "Memcpy DtoH (Device -> Host)"
		}
		add("gpu_memcpy", name, rank, c.Stream, c.Start, c.End, m{"device": rank, "stream": c.Stream, "correlation": apart + c.Call, "bytes": c.Bytes})
	}
	events = append(events, m{"ph": "M", "name": "process_name", "pid": p.PID, "tid": 0, "ts": 0, "args": m{"name": "python"}})
	data, err := json.Marshal(m{"schemaVersion": 1, "deviceProperties": []any{m{"id": rank, "name": "AMD Instinct MI350X"}},
		"distributedInfo":     m{"backend": "nccl", "rank": rank, "world_size": len(r.Ranks)},
		"baseTimeNanoseconds": p.Begin + r.Booted, "traceEvents": events})
	if err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o644)
}

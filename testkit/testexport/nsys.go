// Package testexport makes the output of GPU profilers, for tests: sets of Nsight Systems exports, and with [ROCm]
// recordings of a server by AMD's profilers: the same kernels, copies, calls, and ranges as a rocpd database, as an RPD
// trace, and as JSON and Perfetto trace of rocprofv3. Tables have the columns of schema 3.0.0 of rocpd and of version 2 of
// RPD. It is not part of testset because it links SQLite and Parquet into a test binary, which doubles the time of linking.
package testexport

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/sgtrace/sgtrace/golden/nsys"
	"github.com/sgtrace/sgtrace/golden/torch"
	"github.com/sgtrace/sgtrace/nsysexport"
	"github.com/sgtrace/sgtrace/nsysexport/rows"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/testkit/testset"
	"github.com/sgtrace/sgtrace/trace"
)

// Set makes a set from an export, with a rank for every process.
func Set(t testing.TB, path string) *profile.Set {
	t.Helper()
	set := &profile.Set{Syms: trace.NewSymbols()}
	src, err := rows.Open(path, rows.Options{Syms: set.Syms, Brief: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { src.Close() })
	ranks := map[int32]int32{}
	s := nsysexport.NewStream(src, func(pid int32) int32 {
		rank, ok := ranks[pid]
		if !ok {
			rank = int32(len(ranks))
			ranks[pid] = rank
			set.Ranks = append(set.Ranks, strconv.Itoa(int(pid)))
		}
		return rank
	})
	// Reports need all ranks before they walk over the rows.
	s.Kernels(func(*profile.Kernel) bool { return true })
	s.Copies(func(*profile.Copy) bool { return true })
	s.Calls(func(*profile.Call) bool { return true })
	s.Ranges(func(*profile.Range) bool { return true })
	set.Streams = []profile.Stream{s}
	return set
}

// Stalled is like testset.Stalled, as recorded by Nsight Systems.
func Stalled(t testing.TB, seed uint64, stall torch.Stall) *profile.Set {
	t.Helper()
	run := testset.SmallServer(t, seed)
	recording := nsys.DefaultConfig(run)
	recording.MetricHz, recording.Torch.Layers, recording.Torch.Stall = 0, 4, stall
	dir := t.TempDir()
	truth, err := nsys.WriteDir(dir, run, recording)
	if err != nil {
		t.Fatal(err)
	}
	set := Set(t, filepath.Join(dir, "nsys", truth.Files[0].Name))
	set.Exports = true
	return set
}

// WriteTorch writes one rank of a run as PyTorch's profiler would have recorded it at the same time: in Unix time, with its
// own numbers of calls, and without ranges of roctx. It only contains events that began from step from on.
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
	const apart = 7000 // between the numbers of calls in the two profilers
	for i, c := range p.Calls {
		add("cuda_runtime", c.Name, p.PID, p.PID, c.Start+300, c.End-200, m{"correlation": apart + i}) // read the clock on its own
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

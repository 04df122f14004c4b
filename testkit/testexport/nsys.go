// Package testexport makes what profilers of GPUs leave, for tests: sets of Nsight Systems exports, and with
// [ROCm] what AMD's would have recorded of a server: the same kernels, copies, calls and ranges as a rocpd
// database, as an RPD trace, and as JSON and Perfetto trace of rocprofv3. Tables have the columns of
// schema 3.0.0 of rocpd and of version 2 of RPD. It is not part of
// testset because it brings SQLite and Parquet into a test binary, which double the time
// that it takes to link one.
package testexport

import (
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

// Set makes a set of an export, with a rank for every process.
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
	// Reports want to know all ranks before they walk over the rows.
	s.Kernels(func(*profile.Kernel) bool { return true })
	s.Copies(func(*profile.Copy) bool { return true })
	s.Calls(func(*profile.Call) bool { return true })
	s.Ranges(func(*profile.Range) bool { return true })
	set.Streams = []profile.Stream{s}
	return set
}

// Stalled is like testset.Stalled, as Nsight Systems records it.
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

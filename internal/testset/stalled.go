package testset

import (
	"path/filepath"
	"testing"

	"github.com/sgtrace/sgtrace/golden/nsys"
	"github.com/sgtrace/sgtrace/golden/simulator"
	"github.com/sgtrace/sgtrace/golden/torch"
	"github.com/sgtrace/sgtrace/profile"
)

// Stalled returns the trace of the one rank of a simulated server that stalls.
func Stalled(t testing.TB, seed uint64, stall torch.Stall) *profile.Set {
	t.Helper()
	run := smallServer(t, seed)
	recording := torch.DefaultConfig(run)
	recording.Layers, recording.Stacks, recording.Shapes, recording.Stall = 4, 3, false, stall
	dir := t.TempDir()
	if _, err := torch.WriteDir(dir, run, recording); err != nil {
		t.Fatal(err)
	}
	paths, _ := filepath.Glob(filepath.Join(dir, "torch", "*TP-0*"))
	set, _ := TorchSet(t, paths...)
	return set
}

// StalledExport is like Stalled, as Nsight Systems records it.
func StalledExport(t testing.TB, seed uint64, stall torch.Stall) *profile.Set {
	t.Helper()
	run := smallServer(t, seed)
	recording := nsys.DefaultConfig(run)
	recording.MetricHz, recording.Torch.Layers, recording.Torch.Stall = 0, 4, stall
	dir := t.TempDir()
	truth, err := nsys.WriteDir(dir, run, recording)
	if err != nil {
		t.Fatal(err)
	}
	set := NsysSet(t, filepath.Join(dir, "nsys", truth.Files[0].Name))
	set.Exports = true
	return set
}

// smallServer runs a server of one rank.
func smallServer(t testing.TB, seed uint64) *simulator.Run {
	t.Helper()
	config := simulator.DefaultConfig(seed)
	config.Mode, config.Unified = simulator.Unified, simulator.Parallel{TP: 1, PP: 1, DP: 1}
	config.Straggler = simulator.Straggler{}
	run, err := simulator.Play(config)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

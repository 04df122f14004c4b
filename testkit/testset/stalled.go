package testset

import (
	"path/filepath"
	"testing"

	"github.com/sgtrace/sgtrace/golden/simulator"
	"github.com/sgtrace/sgtrace/golden/torch"
	"github.com/sgtrace/sgtrace/profile"
)

// Stalled returns the trace of the one rank of a simulated server that stalls.
func Stalled(t testing.TB, seed uint64, stall torch.Stall) *profile.Set {
	t.Helper()
	run := SmallServer(t, seed)
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

// SmallServer runs a server of one rank.
func SmallServer(t testing.TB, seed uint64) *simulator.Run {
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

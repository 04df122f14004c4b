package testexport

import (
	"path/filepath"
	"testing"

	"github.com/sgtrace/sgtrace/golden/nsys"
	"github.com/sgtrace/sgtrace/golden/torch"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/testkit/testset"
)

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

package diff

import (
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/sgtrace/sgtrace/analyze/diff/compare"
	"github.com/sgtrace/sgtrace/golden/simulator"
	"github.com/sgtrace/sgtrace/golden/torch"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/profile/kernelname"
	"github.com/sgtrace/sgtrace/testkit/testset"
)

// recordServer simulates a server of four ranks, and returns what PyTorch's profiler
// records in two seconds. TP3 is slower by a factor.
func recordServer(t *testing.T, seed uint64, factor float64) *profile.Set {
	t.Helper()
	config := simulator.DefaultConfig(seed)
	config.Mode, config.Unified, config.RanksPerHost = simulator.Unified, simulator.Parallel{TP: 4, PP: 1, DP: 1}, 4
	config.Incident = simulator.Incident{Onset: config.Incident.Onset}
	config.Straggler = simulator.Straggler{TP: 3, Factor: factor}
	config.Rate = 6
	run, err := simulator.Play(config)
	if err != nil {
		t.Fatal(err)
	}
	recording := torch.DefaultConfig(run)
	recording.To, recording.Layers, recording.Stacks, recording.Shapes, recording.Gzip = recording.From+2*time.Second, 4, 0, false, false
	dir := t.TempDir()
	if _, err := torch.WriteDir(dir, run, recording); err != nil {
		t.Fatal(err)
	}
	paths, _ := filepath.Glob(filepath.Join(dir, "torch", "*TP-*"))
	set, _ := testset.TorchSet(t, paths...)
	return set
}

// Two recordings of one server do not differ. A rank that computes slower is found
// by its own kernels, and by the collectives of the others, which wait for it.
func TestDiffOfSimulatedProfiles(t *testing.T) {
	const pairs = 3
	for seed := range uint64(pairs) {
		before := collect(Capture{Profiles: recordServer(t, seed, 1), Operators: true, Gaps: true})
		same := collect(Capture{Profiles: recordServer(t, seed+100, 1), Operators: true, Gaps: true})
		for _, byRank := range []bool{false, true} {
			d := Compare(before, same, Options{ByRank: byRank})
			if d.per != perServerStep || d.Before.StepPieces != compare.MaxPieces || len(d.Rows) < 10 || len(d.Operators) < 10 || len(d.Gaps) == 0 {
				t.Fatalf("%d rows by %v, %d pieces", len(d.Rows), d.per, d.Before.StepPieces)
			}
			for _, r := range slices.Concat(d.Rows, d.Operators, d.Gaps) {
				if r.Changed() {
					t.Errorf("seed %d: %v %s %s changed: %+v %+v", seed, r.Kind, r.Name, r.Rank, r.Before, r.After)
				}
			}
		}
		d := Compare(before, collect(Capture{Profiles: recordServer(t, seed+200, 1.2)}), Options{ByRank: true})
		waits := func(rank string, longer bool) bool {
			return slices.ContainsFunc(d.Rows, func(r Row) bool {
				return r.Rank == rank && r.Mean.Matters() && r.Mean.Change.Ratio > 1 == longer && kernelname.IsCommunication(r.Name)
			})
		}
		if !waits("0", true) || waits("3", true) || !d.Rows[0].Changed() {
			t.Errorf("seed %d: %s", seed, d.verdict)
		}
	}
}

package collective_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/collective"
	"github.com/sgtrace/sgtrace/golden/simulator"
	"github.com/sgtrace/sgtrace/golden/torch"
	"github.com/sgtrace/sgtrace/testkit/testinput"
)

// allReduceKernels are the kernels with which servers reduce through peer memory, without NCCL.
var allReduceKernels = []string{
	"void sglang::cross_device_reduce_1stage<__nv_bfloat16, 8, 512>(sglang::RankData*, sglang::RankSignals)",
	"_ZN5aiter26cross_device_reduce_1stageIDF16bLi8EEEvPNS_8RankDataENS_11RankSignalsE",
	"void flashinfer::trtllm_allreduce_fusion::allreduce_fusion_kernel_oneshot_lamport<0, __nv_bfloat16, 8>(AllReduceFusionParams)",
	"void quickreduce::allreduce_prototype_twoshot<quickreduce::AllReduceTwoshot>(__hip_bfloat16 const*)",
	"void multimem_one_shot_all_reduce_kernel<c10::BFloat16, 16>(c10::BFloat16*)",
	"void mori::moe::EpDispatchIntraNodeKernel<__hip_bfloat16>(mori::moe::EpDispatchArgs)",
}

// Ranks that reduce without NCCL, and without any metadata, meet as often and wait as long as with NCCL.
func TestWaitsWithoutNCCL(t *testing.T) {
	config := simulator.DefaultConfig(3)
	config.Mode, config.Requests = simulator.Unified, 100
	config.Unified = simulator.Parallel{TP: 4, PP: 1, DP: 1}
	run, err := simulator.Play(config)
	if err != nil {
		t.Fatal(err)
	}
	c := torch.DefaultConfig(run)
	c.Stacks, c.Shapes, c.Layers, c.Gzip, c.WithSeq, c.Graphs, c.RecordHost = 0, false, 6, false, false, true, false
	dir := t.TempDir()
	truth, err := torch.WriteDir(dir, run, c)
	if err != nil {
		t.Fatal(err)
	}
	for _, kernel := range allReduceKernels {
		renamed := rewritten(t, filepath.Join(dir, "torch"), strings.NewReplacer(
			"ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", kernel,
			`"Collective name"`, `"a"`, `"Process Group Name"`, `"b"`, `"Process Group Ranks"`, `"c"`))
		t.Run(kernel, func(t *testing.T) {
			compareWaits(t, &tracedRun{readTraces(t, renamed), truth}, false)
		})
	}
}

// rewritten copies the files of a folder with words replaced.
func rewritten(t *testing.T, dir string, words *strings.Replacer) string {
	t.Helper()
	to := t.TempDir()
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		text, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(to, f.Name()), []byte(words.Replace(string(text))), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return to
}

// The only public set with all ranks of one run agrees with TraceLens. Its
// all-to-alls are SendRecv kernels, which annotations explain.
func TestCollectivesOfDLRM(t *testing.T) {
	set := readTraces(t, testinput.Shared(t, "data", "reality", "dlrm"))
	got := collective.Measure(set, 0, 0)
	last := []int{0, 0, 0, 0, 1, 2, 0, 5}
	wait := []int64{5580, 11125, 3280, 9571, 6370, 6041, 3342, 1534} // us
	kernels := 0
	for range set.Parts() {
		kernels++
	}
	if len(got.Ranks) != len(last) || kernels != 64 {
		t.Fatalf("%d ranks, %d kernels", len(got.Ranks), kernels)
	}
	for i, r := range got.Ranks {
		if r.Sync != 8 || r.Last != last[i] || r.Wait != 1000*wait[i] {
			t.Errorf("%s: %d collectives, last in %d, waited %d ns; want 8, %d, %d us", r.Rank, r.Sync, r.Last, r.Wait, last[i], wait[i])
		}
	}
	var kinds []string
	for _, k := range got.Kinds {
		kinds = append(kinds, k.Name())
	}
	if !slices.Equal(kinds, []string{"all_to_all", "all_reduce"}) {
		t.Errorf("kinds %q", kinds)
	}
	for _, p := range got.Parts {
		if p.Alone > 0 {
			t.Errorf("%s: %d of %d %s are alone", p.Rank, p.Alone, p.Took.N, p.Name())
		}
	}
}

package finders

import (
	"testing"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/metric"
	"github.com/sgtrace/sgtrace/analyze/overtime"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// Sentences call devices by their vendor's name if the calls identify the vendor.
func TestWordsOfDevices(t *testing.T) {
	const text = "the 8 GPUs wait: CUDA graphs help (TP0 GPU 0), 3 of `GPUTask`; [CUDA memcpy Host-to-Device]"
	for _, c := range []struct {
		calls             []string
		text, basis, what string
		devices           []string
	}{
		{devices: []string{"AMD Instinct MI300X", ""}, text: "the 8 GPUs wait: HIP graphs help (TP0 GPU 0), 3 of `GPUTask`; [memcpy Host-to-Device]", basis: "GPU time", what: "kernels that the GPU starts late"},
		{devices: []string{"AMD Instinct MI300X", "NVIDIA H100"}, calls: []string{"cuLaunchKernel"}, text: text, what: "kernels that the GPU starts late"},
		{devices: []string{"AMD Instinct MI300X", "Ascend910B"}, text: text, what: "kernels that the GPU starts late"},
		{devices: []string{"NVIDIA H100"}, text: text, what: "kernels that the GPU starts late"},
		{calls: []string{"urEnqueueKernelLaunchWithArgsExp"}, text: "the 8 GPUs wait: SYCL graphs help (TP0 GPU 0), 3 of `GPUTask`; [memcpy Host-to-Device]", basis: "GPU time", what: "kernels that the GPU starts late"},
		{[]string{"cudaLaunchKernel"}, text, "", "kernels that the GPU starts late", nil},
		{[]string{"hipModuleLaunchKernel"}, "the 8 GPUs wait: HIP graphs help (TP0 GPU 0), 3 of `GPUTask`; [memcpy Host-to-Device]", "GPU time", "kernels that the GPU starts late", nil},
		{[]string{"AscendCL@aclnnAdd", "mtia_runtime"}, "the 8 NPUs wait: NPU graphs help (TP0 NPU 0), 3 of `GPUTask`; [memcpy Host-to-Device]", "NPU time", "kernels that the NPU starts late", nil},
		{[]string{"runFunction - job_prep_and_submit_for_execution", "privateuse1_runtime"}, "the 8 accelerators wait: graphs help (TP0 accelerator 0), 3 of `GPUTask`; [memcpy Host-to-Device]", "accelerator time", "kernels that the accelerator starts late", nil},
		{[]string{"AscendCL@aclnnAdd", "hipGraphLaunch"}, text, "", "kernels that the GPU starts late", nil},
		{[]string{"hipGraphLaunch", "cuLaunchKernel"}, text, "", "kernels that the GPU starts late", nil},
	} {
		m := &Measured{Of: Inputs{Profiles: &profile.Set{Syms: trace.NewSymbols(), GPUs: c.devices}}}
		for _, call := range c.calls {
			m.Of.Profiles.Syms.Intern(call)
		}
		f := finding.Finding{Text: text, CostBasis: finding.GPUTime, Evidence: []finding.Evidence{finding.Sentence("%s", text)}}
		r := Result{Findings: []finding.Finding{f}, Checks: []FinderCheck{{Check: finding.Check{What: "kernels that the GPU starts late"}}}}
		m.callThem(&r)
		if got := &r.Findings[0]; got.Text != c.text || got.Evidence[0].Text != c.text || got.BasisText != c.basis || r.Checks[0].Check.What != c.what {
			t.Errorf("%v: %+v of %s, want %s", c.calls, got, r.Checks[0].Check.What, c.text)
		}
		if f.Evidence[0].Text != text {
			t.Error("evidence that others hold changed")
		}
	}
}

// A change on devices at the time when a rank becomes late is evidence of its lateness. A rise in
// communication is evidence of exposed communication, and slower copies of exposed copies.
func TestChangesOfDevicesAreEvidence(t *testing.T) {
	late := func(since trace.Time, text string) finding.Finding {
		return finding.Finding{Kind: finding.Straggler, At: rankAt(request.Other, "", 1, -1), Since: since, Text: text, Cost: 0.1}
	}
	pace := finding.Finding{Kind: finding.Change, Subkind: overtime.PaceSubkind, At: rankAt(request.Other, "", 1, -1), Since: 50e9, Text: "longer", Brief: "since 50, longer", Cost: 0.02}
	more := finding.Finding{Kind: finding.Change, Subkind: metric.ExposedComm.Long, Since: 50e9, Text: "more", Brief: "since 50, more", Cost: 0.02}
	exposed := finding.Finding{Kind: finding.GPU, Subkind: "communication", Text: "exposed", Cost: 0.3}
	copying := finding.Finding{Kind: finding.GPU, Subkind: "copies", Text: "copying", Cost: 0.3}
	stages := func(slowest int16) finding.Finding {
		return finding.Finding{Kind: finding.GPU, Subkind: pipelineSubkind, At: rankAt(request.Other, "", slowest, -1), Text: "stages wait", Cost: 0.3}
	}
	slower := finding.Finding{Kind: finding.Change, Subkind: overtime.CopySubkind, Since: 50e9, Text: "slow", Brief: "since 50, slower", Cost: 0.1}
	for _, c := range []struct {
		found []finding.Finding
		want  []string
	}{
		{[]finding.Finding{late(51e9, "compute-bound"), pace}, []string{"compute-bound; since 50, longer"}},
		{[]finding.Finding{late(51e9, "host-bound"), pace}, []string{"host-bound", "longer"}},
		{[]finding.Finding{late(20e9, "compute-bound"), pace}, []string{"compute-bound", "longer"}},
		{[]finding.Finding{late(0, "compute-bound"), more}, []string{"compute-bound", "more"}},
		{[]finding.Finding{late(50e9, "compute-bound"), more}, []string{"compute-bound; since 50, more"}},
		{[]finding.Finding{exposed, more}, []string{"exposed; since 50, more"}},
		{[]finding.Finding{exposed, pace}, []string{"exposed", "longer"}},
		{[]finding.Finding{copying, slower}, []string{"copying; since 50, slower"}},
		{[]finding.Finding{exposed, slower}, []string{"exposed", "slow"}},
		{[]finding.Finding{stages(1), pace}, []string{"longer"}},
		{[]finding.Finding{stages(2), pace}, []string{"stages wait", "longer"}},
	} {
		var got []string
		for _, f := range finding.Merge(c.found, consequences) {
			got = append(got, f.Text)
		}
		if len(got) != len(c.want) || got[0] != c.want[0] || got[len(got)-1] != c.want[len(got)-1] {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

package finders

import (
	"testing"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/profile"
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

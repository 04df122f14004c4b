package gpu

import (
	"testing"

	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/testkit/testset"
	"github.com/sgtrace/sgtrace/trace"
)

// Python frames show that code is being compiled if nothing else does. Frames that only run compiled code do not count.
func TestCompilingInPython(t *testing.T) {
	for name, want := range map[string]bool{
		"torch/_dynamo/convert_frame.py(1042): _compile":                                  true,
		"/usr/lib/python3.12/site-packages/torch/_dynamo/convert_frame.py(553): __call__": true,
		"torch/_dynamo/eval_frame.py(574): _fn":                                           false,
		"torch/_inductor/output_code.py(466): __call__":                                   false,
		"torch/_inductor/compile_fx.py(1213): run":                                        false,
		"torch/_inductor/runtime/triton_heuristics.py(1078): run":                         false,
		"torch/_inductor/runtime/triton_heuristics.py(900): benchmark_all_configs":        true,
		"triton/runtime/jit.py(330): run":                                                 false,
		"triton/compiler/compiler.py(226): compile":                                       true,
		"re.py(250): compile":                                                             false,
		"torch/utils/cpp_extension.py(2100): _run_ninja_build":                            true,
		"<built-in function compile>":                                                     false,
	} {
		syms, s := trace.NewSymbols(), &testset.RowStream{}
		event := func(name string, from, to, correlation int64) profile.Event {
			return profile.Event{Start: trace.Time(from), End: trace.Time(to), Correlation: correlation, Name: syms.Intern(name), PID: 1}
		}
		for i, at := range []int64{0, 9_000_000} {
			s.CallRows = append(s.CallRows, profile.Call{Event: event("cudaLaunchKernel", at, at+10, int64(i+1)), TID: 1})
			s.KernelRows = append(s.KernelRows, profile.Kernel{Event: event("gemm", at+20, at+1020, int64(i+1))})
		}
		s.FrameRows = []profile.Frame{{Event: event(name, 2_000_000, 8_000_000, 0), TID: 1, Kind: profile.PythonFrame}}
		cold := int64(0)
		if want {
			cold = 6_000_000
		}
		if got := Measure(testset.SetOf(syms, []string{"TP0"}, s), Options{}).GPUs[0].Cold.Time[Compiling]; got != cold {
			t.Errorf("%s: compiles for %d ns, want %d", name, got, cold)
		}
	}
}

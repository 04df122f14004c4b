package gpu

import (
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// compilers are functions of Python in which code is compiled, or tuned, and nothing else is done:
// those that run what was compiled are not among them. No functions are all of the file.
var compilers = []struct {
	file      string
	functions []string
}{
	{"torch/_dynamo/convert_frame.py", nil}, // asked about code that is in no cache
	{"torch/_inductor/compile_fx.py", []string{"compile_fx", "compile_fx_inner", "_compile_fx_inner", "fx_codegen_and_compile", "codegen_and_compile"}},
	{"torch/_inductor/select_algorithm.py", nil},
	{"triton_heuristics.py", []string{"precompile", "_precompile_config", "benchmark_all_configs", "autotune_to_one_config", "coordinate_descent_tuning"}},
	{"triton/compiler/compiler.py", []string{"compile"}},
	{"triton/runtime/jit.py", []string{"_do_compile"}},
	{"triton/runtime/autotuner.py", []string{"_bench"}},
	{"torch/utils/cpp_extension.py", []string{"_jit_compile", "_write_ninja_file_and_build_library", "_run_ninja_build"}},
	{"torch/jit/_trace.py", []string{"trace", "trace_module"}},
	{"torch/jit/_script.py", []string{"script"}},
	{"flashinfer/jit/core.py", []string{"build", "build_and_load"}},
	{"flashinfer/jit/cpp_ext.py", []string{"run_ninja"}},
	{"deep_gemm/jit/compiler.py", []string{"build"}},
	{"numba/core/dispatcher.py", []string{"_compile_for_args", "compile"}},
	{"tilelang/jit/kernel.py", []string{"_compile_and_create_adapter"}},
}

// compilesFrame reports whether code is compiled in a function of Python:
// "torch/_dynamo/convert_frame.py(1042): _compile".
func compilesFrame(name string) bool {
	file, rest, ok := strings.Cut(name, ".py(")
	_, function, isFunction := strings.Cut(rest, "): ")
	if !ok || !isFunction {
		return false
	}
	file += ".py"
	for _, c := range compilers {
		if strings.HasSuffix(file, c.file) && (c.functions == nil || slices.Contains(c.functions, function)) {
			return true
		}
	}
	return false
}

// compiledFrames returns the names of functions of Python in which code is compiled; nil is none.
func compiledFrames(syms *trace.Symbols) map[trace.Sym]bool {
	var found map[trace.Sym]bool
	for sym, name := range syms.Names() {
		if compilesFrame(name) {
			if found == nil {
				found = map[trace.Sym]bool{}
			}
			found[trace.Sym(sym)] = true
		}
	}
	return found
}

// addFrame adds what a thread does in Python, if that is compiling.
func (w *gpuWalk) addFrame(f *profile.Frame) bool {
	if f.Kind == profile.PythonFrame && w.compilers[f.Name] && w.opt.keeps(&f.Event) {
		rank := w.ranks.At(f.Rank)
		rank.host.calls = append(rank.host.calls, HostCall{Start: f.Start, End: f.Start + trace.Time(f.Dur()), TID: f.TID, PID: f.PID, reason: Compiling})
	}
	return true
}

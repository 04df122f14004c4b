package profile

import (
	"strings"

	"github.com/sgtrace/sgtrace/profile/kernelname"
	"github.com/sgtrace/sgtrace/trace"
)

// BareName returns the part of an event's name that all profilers agree about.
// They write types in different ways ("4" and "(int)4"), and parameters of
// templates as what they stand for or as "T2"; so of a kernel it is the name of the
// function, without namespaces and types. Of a copy it is the direction, since they
// differ in what kind of memory they see; of a call its name.
func BareName(name string) string {
	if operation, _ := parseCopy(name); operation != name {
		return operation
	}
	if strings.HasPrefix(name, "[CUDA ") {
		return name
	}
	if bare := CallName(kernelname.Parse(name).Bare); bare != "" {
		return bare
	}
	return name
}

// CallName returns the name of a call of CUDA without the version in which its
// signature changed ("cudaGraphLaunch_v10000"), as PyTorch's profiler has it.
func CallName(name string) string {
	i := strings.LastIndex(name, "_v")
	if i <= 0 || len(name)-i < len("_v7000") {
		return name
	}
	if strings.Trim(name[i+len("_v"):], "0123456789") != "" {
		return name
	}
	return name[:i]
}

// BareNames is [BareName] for symbols.
func BareNames(syms *trace.Symbols) *trace.PerName[trace.Sym] { return trace.Renamed(syms, BareName) }

// IsWholeGraph reports whether a kernel of the given name stands for a whole CUDA graph,
// whose kernels were not recorded.
func IsWholeGraph(name string) bool { return strings.HasPrefix(name, "CUDA graph ") }

// IsCompiled reports whether a kernel, or the operator that launches it, is called as PyTorch's compiler Inductor calls
// what it compiles.
func IsCompiled(name string) bool {
	return strings.HasPrefix(name, "triton_poi_") || strings.HasPrefix(name, "triton_red_") || strings.HasPrefix(name, "triton_per_")
}

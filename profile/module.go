package profile

import (
	"strings"

	"github.com/sgtrace/sgtrace/profile/kernelname"
	"github.com/sgtrace/sgtrace/trace"
)

// ModulePrefix is the prefix of the names of module calls: "nn.Module: Linear_3" is Linear number 3, in the
// order in which PyTorch's profiler met them.
const ModulePrefix = "nn.Module: "

// ModuleClass returns the class of a module, "Linear": the numbers of modules do not show which layer of a
// model they are in. If the name is a path in a model, it returns the path: "model.layers.*.mlp". It returns ""
// if the name is not that of a module.
func ModuleClass(name string) string {
	class, ok := strings.CutPrefix(name, ModulePrefix)
	if !ok {
		return ""
	}
	if strings.Contains(class, ".") {
		parts := strings.Split(class, ".")
		for i, part := range parts {
			if isNumber(part) {
				parts[i] = "*"
			}
		}
		return strings.Join(parts, ".")
	}
	if i := strings.LastIndexByte(class, '_'); i > 0 && isNumber(class[i+1:]) {
		return class[:i]
	}
	return class
}

func isNumber(text string) bool { return text != "" && strings.Trim(text, "0123456789") == "" }

// CutModuleRange returns the name of the module in a range, with [ModulePrefix]: hooks that mark modules layer
// by layer write "{'Module': 'model.layers.3.mlp', 'TrainableParams': ...}". ok is false for other ranges.
func CutModuleRange(text string) (name string, ok bool) {
	_, rest, ok := strings.Cut(text, "{'Module': '")
	if !ok || !strings.HasPrefix(text[strings.IndexByte(text, '{'):], "{'Module'") {
		return "", false
	}
	name, _, ok = strings.Cut(rest, "'")
	return ModulePrefix + name, ok && name != ""
}

// BareName returns the part of an event's name that all profilers agree on. They write types in different ways
// ("4" and "(int)4"), and template parameters either resolved or as "T2"; so for a kernel it is the name of the
// function, without namespaces and types. For a copy it is the direction, since profilers see different kinds
// of memory; for a call, its name.
func BareName(name string) string {
	if operation, _ := parseCopy(name); operation != name {
		return operation
	}
	if strings.HasPrefix(name, "[CUDA ") || IsWholeGraph(name) {
		return name
	}
	if bare := CallName(kernelname.Parse(name).Bare); bare != "" {
		return bare
	}
	return name
}

// CallName returns the name of a call of CUDA without the version in which its signature changed
// ("cudaGraphLaunch_v10000"), as in PyTorch's profiler.
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

// IsWholeGraph reports whether a kernel with the given name stands for a whole CUDA graph, whose kernels were
// not recorded.
func IsWholeGraph(name string) bool { return strings.HasPrefix(name, "CUDA graph ") }

// IsCompiled reports whether a kernel, or the operator that launches it, has a name that PyTorch's compiler
// Inductor gives to what it compiles.
func IsCompiled(name string) bool {
	return strings.HasPrefix(name, "triton_poi_") || strings.HasPrefix(name, "triton_red_") || strings.HasPrefix(name, "triton_per_")
}

// CutOperatorRange parses a range of PyTorch's emit_nvtx that stands for an operator: "aten::mm, seq = 12,
// op_id = 7, sizes = [[8, 4096], [4096, 1024]], input_op_ids = [(3,0)]". shapes are as in [Frame], "" if they
// were not recorded. ok is false for other ranges.
func CutOperatorRange(text string) (name, shapes string, ok bool) {
	end := len(text)
	for _, key := range [...]string{", seq = ", ", op_id = ", ", sizes = "} {
		if i := strings.Index(text, key); i > 0 && i < end {
			end = i
		}
	}
	if end == len(text) {
		return "", "", false
	}
	name, rest := text[:end], text[end:]
	if _, sizes, found := strings.Cut(rest, ", sizes = "); found {
		sizes, _, _ = strings.Cut(sizes, ", input_op_ids = ")
		shapes = strings.ReplaceAll(sizes, " ", "")
	}
	return name, shapes, true
}

// OperatorRanges finds the operators, and the calls of modules, that ranges stand for. It is not safe for
// concurrent use.
type OperatorRanges struct{ names *trace.PerName[operatorRange] }

type operatorRange struct {
	name, shapes trace.Sym
	kind         FrameKind
	ok           bool
}

// NewOperatorRanges returns an empty table.
func NewOperatorRanges(syms *trace.Symbols) *OperatorRanges {
	return &OperatorRanges{trace.EachName(syms, func(name string) operatorRange { return readOperatorRange(syms, name) })}
}

// Of returns the operator, or the call of a module, that a range stands for; ok is false if there is none.
func (o *OperatorRanges) Of(r *Range) (f Frame, ok bool) {
	if r.Open || r.Style != PushPop {
		return Frame{}, false
	}
	known := o.names.Of(r.Name)
	if !known.ok {
		return Frame{}, false
	}
	f = Frame{Event: r.Event, TID: r.TID, Kind: known.kind, Shapes: known.shapes}
	f.Name = known.name
	return f, true
}

func readOperatorRange(syms *trace.Symbols, text string) (r operatorRange) {
	if name, shapes, ok := CutOperatorRange(text); ok {
		r = operatorRange{name: syms.Intern(name), kind: OperatorFrame, ok: true}
		if shapes != "" {
			r.shapes = syms.Intern(shapes)
		}
	} else if name, ok := CutModuleRange(text); ok {
		r = operatorRange{name: syms.Intern(name), kind: PythonFrame, ok: true}
	}
	return r
}

package profile

import "strings"

// ModulePrefix begins the names of calls of modules: "nn.Module: Linear_3", the third
// Linear that PyTorch's profiler met.
const ModulePrefix = "nn.Module: "

// ModuleClass returns the class of a module, "Linear": numbers of modules do not tell which
// layer of a model they are in. Of a path in a model, it has the place: "model.layers.*.mlp". It is "" if the
// name is of none.
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

// CutModuleRange returns the name of the module that a range stands for, with [ModulePrefix]: hooks that
// mark modules layer by layer write "{'Module': 'model.layers.3.mlp', 'TrainableParams': ...}". ok is false for
// other ranges.
func CutModuleRange(text string) (name string, ok bool) {
	_, rest, ok := strings.Cut(text, "{'Module': '")
	if !ok || !strings.HasPrefix(text[strings.IndexByte(text, '{'):], "{'Module'") {
		return "", false
	}
	name, _, ok = strings.Cut(rest, "'")
	return ModulePrefix + name, ok && name != ""
}

package profile

import "strings"

// ModulePrefix is what names of calls of modules begin with: "nn.Module: Linear_3", the third
// Linear that PyTorch's profiler met.
const ModulePrefix = "nn.Module: "

// ModuleClass returns the class of a module, "Linear": numbers of modules do not tell which
// layer of a model they are in. It is "" if the name is of none.
func ModuleClass(name string) string {
	class, ok := strings.CutPrefix(name, ModulePrefix)
	if !ok {
		return ""
	}
	if i := strings.LastIndexByte(class, '_'); i > 0 && i+1 < len(class) && strings.Trim(class[i+1:], "0123456789") == "" {
		return class[:i]
	}
	return class
}

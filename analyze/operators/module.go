package operators

import (
	"strings"

	"github.com/sgtrace/sgtrace/analyze/walk"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// modulePrefix is what names of calls of modules begin with: "nn.Module: Linear_3", the third
// Linear that the profiler met.
const modulePrefix = "nn.Module: "

// selectModules selects calls of modules by their class: numbers of modules do not tell which
// layer of a model they are in.
func selectModules(syms *trace.Symbols) selection {
	known := map[trace.Sym]trace.Sym{} // class by name; 0 is no module
	return func(f *profile.Frame) (trace.Sym, bool) {
		if f.Kind != profile.PythonFrame {
			return 0, false
		}
		class, ok := known[f.Name]
		if !ok {
			if name := moduleClass(syms.Name(f.Name)); name != "" {
				class = syms.Intern(name)
			}
			known[f.Name] = class
		}
		return class, class != 0
	}
}

// moduleClass returns the class of a module; "" if the name is of none.
func moduleClass(name string) string {
	class, ok := strings.CutPrefix(name, modulePrefix)
	if !ok {
		return ""
	}
	if i := strings.LastIndexByte(class, '_'); i > 0 && i+1 < len(class) && strings.Trim(class[i+1:], "0123456789") == "" {
		return class[:i]
	}
	return class
}

// sumModules makes the rows of modules.
func (o *Operators) sumModules(set *profile.Set, opt *walk.Options) {
	streams := collectAll(set, opt, selectModules, false)
	o.Modules = o.rows(set, streams, func(c class) class { return class{rank: c.rank, name: c.name} }, false)
	if o.Modules != nil {
		names := outsideNames
		names[noOperator] = "(no module)"
		o.Modules = append(o.Modules, o.othersOf(set, streams, names)...)
	}
}

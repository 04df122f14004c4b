package operators

import (
	"github.com/sgtrace/sgtrace/analyze/walk"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

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
			if name := profile.ModuleClass(syms.Name(f.Name)); name != "" {
				class = syms.Intern(name)
			}
			known[f.Name] = class
		}
		return class, class != 0
	}
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

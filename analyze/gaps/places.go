package gaps

import (
	"path"
	"regexp"
	"strings"

	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// A place is what a stack of functions says, as a profiler that interrupts threads or that
// takes the stacks of calls recorded it. Symbols are 0 where there is no such function.
type place struct {
	did      Did       // InPython or InNative
	function trace.Sym // the innermost one, if it is not frame
	frame    trace.Sym // the innermost one that is of no library
}

// places are what the stacks of one walk say, each looked at once.
type places struct {
	syms  *trace.Symbols
	known map[*profile.Stacks][]place // by stack; did is 0 if it was not looked at
}

func newPlaces(syms *trace.Symbols) *places {
	return &places{syms: syms, known: map[*profile.Stacks][]place{}}
}

func (p *places) of(s *profile.Sample) place {
	known := p.known[s.Stacks]
	if known == nil {
		known = make([]place, s.Stacks.Len()+1)
		p.known[s.Stacks] = known
	}
	if known[s.Stack].did == NotRecorded {
		known[s.Stack] = p.look(s)
	}
	return known[s.Stack]
}

func (p *places) look(s *profile.Sample) place {
	at := place{did: InNative}
	innermost := true
	for f := range s.Stacks.From(s.Stack) {
		fn := functionOf(p.syms.Name(f.Function), p.syms.Name(f.Module))
		if fn.name == "" {
			continue
		}
		name := p.syms.Intern(fn.name)
		if innermost {
			at.function, innermost = name, false
		}
		if fn.python {
			at.did = InPython
		}
		if fn.own {
			at.frame = name
			if at.function == name {
				at.function = 0
			}
			break
		}
	}
	return at
}

// A function is one of a stack that was recorded as a whole.
type function struct {
	name   string // "drand()", "run_batch() (scheduler.py)", "[libcuda.so.1]"; "" says nothing
	python bool   // of Python's interpreter, or run by it
	own    bool   // of no library
}

// functionOf tells what a symbol of a module is. Of Python's functions, the module is the file,
// or the symbol has it, as Python writes symbols for perf: "py::run_batch:/srv/scheduler.py".
func functionOf(symbol, module string) function {
	if text, ok := strings.CutPrefix(symbol, "py::"); ok {
		symbol, module, _ = strings.Cut(text, ":")
		return pythonFunction(symbol, module)
	}
	if strings.HasSuffix(module, ".py") {
		return pythonFunction(symbol, module)
	}
	if strings.HasPrefix(symbol, staticRuntime) {
		symbol = "[" + strings.TrimSuffix(staticRuntime, "_") + "]" // and a hash
	}
	base := path.Base(module)
	fn := function{name: symbol, python: strings.HasPrefix(base, "python") || strings.HasPrefix(base, "libpython")}
	if strings.HasPrefix(symbol, "[") {
		if symbol == module || symbol == "[Unknown]" { // "[Broken backtraces]"
			fn.name = ""
		}
		return fn
	}
	symbol, _, _ = strings.Cut(symbol, "::{lambda")
	symbol, _, _ = strings.Cut(symbol, "@") // the version of a function of the C library
	if fn.name = profile.BareName(symbol); !strings.HasSuffix(fn.name, ")") {
		fn.name += "()"
	}
	fn.own = !fn.python && !nativeLibrary.MatchString(base) && !inlined.MatchString(signature(symbol))
	return fn
}

func pythonFunction(name, file string) function {
	return function{name + "() (" + path.Base(file) + ")", true, !ofLibrary(file)}
}

// nativeLibrary matches files whose functions are of no program: shared objects, what the
// kernel maps, the launcher of nsys.
var nativeLibrary = regexp.MustCompile(`\.so(\.|$|\d)|^\[|^anon$|^\.$|^nsys|\.dll$`)

// staticRuntime begins the names of functions of the CUDA runtime in a program.
const staticRuntime = "libcudart_static_"

// inlined matches functions of libraries that compilers put into programs.
var inlined = regexp.MustCompile(`\bstd::|\b__|^_start$|\bcu(da|blas|dnn|fft)?[A-Z]\w*$`)

// signature is a function without its parameters and those of templates.
func signature(symbol string) string {
	if i := strings.IndexAny(symbol, "<("); i > 0 {
		symbol = symbol[:i]
	}
	return symbol
}

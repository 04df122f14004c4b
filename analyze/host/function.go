package host

import (
	"path"
	"regexp"
	"strings"

	"github.com/sgtrace/sgtrace/profile"
)

// A Function is one of a stack that was recorded as a whole.
type Function struct {
	Name   string // "drand()", "run_batch() (scheduler.py)", "[libcuda.so.1]"; "" says nothing
	Python bool   // of Python's interpreter, or run by it
	Own    bool   // of no library
}

// FunctionOf tells what a symbol of a module is. Of Python's functions, the module is the file,
// or the symbol has it, as Python writes symbols for perf: "py::run_batch:/srv/scheduler.py".
func FunctionOf(symbol, module string) Function {
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
	fn := Function{Name: symbol, Python: strings.HasPrefix(base, "python") || strings.HasPrefix(base, "libpython")}
	if strings.HasPrefix(symbol, "[") {
		if symbol == module || symbol == "[Unknown]" { // "[Broken backtraces]"
			fn.Name = ""
		}
		return fn
	}
	symbol, _, _ = strings.Cut(symbol, "::{lambda")
	symbol, _, _ = strings.Cut(symbol, "@") // the version of a function of the C library
	if fn.Name = profile.BareName(symbol); !strings.HasSuffix(fn.Name, ")") {
		fn.Name += "()"
	}
	fn.Own = !fn.Python && !nativeLibrary.MatchString(base) && !inlined.MatchString(profile.ParseKernelName(symbol).Path())
	return fn
}

func pythonFunction(name, file string) Function {
	return Function{name + "() (" + path.Base(file) + ")", true, !ofLibrary(file)}
}

// nativeLibrary matches files whose functions are of no program: shared objects, what the
// kernel maps, the launcher of nsys.
var nativeLibrary = regexp.MustCompile(`\.so(\.|$|\d)|^\[|^anon$|^\.$|^nsys|\.dll$`)

// staticRuntime begins the names of functions of the CUDA runtime in a program.
const staticRuntime = "libcudart_static_"

// inlined matches functions of libraries that compilers put into programs.
var inlined = regexp.MustCompile(`\bstd::|\b__|^_start$|\bcu(da|blas|dnn|fft)?[A-Z]\w*$`)

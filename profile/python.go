package profile

import (
	"fmt"
	"path"
	"regexp"
	"strings"
)

// A PythonFunction is what the name of a Python function tells.
type PythonFunction struct {
	File string // "sglang/srt/managers/scheduler.py"
	Line string
	Name string // "run_batch"
}

// pythonName matches a function of Python: "sglang/srt/managers/scheduler.py(2262): run_batch".
var pythonName = regexp.MustCompile(`^(.+)\((\d+)\): (.+)$`)

// ParsePython takes the name of a Python function apart. ok is false for what is built in, and
// for modules of PyTorch.
func ParsePython(name string) (f PythonFunction, ok bool) {
	m := pythonName.FindStringSubmatch(name)
	if m == nil {
		return f, false
	}
	return PythonFunction{m[1], m[2], m[3]}, true
}

// ShortPython is a Python function as sentences have it: "run_batch() (scheduler.py:2262)".
// Other names only lose the brackets around them.
func ShortPython(name string) string {
	f, ok := ParsePython(name)
	if !ok {
		return strings.TrimSuffix(strings.TrimPrefix(name, "<"), ">")
	}
	return fmt.Sprintf("%s() (%s:%s)", f.Name, path.Base(f.File), f.Line)
}

// libraries are folders of code that every server runs and nobody asks about, by what their
// paths begin with once the folder of the packages is cut off.
var libraries = []string{"torch/", "triton/", "numpy/", "zmq/", "tqdm/", "asyncio/", "concurrent/", "multiprocessing/", "json/", "logging/",
	"collections/", "importlib/", "ctypes/", "email/", "http/", "urllib/", "xml/", "unittest/", "encodings/", "<frozen ", "uvloop/", "uvicorn/"}

// modules are those of Python that are one file.
var modules = map[string]bool{}

func init() {
	for _, name := range strings.Fields("threading queue contextlib functools inspect selectors socket socketserver subprocess typing abc copy pickle " +
		"random re os enum dataclasses weakref warnings types tempfile shutil runpy heapq bisect time datetime uuid tokenize ast dis linecache traceback " +
		"string textwrap struct signal ssl _weakrefset _collections_abc codecs io operator posixpath genericpath fnmatch glob pathlib statistics numbers " +
		"decimal fractions hashlib base64 platform stat sre_compile sre_parse keyword reprlib copyreg site bdb cProfile profile pstats gc sched nturl2path") {
		modules[name+".py"] = true
	}
}

// OfLibrary reports whether the function is of Python or of a library that every server has.
func (f *PythonFunction) OfLibrary() bool {
	file := f.File
	if _, rest, ok := strings.Cut(file, "-packages/"); ok {
		file = rest
	} else if _, rest, ok := strings.Cut(file, "/lib/python3"); ok {
		_, file, _ = strings.Cut(rest, "/")
		return file != "" // the folder itself holds Python's own modules
	}
	for _, l := range libraries {
		if strings.HasPrefix(file, l) {
			return true
		}
	}
	return modules[file]
}

package kernelname

import (
	"strings"

	"github.com/ianlancetaylor/demangle"
)

// longestDemangled is a power of two: no more bytes are demangled of a name. Names of
// templates can be made to grow without end.
const longestDemangled = 12

// Demangle returns the name of a kernel as people wrote it, without the types of its
// parameters, if it is one that a C++ compiler mangled; other names stay as they are.
// Profilers of AMD's devices leave names mangled. Some cut them off: of those it returns
// the namespaces and the name of the function.
func Demangle(kernel string) string {
	if !strings.HasPrefix(kernel, "_Z") {
		return kernel
	}
	if text, err := demangle.ToString(kernel, demangle.NoParams, demangle.NoClones, demangle.MaxLength(longestDemangled)); err == nil {
		return text
	}
	if scope := mangledScope(kernel); scope != "" {
		return scope
	}
	return kernel
}

// mangledScope returns the names that a mangled name begins with, joined by "::"; "" if
// there are none. Each is its length followed by its letters.
func mangledScope(kernel string) string {
	rest := strings.TrimLeft(strings.TrimPrefix(kernel, "_Z"), "NLKVr")
	var names []string
	for {
		n, digits := 0, 0
		for digits < len(rest) && digits < 4 && rest[digits] >= '0' && rest[digits] <= '9' {
			n, digits = 10*n+int(rest[digits]-'0'), digits+1
		}
		rest = rest[digits:]
		if n == 0 || n > len(rest) {
			return strings.Join(names, "::")
		}
		names, rest = append(names, rest[:n]), rest[n:]
	}
}

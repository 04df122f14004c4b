package kernelname

import (
	"strings"

	"github.com/ianlancetaylor/demangle"
)

// A Name is the name of a function, split into the parts that all profilers agree on: its namespaces, and its
// name there. Both are without types, which every profiler writes in its own way.
type Name struct {
	// Scope are the namespaces and classes, each followed by "::": "at::native::". Anonymous namespaces are
	// omitted: "(anonymous namespace)", "<unnamed>", or "{anonymous}".
	Scope string
	// Bare is the name itself: "reduce_kernel".
	Bare string
}

// Path returns the name with its scope.
func (n Name) Path() string { return n.Scope + n.Bare }

// withoutName are anonymous namespaces, as compilers and profilers write them.
var withoutName = [...]string{"(anonymous namespace)", "<unnamed>", "{anonymous}", "`anonymous namespace'"}

// Parse returns the parts of a name, mangled or not. It strips the return type of a C++ signature, template
// arguments, parameters, and everything after them. Bare is empty if there is no name.
func Parse(name string) Name {
	p := nameParser{text: Demangle(name)}
	for p.next() {
	}
	path := strings.TrimRight(string(p.path), " ")
	if i := strings.LastIndex(path, "::"); i >= 0 {
		return Name{path[:i+2], path[i+2:]}
	}
	return Name{Bare: path}
}

// A nameParser walks over a signature and keeps its path.
type nameParser struct {
	text string
	at   int
	// open are the open brackets at at. A ">" only closes a "<": within parentheses it compares, and after a "-" it
	// is an arrow.
	open []byte
	path []byte
}

// next consumes a byte, or a word that is a unit. It returns false at the end of the path.
func (p *nameParser) next() bool {
	rest := p.text[p.at:]
	if rest == "" {
		return false
	}
	if len(p.open) == 0 {
		if n := nameless(rest); n > 0 {
			p.at += n
			if strings.HasPrefix(p.text[p.at:], "::") {
				p.at += len("::")
			}
			return true
		}
		if n := operator(rest); n > 0 && p.begins() {
			p.path = append(p.path, rest[:n]...)
			p.at += n
			return true
		}
	}
	p.at++
	return p.take(rest[0])
}

// begins reports whether a word may begin here.
func (p *nameParser) begins() bool {
	return p.at == 0 || strings.IndexByte(": *&", p.text[p.at-1]) >= 0
}

func (p *nameParser) take(c byte) bool {
	inside := len(p.open) > 0
	switch c {
	case '(':
		if !inside && len(p.path) > 0 && p.path[len(p.path)-1] != ' ' {
			return false // the parameters begin
		}
		p.open = append(p.open, c)
	case '<':
		p.open = append(p.open, c)
	case '>':
		if inside && p.open[len(p.open)-1] == '<' && p.text[max(0, p.at-2)] != '-' {
			p.open = p.open[:len(p.open)-1]
		}
	case ')':
		p.close()
	case ' ':
		if !inside {
			return p.space()
		}
	default:
		if !inside {
			p.path = append(p.path, c)
		}
	}
	return true
}

// close closes the last parenthesis, and everything left open in it.
func (p *nameParser) close() {
	for i := len(p.open) - 1; i >= 0; i-- {
		if p.open[i] == '(' {
			p.open = p.open[:i]
			return
		}
	}
}

// space ends a word. A word before the name is the return type; after the name there may be a clone suffix in
// brackets.
func (p *nameParser) space() bool {
	if strings.HasPrefix(p.text[p.at:], "[") {
		return false
	}
	if strings.TrimLeft(p.text[p.at:], " ") != "" {
		p.path = p.path[:0]
	}
	return true
}

// nameless returns the length of the anonymous namespace at the beginning of a text, 0 if there is none.
func nameless(text string) int {
	for _, word := range withoutName {
		if strings.HasPrefix(text, word) {
			return len(word)
		}
	}
	return 0
}

// operator returns the length of the operator name at the beginning of a text, 0 if there is none: its brackets
// belong to the name.
func operator(text string) int {
	const word = "operator"
	rest, ok := strings.CutPrefix(text, word)
	if !ok {
		return 0
	}
	for _, symbol := range [...]string{"()", "->*", "->", "<<=", ">>=", "<=>", "<<", ">>", "<=", ">=", "<", ">", "[]", " new[]", " delete[]", " new", " delete"} {
		if strings.HasPrefix(rest, symbol) {
			return len(word) + len(symbol)
		}
	}
	return 0
}

// longestDemangled is the power of two that bounds the bytes demangled from a name, as template names can be
// made to grow without end.
const longestDemangled = 12

// Demangle returns the name of a kernel as in the source, without parameter types, if a C++ compiler mangled
// it; other names stay as they are. Profilers of AMD's devices leave names mangled. Some truncate them: for
// those it returns the namespaces and the name of the function.
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

// mangledScope returns the names at the beginning of a mangled name, joined by "::"; "" if there are none. Each
// is its length followed by its letters.
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

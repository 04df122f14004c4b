package kernelname

import (
	"bufio"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/sgtrace/sgtrace/trace"
)

// A Class is the kind of work of a device during a kernel.
type Class uint8

const (
	// ClassOther is none of the others, or unknown: a wait, or a CUDA graph that was only recorded as a whole.
	ClassOther         Class = iota
	ClassCompute             // works on data on the device
	ClassCommunication       // moves data between devices, or waits for another device
	ClassMemory              // copies or fills memory
	NumClasses
)

var classNames = [NumClasses]string{"other", "compute", "communication", "memory"}

func (c Class) String() string { return classNames[c] }

// parseClass returns the inverse of [Class.String], regardless of case.
func parseClass(word string) (Class, bool) {
	for c, name := range classNames {
		if strings.EqualFold(word, name) {
			return Class(c), true
		}
	}
	return 0, false
}

// A ClassRule gives the class of kernels whose name it matches: by Regexp, or by a part of the name.
type ClassRule struct {
	Class  Class
	Regexp *regexp.Regexp // matches anywhere in the name, as it is or demangled, unless it begins with ^
	Source string         // origin of kernels with such names; "" is unknown

	part *nameRule // used if Regexp is nil; a hundred times as fast
}

// pattern returns the rule as a regular expression.
func (r *ClassRule) pattern() string {
	if r.part != nil {
		return r.part.pattern()
	}
	return r.Regexp.String()
}

// Classes are rules that give the classes of kernels by their names. The first rule that matches counts;
// kernels without a match are [ClassCompute].
type Classes struct {
	Name  string // "default", "hta", or the name of a file
	Rules []ClassRule
}

// Of returns the class of a kernel, and whether a rule matches it. It tries one rule after the other; for the
// events of a trace, use [Classes.Table], which tries them once per name.
func (c *Classes) Of(kernel string) (class Class, known bool) {
	demangled := Demangle(kernel)
	head := newNameHead(demangled)
	for i := range c.Rules {
		switch r := &c.Rules[i]; {
		case r.part != nil && head.matches(r.part):
			return r.Class, true
		case r.part == nil && (r.Regexp.MatchString(kernel) || demangled != kernel && r.Regexp.MatchString(demangled)):
			return r.Class, true
		}
	}
	return ClassCompute, false
}

// ReadClasses reads rules from r, one per line: a class, tabs or spaces, and a Go regular expression (RE2) that
// extends to the end of the line.
//
//	# our own all-reduce
//	communication  ^my_all_reduce_
//
// It ignores empty lines and those that begin with #. The default rules come after these rules. name is the
// name of the rules in errors and in the table.
func ReadClasses(r io.Reader, name string) (*Classes, error) {
	c := &Classes{Name: name}
	lines, n := bufio.NewScanner(r), 1
	for ; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if n == 1 {
			line = strings.TrimPrefix(line, "\ufeff") // editors on Windows write it
		}
		if line == "" || line[0] == '#' {
			continue
		}
		end := strings.IndexAny(line, " \t")
		if end < 0 {
			return nil, fmt.Errorf("%s:%d: %q: want a class and a regular expression, such as 'communication my_allreduce'", name, n, line)
		}
		class, ok := parseClass(line[:end])
		if !ok {
			return nil, fmt.Errorf("%s:%d: no class %q; there are %s", name, n, line[:end], strings.Join(classNames[:], ", "))
		}
		re, err := regexp.Compile(strings.TrimSpace(line[end:]))
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, n, err)
		}
		c.Rules = append(c.Rules, ClassRule{Class: class, Regexp: re, Source: name})
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%s:%d: %w", name, n, err)
	}
	c.Rules = append(c.Rules, DefaultClasses().Rules...)
	return c, nil
}

// String returns the rules in the form that [ReadClasses] reads, in the order in which they are tried, with the
// source of each one as a comment.
func (c *Classes) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# kernel classes %q: the first rule that matches counts, other kernels are %s\n", c.Name, ClassCompute)
	last := ""
	for _, r := range c.Rules {
		source := r.Source
		if r.part != nil {
			source += fmt.Sprintf(" (in the first %d bytes)", headBytes)
		}
		if source != last {
			fmt.Fprintf(&b, "\n# %s\n", source)
			last = source
		}
		fmt.Fprintf(&b, "%-13s  %s\n", r.Class, r.pattern())
	}
	return b.String()
}

// A NameClass is the class of a kernel name, and whether a rule matches the name.
type NameClass struct {
	Class Class
	Known bool
}

// Table returns the classes of symbols.
func (c *Classes) Table(syms *trace.Symbols) *trace.PerName[NameClass] {
	return trace.EachName(syms, func(name string) (n NameClass) {
		n.Class, n.Known = c.Of(name)
		return n
	})
}

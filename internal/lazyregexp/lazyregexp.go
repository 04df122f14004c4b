// Package lazyregexp provides regular expressions that are compiled on first use. Few commands need many of the
// program's expressions, and compiling all of them would take a good part of the start time.
package lazyregexp

import (
	"os"
	"regexp"
	"strings"
	"sync"
)

// A Regexp is a regular expression. Its methods are those of [regexp.Regexp].
type Regexp struct {
	text string
	once sync.Once
	re   *regexp.Regexp
}

// New returns an expression, which must be valid. If it is not, its first use panics; in a test, New does.
func New(text string) *Regexp {
	r := &Regexp{text: text}
	if strings.HasSuffix(strings.TrimSuffix(os.Args[0], ".exe"), ".test") {
		r.Compiled()
	}
	return r
}

// Compiled returns the compiled expression.
func (r *Regexp) Compiled() *regexp.Regexp {
	r.once.Do(func() { r.re = regexp.MustCompile(r.text) })
	return r.re
}

// String returns the text of the expression.
func (r *Regexp) String() string { return r.text }

func (r *Regexp) Match(b []byte) bool                  { return r.Compiled().Match(b) }
func (r *Regexp) MatchString(s string) bool            { return r.Compiled().MatchString(s) }
func (r *Regexp) FindString(s string) string           { return r.Compiled().FindString(s) }
func (r *Regexp) FindIndex(b []byte) []int             { return r.Compiled().FindIndex(b) }
func (r *Regexp) FindStringIndex(s string) []int       { return r.Compiled().FindStringIndex(s) }
func (r *Regexp) FindSubmatch(b []byte) [][]byte       { return r.Compiled().FindSubmatch(b) }
func (r *Regexp) FindSubmatchIndex(b []byte) []int     { return r.Compiled().FindSubmatchIndex(b) }
func (r *Regexp) FindStringSubmatch(s string) []string { return r.Compiled().FindStringSubmatch(s) }
func (r *Regexp) FindStringSubmatchIndex(s string) []int {
	return r.Compiled().FindStringSubmatchIndex(s)
}
func (r *Regexp) FindAllStringIndex(s string, n int) [][]int {
	return r.Compiled().FindAllStringIndex(s, n)
}
func (r *Regexp) FindAllStringSubmatch(s string, n int) [][]string {
	return r.Compiled().FindAllStringSubmatch(s, n)
}
func (r *Regexp) FindAllStringSubmatchIndex(s string, n int) [][]int {
	return r.Compiled().FindAllStringSubmatchIndex(s, n)
}
func (r *Regexp) ReplaceAllString(src, repl string) string {
	return r.Compiled().ReplaceAllString(src, repl)
}

package redact

import (
	"bytes"
	"slices"
	"strings"
	"unicode"

	"github.com/sgtrace/sgtrace/internal/lazyregexp"
	"github.com/sgtrace/sgtrace/trace"
)

// A SecretTest reports whether a text may be a secret; nil is the test of names that hold none.
type SecretTest func(text string) bool

// SecretIn returns the test for values of attributes with this name.
func SecretIn(name string) SecretTest {
	words := wordsOf(name)
	if slices.Contains(failureNames, strings.TrimSpace(words)) {
		return hasCredential
	}
	if slices.ContainsFunc(measures, func(end string) bool { return endsWith(words, end) }) {
		return nil
	}
	first := len(SecretRules) // index of the first rule that matches the name
	for word := range strings.FieldsSeq(words) {
		for _, i := range rulesOf[word] {
			if i < first && SecretRules[i].isAbout(words) {
				first = i
			}
		}
	}
	switch {
	case first == len(SecretRules):
		return nil
	case SecretRules[first].When == nil:
		return func(string) bool { return true }
	}
	return SecretRules[first].When
}

// rulesOf has the indexes of the rules whose name begins with a word.
var rulesOf = func() map[string][]int {
	all := map[string][]int{}
	for i, r := range SecretRules {
		word, _, _ := strings.Cut(r.Name, " ")
		all[word] = append(all[word], i)
	}
	return all
}()

func (r *SecretRule) isAbout(words string) bool {
	begin, open := strings.CutSuffix(r.Name, "*")
	if !open {
		return endsWith(words, r.Name)
	}
	return strings.Contains(words, " "+begin) && (r.Why != conversation || !slices.ContainsFunc(harmless, func(end string) bool { return endsWith(words, end) }))
}

// endsWith reports whether words ends with these.
func endsWith(words, these string) bool {
	rest, ok := strings.CutSuffix(words, these+" ")
	return ok && strings.HasSuffix(rest, " ")
}

// wordsOf returns the words of a name in lowercase, surrounded by spaces: " ai tool call " for
// ai.toolCall.0. Numbers are dropped.
func wordsOf(name string) string {
	var words strings.Builder
	words.WriteByte(' ')
	word := []rune{}
	flush := func() {
		if text := strings.TrimRight(strings.ToLower(string(word)), "0123456789"); text != "" {
			words.WriteString(text + " ")
		}
		word = word[:0]
	}
	runes := []rune(name)
	for i, r := range runes {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			flush()
			continue
		}
		// A word begins at an uppercase letter that does not follow another one, and at the last of several
		// before a lowercase one: openaiAPIKey.
		if unicode.IsUpper(r) && i > 0 && (!unicode.IsUpper(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1])) {
			flush()
		}
		word = append(word, r)
	}
	flush()
	return words.String()
}

// member matches the beginning of an object's member in a text, as JSON or Python write it, if its value is
// not a number.
var member = lazyregexp.New(`["']([^"'\n]{1,80})["']\s*:\s*["'\[{]`)

// inObject reports whether an object in a text has a member that may be a secret.
func inObject(text string) bool {
	for _, m := range member.FindAllStringSubmatchIndex(text, -1) {
		if test := SecretIn(text[m[2]:m[3]]); test != nil && test(text[m[1]-1:]) {
			return true
		}
	}
	return false
}

// A Filter finds secrets in lists of arguments. Each goroutine needs its own.
type Filter struct {
	syms  *trace.Symbols
	tests *trace.PerName[SecretTest]
}

// NewFilter returns a filter for names among syms.
func NewFilter(syms *trace.Symbols) *Filter { return &Filter{syms, trace.EachName(syms, SecretIn)} }

// Of returns the test for a name.
func (f *Filter) Of(name trace.Sym) SecretTest { return f.tests.Of(name) }

// Name returns the name itself.
func (f *Filter) Name(name trace.Sym) string { return f.syms.Name(name) }

// Holds reports whether any argument of an encoded list may hold a secret: by its name, by the name of an
// entry in it, or by its shape.
func (f *Filter) Holds(list trace.ArgList) bool {
	for a := range list.All {
		if f.holds(a, nil) {
			return true
		}
	}
	return false
}

// holds reports whether a may hold a secret; outer is the test of the argument around it.
func (f *Filter) holds(a trace.Arg, outer SecretTest) bool {
	if a.Kind != trace.ArgString && a.Kind != trace.ArgArray && a.Kind != trace.ArgDict {
		return false
	}
	test := outer
	if test == nil && a.Key != 0 {
		test = f.Of(a.Key)
	}
	switch a.Kind {
	case trace.ArgString:
		text := a.Bytes()
		switch {
		case len(text) == 0:
		case test != nil && test(string(text)):
			return true
		case candidates(text) != 0 && hasCredential(string(text)):
			return true
		case bytes.IndexByte(text, '{') >= 0:
			return inObject(string(text))
		}
	case trace.ArgArray, trace.ArgDict:
		for e := range a.Elems {
			if f.holds(e, test) {
				return true
			}
		}
	}
	return false
}

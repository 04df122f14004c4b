package redact

import (
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/internal/order"
)

// words are texts to be found in others, by the first run of letters and digits in
// them. A text is found only where it is not part of a longer word.
type words map[string]*sharing

// sharing are texts that have their first run in common, as ids of one producer do.
type sharing struct {
	forms []form // longest first
	names map[string]string
}

// A form is what is looked for around a run: texts of one form are found together.
type form struct {
	lead, length int // bytes before the run, and in all
}

// isWord reports whether a byte is part of a word. Bytes of other scripts are.
func isWord(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}

// firstWord returns where the first word of s from i on begins and ends.
func firstWord(s string, i int) (from, to int) {
	for from = i; from < len(s) && !isWord(s[from]); from++ {
	}
	for to = from; to < len(s) && isWord(s[to]); to++ {
	}
	return from, to
}

// add makes text be found. The name that was given last counts.
func (w words) add(text, name string) {
	from, to := firstWord(text, 0)
	if from == to {
		return
	}
	x := order.Memo(w, text[from:to], func() *sharing { return &sharing{names: map[string]string{}} })
	x.names[text] = name
	f := form{from, len(text)}
	if !slices.Contains(x.forms, f) {
		at, _ := slices.BinarySearchFunc(x.forms, f.length, func(x form, n int) int { return n - x.length })
		x.forms = slices.Insert(x.forms, at, f)
	}
}

// find returns the name of a whole text, if it has one.
func (w words) find(text string) (name string, ok bool) {
	from, to := firstWord(text, 0)
	if x := w[text[from:to]]; x != nil {
		name, ok = x.names[text]
	}
	return name, ok
}

// at returns the name of the longest text in s whose first run is s[from:to], and where it
// begins and ends; it does not begin before done.
func (w words) at(s string, done, from, to int) (name string, start, end int, ok bool) {
	x := w[s[from:to]]
	if x == nil {
		return "", 0, 0, false
	}
	for _, f := range x.forms {
		start, end = from-f.lead, from-f.lead+f.length
		if start < done || end > len(s) || end < len(s) && isWord(s[end]) && isWord(s[end-1]) {
			continue
		}
		if name, ok = x.names[s[start:end]]; ok {
			return name, start, end, true
		}
	}
	return "", 0, 0, false
}

// replace replaces the texts found in s, and all between them by between of it.
func (w words) replace(s string, between func(string) string) string {
	var out strings.Builder
	done := 0
	for i := 0; i < len(s); {
		from, to := firstWord(s, i)
		i = to
		name, start, end, ok := w.at(s, done, from, to)
		if !ok {
			continue
		}
		out.WriteString(between(s[done:start]))
		out.WriteString(name)
		done, i = end, end
	}
	if done == 0 {
		return between(s)
	}
	out.WriteString(between(s[done:]))
	return out.String()
}

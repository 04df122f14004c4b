package redact

import (
	"slices"
	"strings"
)

// words are texts to be found in others, by the first run of letters and digits in
// them, longest first. A text is found only where it is not part of a longer word.
type words map[string][]word

type word struct {
	text, name string
	lead       int // bytes before the first run
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
	list := w[text[from:to]]
	if i := slices.IndexFunc(list, func(x word) bool { return x.text == text }); i >= 0 {
		list[i].name = name
		return
	}
	at, _ := slices.BinarySearchFunc(list, len(text), func(x word, n int) int { return n - len(x.text) })
	w[text[from:to]] = slices.Insert(list, at, word{text, name, from})
}

// find returns the name of a whole text, if it has one.
func (w words) find(text string) (name string, ok bool) {
	from, to := firstWord(text, 0)
	for _, x := range w[text[from:to]] {
		if x.text == text {
			return x.name, true
		}
	}
	return "", false
}

// replace replaces the texts found in s, and all between them by between of it.
func (w words) replace(s string, between func(string) string) string {
	var out strings.Builder
	done := 0
	for i := 0; i < len(s); {
		from, to := firstWord(s, i)
		i = to
		for _, x := range w[s[from:to]] {
			start, end := from-x.lead, from-x.lead+len(x.text)
			if start < done || end > len(s) || s[start:end] != x.text || end < len(s) && isWord(s[end]) && isWord(s[end-1]) {
				continue
			}
			out.WriteString(between(s[done:start]))
			out.WriteString(x.name)
			done, i = end, end
			break
		}
	}
	if done == 0 {
		return between(s)
	}
	out.WriteString(between(s[done:]))
	return out.String()
}

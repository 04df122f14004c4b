package words

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// Clean makes a string from a file safe to print: control characters, escape
// sequences, bidirectional overrides and invalid UTF-8 appear as \x1b or
// \u202e. A name must not be able to move the cursor, retitle the window or
// change the order in which a line reads.
func Clean(s string) string {
	if utf8.ValidString(s) && strings.IndexFunc(s, Hidden) < 0 {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		r, size := utf8.DecodeRuneInString(s)
		if Hidden(r) || r == utf8.RuneError && size == 1 {
			quoted := strconv.Quote(s[:size])
			b.WriteString(quoted[1 : len(quoted)-1])
		} else {
			b.WriteString(s[:size])
		}
		s = s[size:]
	}
	return b.String()
}

// Hidden reports whether r does not simply draw itself.
func Hidden(r rune) bool { return !strconv.IsPrint(r) }

package logline

import (
	"bytes"
	"slices"
)

// The prefixes that log collectors and viewers put before a line have endless forms. But the prefix before the
// stamp of a line also precedes lines without a stamp: it is the same, except for the digits of times and
// numbers.

const (
	shortestPrefix = 4
	longestPrefix  = 300
	mostLearned    = 64 // pods in one file
)

// Learn remembers the prefix of a line, for [Unwrapper.Rest].
func (r *Unwrapper) Learn(b []byte) {
	if len(b) < shortestPrefix || len(b) > longestPrefix || bytes.IndexByte([]byte(" \t:]"), b[len(b)-1]) < 0 {
		return
	}
	for i, shape := range r.learned {
		if matches(shape, b) == len(b) {
			if i > 0 {
				r.learned = slices.Insert(slices.Delete(r.learned, i, i+1), 0, shape)
			}
			return
		}
	}
	r.learned = slices.Insert(r.learned[:min(len(r.learned), mostLearned-1)], 0, string(b))
}

// matches returns the length of the prefix of b that equals a text, except for the lengths and values of
// numbers; 0 if none does.
func matches(text string, b []byte) int {
	i, k := 0, 0
	for i < len(text) {
		if k == len(b) {
			return 0
		}
		if isDigit(text[i]) && isDigit(b[k]) {
			for i < len(text) && isDigit(text[i]) {
				i++
			}
			for k < len(b) && isDigit(b[k]) {
				k++
			}
			continue
		}
		if text[i] != b[k] {
			return 0
		}
		i, k = i+1, k+1
	}
	return k
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

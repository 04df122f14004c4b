package logline

import "slices"

// What collectors of logs and their viewers put before a line has no end of forms. But what stood before the stamp of
// a line stands before lines without one, too: the same, except for the digits of times and numbers in it.

const (
	shortestPrefix = 4
	longestPrefix  = 300
	mostLearned    = 64 // pods in one file
)

// Learn notes what stands before a line of a process, for [Unwrapper.Rest].
func (r *Unwrapper) Learn(b []byte) {
	if len(b) < shortestPrefix || len(b) > longestPrefix || b[len(b)-1] != ' ' && b[len(b)-1] != '\t' {
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

// matches returns how much of the beginning of b is like a text, in which any digits stand for any others; 0 if it
// is not.
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

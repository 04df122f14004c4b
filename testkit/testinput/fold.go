package testinput

import (
	"strings"
	"unicode/utf8"
)

const (
	// longest is how many characters a line of a golden file may have. What is longer is
	// folded, at foldAt.
	longest, foldAt = 200, 160
	// folded ends a line that goes on in the next one.
	folded = "⏎\n"
)

// Fold breaks lines that nobody could read in a diff: after a comma or a blank where
// there is one. [Unfold] is the inverse.
func Fold(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		for utf8.RuneCountInString(line) > longest {
			at := foldPlace(line)
			b.WriteString(line[:at] + folded)
			line = line[at:]
		}
		b.WriteString(line)
	}
	return b.String()
}

// foldPlace returns before which byte to break a line: behind the last comma or blank of
// its first foldAt characters, or behind these.
func foldPlace(line string) int {
	n, place := 0, 0
	for i, r := range line {
		if n++; n > foldAt {
			if place > 0 {
				return place
			}
			return i
		}
		if r == ',' || r == ' ' && strings.TrimLeft(line[:i], " ") != "" {
			place = i + 1
		}
	}
	return len(line)
}

// Unfold puts folded lines together again.
func Unfold(text string) string { return strings.ReplaceAll(text, folded, "") }

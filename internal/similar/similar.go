// Package similar finds the word that a misspelled one may stand for.
package similar

import (
	"slices"
	"strings"
)

// Distance returns how many letters of a must be changed, added, left out, or swapped with the next one to make
// b (the optimal string alignment distance).
func Distance(a, b string) int {
	before, last := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range a {
		row := make([]int, len(b)+1)
		row[0] = i + 1
		for j := range b {
			cost := 0
			if a[i] != b[j] {
				cost = 1
			}
			row[j+1] = min(last[j]+cost, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}

// Best returns the choice nearest to word, the first of equally near ones. If none is near enough, it returns
// the only choice that begins with word, or "". It never returns word itself.
func Best(word string, choices []string) string {
	var others, begun []string
	for _, c := range choices {
		if c != word {
			others = append(others, c)
		}
		if c != word && len(word) > 1 && strings.HasPrefix(c, word) && !slices.Contains(begun, c) {
			begun = append(begun, c)
		}
	}
	if len(others) == 0 {
		return ""
	}
	best := slices.MinFunc(others, func(a, b string) int { return Distance(word, a) - Distance(word, b) })
	switch {
	case Distance(word, best) <= (len(word)+1)/3:
		return best
	case len(begun) == 1:
		return begun[0]
	}
	return ""
}

// Hint suggests the choice nearest to word; it is empty if there is none.
func Hint(word string, choices []string) string {
	if best := Best(word, choices); best != "" {
		return "; did you mean " + best + "?"
	}
	return ""
}

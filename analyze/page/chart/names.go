package chart

import (
	"slices"
	"strings"
)

// ShortNames leaves out of names what all of them have: of "decode DP0 TP0 (node0)"
// and "decode DP0 TP1 (node0)" all but the TP rank. Names stay different.
func ShortNames(names []string) []string {
	if len(names) < 2 {
		return names
	}
	split := make([][]string, len(names))
	for i, name := range names {
		split[i] = pieces(name)
		if len(split[i]) != len(split[0]) {
			return names
		}
	}
	short := make([]string, len(names))
	for i := range names {
		var words []string
		for k, piece := range split[i] {
			if !slices.ContainsFunc(split, func(other []string) bool { return other[k] != piece }) {
				continue
			}
			words = append(words, piece)
		}
		short[i] = strings.TrimLeft(strings.Join(words, ""), " -")
	}
	if len(slices.Compact(slices.Sorted(slices.Values(short)))) < len(slices.Compact(slices.Sorted(slices.Values(names)))) {
		return names
	}
	return short
}

// pieces cuts a name before spaces and hyphens.
func pieces(name string) []string {
	var list []string
	from := 0
	for i, r := range name {
		if i > from && (r == ' ' || r == '-') {
			list = append(list, name[from:i])
			from = i
		}
	}
	return append(list, name[from:])
}

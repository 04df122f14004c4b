package chart

import (
	"slices"
	"testing"
)

func TestShortNames(t *testing.T) {
	for _, c := range []struct{ names, want []string }{
		{[]string{"decode DP0 TP0 (node0)", "decode DP0 TP1 (node0)"}, []string{"TP0", "TP1"}},
		{[]string{"PP0 TP0 (node0)", "PP0 TP1 (node1)"}, []string{"TP0 (node0)", "TP1 (node1)"}},
		{[]string{"decode DP0", "decode DP1"}, []string{"DP0", "DP1"}},
		{[]string{"PP0 TP0", "TP0"}, []string{"PP0 TP0", "TP0"}}, // different forms
		{[]string{"TP0"}, []string{"TP0"}},                       // nothing to compare with
		{[]string{"a-1", "a 1"}, []string{"a-1", "a 1"}},         // would become equal
		{[]string{"same", "same", "other"}, []string{"same", "same", "other"}},
	} {
		if got := ShortNames(c.names); !slices.Equal(got, c.want) {
			t.Errorf("%q are %q, want %q", c.names, got, c.want)
		}
	}
}

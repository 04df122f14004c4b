package compare

import (
	"strings"
	"testing"
)

// A rank all of whose kernels are slower by about the same factor is reported, unless all ranks are, or a single kernel is.
func TestClocksOfRanks(t *testing.T) {
	kernels := func(factors ...float64) (list []Kernel) {
		for i, f := range factors {
			list = append(list, Kernel{Before: 1000, After: 1000 * f, N: [2]int64{100 + int64(i), 100}, Known: true})
		}
		return list
	}
	slow, usual := kernels(1.3, 1.31, 1.29, 1.3, 1.3), kernels(1, 1.01, 0.99, 1, 1)
	for name, c := range map[string]struct {
		ranks map[string][]Kernel
		want  string
	}{
		"one":                               {map[string][]Kernel{"TP0": usual, "TP1": slow}, "take 1.30 times as long on TP1, and not on all ranks, as if its GPU clock were lower (certain)"},
		"all":                               {map[string][]Kernel{"TP0": slow, "TP1": slow}, ""},
		"none":                              {map[string][]Kernel{"TP0": usual, "TP1": usual}, ""},
		"one kernel":                        {map[string][]Kernel{"TP0": usual, "TP1": kernels(3, 1, 1, 1, 1)}, ""},
		"a role, which may have more to do": {map[string][]Kernel{"prefill TP0": slow, "prefill TP1": slow, "decode TP0": usual, "decode TP1": usual}, ""},
		"few names":                         {map[string][]Kernel{"TP0": usual, "TP1": kernels(1.3, 1.3)}, ""},
	} {
		found := ClocksOfRanks(c.ranks)
		if c.want == "" && found != nil || c.want != "" && (len(found) != 1 || !strings.HasSuffix(found[0].Text, c.want) || found[0].At.RankName() != "TP1") {
			t.Errorf("%s: %+v, want %s", name, found, c.want)
		}
	}
}

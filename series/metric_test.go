package series

import (
	"strings"
	"testing"
)

// Every row of Worsenings is complete: it has a unique name, Matters, and all placeholders in Says.
func TestWorseningsAreWhole(t *testing.T) {
	known := map[string]bool{}
	for _, w := range Worsenings {
		for _, part := range []string{"{at}", "{before}", "{after}"} {
			if !strings.Contains(w.Says, part) {
				t.Errorf("%q: Says has no %s", w.Name, part)
			}
		}
		if w.Matters == nil || w.Name == "" || known[w.Name] {
			t.Errorf("%q: it takes Matters, and a name of its own", w.Name)
		}
		if (len(w.Percent) > 0 || len(w.Of) > 0) && !w.Part {
			t.Errorf("%q: Of and Percent are for parts: set Part", w.Name)
		}
		known[w.Name] = true
	}
}

func TestMetricsAreWhole(t *testing.T) {
	for i, m := range Metrics {
		if m.Name == "" || m.Doc == "" {
			t.Errorf("metric %d of series/metric.go has no row, or no name or doc, in Metrics", i)
		}
	}
}

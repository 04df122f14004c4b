package trace_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/trace"
)

// Each name is examined once, whichever block its symbol is in, and whatever the result.
func TestPerName(t *testing.T) {
	syms := trace.NewSymbols()
	looked := map[string]int{}
	long := trace.EachName(syms, func(name string) bool {
		looked[name]++
		return len(name) > 4
	})
	upper := trace.Renamed(syms, strings.ToUpper)
	for range 2 {
		for i := 2000; i > 0; i -= 7 {
			name := fmt.Sprintf("n%d", i)
			if got, want := long.Of(syms.Intern(name)), i >= 1000; got != want {
				t.Fatalf("%s: %t, want %t", name, got, want)
			}
			if got, want := syms.Name(upper.Of(syms.Intern(name))), strings.ToUpper(name); got != want {
				t.Fatalf("%s, want %s", got, want)
			}
		}
	}
	for name, n := range looked {
		if n != 1 {
			t.Errorf("%s was looked at %d times", name, n)
		}
	}
}

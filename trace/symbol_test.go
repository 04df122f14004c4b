package trace

import (
	"slices"
	"strconv"
	"sync"
	"testing"
)

// Goroutines that concurrently intern the same strings get the same symbols, and caches agree.
func TestSymbolsAtATime(t *testing.T) {
	const goroutines, texts = 8, 2000
	syms := NewSymbols()
	var got [goroutines][]Sym
	var wg sync.WaitGroup
	for g := range got {
		wg.Go(func() {
			cache := NewSymbolCache(syms)
			got[g] = make([]Sym, texts)
			for k := range texts {
				i := (k*7 + g*texts/goroutines) % texts // each begins elsewhere
				text := "Req " + strconv.Itoa(i)
				if got[g][i] = cache.Intern([]byte(text)); syms.Name(got[g][i]) != text {
					t.Errorf("%q is called %q", text, syms.Name(got[g][i]))
				}
			}
		})
	}
	wg.Wait()
	for g := range got {
		if !slices.Equal(got[g], got[0]) {
			t.Errorf("goroutine %d has other symbols than the first one", g)
		}
	}
	if names := syms.Names(); len(names) != texts+1 || names[0] != "" || syms.Len() != len(names) {
		t.Errorf("%d names, the first one %q", len(names), names[0])
	}
	if sym, ok := syms.Lookup("Req 1"); !ok || sym != got[0][1] {
		t.Errorf("Req 1 is looked up as %d, %t", sym, ok)
	}
	if _, ok := syms.Lookup("Req"); ok {
		t.Error("what was never interned is found")
	}
}

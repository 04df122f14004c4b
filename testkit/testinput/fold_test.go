package testinput

import (
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"
)

// Folded lines are short, and Unfold restores the text.
func TestFold(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 0))
		var b strings.Builder
		for range rng.IntN(3000) {
			b.WriteString([]string{"a", "é", "█", " ", ",", `"x"`, "\n"}[rng.IntN(6+int(seed%2))])
		}
		text := b.String()
		got := Fold(text)
		if Unfold(got) != text {
			t.Fatalf("seed %d: %q is not what was folded", seed, Unfold(got))
		}
		for line := range strings.Lines(got) {
			if n := utf8.RuneCountInString(line); n > longest {
				t.Fatalf("seed %d: %d characters: %q", seed, n, line)
			}
		}
	}
	if text := strings.Repeat("short\n", 100); Fold(text) != text {
		t.Error("short lines are folded")
	}
}

package screen

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestShorten(t *testing.T) {
	for _, msg := range []string{"", "short", strings.Repeat("ü", 400)} {
		if got := shorten(msg); got != msg {
			t.Errorf("%q became %q", msg, got)
		}
	}
	got := shorten("stage \"" + strings.Repeat("ü", 1_000_000) + "\" ends")
	if n := utf8.RuneCountInString(got); n > 400 || !strings.HasPrefix(got, "stage ") || !strings.HasSuffix(got, " ends") || !utf8.ValidString(got) {
		t.Errorf("%d characters: %.80q", n, got)
	}
}

package commandline

import "testing"

func TestRoff(t *testing.T) {
	for in, want := range map[string]string{
		".so /etc/passwd": `\&.so /etc/passwd`,
		`a\b`:             `a\eb`,
		"--from":          `\-\-from`,
		"'dumps/*.zst'":   `\(aqdumps/*.zst\(aq`,
		"a\n.b":           "a\n\\&.b",
	} {
		if have := roff(in); have != want {
			t.Errorf("%q: %q, want %q", in, have, want)
		}
	}
}

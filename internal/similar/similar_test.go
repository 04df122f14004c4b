package similar

import "testing"

func TestDistance(t *testing.T) {
	for _, test := range []struct {
		a, b string
		want int
	}{
		{"", "", 0},
		{"", "abc", 3},
		{"report", "report", 0},
		{"reprot", "report", 1},
		{"rport", "report", 1},
		{"reeport", "report", 1},
		{"repart", "report", 1},
		{"kitten", "sitting", 3},
		{"ca", "abc", 3}, // transposed letters are not edited again
	} {
		if have := Distance(test.a, test.b); have != test.want {
			t.Errorf("%q to %q: %d, want %d", test.a, test.b, have, test.want)
		}
		if have := Distance(test.b, test.a); have != test.want {
			t.Errorf("%q to %q: %d, want %d", test.b, test.a, have, test.want)
		}
	}
}

func TestBest(t *testing.T) {
	commands := []string{"convert", "merge", "report", "request", "requests"}
	for word, want := range map[string]string{
		"reprot": "report", "request": "requests", "reqests": "requests", "mrege": "merge", "conv": "convert", "re": "",
		"frobnicate": "", "x": "", "": "",
	} {
		if have := Best(word, commands); have != want {
			t.Errorf("%q: %q, want %q", word, have, want)
		}
	}
	if have := Best("report", nil); have != "" {
		t.Errorf("%q of nothing", have)
	}
}

package requests

import (
	"strings"
	"testing"
)

// If a loss leaves every request complete, the text says so instead of "0 of 300".
func TestLossText(t *testing.T) {
	for incomplete, want := range map[int]string{
		0: "; no request is incomplete",
		3: "; 3 of 300 requests are incomplete",
	} {
		l := Loss{Lost: 17, Shown: 1000, From: 1, To: 2, Incomplete: incomplete, Requests: 300}
		if got := l.Text(); !strings.HasPrefix(got, "at least 1.7 % of the spans were lost") || !strings.HasSuffix(got, want) {
			t.Errorf("%q, want %q at the end", got, want)
		}
	}
}

package compare

import (
	"testing"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/internal/significance"
)

// Durations have the same unit unless they differ too much for that, and a factor of nearly nothing is not spelled out.
func TestWords(t *testing.T) {
	for _, c := range []struct {
		before, after int64
		want          string
	}{{8_100_000, 9_400_000, "8.10 -> 9.40 ms"}, {6_850_000, 23_131_580_000, "6.85 ms -> 23.1 s"}, {14_700_000_000, 512, "14.7 s -> 512 ns"}, {0, 221_000_000, "0 -> 221 ms"}} {
		if got := PairInWords(c.before, c.after); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
	for ratio, want := range map[float64]string{2.5e8: " (more than x10000; certain)", 800: " (x800, CI x400 to x1600; certain)"} {
		c := Change{Change: significance.Change{Ratio: ratio, Low: ratio / 2, High: 2 * ratio, P: 0.001}, Sure: finding.Certain}
		if got := c.InBrackets(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

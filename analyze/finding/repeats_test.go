package finding

import (
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/trace"
)

// A server that is slower for 20 s every 90 s has one cause. Two spells, or spells of another size, remain apart.
func TestRepeats(t *testing.T) {
	const second = trace.Time(1e9)
	spell := func(k int, after float64) Finding {
		from := trace.Time(100+90*k) * second
		return Finding{Kind: Change, Subkind: "pace", Text: "slower", Cost: 0.02, Since: from, Until: from + 20*second, At: place.Location{Scope: place.WholeRole},
			Metric: Metric{Name: "decode", Before: 10, After: after}, Claim: func(int, []int64) {}}
	}
	for name, c := range map[string]struct {
		in   []Finding
		n    int
		says string
	}{
		"four":           {[]Finding{spell(2, 16), spell(0, 15), spell(3, 16), spell(1, 17)}, 1, "slower; and again 3 times, every 90 s: from "},
		"two":            {[]Finding{spell(0, 16), spell(1, 16)}, 2, ""},
		"of other sizes": {[]Finding{spell(0, 12), spell(1, 20), spell(2, 40)}, 3, ""},
	} {
		out := Repeats(c.in)
		if len(out) != c.n || !strings.HasPrefix(out[0].Text, c.says) {
			t.Errorf("%s: %d findings, %q", name, len(out), out[0].Text)
		}
		if cost := 0.0; c.n == 1 {
			if cost = out[0].Cost; cost < 0.0799 || cost > 0.0801 || out[0].Since != 100*second || out[0].Until != 390*second {
				t.Errorf("%s: costs %g from %d to %d", name, cost, out[0].Since, out[0].Until)
			}
		}
	}
}

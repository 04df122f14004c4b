package clocks

import (
	"strings"
	"testing"
)

// Offsets are printed without digits that their bounds make meaningless.
func TestClockRecord(t *testing.T) {
	for _, c := range []struct {
		offset, bound int64
		want          string
	}{
		{2_793_985, 2_126_442, ": 2.79ms ahead, matched by requests, 9 bounds, within 2.126ms"},
		{-1_734_500, 1_350, ": 1.7345ms behind, matched by requests, 9 bounds, within 1.35us"},
		{1_734_567, 3_802, ": 1.73457ms ahead"},
		{1_734_567, -1, ": 1.734567ms ahead, matched by requests, 9 bounds, bound unknown"},
		{1_734_567, 80, ": 1.734567ms ahead"},
		{12_300, 50_000_000, ": 12.3us ahead"},
	} {
		l := ClockRecord{Host: "a", Why: "matched", By: "requests", Matches: 9, Offset: c.offset, Bound: c.bound}
		if got := l.String(); !strings.HasPrefix(got, "clock of a"+c.want) {
			t.Errorf("%d within %d: %s, want %s", c.offset, c.bound, got, c.want)
		}
	}
}
